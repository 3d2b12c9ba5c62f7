"""Bound predicate -> SQL over the columns of an image, for the settled-image tables.

No name that a search path could redirect is left: every operator is written `OPERATOR(schema.op)`, every literal is quoted text cast to
a schema-qualified type, every function is of pg_catalog. The result may be NULL; whoever counts wraps it in `(...) IS TRUE`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbext.errors import InternalError
from dbext.query.column import Column
from dbext.query.predicate import And, Call, ColumnRef, Compare, In, IsNull, IsTruth, Like, Literal, Not, Or, Predicate, Value, columns_used

_ALIAS = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
# Two text columns may have different collations, which makes a comparison fail when it runs. Equality is the same under all of them
# (columns of nondeterministic collations are not of base text), so one is named.
_ANY_COLLATION = ' COLLATE pg_catalog."C"'
_TEXT_OPERATORS = {operator: f"OPERATOR(pg_catalog.{operator})" for operator in ("=", "<>", "<", "<=", ">", ">=")}


def render(predicate: Predicate, image: str, alias: str | None = None) -> str:
    """SQL text of a bound predicate over `image` ('new', 'old' or 'image'), its columns qualified with `alias` if one is given."""
    if image not in ("new", "old", "image") or (alias is not None and not _ALIAS.fullmatch(alias)):
        raise InternalError("a predicate is rendered over new, old or image, with a plain alias")
    return _Renderer(image, f"{alias}." if alias else "").predicate(predicate)


def holds(predicate: Predicate, image: str, alias: str) -> str:
    """SQL that says of an entry whether a predicate holds: for its row, or for some row of an image of several."""
    several = {column.position for column in columns_used(predicate) if column.per_unit is not None}
    if not several:
        return render(predicate, image, alias)
    inner = _Renderer(image, f"{alias}.", "r.").predicate(predicate)
    return f"EXISTS (SELECT FROM {rows_of(several, image, alias)} WHERE {inner} IS TRUE)"


def rows_of(positions: Sequence[int], image: str, alias: str) -> str:
    """The rows of an image, as `r`: one array per column, all of the same length."""
    listed = [f"{image}_{position}" for position in sorted(positions)]
    arrays = ", ".join(f"pg_catalog.unnest({alias}.{name})" for name in listed)
    return f"ROWS FROM ({arrays}) AS r({', '.join(listed)})"


def quote_text(value: str) -> str:
    """A string constant that reads the same whatever standard_conforming_strings says."""
    escaped = value.replace("'", "''")
    return f" E'{escaped}'".replace("\\", "\\\\") if "\\" in value else f"'{escaped}'"


class _Renderer:
    """Where columns are found (`prefix` + image name; `rows` for those of a row among several), carried through the walk."""

    def __init__(self, image: str, prefix: str, rows: str | None = None):
        self.image, self.prefix, self.rows = image, prefix, rows

    def predicate(self, node: Predicate) -> str:
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    value = predicate

    def _columnref(self, node: ColumnRef) -> str:
        if node.column is None:
            raise InternalError("a predicate is rendered before its names are resolved")
        name = self._named(node.column)
        return node.column.short(name) if node.column.base == "other" else name

    def _short(self, node: Value) -> str:
        """A value as what puts it in order or searches it meets it: not so long that this could fail or take minutes."""
        return node.column.short(self._named(node.column)) if isinstance(node, ColumnRef) else self.value(node)

    def _named(self, column: Column) -> str:
        prefix = self.prefix if column.per_unit is None or self.rows is None else self.rows
        return f"{prefix}{'key' if column.is_unit else self.image}_{column.position}"

    def _literal(self, node: Literal) -> str:
        if not node.cast:
            raise InternalError("a predicate is rendered before its literals are typed")
        return f"{quote_text(node.text)}::{node.cast}"

    def _call(self, node: Call) -> str:
        column = node.argument.column
        return f"pg_catalog.{node.function}({column.short(self._named(column))}::pg_catalog.text)"

    def _compare(self, node: Compare) -> str:
        read = self.value if node.operator in ("=", "<>") else self._short
        right = read(node.right) + (_ANY_COLLATION if _is_text(node.left) and not isinstance(node.right, Literal) else "")
        return _compared(read(node.left), node.operator, right, _operators(node.left))

    def _in(self, node: In) -> str:
        listed = ", ".join(self.value(literal) for literal in node.literals)
        member = f"({self.value(node.value)} {_operators(node.value)['=']} ANY (ARRAY[{listed}]))"
        return f"(NOT {member})" if node.negated else member

    def _like(self, node: Like) -> str:
        operator = "!~~" if node.negated else "~~"
        return f"({self._short(node.value)} OPERATOR(pg_catalog.{operator}) {self.value(node.pattern)})"

    def _isnull(self, node: IsNull) -> str:
        return f"({self.value(node.value)} IS {'NOT ' if node.negated else ''}NULL)"

    def _istruth(self, node: IsTruth) -> str:
        return f"({self.predicate(node.predicate)} IS {'NOT ' if node.negated else ''}{'TRUE' if node.truth else 'FALSE'})"

    def _not(self, node: Not) -> str:
        return f"(NOT {self.predicate(node.predicate)})"

    def _and(self, node: And) -> str:
        return "(" + " AND ".join(self.predicate(part) for part in node.parts) + ")"

    def _or(self, node: Or) -> str:
        return "(" + " OR ".join(self.predicate(part) for part in node.parts) + ")"


def _is_text(value: Value) -> bool:
    return isinstance(value, Call) or (isinstance(value, ColumnRef) and value.column.base == "text")


def _operators(value: Value) -> dict[str, str]:
    """The operators a value compares with: its column's own, or those of text for the result of a function."""
    return dict(value.column.operators) if isinstance(value, ColumnRef) else _TEXT_OPERATORS


def _compared(left: str, operator: str, right: str, operators: dict[str, str]) -> str:
    """A comparison from the operators there are: the rest follow from = and < (NULL stays NULL throughout)."""
    if operator in operators:
        return f"({left} {operators[operator]} {right})"
    if operator == "<>":
        return f"(NOT ({left} {operators['=']} {right}))"
    if operator == ">":
        return f"({right} {operators['<']} {left})"
    if operator == "<=":
        return f"(NOT ({right} {operators['<']} {left}))"
    return f"(NOT ({left} {operators['<']} {right}))"
