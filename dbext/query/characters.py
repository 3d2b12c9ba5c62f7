"""Characters and names: what may stand in a text at all, and how PostgreSQL folds an unquoted name."""

from __future__ import annotations

from dbext.query.refusal import refused

# Characters that reorder what is shown, so that a reader sees another text than the parser.
_BIDIRECTIONAL = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C]))


def check_characters(text: str) -> None:
    """Refuse characters that PostgreSQL cannot store, or that people cannot see for what they are."""
    for offset, character in enumerate(text):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise refused("the text holds a character that PostgreSQL cannot store", offset)
        if character in _BIDIRECTIONAL:
            raise refused(
                "the text holds a character that changes the direction of writing",
                offset,
                "Remove it: the text would not read as it is stored.",
            )


def fold(word: str) -> str:
    """An unquoted name as PostgreSQL folds it in a UTF-8 database: ASCII letters only."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in word)
