"""Publish a release of the local model: every member of the roster reports about every range, and only reports are kept.

As for other releases, what is drawn is charged and committed first, and answers are made from what was committed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbext.database import ledger, nodes, release_table, releases, reports
from dbext.database.catalog import TrackedTable
from dbext.database.effects import GroupColumn
from dbext.database.nodes import Source
from dbext.database.release_table import ReleaseTable
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.errors import InternalError
from dbext.mechanisms.protocol import Node
from dbext.privacy.measure import Measure
from dbext.query.declaration import Declaration, declaration_from_json
from dbext.query.local_plan import DOWN, STILL, UP, LocalPlan, local_plan_from_json
from dbext.service.figures import count_columns
from dbext.service.grouping import columns_from_json, groups_from_json

#: Reports drawn and stored at once while catching up.
REPORTS_AT_ONCE = 1_000_000
#: A tick before every history.
_EVER = -(2**40)
#: Tick, place of the member, and its cell before and after; 0 is none.
Change = tuple[int, int, int, int]


@dataclass(frozen=True)
class LocalDue:
    """A release whose row is locked, with everything its statements are composed of."""

    release: Release
    plan: LocalPlan
    table: ReleaseTable
    declaration: Declaration
    unit: tuple[GroupColumn, ...]
    groups: tuple[GroupColumn, ...]

    @property
    def cells(self) -> int:
        """Number of published cells of a window."""
        return self.release.content["cells"]


def is_local(release: Release) -> bool:
    """Whether a release is one of the local model."""
    return release.content.get("model") == "local"


def due_of(release: Release) -> LocalDue:
    """Return everything that the statements of a release are composed of."""
    content = release.content
    columns = columns_from_json(content["columns"])
    plan, groups = local_plan_from_json(content["plan"]), groups_from_json(content["groups"], columns)
    table = ReleaseTable(release.name, (count_columns(plan.measure),), groups, "")
    declaration = declaration_from_json(content["declaration"], columns)
    return LocalDue(release, plan, table, declaration, groups_from_json(content["unit"], columns), groups)


def draw(session: Session, release: Release, table: TrackedTable, by: str) -> int:
    """Charge and draw what is due: randomise every member's truth, store the reports, forget the truth. Returns the number of periods."""
    due = due_of(release)
    plan = due.plan
    periods = list(_periods(plan, release.next_period, table.sealed_tick))
    fresh = [node for period in periods for node in plan.mechanism.nodes(period)]
    size = max(1, REPORTS_AT_ONCE // plan.members)
    for start in range(0, len(fresh), size):
        _draw(session, due, fresh[start : start + size])
    last = periods[-1]
    ledger.append(
        session,
        "publish",
        ledger.budget_id_of(session, release.table_id, release.name),
        recorded_by=by,
        table_id=release.table_id,
        release_id=release.release_id,
        charges=[charge.through(last) for charge in plan.charges],
    )
    upcoming = None if plan.horizon is not None and last >= plan.horizon else plan.due_tick(last + 1)
    releases.advance(session, release, last + 1, upcoming, max(release.summed_through, plan.needed_since(last)), plan.horizon_end)
    return len(periods)


def _periods(plan: LocalPlan, period: int, sealed: int) -> Iterator[int]:
    while (plan.horizon is None or period <= plan.horizon) and plan.due_tick(period) <= sealed:
        yield period
        period += 1


def _draw(session: Session, due: LocalDue, fresh: Sequence[Node]) -> None:
    """Randomise the truth about nodes, one report for each member and node."""
    number = due.release.release_id
    for node, true in truths(session, due, fresh):
        response = due.plan.response_of(node.number)
        drawn = response.report_all(true)
        reports.store(session, number, node.number, drawn)
        nodes.store(session, Source(number), [node.number], counted(drawn, response.categories), response.categories - 1)


def counted(drawn: Sequence[int], categories: int) -> list[int]:
    """Return how many reports there are of each category but the first, 0."""
    counts = [0] * categories
    for report in drawn:
        counts[report] += 1
    return counts[1:]


def truths(session: Session, due: LocalDue, wanted: Sequence[Node]) -> Iterator[tuple[Node, list[int]]]:
    """Yield each node with what its members would report if they told the truth, in order of place."""
    since = _EVER if any(node.start is None for node in wanted) else min(node.start for node in wanted)
    sql = reports.states_sql(due.release.table_id, due.declaration.predicate, due.unit, due.groups)
    changes = [
        (row["tick"], row["place"], row["before"], row["after"])
        for row in session.fetch(sql, due.release.release_id, since, max(node.end for node in wanted))
    ]
    yield from (_net if due.plan.measure is Measure.NET else _states)(wanted, changes, due.plan.members)


def _net(wanted: Sequence[Node], changes: Sequence[Change], members: int) -> Iterator[tuple[Node, list[int]]]:
    """Yield each member's net change: changes telescope, so that it is one step at most."""
    ticks = [tick for tick, *_ in changes]
    for node in wanted:
        net = [0] * members
        for _, place, before, after in changes[bisect_right(ticks, node.start) : bisect_right(ticks, node.end)]:
            net[place - 1] += (after > 0) - (before > 0)
        if any(abs(step) > 1 for step in net):
            raise InternalError("a net change of more than one step")
        yield node, [STILL if step == 0 else UP if step > 0 else DOWN for step in net]


def _states(wanted: Sequence[Node], changes: Sequence[Change], members: int) -> Iterator[tuple[Node, list[int]]]:
    """Yield each member's category at the end of each node, 0 if it is in none; nodes come in order."""
    states, following = [0] * members, 0
    for node in wanted:
        while following < len(changes) and changes[following][0] <= node.end:
            _, place, _, after = changes[following]
            states[place - 1], following = after, following + 1
        yield node, list(states)


def publish(session: Session, release: Release) -> int:
    """Write the rows of drawn periods whose reports are all committed; return the number of periods."""
    due = due_of(release)
    periods = range(release.next_answer, release.next_period)
    wanted = {period: due.plan.mechanism.answer(period) for period in periods}
    known = nodes.committed(session, Source(release.release_id), {number for terms in wanted.values() for number, _ in terms})
    ready = [period for period in periods if all(number in known for number, _ in wanted[period])]
    ready = [period for place, period in enumerate(ready) if period == release.next_answer + place]
    if not ready:
        return 0
    rows = [combined(due.plan, wanted[period], known) for period in ready]
    windows = [due.plan.mechanism.window(period) for period in ready]
    release_table.add_rows(
        session,
        release.name,
        reports.rows_sql(due.table),
        release.release_id,
        release.table_id,
        ready,
        [start for start, _ in windows],
        [end for _, end in windows],
        due.cells,
        *([figure for row in rows for figure in row[place]] for place in range(3)),
    )
    if release.content["publish_reports"]:
        _publish_reports(session, due, ready)
    releases.answered(session, release, ready[-1] + 1, due.plan.due_tick(ready[-1]))
    return len(ready)


def combined(
    plan: LocalPlan, weights: Sequence[tuple[int, float]], known: dict[int, list[int]]
) -> tuple[list[float], list[float], list[float]]:
    """Return estimates, standard errors and half widths of 95% intervals, one per cell, of a weighted sum of nodes."""
    parts = [(weight, *plan.estimate(number, known[number])) for number, weight in weights]
    cells = range(len(parts[0][1]))
    values = [math.fsum(weight * numbers[cell] for weight, numbers, _ in parts) for cell in cells]
    variances = [math.fsum(weight * weight * squares[cell] for weight, _, squares in parts) for cell in cells]
    steps = max(abs(weight) * plan.step(number) for number, weight in weights)
    return values, [math.sqrt(one) for one in variances], [plan.half_width_95(one, steps) for one in variances]


def _publish_reports(session: Session, due: LocalDue, periods: Sequence[int]) -> None:
    fresh = [(period, node) for period in periods for node in due.plan.mechanism.nodes(period)]
    if due.plan.measure is Measure.NET:
        names = ["0", "1", "-1"]
    else:
        names = ["", *(", ".join(key) or "1" for key in releases.keys(session, due.release))]
    session.execute(
        reports.publish_sql(due.release.name),
        due.release.release_id,
        due.release.table_id,
        [node.number for _, node in fresh],
        [node.start for _, node in fresh],
        [node.end for _, node in fresh],
        [period for period, _ in fresh],
        names,
    )
