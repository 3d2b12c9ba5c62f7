"""Many exact draws of round(N(0, sigma^2)) at a time: the algorithm of `gaussian_plain` on numpy arrays.

Every fraction is known by its first word. Where that does not decide - two words are equal, a word lies on the border of two cells, the
cell is far out - the candidate is gone through again by `gaussian_plain`, on the very words that it has drawn and fresh ones after them.
Nothing that was drawn is thrown away for being hard to decide, which would bend the law.
"""

from __future__ import annotations

import math

import numpy as np

from dbext.mechanisms import gaussian_plain
from dbext.mechanisms.gaussian_plain import GRAIN, START_WITHIN, Digits, Grain
from dbext.mechanisms.sampling_wide import Uniform

_CHUNK = 1 << 15
#: Twice the relative error that the roundings in `_nearest` can add up to.
_ROUNDING = 2.0**-49
#: Deviations from here on are rounded in whole numbers.
_LARGEST_SIGMA = 2**48


class _Lanes:
    """Candidates side by side, and what each of them has drawn."""

    def __init__(self, uniform: Uniform, grain: Grain):
        self._uniform, self._grain = uniform, grain
        self._history: list[tuple[np.ndarray, np.ndarray]] = []

    def draw(self, lanes: np.ndarray, limit: int) -> np.ndarray:
        """Return a uniform number in [0, limit) for each of some lanes, named in rising order."""
        drawn = self._uniform.below(limit, lanes.size)
        self._history.append((lanes, drawn))
        return drawn

    def again(self, lane: int) -> tuple[int, Digits] | None:
        """Go through one candidate again, on what it has drawn and on fresh digits after that."""
        taken = []
        for lanes, drawn in self._history:
            place = int(np.searchsorted(lanes, lane))
            if place < lanes.size and lanes[place] == lane:
                taken.append(int(drawn[place]))
        return gaussian_plain.candidate(gaussian_plain.Replay(taken, self._uniform.plain), self._grain)


def rounded_gaussian(uniform: Uniform, variance: int, divisor: int, size: int, grain: Grain = GRAIN) -> list[int]:
    """Return `size` draws with sigma^2 = variance / divisor."""
    kept: list[int] = []
    while len(kept) < size:
        kept += _some(uniform, variance, divisor, min(_CHUNK, (size - len(kept)) * 9 // 8 + 16), grain)
    return kept[:size]


def _some(uniform: Uniform, variance: int, divisor: int, count: int, grain: Grain) -> list[int]:
    """Return the draws that `count` candidates leave, in the order of the candidates.

    Those decided late stand among the others, so that whoever takes the first few does not pass them over.
    """
    lanes = _Lanes(uniform, grain)
    cells, x, kept, tied = _candidates(lanes, count, grain)
    late: dict[int, tuple[int, Digits]] = {}
    for lane in np.flatnonzero(tied).tolist():
        found = lanes.again(lane)
        kept[lane] = found is not None
        if found:
            late[lane] = found
    chosen = np.flatnonzero(kept)
    nearest, unsure = _nearest(cells[chosen], x[chosen], variance, divisor, grain)
    signs = 1 - 2 * uniform.below(2, chosen.size)
    draws = (nearest * signs).tolist()
    for place in np.flatnonzero(unsure | tied[chosen]).tolist():
        lane = int(chosen[place])
        cell, digits = late.get(lane) or (int(cells[lane]), [int(x[lane])])
        draws[place] = int(signs[place]) * gaussian_plain.rounded(uniform.plain, variance, divisor, cell, digits, grain)
    return draws


def _candidates(lanes: _Lanes, count: int, grain: Grain) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the cell and the first word of x of each candidate, whether it is kept, and whether first words do not decide.

    A cell on a border takes the word of x as further digits of its own when it is gone through again: it is as uniform as any.
    """
    everyone = np.arange(count)
    starts = np.array(gaussian_plain.cell_starts(grain.steps, grain.word))
    drawn = lanes.draw(everyone, grain.limit)
    cells = np.searchsorted(starts, drawn, side="right") - 1
    tied = (cells > 0) & (drawn - starts[cells] < START_WITHIN) | (2 * cells + 1 > grain.sides)
    x = lanes.draw(everyone, grain.limit)
    kept, later = _even_runs(lanes, np.flatnonzero(~tied), cells, x, grain)
    return cells, x, kept, tied | later


def _even_runs(lanes: _Lanes, active: np.ndarray, cells: np.ndarray, x: np.ndarray, grain: Grain) -> tuple[np.ndarray, np.ndarray]:
    """Return True with probability exp(-x (2 cell + x) / sides) for each active lane, and which of them first words do not decide."""
    even, tied = np.ones(x.size, dtype=bool), np.zeros(x.size, dtype=bool)
    last = x.copy()
    while active.size:
        side = lanes.draw(active, grain.sides) - 2 * cells[active]
        heads = side < 0
        edge = np.flatnonzero(side == 0)
        thrown, against = lanes.draw(active[edge], grain.limit), x[active[edge]]
        heads[edge] = thrown < against
        tied[active[edge][thrown == against]] = True
        active = active[heads]
        following, before = lanes.draw(active, grain.limit), last[active]
        tied[active[following == before]] = True
        falls = following < before
        active = active[falls]
        last[active] = following[falls]
        even[active] ^= True
    return even, tied


def _nearest(cells: np.ndarray, x: np.ndarray, variance: int, divisor: int, grain: Grain) -> tuple[np.ndarray, np.ndarray]:
    """Return sigma t rounded, t = (cell + x) / steps, and where that is not certain.

    The quotient (halved by its root), the root, the scale, the fraction, the sum, the product and the half are each rounded by at most
    2^-53 of themselves, together by less than 2^-50 of the height; what is too small for a double is nothing beside the half. Later digits
    of x add less than sigma / steps / 2^word. Where the height above a whole number keeps twice these from 0 and from 1, the whole number
    is that of the exact value; taking it off the height is exact.
    """
    if variance >= divisor * _LARGEST_SIGMA**2:
        return np.zeros(cells.size, dtype=np.int64), np.ones(cells.size, dtype=bool)
    scale = math.sqrt(variance / divisor) / grain.steps
    heights = (cells + x * 2.0**-grain.word) * scale + 0.5
    floors = np.floor(heights)
    margin = heights.max(initial=1) * _ROUNDING + scale * 2.0 ** (1 - grain.word)
    above = heights - floors
    return floors.astype(np.int64), (above < margin) | (above > 1 - margin)
