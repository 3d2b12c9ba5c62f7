"""Canonical form of a bound predicate: the same question respelled becomes the same tree, and no two different questions ever do.

Each step keeps the value of the predicate in SQL's three-valued logic, so the canonical tree is also the one that is rendered:

- NOT moves down to the leaves: Kleene's logic obeys De Morgan; comparisons negate to their complement (NULL stays NULL);
- a literal stands on the right; `flag = true` is `flag`, `flag <> true` is `NOT flag`;
- AND and OR are flattened, equal parts dropped, the rest sorted;
- `a = 1 OR a IN (2, 3)` is `a IN (1, 2, 3)`, and likewise for `<>` under AND, which is the definition of IN;
- `p IS TRUE` reached from the root through AND and OR only is `p`: the caller counts what IS TRUE. (`IS FALSE` there is `NOT p`.)
"""

from __future__ import annotations

from dataclasses import replace

from dbext.query.predicate import And, ColumnRef, Compare, In, IsNull, IsTruth, Like, Literal, Not, Or, Predicate, Value
from dbext.query.text import text

_COMPLEMENT = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRROR = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def canonical(predicate: Predicate) -> Predicate:
    """The canonical form; idempotent."""
    return _normal(predicate, negated=False, positive=True)


def _normal(node: Predicate, *, negated: bool, positive: bool) -> Predicate:
    """Normal form of `node`, or of NOT node. `positive`: only AND and OR stand between the root and here."""
    return _NORMAL_FORMS[type(node)](node, negated=negated, positive=positive)


def _normal_not(node: Not, *, negated: bool, positive: bool) -> Predicate:
    return _normal(node.predicate, negated=not negated, positive=positive)


def _normal_joined(node: And | Or, *, negated: bool, positive: bool) -> Predicate:
    conjunction = isinstance(node, And) != negated
    return _joined(And if conjunction else Or, [_normal(part, negated=negated, positive=positive) for part in node.parts])


def _normal_truth(node: IsTruth, *, negated: bool, positive: bool) -> Predicate:
    refuted = negated != node.negated
    if positive and not refuted:
        return _normal(node.predicate, negated=not node.truth, positive=True)
    inner = _normal(node.predicate, negated=not node.truth, positive=False)
    return IsTruth(inner, truth=True, negated=refuted)


def _normal_comparison(node: Compare, *, negated: bool, positive: bool) -> Predicate:  # noqa: ARG001 one signature for all forms
    return _comparison(node.operator if not negated else _COMPLEMENT[node.operator], node.left, node.right)


def _normal_membership(node: In, *, negated: bool, positive: bool) -> Predicate:  # noqa: ARG001
    return _membership(node.value, node.literals, negated=node.negated != negated)


def _normal_test(node: Like | IsNull, *, negated: bool, positive: bool) -> Predicate:  # noqa: ARG001
    return replace(node, negated=node.negated != negated)


def _normal_flag(node: ColumnRef, *, negated: bool, positive: bool) -> Predicate:  # noqa: ARG001
    return Not(node) if negated else node


_NORMAL_FORMS = {
    Not: _normal_not,
    And: _normal_joined,
    Or: _normal_joined,
    IsTruth: _normal_truth,
    Compare: _normal_comparison,
    In: _normal_membership,
    Like: _normal_test,
    IsNull: _normal_test,
    ColumnRef: _normal_flag,
}


def _comparison(operator: str, left: Value, right: Value) -> Predicate:
    """A literal on the right, of two columns the one that sorts first on the left; equality with a boolean is the column or its NOT."""
    if isinstance(left, Literal) or (not isinstance(right, Literal) and text(right) < text(left)):
        left, right, operator = right, left, _MIRROR[operator]
    if isinstance(right, Literal) and right.form == "boolean" and operator in ("=", "<>"):
        return left if (operator == "=") == (right.text == "true") else Not(left)
    return Compare(operator, left, right)


def _membership(value: Value, literals: tuple[Literal, ...], *, negated: bool) -> Predicate:
    """IN of distinct literals in order; of one literal it is a comparison, of booleans a choice between the column and its NOT."""
    distinct = tuple(sorted(set(literals), key=lambda literal: (literal.text, literal.form)))
    operator = "<>" if negated else "="
    if distinct[0].form == "boolean":
        return _joined(And if negated else Or, [_comparison(operator, value, literal) for literal in distinct])
    return Compare(operator, value, distinct[0]) if len(distinct) == 1 else In(value, distinct, negated)


def _joined(connective: type[And | Or], parts: list[Predicate]) -> Predicate:
    """Parts under one AND or OR: flattened, equalities on one value gathered, equal parts dropped, sorted by their text."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, connective) else (part,))]
    by_text = {text(part): part for part in _gathered(flat, negated=connective is And)}
    ordered = tuple(by_text[key] for key in sorted(by_text))
    return ordered[0] if len(ordered) == 1 else connective(ordered)


def _gathered(parts: list[Predicate], *, negated: bool) -> list[Predicate]:
    """Merge `v = x` and `v IN (...)` (under AND: `v <> x` and `v NOT IN (...)`) on the same value into one IN."""
    literals: dict[Value, list[Literal]] = {}
    others = []
    for part in parts:
        members = _members(part, negated=negated)
        if members is None:
            others.append(part)
        else:
            literals.setdefault(part.value if isinstance(part, In) else part.left, []).extend(members)
    return others + [_membership(value, tuple(found), negated=negated) for value, found in literals.items()]


def _members(part: Predicate, *, negated: bool) -> tuple[Literal, ...] | None:
    if isinstance(part, In) and part.negated == negated:
        return part.literals
    if isinstance(part, Compare) and part.operator == ("<>" if negated else "=") and isinstance(part.right, Literal):
        return (part.right,)
    return None
