"""Publish one release: exact sums and nodes drawn once in one transaction, answers from what was committed in the next.

Between the two lies a COMMIT: an answer is post-processing of nodes that nothing can take back any more. Whoever rolled back a
transaction after reading its answers would have nodes drawn anew, and could average the noise away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbext.database import catalog, ledger, release_table, releases, rights
from dbext.database.session import Session
from dbext.privacy.charge import Charge
from dbext.query.plan import Plan
from dbext.service import local_publish
from dbext.service.due import Due, batches, due_of
from dbext.service.epochs import reserve_epochs, spent
from dbext.service.figures import figure_arrays
from dbext.service.noising import Answers, answers, draw_nodes
from dbext.service.selected_keys import add_cells, show_keys
from dbext.service.streaming import move_on


def draw_release(session: Session, *, release_id: int) -> int:
    """Charge and draw what is due of a release; return the number of periods. Run again, it does nothing: nodes have unique keys."""
    who = rights.require_admin(session)
    rights.require_home(session)
    release = releases.try_lock(session, release_id)
    if release is None:
        return 0
    table = catalog.tracked_table(session, release.table_id)
    if release.state != "active" or release.next_end is None or release.next_end > table.sealed_tick:
        return 0
    releases.require_labels(session, release)
    if local_publish.is_local(release):
        return local_publish.draw(session, release, table, who.name)
    due = due_of(release, table)
    reserved, epoch_end = reserve_epochs(session, release, due.publication, table)
    periods = list(_periods(due.plan, release.next_period, min(table.sealed_tick, epoch_end)))
    if due.checks is not None and add_cells(session, due, _summed_with(due, periods)):
        due = due_of(releases.lock(session, release_id), table)
    summed = release.summed_through
    for batch in batches(periods, due.values):
        summed = _sum_ticks(session, due, batch, summed)
        for noising in due.noisings:
            draw_nodes(session, noising, batch)
    _charge(session, due, periods[-1], summed, who.name, spent(due.publication, reserved, periods[-1]))
    return len(periods)


def _periods(plan: Plan, period: int, sealed: int) -> Iterator[int]:
    """Yield the periods from `period` on that the sealed ticks complete."""
    while (plan.last_period is None or period <= plan.last_period) and plan.due_tick(period) <= sealed:
        yield period
        period += 1


def _sum_ticks(session: Session, due: Due, periods: Sequence[int], summed: int) -> int:
    """Store the exact effects of the ticks that several periods are the first to need; returns the last tick that is summed."""
    through = max(summed, _summed_with(due, periods))
    if through > summed:
        for statement in due.sums_sql:
            session.execute(statement, due.release.release_id, summed, through, due.floor)
    return through


def _summed_with(due: Due, periods: Sequence[int]) -> int:
    """Return the last tick that periods need."""
    ends = (leaf.end for stream in due.publication.streams for period in periods for leaf in stream.plan.leaves(period))
    return max(ends, default=due.release.summed_through)


def _charge(session: Session, due: Due, last: int, summed: int, by: str, charges: Sequence[Charge]) -> None:
    """Write the ledger row, which reserves nothing new, and move the release on."""
    plan, release = due.plan, due.release
    ledger.append(
        session,
        "publish",
        ledger.budget_id_of(session, release.table_id, release.name),
        recorded_by=by,
        table_id=release.table_id,
        release_id=release.release_id,
        charges=charges,
        key_checks=[] if due.checks is None else [due.checks],
    )
    upcoming = None if plan.last_period is not None and last >= plan.last_period else plan.due_tick(last + 1)
    releases.advance(session, release, last + 1, upcoming, summed, plan.horizon_end(last + 1 if upcoming else last))


def publish_release(session: Session, *, release_id: int) -> int:
    """Write the rows of drawn periods whose nodes are all committed; return the number of periods.

    Periods are written in order, so that one without its nodes ends the pass. Draws nothing and charges nothing.
    """
    rights.require_admin(session)
    release = releases.try_lock(session, release_id)
    if release is None or release.state == "dropped" or release.next_answer >= release.next_period:
        return 0
    if local_publish.is_local(release):
        return local_publish.publish(session, release)
    due = due_of(release, catalog.tracked_table(session, release.table_id))
    written = 0
    for batch in batches(range(release.next_answer, release.next_period), due.values):
        ready = _write_batch(session, due, batch)
        written += ready
        if ready < len(batch):
            break
    if written:
        last = release.next_answer + written - 1
        releases.answered(session, release, last + 1, due.plan.due_tick(last))
    return written


def _write_batch(session: Session, due: Due, periods: Sequence[int]) -> int:
    """Answer the leading periods whose nodes are committed; returns how many."""
    made = answered(session, due, periods)
    ready = min(len(one) for one in made)
    if ready:
        if due.checks is not None:
            show_keys(session, due, periods[:ready], made[0][:ready])
        _add_rows(session, due, periods[:ready], [one[:ready] for one in made])
        for noising in due.noisings:
            if noising.plan.buffered is not None:
                move_on(session, noising, periods[ready - 1])
    return ready


def answered(session: Session, due: Due, periods: Sequence[int]) -> list[Answers]:
    """Return for each reading the numbers of the leading periods whose nodes are committed."""
    return [
        answers(session, due.noisings[reading.stream], due.publication.mechanism(place), periods)
        for place, reading in enumerate(due.publication.readings)
    ]


def _add_rows(session: Session, due: Due, periods: Sequence[int], made: Sequence[Answers]) -> None:
    """Write the rows of several periods; `made` holds for each reading the numbers of each period."""
    windows = [due.publication.window(period) for period in periods]
    release_table.add_rows(
        session,
        due.release.name,
        release_table.rows_sql(due.table),
        due.release.release_id,
        due.release.table_id,
        list(periods),
        [start for start, _ in windows],
        [end for _, end in windows],
        due.cells,
        *figure_arrays(due.publication, periods, made, due.cells),
    )
