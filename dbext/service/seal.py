"""Close the ticks of a table that have ended. Runs first in a transaction of its own (dbext_private.seal_table sees to that)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbext.database import catalog, seals
from dbext.database.catalog import StoredType, is_cut
from dbext.database.seal_pass import ImageColumn, PassSql
from dbext.database.session import Session
from dbext.database.unit_pass import UnitSql
from dbext.query.column import Column
from dbext.query.predicate import Literal, Predicate, Value
from dbext.query.predicate_json import from_json
from dbext.query.render import holds


def seal(session: Session, table_id: int) -> dict[str, object]:
    """Close every tick that has ended, up to a limit per pass.

    Returns `sealed` (whether anything was closed), `tick` (the last closed tick) and `more` (whether to call again, in a new transaction).
    """
    sealed_tick, ended = seals.head(session, table_id)
    if ended <= sealed_tick:
        return {"sealed": False, "tick": sealed_tick, "more": False}
    closing = seals.close(session, table_id)
    if closing is None:
        return {"sealed": False, "tick": seals.head(session, table_id)[0], "more": False}
    _seal(session, closing)
    return {"sealed": True, "tick": closing.last_tick, "more": closing.last_tick < ended}


def _seal(session: Session, closing: seals.Closing) -> None:
    seals.follow_schema(session, closing.table_id)
    counts = seals.Counts(0, 0, 0) if closing.unit_lost else _pass(session, closing)
    seals.store(session, closing, counts)


def _pass(session: Session, closing: seals.Closing) -> seals.Counts:
    types = catalog.entry_types(session, closing.table_id)
    stored = catalog.stored_columns(session, closing.table_id)
    classify = classification(types, [column for column, _ in stored])
    images = [_image_column(column, by_value=by_value) for column, by_value in stored]
    per_unit = closing.rows_per_unit
    sql = PassSql(closing.table_id, images) if per_unit is None else UnitSql(closing.table_id, images, per_unit)
    truncated = seals.set_aside(session, sql, closing)
    return seals.run_pass(session, sql.seal(types, classify, ticks=closing.ticks, truncated=truncated), closing)


def _image_column(column: Column, *, by_value: bool) -> ImageColumn:
    folds = column.is_string and column.base == "other"
    is_row_key, cut = column.is_key and not column.is_unit, is_cut(column.category, column.base)
    return ImageColumn(column.position, column.is_unit, column.operators.get("="), by_value, column.is_string, folds, is_row_key, cut)


def classification(types: Sequence[StoredType], columns: Sequence[Column]) -> str:
    """Return SQL for the type of a first image `s`: the first match in order of declaration, else the default type, else NULL.

    A type applies to a unit of several rows if its predicate holds for some row of the image.
    Without any type an entry is admitted as number 0, unconstrained.
    """
    if not types:
        return "0"
    default = next((str(one.number) for one in types if one.applies_to is None), "NULL::integer")
    matches = "".join(
        f" WHEN ({holds(predicate, 'image', 's')}) IS TRUE THEN {number}"
        for number, predicate in ((one.number, _predicate(one, columns)) for one in types)
        if predicate is not None
    )
    return f"CASE{matches} ELSE {default} END" if matches else default


def _predicate(one: StoredType, columns: Sequence[Column]) -> Predicate | None:
    """Return the predicate of a type; None for the default type and for one that nothing matches any more.

    That is one over a column that went with its type, or with a label that its enum has no more (both are marked): a seal must not fail.
    """
    if one.applies_to is None or not _positions(one.applies_to) <= {column.position for column in columns}:
        return None
    predicate = from_json(one.applies_to, columns)
    labels = {column.literal_type: column.enum_labels for column in columns if column.base == "enum"}
    return predicate if all(one.text in labels.get(one.cast, (one.text,)) for one in _literals(predicate)) else None


def _literals(node: Predicate | Value) -> Iterator[Literal]:
    """Yield the constants of a predicate."""
    if isinstance(node, Literal):
        yield node
    for child in node.children:
        yield from _literals(child)


def _positions(node: object) -> set[int]:
    """Return the positions of the columns that a stored predicate reads."""
    if not isinstance(node, list):
        return set()
    return {node[1]} if node[0] == "column" else set().union(*map(_positions, node))
