"""First rule: text that no later rule should have to think about."""

from __future__ import annotations

import re

from dbext.query.characters import check_characters
from dbext.query.compile.draft import Draft
from dbext.query.refusal import refused
from dbext.query.words import REASONS

MAX_LENGTH = 10_000

_FIRST_WORD = re.compile(r"\s*([A-Za-z]+)")


def check_text(draft: Draft) -> Draft:
    """Refuse text that is too long, empty, no SELECT at all, or holds characters that cannot be stored or seen."""
    if len(draft.text) > MAX_LENGTH:
        raise refused(f"the text is longer than {MAX_LENGTH} characters", hint="Split it, or keep long lists in a column of the table.")
    if not draft.text.strip():
        raise refused(
            "the text is empty",
            hint="Write a SELECT with count(*)." if draft.grammar.is_statement else "Leave the predicate out to count every entry.",
        )
    check_characters(draft.text)
    first = _FIRST_WORD.match(draft.text)
    if draft.grammar.is_statement and first and first[1].lower() not in ("select", *REASONS):
        raise refused("a declaration is one SELECT", first.start(1), "Write SELECT count(*) FROM the tracked table.")
    return draft
