"""What the rules hand on: one frozen value that fills up from text to declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokens import Token

from dbext.query.bins import Bins
from dbext.query.declaration import Figure, TableName, TimeRange
from dbext.query.predicate import ColumnRef, Predicate
from dbext.query.words import FUNCTIONS, KEYWORDS, STATEMENT_FUNCTIONS, STATEMENT_KEYWORDS


@dataclass(frozen=True)
class Grammar:
    """Which words are keywords and which functions may be called; `is_statement` tells a declaration from a bare predicate."""

    keywords: frozenset[str]
    functions: frozenset[str]
    is_statement: bool


DECLARATION = Grammar(STATEMENT_KEYWORDS, STATEMENT_FUNCTIONS, is_statement=True)
PREDICATE = Grammar(KEYWORDS, FUNCTIONS, is_statement=False)


@dataclass(frozen=True)
class Draft:
    """`typed` maps the offset of a string to the type word written before it; `intervals` to the whole text of an interval."""

    text: str
    grammar: Grammar
    tokens: tuple[Token, ...] = ()
    typed: Mapping[int, str] = field(default_factory=dict)
    intervals: Mapping[int, str] = field(default_factory=dict)
    tree: exp.Expression | None = None
    table: TableName | None = None
    qualifier: str | None = None
    group_by: tuple[ColumnRef, ...] = ()
    bins: tuple[Bins, ...] = ()
    figures: tuple[Figure, ...] = ()
    range: TimeRange | None = None
    conditions: tuple[exp.Expression, ...] = ()
    predicate: Predicate | None = None
    mentions_dp_time: bool = False
    notes: tuple[str, ...] = ()

    def raw(self, token: Token) -> str:
        """The token as it stands in the text."""
        return self.text[token.start : token.end + 1]
