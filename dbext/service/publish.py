"""Publish every due period of one release: exact sums, nodes drawn once, answers, ledger. One transaction, exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbext.database import catalog, ledger, nodes, release_table, releases, rights
from dbext.database.catalog import TrackedTable
from dbext.database.effects import tick_sums_sql
from dbext.database.nodes import Cells
from dbext.database.release_table import ReleaseTable
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.mechanisms.protocol import Node
from dbext.mechanisms.sampling import draw
from dbext.query.declaration import declaration_from_json
from dbext.query.plan import Plan, plan_from_json
from dbext.service.grouping import columns_from_json, groups_from_json

#: Values drawn and stored at once while catching up: bounds memory, whatever was missed.
VALUES_AT_ONCE = 200_000


@dataclass(frozen=True)
class Due:
    """A release whose row is locked, with everything its statements are composed of.

    `floor` is the tick that stands for all before it; `beginning` lies before every tick sum.
    """

    release: Release
    plan: Plan
    table: ReleaseTable
    sums_sql: str
    cells: int
    floor: int
    beginning: int


def publish_release(session: Session, *, release_id: int) -> int:
    """Publish what is due of a release and return the number of periods. Run again, it does nothing; nodes and rows have unique keys."""
    who = rights.require_admin(session)
    release = releases.lock(session, release_id)
    table = catalog.tracked_table(session, release.table_id)
    if release.state != "active" or release.next_end is None or release.next_end > table.sealed_tick:
        return 0
    due = _due(release, table)
    periods = list(_periods(due.plan, release.next_period, table.sealed_tick))
    drawn: list[Node] = []
    for batch in _batches(periods, max(1, VALUES_AT_ONCE // due.cells)):
        drawn += _publish(session, due, batch, drawn)
    _conclude(session, due, periods[-1], drawn, who.name)
    return len(periods)


def _due(release: Release, table: TrackedTable) -> Due:
    columns = columns_from_json(release.content["columns"])
    declaration = declaration_from_json(release.content["declaration"], columns)
    plan = plan_from_json(release.content["plan"])
    groups = groups_from_json(release.content["groups"], columns)
    floor = max([node.end for node in plan.mechanism.nodes(1) if node.start is None], default=release.summed_through)
    return Due(
        release,
        plan,
        ReleaseTable(release.name, plan.measure, groups, ""),
        tick_sums_sql(release.table_id, plan.measure, declaration.predicate, groups),
        release.content["cells"],
        floor,
        min(table.first_tick, floor) - 1,
    )


def _periods(plan: Plan, period: int, sealed: int) -> Iterator[int]:
    """Yield the periods from `period` on that the sealed ticks complete."""
    while (plan.horizon is None or period <= plan.horizon) and plan.due_tick(period) <= sealed:
        yield period
        period += 1


def _batches(periods: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(periods), size):
        yield periods[start : start + size]


def _publish(session: Session, due: Due, periods: Sequence[int], drawn: Sequence[Node]) -> list[Node]:
    """Sum, draw, store and answer several periods; returns the nodes drawn."""
    release_id = due.release.release_id
    fresh = [node for period in periods for node in due.plan.mechanism.nodes(period)]
    summed = max([due.release.summed_through, *(node.end for node in drawn)])
    through = max(node.end for node in fresh)
    if through > summed:
        session.execute(due.sums_sql, release_id, summed, through, due.floor)
    noisy = _draw(due, nodes.exact_sums(session, release_id, fresh, due.cells, due.beginning))
    nodes.store(session, release_id, [node.number for node in fresh], [value for node in noisy for value in node], due.cells)
    known = dict(zip([node.number for node in fresh], noisy, strict=True))
    known |= nodes.noisy(session, release_id, _needed(due.plan, periods) - known.keys())
    _add_rows(session, due, periods, [_answer(due, period, known) for period in periods])
    return fresh


def _draw(due: Due, exact: Sequence[Cells]) -> list[Cells]:
    """Return exact sums with fresh noise: the only place where a release draws."""
    noise = iter(draw(due.plan.noise, len(exact) * due.cells))
    return [[value + next(noise) for value in node] for node in exact]


def _needed(plan: Plan, periods: Sequence[int]) -> set[int]:
    return {number for period in periods for number, _ in plan.mechanism.answer(period)}


def _answer(due: Due, period: int, known: dict[int, Cells]) -> Cells:
    """Return the answer of a period, one value per cell: post-processing of stored nodes."""
    terms = [(known[number], coefficient) for number, coefficient in due.plan.mechanism.answer(period)]
    return [sum(node[cell] * coefficient for node, coefficient in terms) for cell in range(due.cells)]


def _add_rows(session: Session, due: Due, periods: Sequence[int], answers: Sequence[Cells]) -> None:
    windows = [due.plan.window(period) for period in periods]
    session.execute(
        release_table.rows_sql(due.table),
        due.release.release_id,
        due.release.table_id,
        list(periods),
        [start for start, _ in windows],
        [end for _, end in windows],
        [value for answer in answers for value in answer],
        due.cells,
        [due.plan.std_error(period) for period in periods],
        [due.plan.half_width_95(period) for period in periods],
    )


def _conclude(session: Session, due: Due, last: int, drawn: Sequence[Node], by: str) -> None:
    """Write the ledger row, which reserves nothing new, and move the release on."""
    plan, release = due.plan, due.release
    charges = [charge.through(last) for charge in plan.charges]
    table_budget = ledger.current_budget_id(session, release.table_id)
    ledger.append(
        session, "publish", table_budget, recorded_by=by, table_id=release.table_id, release_id=release.release_id, charges=charges
    )
    upcoming = None if plan.horizon is not None and last >= plan.horizon else plan.due_tick(last + 1)
    releases.advance(session, release, last + 1, plan.due_tick(last), upcoming, max(node.end for node in drawn))
