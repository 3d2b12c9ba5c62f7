"""What a question about a sum adds up: a column with bounds, over entries whose value is known."""

from __future__ import annotations

from dbext.database import bounds, catalog, rights
from dbext.database.catalog import TrackedTable
from dbext.database.session import Session
from dbext.errors import BadArgument, UnknownObject
from dbext.query.canonical import canonical
from dbext.query.column import by_name
from dbext.query.predicate import And, ColumnRef, Predicate
from dbext.query.statistic import Term, known


def summed(session: Session, table: TrackedTable, predicate: Predicate | None, column_name: str) -> tuple[Predicate | None, Term]:
    """Return the predicate, narrowed to entries whose value is known, and the term. Checks the caller's right to the column."""
    column = by_name(catalog.columns(session, table.table_id)).get(column_name)
    if column is None:
        raise UnknownObject(f'table {table.shown_name} has no tracked column "{column_name}"')
    rights.require_asking(session, table.table_id, table.shown_name, {column.position})
    declared = bounds.of_table(session, table.table_id).get(column.position)
    if declared is None:
        raise BadArgument(
            f"column {column.name} has no bounds, so that one entry could change its sum without limit",
            hint=f"SELECT dp_bounds('{table.shown_name}', '{column.name}', low, high);",
        )
    if table.rows_per_unit is not None and column.is_unit:
        raise BadArgument(
            f"column {column.name} belongs to the privacy unit, and is the same in all of its rows", hint="dp_window_count counts units."
        )
    reference = ColumnRef(column.name, column)
    parts = [part for part in (predicate, *known(reference)) if part is not None]
    narrowed = None if not parts else canonical(And(tuple(parts)) if len(parts) > 1 else parts[0])
    return narrowed, Term(reference, declared, rows=column.per_unit)
