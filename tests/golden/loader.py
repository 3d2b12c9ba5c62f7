"""Reader of golden files: cases of `-- key: value` lines, an input that ends with `;`, and the expected text that ends with `;`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    where: str
    settings: dict[str, str]
    given: str
    expected: str


def cases(name: str) -> list[Case]:
    """All cases of tests/golden/<name>.sql. Lines that start with `#` are prose; a case's number is its position in the file."""
    path = Path(__file__).with_name(f"{name}.sql")
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found, settings, parts, part = [], {}, [], []
    for line in lines:
        if line.startswith("-- ") and not part and not parts:
            key, _, value = line[3:].partition(": ")
            settings[key] = value
        elif part or line.strip():
            part.append(line)
        if part and line.endswith(";"):
            parts.append("\n".join(part)[:-1])
            part = []
        if len(parts) == 2:
            found.append(Case(f"{name}.sql case {len(found) + 1}", settings, *parts))
            settings, parts = {}, []
    if part or parts:
        raise ValueError(f"{path.name} ends inside a case")
    return found
