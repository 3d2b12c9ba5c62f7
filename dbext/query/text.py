"""Canonical text of a predicate, in the language that `compile_predicate` reads: `compile_predicate(text(p), columns) == p`.

Different canonical trees have different texts: names are quoted where needed, literals escaped, mixed AND and OR put in parentheses.
"""

from __future__ import annotations

import re

from dbext.query.predicate import And, Call, ColumnRef, Compare, In, IsNull, IsTruth, Like, Literal, Not, Or, Predicate, Value
from dbext.query.words import MUST_QUOTE

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)


def text(node: Predicate | Value) -> str:
    """The text of a predicate or value."""
    return _WRITERS[type(node)](node)


def quoted_name(name: str) -> str:
    """An identifier as it must be written to mean exactly this name."""
    if _PLAIN_NAME.fullmatch(name) and name not in MUST_QUOTE:
        return name
    return '"' + name.replace('"', '""') + '"'


def _column(node: ColumnRef) -> str:
    return quoted_name(node.name)


def _literal(node: Literal) -> str:
    return node.text if node.form != "string" else "'" + node.text.replace("'", "''") + "'"


def _call(node: Call) -> str:
    return f"{node.function}({text(node.argument)})"


def _compare(node: Compare) -> str:
    return f"{text(node.left)} {node.operator} {text(node.right)}"


def _in(node: In) -> str:
    listed = ", ".join(text(literal) for literal in node.literals)
    return f"{text(node.value)} {_negation(node)}IN ({listed})"


def _like(node: Like) -> str:
    return f"{text(node.value)} {_negation(node)}LIKE {text(node.pattern)}"


def _is_null(node: IsNull) -> str:
    return f"{text(node.value)} IS {_negation(node)}NULL"


def _is_truth(node: IsTruth) -> str:
    return f"{_inner(node.predicate)} IS {_negation(node)}{'TRUE' if node.truth else 'FALSE'}"


def _not(node: Not) -> str:
    return f"NOT {_inner(node.predicate)}"


def _and(node: And) -> str:
    return " AND ".join(f"({text(part)})" if isinstance(part, Or) else text(part) for part in node.parts)


def _or(node: Or) -> str:
    return " OR ".join(f"({text(part)})" if isinstance(part, And) else text(part) for part in node.parts)


def _negation(node: In | Like | IsNull | IsTruth) -> str:
    return "NOT " if node.negated else ""


def _inner(node: Predicate) -> str:
    return text(node) if isinstance(node, ColumnRef) else f"({text(node)})"


_WRITERS = {
    ColumnRef: _column,
    Literal: _literal,
    Call: _call,
    Compare: _compare,
    In: _in,
    Like: _like,
    IsNull: _is_null,
    IsTruth: _is_truth,
    Not: _not,
    And: _and,
    Or: _or,
}
