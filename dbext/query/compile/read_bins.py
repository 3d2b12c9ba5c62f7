"""Read width_bucket(column, low, high, count) and width_bucket(column, ARRAY[...]): equal and other bins, with numbers written out."""

from __future__ import annotations

from sqlglot import exp

from dbext.query.bins import MAX_EDGES, Bins, checked, edge
from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import column_of, expect, offset_of, unwrap
from dbext.query.refusal import refused

FORMS = "Write width_bucket(age, 0, 100, 20) or width_bucket(age, ARRAY[0, 18, 65, 80])."


def bins_of(draft: Draft, node: exp.Expression, label: str | None = None) -> Bins:
    """The bins of a call, under the name it was given."""
    call = expect(draft, node, exp.WidthBucket, "this", "min_value", "max_value", "num_buckets", "threshold")
    column, place = unwrap(draft, call.this), offset_of(call)
    if not isinstance(column, exp.Column):
        raise refused("width_bucket() takes a column and numbers", place, FORMS)
    listed = call.args.get("threshold")
    if listed is not None:
        written, count = numbers_of(draft, listed), 0
    elif call.args.get("num_buckets") is None:
        raise refused("width_bucket() has other arguments than these", place, FORMS)
    else:
        written = tuple(edge(number_of(draft, call.args[name]), place) for name in ("min_value", "max_value"))
        count = _count(number_of(draft, call.args["num_buckets"]), place)
    return checked(Bins(column_of(draft, column), written, count, label or "width_bucket", offset=place))


def numbers_of(draft: Draft, node: exp.Expression) -> tuple[str, ...]:
    """The numbers of ARRAY[...], one at least."""
    node = unwrap(draft, node)
    if not isinstance(node, exp.Array):
        raise refused("a list of numbers is expected here", offset_of(node), "Write ARRAY[0, 18, 65, 80].")
    listed = expect(draft, node, exp.Array, "expressions", "bracket_notation").expressions
    if not listed:
        raise refused("the list of numbers is empty", offset_of(node))
    return tuple(edge(number_of(draft, item), offset_of(item)) for item in listed)


def number_of(draft: Draft, node: exp.Expression) -> str:
    """A number as it was written, with its sign."""
    node, sign = unwrap(draft, node), ""
    if isinstance(node, exp.Neg):
        node, sign = unwrap(draft, expect(draft, node, exp.Neg, "this").this), "-"
    if not isinstance(node, exp.Literal) or node.is_string:
        raise refused("a number is expected here", offset_of(node), "Write it in digits, without quotes.")
    return sign + expect(draft, node, exp.Literal, "this", "is_string").this


def _count(text: str, offset: int | None) -> int:
    if not text.isdigit() or not 0 < int(text) <= MAX_EDGES:
        raise refused(f"the number of bins is a whole number from 1 to {MAX_EDGES - 1}", offset, FORMS)
    return int(text)
