"""Names and literals as SQL text. Nothing is ever formatted into SQL without going through here."""

from __future__ import annotations

import re

from dbext.errors import InternalError

#: Run-time tables of a tracked table, named <kind>_<table number>.
KINDS = frozenset({"log", "deferred", "admission", "change", "row"})


def quote_ident(name: str) -> str:
    """Return a name as a quoted identifier, whatever it holds."""
    if "\0" in name or not name:
        raise InternalError("a name is empty or holds a zero byte")
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """Return text as a string literal that reads the same under either setting of standard_conforming_strings."""
    if "\0" in text:
        raise InternalError("a text holds a zero byte")
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return " E" + quoted if "\\" in text else quoted


def shown(name: str) -> str:
    """Return a name as people write it: quoted only where it must be. For messages, never for SQL."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.ASCII) else '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    """Return schema.name, both quoted."""
    return f"{quote_ident(schema)}.{quote_ident(name)}"


def private(kind: str, table_id: int) -> str:
    """Return the name of a run-time table: kind log, deferred, admission or change."""
    if kind not in KINDS:
        raise InternalError(f"there are no tables of kind {kind}")
    return f"dbext_private.{kind}_{int(table_id)}"
