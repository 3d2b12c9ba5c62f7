"""Closing ticks: the stored head and snapshot of each table, and the passes that take what was committed since the last seal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dbext.database.seal_pass import PassSql
from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.errors import UnknownObject

SQL = statements("seals")

#: Ticks closed in one pass at most: their boundaries travel as one array.
MOST_TICKS = 10_000


@dataclass(frozen=True)
class Closing:
    """One pass over a table: it closes ticks previous_tick + 1 to last_tick.

    It takes the rows that are visible in `snapshot` with mutated_at up to `boundary` and that the previous seal did not take. That one
    took: visible in `previous_snapshot` and mutated_at up to `previous_boundary`. `unit_lost`: a type of the unit was dropped with all that
    used it, the log's keys included, so that there is nothing left to take. `rows_per_unit` says how many rows of an entry count; None: it
    is one row.
    """

    table_id: int
    first_tick: int
    seal_no: int
    previous_tick: int
    previous_boundary: str
    previous_snapshot: str
    last_tick: int
    boundary: str
    ends: str
    snapshot: str
    unit_lost: bool
    rows_per_unit: int | None = None

    @property
    def ticks(self) -> int:
        """How many ticks are closed."""
        return self.last_tick - self.previous_tick


@dataclass(frozen=True)
class Counts:
    """What a pass met. Private: rows taken, late rows among them, and entries whose logged old image was not the settled one."""

    taken: int
    late: int
    mismatched: int


def head(session: Session, table_id: int) -> tuple[int, int]:
    """Return the last closed tick and the last tick that has ended; the latter may be smaller."""
    rows = session.fetch(SQL["head"], table_id)
    if not rows:
        raise UnknownObject(f"there is no tracked table number {table_id}")
    return rows[0]["tick"], rows[0]["ended"]


def close(session: Session, table_id: int) -> Closing | None:
    """Lock the head, then read the snapshot and the ticks that have ended; None if another seal closed them meanwhile.

    The order matters: a transaction that committed before the lock was had is visible to the snapshot, one that did not is left to the
    next seal, and no two seals of a table overlap.
    """
    found = session.fetch(SQL["close"], table_id)
    if not found:
        raise UnknownObject(f"table number {table_id} was tracked anew meanwhile")
    before = found[0]
    snapshot = session.fetch(SQL["snapshot"])[0]["snapshot"]
    _, ended = head(session, table_id)
    last = min(ended, before["tick"] + MOST_TICKS)
    if last <= before["tick"]:
        return None
    (row,) = session.fetch(SQL["ends"], table_id, before["tick"] + 1, last)
    return Closing(
        table_id=table_id,
        first_tick=before["first_tick"],
        seal_no=before["seal_no"],
        previous_tick=before["tick"],
        previous_boundary=before["boundary"],
        previous_snapshot=before["snapshot"],
        last_tick=last,
        boundary=row["boundary"],
        ends=row["ends"],
        snapshot=snapshot,
        unit_lost=before["unit_lost"],
        rows_per_unit=before["rows_per_unit"],
    )


def set_aside(session: Session, sql: PassSql, closing: Closing) -> bool:
    """Defer rows whose entry has an earlier mutation in a tick still open, and take those deferred before that need not wait any more.

    Numbers order the mutations of an entry, clocks may not: without this a row within the boundary could be admitted before an earlier
    one beyond it. Most seals have nothing beyond the boundary, or nothing after it by number. Returns whether a truncation is to be taken.
    """
    left = _execute(session, sql.left_behind(), closing)
    if left["floor"] is not None:
        _execute(session, sql.defer(), closing, left["floor"], left["truncation"])
    _execute(session, sql.take_deferred(), closing, left["floor"], left["truncation"])
    return left["truncated"]


def run_pass(session: Session, statement: str, closing: Closing) -> Counts:
    """Run the statement that `PassSql.seal` composed: rows get their ticks, settled images move on, what changed is appended."""
    return Counts(**_execute(session, statement, closing))


def _execute(session: Session, statement: str, closing: Closing, floor: int | None = None, truncation: int | None = None) -> Any:
    """Run one statement of a pass with its parameters as typed constants, which is what lets the planner see how little is new."""
    c = closing
    where = (c.previous_snapshot, c.snapshot, c.previous_boundary, c.boundary, c.ends, c.previous_tick, c.last_tick)
    (row,) = session.fetch(SQL["execute"], statement, *where, c.seal_no, c.first_tick, c.table_id, floor, truncation)
    return None if row["result"] is None else json.loads(row["result"])


def follow_schema(session: Session, table_id: int) -> None:
    """Mark the table if its capture is not whole, and remember for ever that a tick was sealed while it had no entry type."""
    session.fetch(SQL["follow_schema"], table_id)


def store(session: Session, closing: Closing, counts: Counts) -> None:
    """Move the head on, record the pass, and let the next seal find its rows quickly."""
    head_values = (closing.last_tick, closing.boundary, closing.snapshot)
    session.execute(SQL["store_head"], closing.table_id, *head_values)
    session.execute(
        SQL["record"],
        closing.table_id,
        closing.seal_no,
        closing.previous_tick + 1,
        *head_values,
        counts.taken,
        counts.late,
        counts.mismatched,
    )
    session.fetch(SQL["summarise"], closing.table_id)
