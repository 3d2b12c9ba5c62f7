"""Read the conditions on dp_time: one half-open range (lower, upper] of mutation times.

A tick is half-open too, (start, end]. So a bound means the same boundary whether it is written > or >=, < or <=: the mutations at
that very instant belong to the tick that ends there. `>` and `<=` say exactly that; for the others a note does.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import column_of, expect, offset_of, refused_node, unwrap
from dbext.query.compile.read_intervals import interval_of
from dbext.query.declaration import Ago, Bound, Fixed, TimeRange
from dbext.query.literals import is_day, timestamp_of
from dbext.query.refusal import refused

HALF_OPEN = (
    "dp_time is read as the half-open range (start, end]: a mutation at the instant of a boundary counts in the tick that ends there"
)
END_DAY = "a day as the end of the range means its first instant, as in SQL: that day itself is not counted"

_LOWER = {exp.GT: ">", exp.GTE: ">="}
_UPPER = {exp.LT: "<", exp.LTE: "<="}
_MIRROR = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_FORMS = "Write dp_time > now() - INTERVAL '14 days', or two fixed times: dp_time >= '2015-09-01' AND dp_time < '2015-10-01'."


def read_time_range(draft: Draft) -> Draft:
    """Fill `range` from the conditions that mention dp_time, and leave the others."""
    timed = [condition for condition in draft.conditions if _mentions_dp_time(condition)]
    others = tuple(condition for condition in draft.conditions if condition not in timed)
    if not timed:
        window = draft.range
        return replace(draft, range=window or TimeRange(), mentions_dp_time=window is not None)
    if draft.range is not None:
        raise refused("TUMBLE and HOP state the window already", offset_of(timed[0]), "Leave the condition on dp_time out.")
    bounds: dict[str, Bound | None] = {}
    notes: list[str] = []
    for condition in timed:
        for side, bound, note in _bounds(draft, condition):
            if side in bounds:
                raise refused(f"dp_time has two {side} bounds", offset_of(condition), "State each bound once.")
            bounds[side] = bound
            notes += note
    window = TimeRange(bounds.get("lower"), bounds.get("upper"))
    if isinstance(window.lower, Ago) and window.is_fixed:
        raise refused("a range cannot start at a moving time and end at a fixed one", offset_of(timed[0]), _FORMS)
    return replace(draft, range=window, conditions=others, mentions_dp_time=True, notes=draft.notes + tuple(dict.fromkeys(notes)))


def _mentions_dp_time(condition: exp.Expression) -> bool:
    return any(isinstance(node, exp.Column) and node.name == "dp_time" for node in condition.walk())


def _bounds(draft: Draft, condition: exp.Expression) -> list[tuple[str, Bound | None, list[str]]]:
    """The sides a condition bounds: (lower or upper, bound, notes)."""
    if isinstance(condition, exp.Between):
        between = expect(draft, condition, exp.Between, "this", "low", "high")
        _require_dp_time(draft, between.this)
        lower, upper = _bound(draft, between.args["low"], "lower"), _bound(draft, between.args["high"], "upper")
        return [("lower", lower, [HALF_OPEN]), ("upper", upper, _end_notes(upper))]
    if isinstance(condition, (*_LOWER, *_UPPER)):
        pair = expect(draft, condition, type(condition), "this", "expression")
        left, right, kind = unwrap(draft, pair.this), unwrap(draft, pair.expression), type(pair)
        if _is_dp_time(right):
            left, right, kind = right, left, _MIRROR[kind]
        _require_dp_time(draft, left)
        side = "lower" if kind in _LOWER else "upper"
        bound = _bound(draft, right, side)
        notes = [HALF_OPEN] if kind in (exp.GTE, exp.LT) else _end_notes(bound) if side == "upper" else []
        return [(side, bound, notes)]
    _require_dp_time(draft, condition)
    raise refused("dp_time is no condition by itself", offset_of(condition), _FORMS)


def _end_notes(bound: Bound | None) -> list[str]:
    return [END_DAY] if isinstance(bound, Fixed) and is_day(bound.text) else []


def _is_dp_time(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and node.name == "dp_time"


def _require_dp_time(draft: Draft, node: exp.Expression) -> None:
    if isinstance(node, exp.Anonymous):
        raise refused_node(draft, node)
    if isinstance(node, (exp.Or, exp.Not)):
        raise refused("dp_time can only be joined to other conditions by AND", offset_of(node), _FORMS)
    if isinstance(node, (exp.EQ, exp.NEQ, exp.In, exp.Is, exp.Like)):
        raise refused("dp_time can only be bounded by <, <=, >, >= or BETWEEN", offset_of(node), _FORMS)
    if not _is_dp_time(unwrap(draft, node)):
        raise refused("dp_time must stand alone on one side", offset_of(node), _FORMS)
    column_of(draft, unwrap(draft, node))


def _bound(draft: Draft, node: exp.Expression, side: str) -> Bound | None:
    """now() (None), now() - INTERVAL (Ago) or a timestamp literal (Fixed)."""
    node = unwrap(draft, node)
    if isinstance(node, exp.CurrentTimestamp):
        expect(draft, node, exp.CurrentTimestamp)
        if side == "lower":
            raise refused("the range starts at now(): it is empty", offset_of(node), _FORMS)
        return None
    if isinstance(node, exp.Sub):
        pair = expect(draft, node, exp.Sub, "this", "expression")
        expect(draft, unwrap(draft, pair.this), exp.CurrentTimestamp)
        return Ago(interval_of(draft, unwrap(draft, pair.expression)))
    if isinstance(node, exp.Literal) and node.is_string:
        return _fixed(draft, node)
    raise refused("dp_time can only be compared with now(), now() - INTERVAL, or a time in quotes", offset_of(node), _FORMS)


def _fixed(draft: Draft, node: exp.Literal) -> Fixed:
    offset, word = offset_of(node), draft.typed.get(offset_of(node))
    moment = timestamp_of(expect(draft, node, exp.Literal, "this", "is_string").this)
    if word == "interval" or moment is None or (word == "date" and not is_day(node.this)):
        raise refused("a time is not understood", offset, "Write it like '2015-09-01' or '2015-09-01 12:00', or with an offset from UTC.")
    if word in ("date", "timestamp", "timestamptz") and (moment[1] is not None) != (word == "timestamptz"):
        raise refused("a time has an offset where its type has none, or the other way round", offset, "Write the string alone.")
    return Fixed(node.this, offset)
