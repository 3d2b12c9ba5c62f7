"""Read intervals: the strings whose INTERVAL word was lifted off, by our own reader of spans."""

from __future__ import annotations

from sqlglot import exp

from dbext.errors import BadArgument
from dbext.query.calendar import Span, parse_span
from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import expect, offset_of
from dbext.query.refusal import refused


def interval_of(draft: Draft, node: exp.Expression | None) -> Span:
    """The span of an interval literal."""
    offset = offset_of(node)
    if not isinstance(node, exp.Literal) or offset not in draft.intervals:
        raise refused("an interval is expected here", offset, "Write it like INTERVAL '14 days'.")
    expect(draft, node, exp.Literal, "this", "is_string")
    try:
        return parse_span(draft.intervals[offset])
    except BadArgument as error:
        raise refused(error.message, offset, error.hint) from None
