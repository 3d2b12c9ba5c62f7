"""Changes of alternating sign (`state`, `net`) under a Toeplitz encoder: how far k of them move all noised numbers together.

An entry's count goes +1, -1, +1, ... over the periods p_1 < p_2 < ... that it changes (extreme points of a convex maximum; an entry is
absent at first, so that the first change is +1). With x the vector of changes and G the Gram matrix of the encoder's columns the squared
norm is x'Gx. Let the coefficients be non-negative, non-increasing and such that runs repel (`runs_repel`). Then:

1. Shifting x to the left never lowers the norm: the rows below see the same numbers, and more of them. So p_1 = 0.
2. k rule: x'Gx <= k G(0, 0). G(i, j) >= 0 falls as j > i grows, so that every row of the alternating cross sum, which starts with
   -G(p_i, p_(i+1)), is at most 0.
3. Runs: x is a sum of runs e_a - e_b of presence (the last one e_a alone if the entry stays), and the inner product of two disjoint runs
   is at most 0. So x'Gx <= sum of |R run|^2. Likewise with the gaps of absence: x = e_0 - sum of gaps, and
   x'Gx <= G(0, 0) + sum over gaps of |R gap|^2 - 2 <R e_0, R gap>.
4. Both hold for the same x, so half of each does; that is a sum over neighbouring p_i, p_(i+1), whose maximum over all positions dynamic
   programming finds in O(k m^2). It is exact for k <= 2; k = 3 is maximised exactly.

Between groups, a move is -1 in one cell and +1 in another, whose columns are independent: the norm is the sum over visits e_a - e_b,
exactly if no cell is visited twice and at most that if one is (runs repel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dbext.mechanisms.gram import autocorrelation, first_row, margin, rows_from_the_last

if TYPE_CHECKING:
    import numpy as np

_HALF = 0.5
_THREE = 3
#: Far above the relative error of a fast transform of non-negative terms (a few 1e-15 per doubling of the length).
_TRANSFORM_ERROR = 1e-9


@dataclass(frozen=True)
class AlternatingBounds:
    """Entry j - 1 bounds the squared norm of exactly j changes (c_0 = 1): in one cell, and of j moves between cells (staying, leaving)."""

    one_cell: list[float]
    moves_stay: list[float]
    moves_leave: list[float]


def declines(coefficients: Sequence[int]) -> bool:
    """Return whether the coefficients are non-negative and non-increasing: what shifting and the k rule need."""
    return coefficients[-1] >= 0 and all(a >= b for a, b in pairwise(coefficients))


def runs_repel(coefficients: Sequence[int]) -> bool:
    """Return whether disjoint runs of presence have inner products of at most 0. Exact, O(T).

    With steps s_u = c_(u-1) - c_u >= 0 the inner product of e_i - e_(i+1) and e_j - e_(j+1), d = j - i >= 1, is
    -c_0 s_d + sum over u of s_u s_(u+d) <= -c_0 s_d + (c_0 - c_(T-1)) * (largest step after d).
    Convex coefficients always pass; rounding to whole numbers may not, if they are too coarse. Runs add such products; a run that lasts
    to the end adds G(i, j) - G(i+1, j) <= 0.
    """
    if not declines(coefficients):
        return False
    first, last = coefficients[0], coefficients[-1]
    largest = 0
    for d in range(len(coefficients) - 1, 0, -1):
        step = coefficients[d - 1] - coefficients[d]
        if (first - last) * largest > first * step:
            return False
        largest = max(largest, step)
    return True


def alternating_bounds(c: np.ndarray, changes: int, width: int) -> AlternatingBounds:
    """Return the bounds for 1 ... `changes` changes within the first `width` periods, rounding allowed for. Cost: O(changes width^2).

    The coefficients must pass `runs_repel`. Tables hold, for each position i, the best of what follows a change at i with r more
    changes to come; they are filled from the last position down, one row of G at a time.
    """
    import numpy as np

    first = first_row(c, width)
    tables = _Tables(np, changes, width)
    third = -np.inf
    for i, row in rows_from_the_last(c, width):
        tables.diagonal[i] = row[0]
        later = slice(i + 1, width)
        run = row[0] + tables.diagonal[later] - 2 * row[1:]
        tables.step(i, run, run - 2 * (first[i] - first[later]), row[0], first[i])
        if 0 < i < width - 1:
            third = max(third, row[0] - 2 * first[i] + (tables.diagonal[later] + 2 * first[later] - 2 * row[1:]).max())
    one_cell = tables.one_cell(first[0])
    if changes >= _THREE <= width:
        one_cell[2] = first[0] + third
    allowance = margin(changes, len(c), float(first[0]))
    capped = [min(bound + allowance, k * (float(first[0]) + allowance)) for k, bound in enumerate(one_cell, 1)]
    return AlternatingBounds(capped, _padded(tables.stay[:, 0], allowance), _padded(tables.leave[:, 0], allowance))


class _Tables:
    """Best continuations: `joins` after a change that finds the entry present, `departs` absent; `stay` and `leave` for moves."""

    def __init__(self, np, changes: int, width: int):  # noqa: ANN001 the module, imported late
        self.np = np
        self.diagonal = np.zeros(width)
        self.joins, self.departs, self.stay, self.leave = (np.full((changes, width), -np.inf) for _ in range(4))

    def step(self, i: int, run: np.ndarray, gap: np.ndarray, own: float, with_first: float) -> None:
        """Fill column i from the costs of a run and of a gap from i to each later position."""
        after = slice(i + 1, self.diagonal.size)
        self.joins[0, i] = _HALF * own
        self.departs[0, i] = _HALF * (own - 2 * with_first)
        self.stay[0, i], self.leave[0, i] = own, 0.0
        if run.size and len(self.joins) > 1:
            self.joins[1:, i] = (self.departs[:-1, after] + _HALF * run).max(axis=1)
            self.departs[1:, i] = (self.joins[:-1, after] + _HALF * gap).max(axis=1)
            self.stay[1:, i] = (self.stay[:-1, after] + run).max(axis=1)
            self.leave[1:, i] = (self.leave[:-1, after] + run).max(axis=1)

    def one_cell(self, first: float) -> list[float]:
        """Return the bounds by number of changes, the first one at position 0."""
        return [float(value) for value in _HALF * first + self.joins[:, 0]]


def _padded(values: np.ndarray, allowance: float) -> list[float]:
    return [float(value) + 2 * allowance for value in values]


def long_bounds(c: np.ndarray, changes: int) -> AlternatingBounds:
    """Return the same kind of bounds for a horizon that is too long for O(T^2), from the lengths of the runs alone. Cost: O(T log T).

    A run of n periods weighs most at the start: v(n) = G(0, 0) + G(n, n) - 2 G(0, n). Runs do not overlap, so that r of them have T
    periods between them, and the least concave non-decreasing V above v gives at most r V(T / r).
    """
    import numpy as np

    total = len(c)
    own = np.cumsum(c * c)[::-1]
    with_first = autocorrelation(c)
    allowance = margin(changes, total, float(own[0])) + _TRANSFORM_ERROR * float(own[0])
    weights = np.maximum.accumulate(np.append(0.0, own[0] + own[1:] - 2 * with_first[1:]))
    lengths, hull = _majorant(weights)
    visits = [r * float(np.interp(total / max(r, 1), lengths, hull)) for r in range(changes + 1)]
    one = float(own[0])
    one_cell = [visits[k // 2] + (k % 2) * one + allowance for k in range(1, changes + 1)]
    stay = [visits[k - 1] + one + allowance for k in range(1, changes + 1)]
    return AlternatingBounds([min(b, k * (one + allowance)) for k, b in enumerate(one_cell, 1)], stay, [b + allowance for b in visits[:-1]])


def _majorant(values: np.ndarray) -> tuple[list[int], list[float]]:
    """Return the corners of the least concave function above values[0], values[1], ..."""
    corners: list[tuple[int, float]] = []
    for x, y in enumerate(values.tolist()):
        while len(corners) > 1 and _below(corners[-2], corners[-1], (x, y)):
            corners.pop()
        corners.append((x, y))
    return [x for x, _ in corners], [y for _, y in corners]


def _below(left: tuple[int, float], middle: tuple[int, float], right: tuple[int, float]) -> bool:
    return (middle[1] - left[1]) * (right[0] - left[0]) <= (right[1] - left[1]) * (middle[0] - left[0])
