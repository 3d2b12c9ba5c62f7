"""Run-time SQL lives in files of named blocks, one per module: `-- name: seal_head`, a comment line saying what it does, then the text."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from dbext.errors import InternalError

_MARK = "-- name: "
_PLACE = re.compile(r"\$\{([a-z_]+)\}")


@lru_cache
def statements(stem: str) -> dict[str, str]:
    """Return the named blocks of `dbext/database/<stem>.sql` without their describing lines."""
    with open(os.path.join(os.path.dirname(__file__), f"{stem}.sql"), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123 - pathlib costs a backend 3 ms
        text = file.read()
    blocks: dict[str, str] = {}
    for block in text.split(_MARK)[1:]:
        name, _, body = block.partition("\n")
        lines = body.rstrip().splitlines()
        if not lines or not lines[0].startswith("-- ") or name in blocks:
            raise InternalError(f"block {name} of {stem}.sql has no description or stands there twice")
        blocks[name] = "\n".join(lines[1:])
    return blocks


def fill(text: str, **places: str) -> str:
    """Return a block with every ${place} replaced by SQL text of our own making."""
    return _PLACE.sub(lambda place: places[place[1]], text)
