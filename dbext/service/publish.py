"""Publish one release: exact sums and nodes drawn once in one transaction, answers from what was committed in the next.

Between the two lies a COMMIT: an answer is post-processing of nodes that nothing can take back any more. Whoever rolled back a
transaction after reading its answers would have nodes drawn anew, and could average the noise away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbext.database import catalog, ledger, release_table, releases, rights
from dbext.database.catalog import TrackedTable
from dbext.database.effects import tick_sums_sql
from dbext.database.release_table import ReleaseTable
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.privacy.charge import Charge
from dbext.query.declaration import declaration_from_json
from dbext.query.plan import Plan, plan_from_json
from dbext.service import local_publish
from dbext.service.epochs import reserve_epochs, spent
from dbext.service.grouping import columns_from_json, groups_from_json
from dbext.service.noising import Answers, Noising, answers, draw_nodes

#: Values drawn, stored or written at once while catching up: bounds memory, whatever was missed.
VALUES_AT_ONCE = 200_000


@dataclass(frozen=True)
class Due:
    """A release whose row is locked, with everything its statements are composed of.

    `floor` is the tick that stands for all before it.
    """

    release: Release
    noising: Noising
    table: ReleaseTable
    sums_sql: str
    floor: int

    @property
    def plan(self) -> Plan:
        """The release's plan."""
        return self.noising.plan

    @property
    def cells(self) -> int:
        """The number of group keys, or 1."""
        return self.noising.cells


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
    reserved, epoch_end = reserve_epochs(session, release, due.plan, table)
    periods = list(_periods(due.plan, release.next_period, min(table.sealed_tick, epoch_end)))
    summed = release.summed_through
    for batch in batches(periods, due.cells):
        summed = _sum_ticks(session, due, batch, summed)
        draw_nodes(session, due.noising, batch)
    _charge(session, due, periods[-1], summed, who.name, spent(due.plan, reserved, periods[-1]))
    return len(periods)


def due_of(release: Release, table: TrackedTable) -> Due:
    """Return everything that the statements of a release are composed of."""
    columns = columns_from_json(release.content["columns"])
    declaration = declaration_from_json(release.content["declaration"], columns)
    plan = plan_from_json(release.content["plan"])
    groups = groups_from_json(release.content["groups"], columns)
    floor = max([node.end for node in plan.leaves(1) if node.start is None], default=release.summed_through)
    return Due(
        release,
        Noising(release.release_id, plan, release.content["cells"], min(table.first_tick, floor) - 1),
        ReleaseTable(release.name, plan.measure, groups, "", plan.whole_answers),
        tick_sums_sql(release.table_id, plan.measure, declaration.predicate, groups),
        floor,
    )


def _periods(plan: Plan, period: int, sealed: int) -> Iterator[int]:
    """Yield the periods from `period` on that the sealed ticks complete."""
    while (plan.last_period is None or period <= plan.last_period) and plan.due_tick(period) <= sealed:
        yield period
        period += 1


def batches(periods: Sequence[int], cells: int) -> Iterator[Sequence[int]]:
    """Yield periods in pieces that fit into memory."""
    size = max(1, VALUES_AT_ONCE // cells)
    for start in range(0, len(periods), size):
        yield periods[start : start + size]


def _sum_ticks(session: Session, due: Due, periods: Sequence[int], summed: int) -> int:
    """Store the exact effects of the ticks that several periods are the first to need; returns the last tick that is summed."""
    through = max((leaf.end for period in periods for leaf in due.plan.leaves(period)), default=summed)
    if through > summed:
        session.execute(due.sums_sql, due.release.release_id, summed, through, due.floor)
    return max(summed, through)


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
    for batch in batches(range(release.next_answer, release.next_period), due.cells):
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
    made = answers(session, due.noising, periods)
    if made:
        _add_rows(session, due, periods[: len(made)], made)
    return len(made)


def _add_rows(session: Session, due: Due, periods: Sequence[int], made: Answers) -> None:
    windows = [due.plan.window(period) for period in periods]
    session.execute(
        release_table.rows_sql(due.table),
        due.release.release_id,
        due.release.table_id,
        list(periods),
        [start for start, _ in windows],
        [end for _, end in windows],
        [value for answer in made for value in answer],
        due.cells,
        [due.plan.std_error(period) for period in periods],
        [due.plan.half_width(period, due.cells) for period in periods],
    )
