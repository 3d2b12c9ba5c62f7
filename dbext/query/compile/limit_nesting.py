"""Bound how deep the parser and our own walks can recurse, before either starts."""

from __future__ import annotations

from dbext.query.compile.draft import Draft
from dbext.query.refusal import refused

MAX_DEPTH = 20


def limit_nesting(draft: Draft) -> Draft:
    """Refuse parentheses nested, or NOT and minus signs repeated, more than MAX_DEPTH times; check that parentheses match."""
    opened: list[int] = []
    prefixes = 0
    for token in draft.tokens:
        raw = draft.raw(token).lower()
        prefixes = prefixes + 1 if raw in ("not", "-") else 0
        if raw == "(":
            opened.append(token.start)
        elif raw == ")":
            if not opened:
                raise refused("a parenthesis is closed that was not opened", token.start)
            opened.pop()
        if len(opened) > MAX_DEPTH or prefixes > MAX_DEPTH:
            raise refused(f"conditions are nested more than {MAX_DEPTH} deep", token.start, "Write the condition flatter.")
    if opened:
        raise refused("a parenthesis is not closed", opened[-1])
    return draft
