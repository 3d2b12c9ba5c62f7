"""Where the noise of buffered totals stands: one row for each stream, moved on in place. Private."""

from __future__ import annotations

from dataclasses import dataclass

from dbext.database.nodes import Cells, Source
from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.errors import InternalError

SQL = statements("noise_states")


@dataclass(frozen=True)
class NoiseState:
    """The last period drawn, with the buffers after it; the last one answered, with its exact totals. 0: none yet."""

    drawn: int
    buffers: list[Cells]
    answered: int
    totals: Cells


def read(session: Session, source: Source, cells: int) -> NoiseState | None:
    """Return the state of a stream; None before anything was drawn."""
    rows = session.fetch(SQL["state"], *source)
    if not rows:
        return None
    (row,) = rows
    flat = _numbers(row["buffers"])
    buffers = [flat[start : start + cells] for start in range(0, len(flat), cells)]
    return NoiseState(row["drawn"], buffers, row["answered"], _numbers(row["totals"]))


def begin(session: Session, source: Source, buffers: list[Cells], cells: int) -> NoiseState:
    """Store and return the state before anything was drawn."""
    session.execute(SQL["begin"], *source, _flat(buffers), [0] * cells)
    return NoiseState(0, buffers, 0, [0] * cells)


def move_noise(session: Session, source: Source, before: int, drawn: int, buffers: list[Cells]) -> None:
    """Move the noise on from one period to another, or give it more cells. What was drawn is never drawn again."""
    if session.execute(SQL["drawn"], *source, before, drawn, _flat(buffers)) != 1:
        raise InternalError("the noise of a release does not stand where it was left")


def move_totals(session: Session, source: Source, answered: int, totals: Cells) -> None:
    """Move the exact totals on, or give them more cells."""
    session.execute(SQL["answered"], *source, answered, totals)


def forget(session: Session, source: Source, before: int) -> None:
    """Delete the nodes before a number that later noise has taken the place of."""
    session.execute(SQL["forget"], *source, before)


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def _flat(buffers: list[Cells]) -> list[int]:
    return [value for buffer in buffers for value in buffer]
