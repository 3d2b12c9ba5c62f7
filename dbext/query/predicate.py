"""The tree of a predicate: our own, so that nothing an SQL parser understands by accident can reach the database.

Values: `ColumnRef`, `Literal`, `Call`. Predicates: `Compare`, `In`, `Like`, `IsNull`, `IsTruth`, `Not`, `And`, `Or`, boolean `ColumnRef`.
The compiler builds the tree with names only; `bind` gives every name its column and every literal its type; `canonical` gives equal
questions equal trees. Truth is three-valued as in SQL; whoever counts wraps the whole in `IS TRUE`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dbext.query.column import Column


def _offset() -> Any:
    """A 0-based offset into the text a node was read from; kept for messages and never compared."""
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ColumnRef:
    """A column by name; `column` is None until bound."""

    name: str
    column: Column | None = None
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Value, ...]:
        return ()


@dataclass(frozen=True)
class Literal:
    """A constant as text. `form` is how it was written: string, number or boolean. `cast` is the type it is rendered with, once bound."""

    text: str
    form: str
    cast: str = ""
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Value, ...]:
        return ()


@dataclass(frozen=True)
class Call:
    """lower(column) or upper(column)."""

    function: str
    argument: ColumnRef
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Value, ...]:
        return (self.argument,)


Value = ColumnRef | Literal | Call


@dataclass(frozen=True)
class Compare:
    """`operator` is one of = <> < <= > >=."""

    operator: str
    left: Value
    right: Value
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Value, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class In:
    value: Value
    literals: tuple[Literal, ...]
    negated: bool = False
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Value, ...]:
        return (self.value, *self.literals)


@dataclass(frozen=True)
class Like:
    value: Value
    pattern: Literal
    negated: bool = False
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Value, ...]:
        return (self.value, self.pattern)


@dataclass(frozen=True)
class IsNull:
    value: Value
    negated: bool = False
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Value, ...]:
        return (self.value,)


@dataclass(frozen=True)
class IsTruth:
    """`predicate IS [NOT] TRUE` or `... FALSE`."""

    predicate: Predicate
    truth: bool
    negated: bool = False
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Predicate, ...]:
        return (self.predicate,)


@dataclass(frozen=True)
class Not:
    predicate: Predicate
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Predicate, ...]:
        return (self.predicate,)


@dataclass(frozen=True)
class And:
    parts: tuple[Predicate, ...]
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Predicate, ...]:
        return self.parts


@dataclass(frozen=True)
class Or:
    parts: tuple[Predicate, ...]
    offset: int | None = _offset()

    @property
    def children(self) -> tuple[Predicate, ...]:
        return self.parts


Predicate = ColumnRef | Compare | In | Like | IsNull | IsTruth | Not | And | Or


def walk(node: Predicate | Value) -> Iterator[Predicate | Value]:
    """Every node, the root first. Depth is bounded by the compiler's limit on nesting."""
    yield node
    for child in node.children:
        yield from walk(child)


def columns_of(predicate: Predicate | None) -> frozenset[int]:
    """Positions of the columns a bound predicate reads."""
    if predicate is None:
        return frozenset()
    return frozenset(node.column.position for node in walk(predicate) if isinstance(node, ColumnRef))


def columns_used(predicate: Predicate | None) -> tuple[Column, ...]:
    """The columns a bound predicate reads."""
    return () if predicate is None else tuple(node.column for node in walk(predicate) if isinstance(node, ColumnRef))


def literals(predicate: Predicate | None) -> tuple[tuple[str, str], ...]:
    """(text, type) of every literal of a bound predicate: what PostgreSQL must be able to read, checked once when it is declared."""
    if predicate is None:
        return ()
    return tuple(sorted({(node.text, node.cast) for node in walk(predicate) if isinstance(node, Literal)}))
