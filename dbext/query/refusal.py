"""How the compiler says no: always with a position when it knows one, and with what to write instead."""

from __future__ import annotations

from dbext.errors import DeclarationRefused


def refused(message: str, offset: int | None = None, hint: str | None = None) -> DeclarationRefused:
    """Return the error to raise; `offset` is 0-based, the position shown to people 1-based."""
    return DeclarationRefused(message, position=None if offset is None else offset + 1, hint=hint)
