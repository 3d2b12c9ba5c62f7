"""The one door to the database: what a service needs of a connection, whichever side of the wire it runs on."""

from __future__ import annotations

from typing import Any, Protocol


class DatabaseError(Exception):
    """An error that PostgreSQL raised. Its text may hold data: only a message of ours (SQLSTATE DP...) may be passed on."""

    def __init__(self, sqlstate: str, message: str, detail: str | None = None, hint: str | None = None):
        super().__init__(message)
        self.sqlstate, self.message, self.detail, self.hint = sqlstate, message, detail, hint


class Session(Protocol):
    """A database session inside one transaction.

    Placeholders are native and every one carries a cast (`$1::bigint`): parameters travel as text, so that PL/Python and
    psycopg behave alike. None is NULL, booleans are 'true'/'false', lists are array literals, dicts are JSON.
    Timestamps, JSON, xid8 and snapshots are selected as `::text`.
    """

    def fetch(self, sql: str, *params: object) -> list[dict[str, Any]]:
        """Run a statement and return its rows as dicts."""
        ...

    def execute(self, sql: str, *params: object) -> int:
        """Run a statement and return the number of rows it touched."""
        ...


def as_text(value: object) -> str | None:
    """Return the text form in which a parameter travels."""
    import json
    from fractions import Fraction

    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "{" + ",".join(_array_element(v) for v in value) + "}"
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, Fraction):
        raise TypeError("convert exact fractions with a stated rounding before they travel")
    return str(value)


def _array_element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return as_text(value) or "{}"
    text = as_text(value) or ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
