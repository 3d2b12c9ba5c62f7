"""Exact tick sums (private) and the noisy nodes (or encoder rows) drawn from them, each once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.mechanisms.protocol import Node

SQL = statements("nodes")

Cells = list[int]


class Source(NamedTuple):
    """A release and the number of one of its streams, from 1."""

    release_id: int
    stream_no: int = 1


def exact_sums(session: Session, source: Source, nodes: Sequence[Node], cell_count: int, floor: int) -> list[Cells]:
    """Return the exact sum of each node, one number per cell; `floor` stands for the beginning.

    Sums of ticks are added up once for all nodes: the sum of (a, b] is the running total at b less that at a.
    """
    starts = [floor if node.start is None else max(node.start, floor) for node in nodes]
    rows = session.fetch(SQL["tick_sums"], *source, min(starts), max(node.end for node in nodes))
    wanted = sorted({*starts, *(max(node.end, floor) for node in nodes)})
    totals = _running_totals([(row["tick"], row["sums"]) for row in rows], wanted, cell_count)
    return [
        [high - low for low, high in zip(totals[start], totals[max(node.end, floor)], strict=True)]
        for start, node in zip(starts, nodes, strict=True)
    ]


def _running_totals(rows: Sequence[tuple[int, Cells]], wanted: Sequence[int], cell_count: int) -> dict[int, Cells]:
    """Return the sums of all rows up to each wanted tick; rows and wanted ticks are in order."""
    total, totals, place = [0] * cell_count, {}, 0
    for tick in wanted:
        while place < len(rows) and rows[place][0] <= tick:
            total = [one + more for one, more in zip(total, rows[place][1], strict=True)]
            place += 1
        totals[tick] = total
    return totals


def store(session: Session, source: Source, numbers: Sequence[int], noisy: Sequence[int], cell_count: int) -> None:
    """Store drawn nodes; a second draw of a node is refused by the primary key."""
    session.execute(SQL["store"], *source, list(numbers), list(noisy), cell_count)


def stored_numbers(session: Session, source: Source) -> list[int]:
    """Return the numbers of all stored nodes of a stream, in order."""
    return [row["node_no"] for row in session.fetch(SQL["stored_numbers"], *source)]


def widen(session: Session, source: Source, numbers: Sequence[int], noise: Sequence[int], added: int) -> None:
    """Append cells to stored nodes: `added` values for the first, then for the second. Nothing that was drawn before changes."""
    session.execute(SQL["widen"], *source, list(numbers), list(noise), added)


def widen_sums(session: Session, source: Source, added: int) -> None:
    """Append cells without any effect to the sums of all ticks."""
    session.execute(SQL["widen_sums"], *source, added)


def committed(session: Session, source: Source, numbers: Collection[int]) -> dict[int, Cells]:
    """Return those of the nodes that are stored for good: not one of this very transaction, which could still be rolled back."""
    rows = session.fetch(SQL["committed"], *source, sorted(numbers)) if numbers else []
    return {row["node_no"]: row["noisy"] for row in rows}


def tick_texts(session: Session, source: Source, start: int, end: int) -> list[tuple[int, str]]:
    """Return (tick, exact effects on the cells with commas between them) of the ticks in (start, end] that have any."""
    return [(row["tick"], row["sums"]) for row in session.fetch(SQL["tick_texts"], *source, start, end)]


def committed_numbers(session: Session, source: Source) -> list[int]:
    """Return the numbers of all nodes of a stream that are stored for good, in order."""
    return [row["node_no"] for row in session.fetch(SQL["committed_numbers"], *source)]


def committed_texts(session: Session, source: Source, first: int, last: int) -> list[tuple[int, str]]:
    """Return (number, cells with commas between them) of the nodes from a number to another that are stored for good, in order."""
    return [(row["node_no"], row["noisy"]) for row in session.fetch(SQL["committed_texts"], *source, first, last)]


def texts(session: Session, source: Source, first: int, last: int) -> list[tuple[int, str]]:
    """Return what `committed_texts` does, with nodes of this very transaction: for drawing on, never for answers."""
    return [(row["node_no"], row["noisy"]) for row in session.fetch(SQL["texts"], *source, first, last)]
