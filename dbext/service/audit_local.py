"""Audit a release of the local model: every member reported once about every range, by its chances, and rows are what reports make."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dbext.database import audit, nodes, reports
from dbext.database.catalog import TrackedTable
from dbext.database.nodes import Source
from dbext.database.release_table import transcript_sql
from dbext.database.releases import Release
from dbext.database.session import DatabaseError, Session
from dbext.mechanisms.protocol import Node
from dbext.service.audit_finding import FAILED, LEDGER, PASSED, TRANSCRIPT, Finding, judged
from dbext.service.local_publish import LocalDue, combined, counted, due_of, truths

#: Chance that honest reports raise a false alarm.
LEVEL = 1e-9
_CLOSE = 1e-9
_MISSING_TABLE = "42P01"


def findings(session: Session, release: Release, table: TrackedTable) -> Iterator[Finding]:
    """Yield what a release of the local model shows."""
    due = due_of(release)
    drawn = [node for period in range(1, release.next_period) for node in due.plan.mechanism.nodes(period)]
    stored = reports.of_nodes(session, release.release_id, [node.number for node in drawn])
    sums = nodes.committed(session, Source(release.release_id), [node.number for node in drawn])
    yield _complete(due, [node.number for node in drawn], stored, sums)
    remembered = [node for node in drawn if node.number in stored and _remembered(node, table)]
    if remembered:
        yield _chances(session, due, remembered, stored)
    yield _published(session, due, sums)
    yield _traced(session, due)


def _remembered(node: Node, table: TrackedTable) -> bool:
    """Whether what a report is about is still known: `dp_retain` folds old changes into what was there at their end."""
    return table.forgotten_through is None or table.forgotten_through <= (node.end if node.start is None else node.start)


def _complete(due: LocalDue, numbers: list[int], stored: dict[int, list[int]], sums: dict[int, list[int]]) -> Finding:
    """Compare what is stored with who had to report about what."""
    wrong = [f"the reports about node {number} are gone" for number in numbers if number not in stored]
    for number, one in stored.items():
        categories = due.plan.response_of(number).categories
        if len(one) != due.plan.members or not 0 <= min(one) <= max(one) < categories:
            wrong.append(f"not one report of every member about node {number}")
        elif [int(count) for count in sums.get(number, ())] != counted(one, categories):
            wrong.append(f"node {number} is not what its reports add up to")
    right = f"{len(stored):,} ranges, {due.plan.members:,} members reported about each"
    return judged(TRANSCRIPT, "reports drawn once", due.release.name, wrong, right, float(len(wrong)))


def _chances(session: Session, due: LocalDue, drawn: list[Node], stored: dict[int, list[int]]) -> Finding:
    """Compare how many reports are true with the chance of it, by Chernoff's bound on a sum of independent draws."""
    true = expected = 0.0
    evidence, runs = 0.0, 0
    for node, truth in truths(session, due, drawn):
        keep = float(due.plan.response_of(node.number).keep)
        true += sum(one == other for one, other in zip(stored[node.number], truth, strict=True))
        expected += keep * len(truth)
        runs += len(truth)
    if runs and 0 < expected < runs:
        evidence = -runs * _divergence(true / runs, expected / runs) + math.log(2)
    failed = evidence < math.log(LEVEL)
    detail = f"{true:,.0f} of {runs:,} reports are true, {expected:,.0f} are expected; chance at most {math.exp(min(evidence, 0.0)):.2g}"
    return Finding(TRANSCRIPT, "reports follow their chances", due.release.name, FAILED if failed else PASSED, detail, true, expected)


def _divergence(seen: float, chance: float) -> float:
    """Return the relative entropy of two coins. For coins of several chances it still bounds the tail of their mean (Hoeffding 1963)."""
    parts = ((seen, chance), (1 - seen, 1 - chance))
    return sum(one * math.log(one / other) for one, other in parts if one)


def _published(session: Session, due: LocalDue, sums: dict[int, list[int]]) -> Finding:
    """Recompute every published row from stored reports."""
    name, release = due.release.name, due.release
    if release.state == "dropped":
        return Finding(TRANSCRIPT, "published values", name, PASSED, "the release was dropped, and its table with it")
    try:
        rows = session.fetch(transcript_sql(due.table, due.table.figures[0]), release.release_id, release.table_id)
    except DatabaseError as fault:
        if fault.sqlstate != _MISSING_TABLE:
            raise
        return Finding(TRANSCRIPT, "published values", name, FAILED, "the release table is gone, though the release was not dropped")
    found = {row["period"]: [float(text) for text in row["values"].split(",")] for row in rows}
    answered = range(1, release.next_answer)
    wrong = [f"period {period} is in the table but was never published" for period in sorted(set(found) - set(answered))]
    for period in answered:
        terms = due.plan.mechanism.answer(period)
        if period not in found or any(number not in sums for number, _ in terms):
            wrong.append(f"period {period}: no row, or its reports are gone")
            continue
        values, errors, _ = combined(due.plan, terms, sums)
        if any(abs(one - other) > _CLOSE * (abs(one) + error) for one, other, error in zip(values, found[period], errors, strict=True)):
            wrong.append(f"period {period}: a value differs from what its reports make")
    right = f"{len(answered) * due.cells:,} values are what their stored reports make"
    return judged(TRANSCRIPT, "published values", name, wrong, right, float(len(wrong)))


def _traced(session: Session, due: LocalDue) -> Finding:
    """Trace all that was reported to its charge."""
    release, plan, last = due.release, due.plan, due.release.next_period - 1
    rows = audit.ledger_of_release(session, release.release_id)
    wrong = [] if rows["reserve"] == [list(plan.charges)] else ["its lifetime is not reserved once, as planned"]
    charged = rows["publish"][-1] if rows["publish"] else []
    if last and charged != [charge.through(last) for charge in plan.charges]:
        wrong.append("the last charge is not for all that was reported")
    if release.state == "dropped" and rows["return"] != [charged]:
        wrong.append("after the drop, not exactly what had been published stays charged")
    return judged(LEDGER, "rows traced to charges", release.name, wrong, f"{last:,} periods, every report charged when it was drawn")
