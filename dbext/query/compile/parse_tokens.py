"""Hand the guarded tokens to sqlglot's PostgreSQL parser: the only call of it."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from dbext.query.compile.draft import Draft
from dbext.query.refusal import refused


def parse_tokens(draft: Draft) -> Draft:
    """Parse; DeclarationRefused for whatever goes wrong inside the parser, which gives no other promise on such input."""
    try:
        return replace(draft, tree=_parse(draft))
    except SqlglotError as error:
        offset = _offset(draft, error)
    except (RecursionError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        offset = None
    raise refused("this is not understood as SQL", offset, "A comma, an operator or a keyword may be missing or out of place near here.")


def _parse(draft: Draft) -> exp.Expression | None:
    parser = Dialect.get_or_raise("postgres").parser(error_level=ErrorLevel.IMMEDIATE)
    if not draft.grammar.is_statement:
        return parser.parse_into(exp.Condition, list(draft.tokens), draft.text)[0]
    statements = parser.parse(list(draft.tokens), draft.text)
    return statements[0] if len(statements) == 1 else None


def _offset(draft: Draft, error: SqlglotError) -> int | None:
    """Where the parser stopped, from the line and column it reports; the column is that of a token's last character."""
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    line, column = details.get("line"), details.get("col")
    with contextlib.suppress(StopIteration):
        return next(token.start for token in draft.tokens if (token.line, token.col) == (line, column))
    return None
