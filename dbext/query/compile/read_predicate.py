"""Turn the remaining conditions into our own tree: an allow-list of node types and of their arguments."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import column_of, expect, offset_of, refused_node, unwrap
from dbext.query.compile.split_conditions import operands
from dbext.query.predicate import And, Call, ColumnRef, Compare, In, IsNull, IsTruth, Like, Literal, Not, Or, Predicate, Value
from dbext.query.refusal import refused

_OPERATORS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_CONDITIONS = (exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Like, exp.Is, *_OPERATORS)


def read_predicate(draft: Draft) -> Draft:
    """Fill `predicate` with the conjunction of all conditions; None if there is none."""
    parts = tuple(_condition(draft, condition) for condition in draft.conditions)
    predicate = None if not parts else parts[0] if len(parts) == 1 else And(parts)
    return replace(draft, predicate=predicate)


def _condition(draft: Draft, node: exp.Expression) -> Predicate:
    node = unwrap(draft, node)
    if isinstance(node, (exp.And, exp.Or)):
        connective = And if isinstance(node, exp.And) else Or
        return connective(tuple(_condition(draft, part) for part in operands(draft, node, type(node))), offset_of(node))
    if isinstance(node, exp.Not):
        return Not(_condition(draft, expect(draft, node, exp.Not, "this").this), offset_of(node))
    if isinstance(node, exp.Column):
        return column_of(draft, node)
    if isinstance(node, (exp.Boolean, exp.Literal)):
        raise refused("a constant is no condition", offset_of(node), "Compare a column with it, or leave it out.")
    reader = _READERS.get(type(node))
    return reader(draft, node) if reader else refused_node(draft, node)


def _compare(draft: Draft, node: exp.Expression) -> Compare:
    pair = expect(draft, node, type(node), "this", "expression")
    left, right = _value(draft, pair.this), _value(draft, pair.expression)
    if isinstance(left, Literal) and isinstance(right, Literal):
        raise refused("two constants are compared", offset_of(node), "Compare a column with a literal.")
    return Compare(_OPERATORS[type(node)], left, right, offset_of(node))


def _between(draft: Draft, node: exp.Expression) -> And:
    between = expect(draft, node, exp.Between, "this", "low", "high")
    value = _subject(draft, between.this)
    low, high = _value(draft, between.args["low"]), _value(draft, between.args["high"])
    return And((Compare(">=", value, low, offset_of(node)), Compare("<=", value, high, offset_of(node))))


def _in(draft: Draft, node: exp.Expression) -> In:
    membership = expect(draft, node, exp.In, "this", "expressions")
    if not membership.expressions:
        raise refused("IN needs a list of literals", offset_of(node), "Write IN ('a', 'b').")
    literals = tuple(_literal(draft, item) for item in membership.expressions)
    return In(_subject(draft, membership.this), literals, offset=offset_of(node))


def _like(draft: Draft, node: exp.Expression) -> Like:
    like = expect(draft, node, exp.Like, "this", "expression", "negate")
    return Like(_subject(draft, like.this), _literal(draft, like.expression), bool(like.args.get("negate")), offset_of(node))


def _is(draft: Draft, node: exp.Expression) -> IsNull | IsTruth:
    test = expect(draft, node, exp.Is, "this", "expression", "negate")
    negated, subject = bool(test.args.get("negate")), unwrap(draft, test.this)
    if isinstance(test.expression, exp.Boolean):
        return IsTruth(_condition(draft, subject), bool(expect(draft, test.expression, exp.Boolean, "this").this), negated, offset_of(node))
    expect(draft, test.expression, exp.Null)
    if isinstance(subject, _CONDITIONS):
        raise refused("IS NULL and IS UNKNOWN test a column", offset_of(node), "Test the columns of the condition.")
    return IsNull(_subject(draft, subject), negated, offset_of(node))


def _subject(draft: Draft, node: exp.Expression) -> ColumnRef | Call:
    """A value that depends on the entry."""
    value = _value(draft, node)
    if isinstance(value, Literal):
        raise refused("a column is expected here, not a constant", offset_of(node))
    return value


def _literal(draft: Draft, node: exp.Expression) -> Literal:
    value = _value(draft, node)
    if not isinstance(value, Literal):
        raise refused("a literal is expected here", offset_of(node), "Write a string in quotes, a number, true or false.")
    return value


def _value(draft: Draft, node: exp.Expression) -> Value:
    node = unwrap(draft, node)
    offset = offset_of(node)
    if isinstance(node, exp.Column):
        return column_of(draft, node)
    if isinstance(node, exp.Literal):
        return _constant(draft, node, sign="")
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return _constant(draft, expect(draft, node, exp.Neg, "this").this, sign="-")
    if isinstance(node, exp.Boolean):
        return Literal(str(bool(expect(draft, node, exp.Boolean, "this").this)).lower(), "boolean", offset=offset)
    if isinstance(node, (exp.Lower, exp.Upper)):
        return _call(draft, node)
    if isinstance(node, _CONDITIONS):
        raise refused(
            "a condition stands where a value is expected", offset, "Join conditions with AND, OR and NOT; test one with IS TRUE."
        )
    raise refused_node(draft, node)


def _constant(draft: Draft, node: exp.Literal, sign: str) -> Literal:
    literal, offset = expect(draft, node, exp.Literal, "this", "is_string"), offset_of(node)
    form = draft.typed.get(offset, "string") if literal.is_string else "number"
    if form == "interval":
        raise refused("an interval can only be taken from now(), to limit dp_time", offset)
    return Literal(sign + literal.this, form, offset=offset)


def _call(draft: Draft, node: exp.Lower | exp.Upper) -> Call:
    argument = unwrap(draft, expect(draft, node, type(node), "this").this)
    name = "lower" if isinstance(node, exp.Lower) else "upper"
    if not isinstance(argument, exp.Column):
        raise refused(f"{name}() takes a column", offset_of(node), "Write a constant as it should be.")
    return Call(name, column_of(draft, argument), offset_of(node))


_READERS = {**dict.fromkeys(_OPERATORS, _compare), exp.Between: _between, exp.In: _in, exp.Like: _like, exp.Is: _is}
