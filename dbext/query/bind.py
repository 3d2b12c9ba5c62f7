"""Give names their columns and literals their types, or say what does not fit.

After binding, a predicate can only compare a column (or lower/upper of a text column) with a literal of its type, or with another
column of the same type: total, immutable comparisons by construction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbext.query.canonical import canonical
from dbext.query.column import Column, by_name
from dbext.query.literals import normalise, normalise_text
from dbext.query.predicate import And, Call, ColumnRef, Compare, In, IsNull, IsTruth, Like, Literal, Not, Or, Predicate, Value
from dbext.query.refusal import refused

Columns = Mapping[str, Column]

#: Said of a name behind a comparison, which is often meant as a text.
_QUOTES = " A text is written in single quotes."
_SYSTEM_COLUMNS = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "oid"})


def bind(predicate: Predicate, columns: Sequence[Column]) -> Predicate:
    """The predicate with every column and literal typed, in canonical form. Raises DeclarationRefused with a position."""
    return canonical(_bind(predicate, by_name(columns)))


def bind_column(reference: ColumnRef, columns: Columns, hint: str = "") -> ColumnRef:
    """The reference with its column; the hint is what to say beside the names of those that there are."""
    column = columns.get(reference.name)
    if column is not None:
        return replace(reference, column=column)
    if reference.name == "dp_time":
        raise refused(
            "dp_time cannot be used here",
            reference.offset,
            "It is the time of a mutation: it limits the window of a declaration, by dp_time > now() - INTERVAL '7 days' in WHERE "
            "or by GROUP BY TUMBLE(dp_time, INTERVAL '1 day').",
        )
    if reference.name in _SYSTEM_COLUMNS:
        raise refused(f"system columns such as {reference.name} are not allowed", reference.offset, _tracked(columns))
    raise refused(f"there is no tracked column {reference.name}", reference.offset, _tracked(columns) + hint)


def _tracked(columns: Columns) -> str:
    return f"Tracked columns: {', '.join(sorted(columns))}."


def _bind(node: Predicate, columns: Columns) -> Predicate:
    return _BINDERS[type(node)](node, columns)


def _bind_parts(node: And | Or, columns: Columns) -> And | Or:
    return replace(node, parts=tuple(_bind(part, columns) for part in node.parts))


def _bind_inner(node: Not | IsTruth, columns: Columns) -> Not | IsTruth:
    return replace(node, predicate=_bind(node.predicate, columns))


def _bind_in(node: In, columns: Columns) -> In:
    value = _bind_value(node.value, columns)
    _require_operator(value, "=", node.offset)
    return replace(node, value=value, literals=tuple(_typed(literal, value) for literal in node.literals))


def _bind_null(node: IsNull, columns: Columns) -> IsNull:
    return replace(node, value=_bind_value(node.value, columns))


def _bind_value(value: Value, columns: Columns, hint: str = "") -> Value:
    if isinstance(value, ColumnRef):
        return bind_column(value, columns, hint)
    if isinstance(value, Call):
        argument = bind_column(value.argument, columns)
        _require_text(argument, f"{value.function}()")
        return replace(value, argument=argument)
    return value


def _bind_comparison(node: Compare, columns: Columns) -> Compare:
    left, right = _bind_value(node.left, columns), _bind_value(node.right, columns, _QUOTES)
    if isinstance(left, Literal):
        left = _typed(left, right)
    elif isinstance(right, Literal):
        right = _typed(right, left)
    else:
        _require_comparable(left, right, node)
    _require_operator(right if isinstance(left, Literal) else left, "=" if node.operator in ("=", "<>") else "<", node.offset)
    return replace(node, left=left, right=right)


def _typed(literal: Literal, other: Value) -> Literal:
    if isinstance(other, ColumnRef):
        return normalise(literal, other.column)
    return normalise_text(literal, f"the result of {other.function}()")


def _require_comparable(left: ColumnRef | Call, right: ColumnRef | Call, node: Compare) -> None:
    """Two columns must be of one type, and of one order: texts of different collations only agree on which are equal."""
    if _type_of(left) != _type_of(right):
        hint = "Compare columns of one type, or a column with a literal."
        raise refused("two columns of different types cannot be compared", node.offset, hint)
    base = left.column.base if isinstance(left, ColumnRef) else "text"
    if base == "other" or (base == "text" and node.operator not in ("=", "<>")):
        hint = "Text columns can be compared by = and <>; for an order, compare each with a literal."
        raise refused("two such columns cannot be compared with this operator", node.offset, hint)


def _type_of(value: ColumnRef | Call) -> str:
    return value.column.literal_type if isinstance(value, ColumnRef) else "the result of a text function"


def _bind_like(node: Like, columns: Columns) -> Like:
    value = _bind_value(node.value, columns)
    if isinstance(value, ColumnRef):
        _require_text(value, "LIKE")
    pattern = normalise_text(node.pattern, "a pattern")
    trailing = len(pattern.text) - len(pattern.text.rstrip("\\"))
    if trailing % 2:
        raise refused("a pattern may not end with its escape character", pattern.offset, "Write two backslashes for a backslash.")
    return replace(node, value=value, pattern=pattern)


def _bind_flag(node: ColumnRef, columns: Columns) -> ColumnRef:
    bound = bind_column(node, columns)
    if bound.column.base != "bool":
        raise refused(f"column {node.name} is no condition by itself: it is not boolean", node.offset, "Compare it with a literal.")
    return bound


def _require_text(reference: ColumnRef, what: str) -> None:
    if reference.column.base != "text":
        raise refused(f"{what} needs a text column, and {reference.name} is of type {reference.column.type_name}", reference.offset)


def _require_operator(value: Value, operator: str, offset: int | None) -> None:
    if isinstance(value, ColumnRef) and operator not in value.column.operators:
        how = "compared" if operator == "=" else "ordered"
        raise refused(f"values of type {value.column.type_name} cannot be {how}", offset)


_BINDERS = {
    And: _bind_parts,
    Or: _bind_parts,
    Not: _bind_inner,
    IsTruth: _bind_inner,
    Compare: _bind_comparison,
    In: _bind_in,
    Like: _bind_like,
    IsNull: _bind_null,
    ColumnRef: _bind_flag,
}
