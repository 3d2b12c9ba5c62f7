"""Bounds and grids of columns, as the DBA declared them. Releases keep their own copy: later changes are for later releases."""

from __future__ import annotations

from fractions import Fraction

from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.query.bounds import Bounds

SQL = statements("bounds")


def of_table(session: Session, table_id: int) -> dict[int, Bounds]:
    """Return the bounds declared for the columns of a table, by position."""
    return {
        row["position"]: Bounds(Fraction(row["low"]), Fraction(row["high"]), Fraction(row["grid"]))
        for row in session.fetch(SQL["of_table"], table_id)
    }


def declare(session: Session, table_id: int, position: int, low: str, high: str, grid: str) -> None:
    """Declare the bounds of a column, in place of earlier ones."""
    session.execute(SQL["declare"], table_id, position, low, high, grid)
