"""At most k mutations within w ticks, in numpy: all windows at once, each kind of window once.

Let path_j(s, p) be the most that filters cost which hold one of j later points, the last of them in cell p, but not a first point in
cell s. Points may stay where they are, for nothing, so that these are up to j points. Then

    path_(i+j)(s, p) = max over q of path_i(s, q) + path_j(q, p)

and whole paths need few such products of bands: 11 points after the first are 5 and 6, 6 is twice 3, and so on. Of the last product only
its largest number in reach is wanted, which is found without it.
What an entry can touch from its first point on depends only on the filters that begin behind it. Periods side by side repeat, so that most
windows are like others: of each kind one is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dbext.privacy.cells import Cells, PricedFilter, opening_depths

#: Columns that are worked on together: bands of them stay in the processor's cache.
_COLUMNS = 4_096
#: Solving each kind of window once pays if that leaves at most this share of the cells.
_WORTH = 0.7


class _Problem(NamedTuple):
    """Cells in a line: what a first point in each costs, the last cell in its reach, and what filters (first, last, price) hold."""

    depths: np.ndarray
    reach: np.ndarray
    first: np.ndarray
    last: np.ndarray
    prices: np.ndarray


def layers_within(filters: Sequence[PricedFilter], cells: Cells, layers: int, points: int, reach: Sequence[int]) -> int:
    """Return the best total of up to `layers` of `points` mutations whose first lies in cell s and whose last in reach[s] or before.

    The caller has checked that all sums fit 64 bits; smaller ones are added up in shorter words.
    """
    problem = _distinct(_problem(filters, cells, reach))
    if layers == 1:
        return int(problem.depths.max())
    opening, later = problem.prices.T
    total = int(np.maximum(opening, later).sum()) + int(problem.depths.max())
    word = next(kind for kind in (np.int16, np.int32, np.int64) if total < np.iinfo(kind).max // 2)
    departs = layers == points and bool((opening != later).any())
    paths = {1: _band(problem, later, word)}
    edges = layers - 1
    tail = _band(problem, opening, word) if departs else _path(paths, edges - edges // 2)
    head = _path(paths, edges - 1 if departs else edges // 2) if edges > 1 else None
    return int((problem.depths + _best_in_reach(head, np.maximum.accumulate(tail, axis=0), problem.reach)).max())


def _problem(filters: Sequence[PricedFilter], cells: Cells, reach: Sequence[int]) -> _Problem:
    """Return the problem in arrays. Filters that hold the first cell are new to no later point."""
    begun = [(first, cells.count if last is None else last, f.opening, f.later)
             for f, first, last in zip(filters, cells.first, cells.last, strict=True) if 0 < first < cells.count]  # fmt: skip
    table = np.array(begun, dtype=np.int64).reshape(-1, 4)
    depths = np.array(opening_depths(filters, cells), dtype=np.int64)
    return _Problem(depths, np.array(reach), table[:, 0], table[:, 1], table[:, 2:])


def _distinct(whole: _Problem) -> _Problem:
    """Return a problem with one window of each kind, next to each other where they are so now; the same if that leaves most cells.

    Windows are alike if they have as many cells, and behind the first one filters of the same lengths and prices begin at the same
    places. The largest depth of a first cell stands for all.
    """
    count = len(whole.depths)
    width = int((whole.reach - np.arange(count)).max())
    kinds = _kinds(whole, width)
    first_of: dict[bytes, int] = {}
    depths = whole.depths.copy()
    for start, end in enumerate(whole.reach.tolist()):
        like = first_of.setdefault(kinds[start + 1 : end + 1].tobytes(), start)
        depths[like] = max(depths[like], depths[start])
    runs: list[list[int]] = []
    for start in first_of.values():
        end = int(whole.reach[start])
        if runs and start <= runs[-1][1] + 1:
            runs[-1][1] = max(runs[-1][1], end)
        else:
            runs.append([start, end])
    if sum(end + 1 - start for start, end in runs) > _WORTH * count:
        return whole
    return _cut(whole._replace(depths=depths), runs)


def _kinds(whole: _Problem, width: int) -> np.ndarray:
    """Return a number for each cell: equal ones if filters of the same lengths, longer ones than a window apart, and prices begin there."""
    lengths = np.minimum(whole.last - whole.first, width)
    begun: list[list[tuple[int, ...]]] = [[] for _ in whole.depths]
    for first, *kind in zip(whole.first.tolist(), lengths.tolist(), *whole.prices.T.tolist(), strict=True):
        begun[first].append(tuple(kind))
    numbers: dict[tuple, int] = {}
    return np.array([numbers.setdefault(tuple(sorted(one)), len(numbers)) for one in begun], dtype=np.int32)


def _cut(whole: _Problem, runs: Sequence[Sequence[int]]) -> _Problem:
    """Return the cells of the runs put side by side. What begins before a run, or with its first cell, is new to no point behind it."""
    parts, shift = [], 0
    for start, end in runs:
        held = (whole.first > start) & (whole.first <= end)
        moved = shift - start
        reach = np.minimum(whole.reach[start : end + 1], end) + moved
        last = np.minimum(whole.last[held], end) + moved
        parts.append(_Problem(whole.depths[start : end + 1], reach, whole.first[held] + moved, last, whole.prices[held]))
        shift += end + 1 - start
    return _Problem(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _band(problem: _Problem, prices: np.ndarray, word: type) -> np.ndarray:
    """Return band[g][s]: the price of the filters that hold cell s + g and begin behind cell s: in s + 1, or behind that."""
    count = len(problem.depths)
    width = int((problem.reach - np.arange(count)).max())
    held = np.zeros((width, count), dtype=word)
    np.add.at(held, (np.minimum(problem.last - problem.first, width - 1), problem.first), prices.astype(word))
    held = held[::-1].cumsum(axis=0, dtype=word)[::-1]
    band = np.zeros((width + 1, count), dtype=word)
    for gap in range(1, width + 1):
        band[gap, : count - gap] = band[gap - 1, 1 : count - gap + 1] + held[gap - 1, 1 : count - gap + 1]
    return band


def _path(paths: dict[int, np.ndarray], edges: int) -> np.ndarray:
    """Return path_edges, [g][s] for a last point in cell s + g, from path_1."""
    if edges not in paths:
        paths[edges] = _product(_path(paths, edges // 2), _path(paths, edges - edges // 2))
    return paths[edges]


def _product(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return result[g][s] = max over i of one[i][s] + two[g - i][s + i]. Cost: half a square of the width for each cell."""
    depth, count = one.shape
    result = np.zeros_like(one)
    row, column = two.strides
    scratch = np.empty((depth, min(_COLUMNS, count)), dtype=one.dtype)
    for left in range(0, count, _COLUMNS):
        for gap in range(min(depth, count - left)):
            cells = min(_COLUMNS, count - left - gap)
            onward = as_strided(two[gap:, left:], (gap + 1, cells), (column - row, column))
            sums = np.add(one[: gap + 1, left : left + cells], onward, out=scratch[: gap + 1, :cells])
            sums.max(axis=0, out=result[gap, left : left + cells])
    return result


def _best_in_reach(head: np.ndarray | None, tail: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return for each cell s the largest head[i][s] + tail[reach(s) - s - i][s + i]; tail[g] holds what g cells or fewer allow."""
    starts = np.arange(len(reach))
    width = reach - starts
    if head is None:
        return tail[width, starts].astype(np.int64)
    best = np.zeros(len(reach), dtype=np.int64)
    for gap in range(int(width.max()) + 1):
        within = starts[width >= gap]
        best[within] = np.maximum(best[within], head[gap, within].astype(np.int64) + tail[width[within] - gap, within + gap])
    return best
