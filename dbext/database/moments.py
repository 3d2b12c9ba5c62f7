"""Moments and tick boundaries. PostgreSQL alone reads dates and knows where ticks end; here a boundary is its index."""

from __future__ import annotations

from collections.abc import Sequence

from dbext.database.catalog import TrackedTable
from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.errors import BadArgument

SQL = statements("moments")


def snap(session: Session, table: TrackedTable, name: str, text: str) -> tuple[int, int]:
    """Return the last boundary not after and the first not before a moment, dates without a zone read in the table's.

    `name` says in messages which argument it is. BadArgument if the text is no moment between the years 1000 and 5000.
    """
    (row,) = session.fetch(SQL["snap"], table.table_id, text, table.time_zone)
    if not row["understood"]:
        raise BadArgument(f"{name} is not a timestamp", hint="Write it like '2015-09-01' or '2015-09-01 06:00+08'.")
    if row["floor"] is None:
        raise BadArgument(f"{name} must lie between the years 1000 and 5000")
    return row["floor"], row["ceiling"]


def boundary(session: Session, table: TrackedTable, name: str, text: str) -> int | None:
    """Return the index of the boundary that a moment stands on, or None if it stands on none."""
    floor, ceiling = snap(session, table, name, text)
    return floor if floor == ceiling else None


def present_boundary(session: Session, table: TrackedTable) -> int:
    """Return the last tick boundary that is not after the present moment."""
    return session.fetch(SQL["now"], table.table_id)[0]["floor"]


def ends(session: Session, table_id: int, start: int | None, end: int) -> tuple[str | None, str]:
    """Return the moments of a window's boundaries."""
    (row,) = session.fetch(SQL["ends"], table_id, start, end)
    return row["first"], row["last"]


def windows(session: Session, table_id: int, listed: Sequence[tuple[int | None, int]]) -> list[tuple[str, str]]:
    """Return the moments of the boundaries of many windows; one from the beginning starts where the table's history does."""
    rows = session.fetch(SQL["windows"], table_id, [start for start, _ in listed], [end for _, end in listed])
    return [(row["first"], row["last"]) for row in rows]


def shown(session: Session, table: TrackedTable, boundary: int) -> str:
    """Return a tick boundary as messages show it: in the table's time zone."""
    return session.fetch(SQL["shown"], table.table_id, boundary)[0]["shown"]


def is_literal(session: Session, text: str, literal_type: str, zone: str) -> bool:
    """Whether a text is a value of a built-in type, given with its schema."""
    return session.fetch(SQL["is_literal"], text, literal_type, zone)[0]["fits"]
