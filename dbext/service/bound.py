"""Declare the bounds of a column: the DBA's word, from public knowledge, on what its values can be. Reads no data."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from dbext.database import bounds, catalog, rights
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported, UnknownObject
from dbext.query.bounds import Bounds, default_grid
from dbext.query.column import Column, by_name
from dbext.query.exact import exact_decimal
from dbext.query.statistic import LARGEST_VALUE

MAX_DIGITS = 40


def declare_bounds(session: Session, *, tbl: int, column_name: str | None, low: str | None, high: str | None, grid: str | None) -> str:
    """Declare that values of a column lie in [low, high] and are rounded to multiples of a grid; returns what is in force.

    Values beyond count as the nearer bound. Releases that exist keep the bounds they were declared with.
    """
    rights.require_admin(session)
    table = catalog.tracked_by_regclass(session, str(tbl))
    column = by_name(catalog.columns(session, table.table_id)).get(column_name or "")
    if column is None:
        raise UnknownObject(f'table {table.shown_name} has no tracked column "{column_name}"')
    rights.require_select(session, table.table_id, table.shown_name)
    _require_number(column)
    lowest, highest = _number("low", low), _number("high", high)
    step = default_grid(column.base, lowest, highest) if grid is None else _number("grid", grid)
    made = Bounds(lowest, highest, step)
    _check(made)
    bounds.declare(session, table.table_id, column.position, *(exact_decimal(value) for value in (lowest, highest, step)))
    shown = [exact_decimal(value) for value in (lowest, highest, step)]
    return (
        f"values of column {column.name} of table {table.shown_name} count between {shown[0]} and {shown[1]}, "
        f"rounded to multiples of {shown[2]}; releases that exist keep theirs"
    )


def _require_number(column: Column) -> None:
    if column.base not in ("integer", "numeric", "float"):
        raise NotSupported(
            f"column {column.name} is of type {column.type_name}, which cannot be summed",
            hint="Bounds are for whole numbers, numeric and floating-point columns.",
        )


def _number(name: str, text: str | None) -> Fraction:
    if text is None:
        raise BadArgument(f"{name} is missing", hint="dp_bounds('cases', 'age', 0, 120) says that ages lie between 0 and 120.")
    try:
        value = Decimal(text)
    except InvalidOperation as fault:
        raise BadArgument(f"{name} must be a number") from fault
    if not value.is_finite() or len(value.as_tuple().digits) > MAX_DIGITS or abs(value.as_tuple().exponent) > MAX_DIGITS:
        raise BadArgument(f"{name} must be a finite number of at most {MAX_DIGITS} digits")
    return Fraction(value)


def _check(made: Bounds) -> None:
    if made.grid <= 0:
        raise BadArgument("grid must be greater than 0")
    if made.low >= made.high:
        raise BadArgument("low must be below high")
    low, high = made.units
    if low == high:
        raise BadArgument("the grid is coarser than the bounds are apart", hint="Declare a finer grid.")
    if max(abs(low), abs(high)) > LARGEST_VALUE:
        raise BadArgument(
            f"a bound is more than {LARGEST_VALUE} steps of the grid from 0, so that sums could overflow",
            hint="Declare a coarser grid: values are rounded to it.",
        )
