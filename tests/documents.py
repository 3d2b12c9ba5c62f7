"""Reading our own documents: fenced blocks, sections and tables."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SQL_REFERENCE = ROOT / "docs" / "sql-reference.md"

_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\)\|")


def fenced(text: str) -> list[tuple[str, str]]:
    """Return (what stands after the fence, content) of every fenced block, in order."""
    return _FENCED.findall(text)


def sections(text: str, level: int) -> dict[str, str]:
    """Return the text under every heading of a level, up to the next heading of that level or a higher one. Blocks must not hold headings."""
    found = re.split(rf"^(#{{1,{level}}}) (.+)$", text, flags=re.MULTILINE)
    return {found[i + 1]: found[i + 2] for i in range(1, len(found), 3) if len(found[i]) == level}


def tables(text: str) -> list[list[dict[str, str]]]:
    """Return every table: its rows, by column heading."""
    found = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    return [_table(lines.strip().splitlines()) for lines in found]


def code(cell: str) -> str:
    """Return what a table cell shows as code, or the cell itself."""
    quoted = re.fullmatch(r"`(.*)`", cell)
    return quoted[1] if quoted else cell


def _table(lines: list[str]) -> list[dict[str, str]]:
    head, _, *body = ([cell.strip().replace("\\|", "|") for cell in _CELL_END.split(line)[1:-1]] for line in lines)
    assert all(len(row) == len(head) for row in body), f"a row of the table {head} has another number of cells"
    return [dict(zip(head, row, strict=True)) for row in body]
