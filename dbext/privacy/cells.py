"""Priced filters, and the cells that their boundaries cut the line into: all that matters about a point is the cell it lies in."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

#: Below every sum that can occur; sums from minus this on are left to Python's own integers.
NEVER = -(2**61)


class PricedFilter(NamedTuple):
    """A filter (start, end] with what an entry pays for touching it; None is minus or plus infinity."""

    start: int | None
    end: int | None
    opening: int
    later: int


@dataclass(frozen=True)
class Cells:
    """Cells in order, and for every filter the first and last cell it holds; a last cell of None is never closed."""

    lefts: list[int]
    rights: list[int]
    first: list[int]
    last: list[int | None]

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.rights)

    def closings(self) -> list[list[int]]:
        """Return for every cell the filters that end with it."""
        closes: list[list[int]] = [[] for _ in range(self.count)]
        for index, last in enumerate(self.last):
            if last is not None:
                closes[last].append(index)
        return closes


def cells_of(filters: Sequence[PricedFilter], *, every: bool = False) -> Cells:
    """Cut the line at every finite boundary, and one tick before the first.

    There filters from minus infinity begin, and there an entry can begin that meets no other filter yet.
    With one price per filter a cell matters only if a filter opens at its left and one closes at its right: every other cell's filters
    are a subset of a neighbour's. Where the distance between points matters too, `every` cell is needed, and one after the last boundary.
    """
    ends = {f.end for f in filters if f.end is not None}
    starts = {f.start for f in filters if f.start is not None}
    bounds = sorted(ends | starts) or [0]
    bounds = [bounds[0] - 1, *bounds, *([bounds[-1] + 1] if every else [])]
    cells = list(pairwise(bounds))
    if not every and all(f.opening == f.later or f.start is None for f in filters):
        starts.add(bounds[0])
        cells = [(left, right) for left, right in cells if left in starts and right in ends]
    lefts, rights = [left for left, _ in cells], [right for _, right in cells]
    first = [0 if f.start is None else bisect_left(lefts, f.start) for f in filters]
    last = [None if f.end is None else bisect_right(rights, f.end) - 1 for f in filters]
    return Cells(lefts, rights, first, last)


def opening_depths(filters: Sequence[PricedFilter], cells: Cells) -> list[int]:
    """Return F_1: the opening cost of every cell."""
    steps = [0] * (cells.count + 1)
    for filter_, first, last in zip(filters, cells.first, cells.last, strict=True):
        steps[first] += filter_.opening
        if last is not None:
            steps[last + 1] -= filter_.opening
    depths, depth = [], 0
    for step in steps[: cells.count]:
        depth += step
        depths.append(depth)
    return depths
