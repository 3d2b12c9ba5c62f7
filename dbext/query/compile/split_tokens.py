"""Split text into tokens, and make sure that PostgreSQL would split it the same way.

sqlglot's tokenizer serves many databases. Each of its tokens is checked against PostgreSQL's own rules for that kind of token, and
what lies between tokens must be blanks and comments; so a text can never mean one thing here and another to its reader.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token

from dbext.query.compile.draft import Draft
from dbext.query.refusal import refused

STRING = re.compile(r"'(?:[^']|'')*'")
QUOTED_NAME = re.compile(r'"(?:[^"]|"")+"')
NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
WORD = re.compile(r"[^\W\d][\w$]*")
SYMBOLS = frozenset({"(", ")", ",", ".", "*", "=", "<>", "!=", "<", "<=", ">", ">=", "-", ";"})

_BLANK = re.compile(r"(?:[ \t\n\r\f\v]|--[^\n\r]*)*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_COMPLETE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n\r]*|[^'"]""")

_ARITHMETIC = (
    "arithmetic is not allowed",
    "Compare the column itself with a literal, and dp_time with now() - INTERVAL '14 days'; compute with figures when you read them.",
)
_REGEX = (
    "regular expressions are not allowed: they can take unbounded time",
    "Write LIKE 'pattern%', with lower(column) for matching without case.",
)
_PARAMETER = ("parameters are not allowed", "Write the value itself, in quotes.")
_JSON = ("operators on JSON and arrays are not allowed", "Bring the value into a column of the table.")
_STRINGS = ("only plain strings in single quotes are allowed", "Write 'text', doubling a quote inside.")
_REASONS: dict[str, tuple[str, str]] = {
    "::": ("casts are not allowed", "Compare the column itself with a literal: the literal is read as the column's type."),
    **dict.fromkeys(["+", "/", "%", "^", "|/", "||/", "&", "|", "#", "<<", ">>"], _ARITHMETIC),
    "||": ("joining strings is not allowed", "Compare the column itself with a literal."),
    **dict.fromkeys(["~", "~*", "!~", "!~*", "!", "~~", "~~*", "!~~", "!~~*"], _REGEX),
    **dict.fromkeys(["$", "?", ":", "@", "%s"], _PARAMETER),
    **dict.fromkeys(["->", "->>", "#>", "#>>", "@>", "<@", "?|", "?&", "&&", "[", "]"], _JSON),
    "==": ("== is no operator", "Write = for equality."),
}


def split_tokens(draft: Draft) -> Draft:
    """Tokenize; a trailing semicolon of a statement is dropped."""
    tokens = _tokenize(draft.text)
    _refuse_gaps(draft.text, tokens)
    brackets = _array_brackets(draft, tokens)
    for before, token in zip((None, *tokens), tokens, strict=False):
        if token.start not in brackets:
            _check(draft, before, token)
    return replace(draft, tokens=_without_semicolon(draft, tokens))


def _array_brackets(draft: Draft, tokens: list[Token]) -> set[int]:
    """Offsets of the brackets of ARRAY[...] in a statement, none inside another."""
    found, opened, before = set(), None, ""
    for token in tokens:
        raw = draft.raw(token)
        if raw == "[":
            opened = token.start if before.lower() == "array" and draft.grammar.is_statement else None
        elif raw == "]" and opened is not None:
            found |= {opened, token.start}
            opened = None
        before = raw
    return found


def _tokenize(text: str) -> list[Token]:
    try:
        return Dialect.get_or_raise("postgres").tokenize(text)
    except SqlglotError:
        raise refused("a quote or a comment is not closed", _unclosed(text)) from None


def _unclosed(text: str) -> int | None:
    """Offset of the first quote without an end, if that is what is wrong."""
    position = 0
    while position < len(text):
        match = _COMPLETE.match(text, position)
        if match is None:
            return position
        position = match.end()
    return None


def _refuse_gaps(text: str, tokens: list[Token]) -> None:
    position = 0
    for token in tokens:
        end = _blank_end(text, position)
        if end != token.start:
            raise refused("a character that is neither a blank nor part of a word", min(end, token.start))
        position = token.end + 1
    if _blank_end(text, position) != len(text):
        raise refused("a character that is neither a blank nor part of a word", _blank_end(text, position))


def _blank_end(text: str, position: int) -> int:
    """Where blanks and comments that start at `position` end; block comments nest, as in PostgreSQL."""
    while True:
        position = _BLANK.match(text, position).end()
        if not text.startswith("/*", position):
            return position
        depth, start = 0, position
        for edge in _COMMENT_EDGE.finditer(text, position):
            depth += 1 if edge[0] == "/*" else -1
            if depth == 0:
                position = edge.end()
                break
        if depth or position == start:
            raise refused("a comment is not closed", start)


def _check(draft: Draft, before: Token | None, token: Token) -> None:
    raw = draft.raw(token)
    if raw in SYMBOLS:
        return
    if raw[0] not in "'\"" and not NUMBER.match(raw) and not all(WORD.fullmatch(part) for part in raw.split()):
        message, hint = _reason(raw)
        raise refused(message, token.start, hint)
    _check_form(token, raw)
    if before is not None:
        _check_distance(draft.raw(before), token, raw, adjacent=before.end + 1 == token.start)


def _reason(raw: str) -> tuple[str, str | None]:
    """What to say about a token that is no part of the grammar."""
    if raw[0] == "$" and len(raw) == 1:
        return _PARAMETER
    if "'" in raw or raw[0] == "$":
        return _STRINGS
    return _REASONS.get(raw, (f"{raw[:20]} is not allowed", None))


def _check_form(token: Token, raw: str) -> None:
    if raw[0] == "'" and STRING.fullmatch(raw) is None:
        raise refused(_STRINGS[0], token.start, _STRINGS[1])
    if raw[0] == '"' and QUOTED_NAME.fullmatch(raw) is None:
        raise refused("a quoted name is empty or not closed", token.start)
    if raw[0] in "0123456789." and NUMBER.fullmatch(raw) is None:
        raise refused("a number is not understood", token.start, "Write it in decimal digits.")


def _check_distance(before: str, token: Token, raw: str, *, adjacent: bool) -> None:
    if adjacent and before not in SYMBOLS | {"[", "]"} and raw not in SYMBOLS:
        raise refused("two words stand without a blank between them", token.start, _STRINGS[1] if raw[0] == "'" else None)
    if raw[0] == "'" and before[0] == "'":
        raise refused("two strings stand side by side", token.start, "Write them as one.")


def _without_semicolon(draft: Draft, tokens: list[Token]) -> tuple[Token, ...]:
    semicolons = [index for index, token in enumerate(tokens) if draft.raw(token) == ";"]
    if semicolons and (not draft.grammar.is_statement or semicolons[0] + 1 < len(tokens)):
        raise refused("only one statement is allowed", tokens[semicolons[0]].start)
    kept = tokens[: semicolons[0]] if semicolons else tokens
    if not kept:
        raise refused("the text holds nothing but comments")
    return tuple(kept)
