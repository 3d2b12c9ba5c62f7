"""A bound predicate as JSON and back. Columns are kept by position, so that renaming one changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dbext.errors import InternalError
from dbext.query.column import Column
from dbext.query.predicate import And, Call, ColumnRef, Compare, In, IsNull, IsTruth, Like, Literal, Not, Or, Predicate, Value


def to_json(node: Predicate | Value) -> list[Any]:
    """Nested lists, the kind of node first; a column is its position in the image tables."""
    return _WRITERS[type(node)](node)


def from_json(data: list[Any], columns: Sequence[Column]) -> Predicate:
    """The predicate `to_json` made, bound to the columns as they are now."""
    positions = {column.position: column for column in columns}

    def read(node: list[Any]) -> Any:
        kind, *rest = node
        return _column(positions, rest[0]) if kind == "column" else _READERS[kind](read, rest)

    return read(data)


def key(predicate: Predicate | None) -> str:
    """One text per canonical question, over column positions: equal exactly for equal questions, whatever columns are called."""
    return "" if predicate is None else json.dumps(to_json(predicate), ensure_ascii=False, separators=(",", ":"))


_WRITERS: dict[type, Callable[[Any], list[Any]]] = {
    ColumnRef: lambda node: ["column", node.column.position],
    Literal: lambda node: ["literal", node.form, node.text, node.cast],
    Call: lambda node: ["call", node.function, to_json(node.argument)],
    Compare: lambda node: ["compare", node.operator, to_json(node.left), to_json(node.right)],
    In: lambda node: ["in", node.negated, to_json(node.value), *map(to_json, node.literals)],
    Like: lambda node: ["like", node.negated, to_json(node.value), to_json(node.pattern)],
    IsNull: lambda node: ["is_null", node.negated, to_json(node.value)],
    IsTruth: lambda node: ["is_truth", node.negated, node.truth, to_json(node.predicate)],
    Not: lambda node: ["not", to_json(node.predicate)],
    And: lambda node: ["and", *map(to_json, node.parts)],
    Or: lambda node: ["or", *map(to_json, node.parts)],
}

_Read = Callable[[list[Any]], Any]

_READERS: dict[str, Callable[[_Read, list[Any]], Predicate | Value]] = {
    "literal": lambda _, data: Literal(data[1], data[0], data[2]),
    "call": lambda read, data: Call(data[0], read(data[1])),
    "compare": lambda read, data: Compare(data[0], read(data[1]), _typed(read(data[2]), read(data[1]))),
    "in": lambda read, data: In(read(data[1]), tuple(_typed(read(one), read(data[1])) for one in data[2:]), data[0]),
    "like": lambda read, data: Like(read(data[1]), read(data[2]), data[0]),
    "is_null": lambda read, data: IsNull(read(data[1]), data[0]),
    "is_truth": lambda read, data: IsTruth(read(data[2]), data[1], data[0]),
    "not": lambda read, data: Not(read(data[0])),
    "and": lambda read, data: And(tuple(map(read, data))),
    "or": lambda read, data: Or(tuple(map(read, data))),
}


def _typed(value: Any, beside: Any) -> Any:
    """Return a value; a constant beside a column of someone's own type gets that type as it is called now: types are renamed and moved."""
    if isinstance(value, Literal) and isinstance(beside, ColumnRef) and beside.column.base in ("enum", "other"):
        return replace(value, cast=beside.column.literal_type)
    return value


def _column(columns: dict[int, Column], position: int) -> ColumnRef:
    if position not in columns:
        raise InternalError(f"a stored predicate reads column {position}, which is not tracked any more")
    return ColumnRef(columns[position].name, columns[position])
