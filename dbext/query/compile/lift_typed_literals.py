"""Take `INTERVAL '14 days'`, `DATE '2015-09-01'` and the like apart: the string stays, its type word moves to `Draft.typed`.

So the parser sees plain strings only, and the text of an interval reaches our own reader as it was written.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot.tokens import Token

from dbext.query.compile.draft import Draft
from dbext.query.compile.split_tokens import WORD
from dbext.query.refusal import refused
from dbext.query.words import REASONS, STATEMENT_KEYWORDS, TRAILING

TYPE_WORDS = frozenset({"interval", "date", "timestamp", "timestamptz"})

_INTERVAL_FIELDS = frozenset({"year", "month", "day", "hour", "minute", "second"})


def lift_typed_literals(draft: Draft) -> Draft:
    """Drop type words that stand before a string and remember them by the string's offset."""
    kept: list[Token] = []
    typed: dict[int, str] = {}
    intervals: dict[int, str] = {}
    tokens = list(reversed(draft.tokens))
    while tokens:
        token = tokens.pop()
        if tokens and draft.raw(tokens[-1])[0] == "'" and _is_type(draft, kept, token):
            string = tokens.pop()
            typed[string.start] = _type_word(draft, token)
            if typed[string.start] == "interval":
                intervals[string.start] = draft.raw(string)[1:-1] + _field(draft, tokens)
            token = string
        kept.append(token)
    return replace(draft, tokens=tuple(kept), typed=typed, intervals=intervals)


def _field(draft: Draft, rest: list[Token]) -> str:
    """The unit of INTERVAL '14' DAY, taken off the tokens that follow."""
    if rest and draft.raw(rest[-1]).lower() in _INTERVAL_FIELDS:
        return " " + draft.raw(rest.pop())
    return ""


def _is_type(draft: Draft, before: list[Token], token: Token) -> bool:
    """Whether the word reads as the type of the string that follows it, rather than as a keyword."""
    raw = draft.raw(token)
    if WORD.fullmatch(raw) is None or (before and draft.raw(before[-1]) == "."):
        return False
    return raw.lower() not in STATEMENT_KEYWORDS | set(REASONS) | set(TRAILING)


def _type_word(draft: Draft, token: Token) -> str:
    word = draft.raw(token).lower()
    if word == "zone":
        raise refused(TRAILING["at"][0], token.start, TRAILING["at"][1])
    if word not in TYPE_WORDS:
        raise refused(
            "a string with a type before it is not allowed",
            token.start,
            "Write the string alone: it is read as the type of the column it is compared with.",
        )
    if word == "interval" and not draft.grammar.is_statement:
        raise refused("intervals are not allowed here", token.start, "Only a declaration has a time range, over dp_time.")
    return word
