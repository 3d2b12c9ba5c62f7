"""Quantiles from noisy counts of successive values, with intervals that hold whatever the counts are: all of it post-processing.

Values are numbered 0 ... n - 1. F(j) is the number of entries up to value j, N that of all. The p-quantile is the first j with
G(j) = F(j) - p N = (1 - p) F(j) - p (N - F(j)) >= 0. Of the noisy counts comes the same sum with an error e(j): a weighted sum of
independent noises, below h(j) in size but for a chance `miss`, on either side but for half of it, as the laws are symmetric.

The interval holds the j that are not excluded by a test of their own: G(j) >= 0 unless the noisy one is below -h(j), and G(j - 1) < 0
unless that one is h(j - 1) or more. The true quantile fails both tests with a chance of at most `miss` together, for it is one fixed j:
nothing has to hold for all values at once.

The estimate is where the isotonic regression of the noisy G first reaches 0, which is where the sums of G over all earlier values are
least. A regression is nowhere farther from the truth than the farthest noisy value was, so that the true G is above -r at the estimate and
below r one value before, if r bounds all errors together: by the union bound, each with its part of `miss`. That r is the rank error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from dbext.mechanisms.error import rounded_half_width
from dbext.mechanisms.mixed_error import ErrorLaw

#: Rates that Chernoff's bound is tried at.
_RATES = 48
#: Head room for the rounding of floats.
_ROUNDING = 1 + 1e-9


class Quantile(NamedTuple):
    """The estimate's number, and the first and last number that is not excluded."""

    value: int
    first: int
    last: int


class Run(NamedTuple):
    """Blocks of one length on both sides of a cut: [start, cut) before it, [resume, end) behind it; the one between holds the cut."""

    length: int
    start: int
    cut: int
    resume: int
    end: int


@lru_cache(maxsize=64)
def cuts(values: int, blocks: tuple[int, ...]) -> tuple[tuple[Run, ...], ...]:
    """Return for each value j but the last the blocks that make up the values up to j, and those that make up the rest."""
    return tuple(_cut(values, blocks, j + 1) for j in range(values - 1))


def _cut(values: int, blocks: tuple[int, ...], boundary: int) -> tuple[Run, ...]:
    runs, start, end = [], 0, values
    for place, block in enumerate(blocks):
        cut, inside = boundary // block, boundary % block
        last = -(-end // block)
        runs.append(Run(place, start // block, cut, cut + (inside > 0), last))
        if not inside:
            break
        start, end = cut * block, min((cut + 1) * block, values)
    return tuple(runs)


@dataclass(frozen=True)
class Band:
    """How far the noisy G(j) of one quantile of one period may be off: each by itself, and all together (the rank error)."""

    share: Fraction
    values: int
    blocks: tuple[int, ...]
    widths: tuple[float, ...]
    rank_error: float


@lru_cache(maxsize=256)
def band(laws: tuple[ErrorLaw, ...], values: int, blocks: tuple[int, ...], share: Fraction, miss: float) -> Band:
    """Prepare the intervals of a quantile that miss with probability at most `miss`; a law for the counts of each length of block."""
    sums = Sums(laws, float(1 - share), float(share))
    counts = [tuple((run.length, run.cut - run.start, run.end - run.resume) for run in runs) for runs in cuts(values, blocks)]
    alike = dict.fromkeys(counts)
    each = {one: sums.half_width(one, miss) for one in alike}
    largest = max((sums.half_width(one, miss / (values - 1)) for one in alike), default=0.0)
    return Band(share, values, blocks, tuple(each[one] for one in counts), largest)


@dataclass(frozen=True)
class Sums:
    """Errors of weighted sums of counts, of one law for each length of block; those on one side weigh `before`, on the other `behind`."""

    laws: tuple[ErrorLaw, ...]
    before: float
    behind: float

    def half_width(self, counts: Sequence[tuple[int, int, int]], miss: float) -> float:
        """Return what the error passes with probability at most `miss`; counts are (length, number before, number behind).

        Gaussian noise: `error.rounded_half_width`. With Laplace noise in it: Chernoff's bound.
        """
        if all(law.is_gaussian for law in self.laws):
            return self._gaussian(counts, miss) * _ROUNDING
        least = math.inf
        for u, before, behind in self._rates:
            growth = sum(left * before[length] + right * behind[length] for length, left, right in counts)
            least = min(least, (math.log(2 / miss) + growth) / u)
        return least * _ROUNDING

    @cached_property
    def _rates(self) -> list[tuple[float, list[float], list[float]]]:
        """Rates with the growth of one error of each length at them, on either side."""
        top = min(law.fastest(factor) for law in self.laws for factor in (self.before, self.behind))
        rates = [top * step / _RATES for step in range(1, _RATES)]
        return [(u, *([law.growth(u * factor) for law in self.laws] for factor in (self.before, self.behind))) for u in rates]

    def _gaussian(self, counts: Sequence[tuple[int, int, int]], miss: float) -> float:
        sided = ((length, factor, n) for length, *both in counts for factor, n in zip((self.before, self.behind), both, strict=True))
        parts = [(factor, n, self.laws[length]) for length, factor, n in sided if n]
        normal = math.fsum(n * factor * factor * law.normal for factor, n, law in parts)
        proxy = math.fsum(n * factor * factor * law.proxy for factor, n, law in parts)
        slack, steps = math.fsum(n * law.slack for _, n, law in parts), math.fsum(n * factor * law.steps for factor, n, law in parts)
        return rounded_half_width(normal, steps, (proxy, slack, max(factor * law.largest for factor, _, law in parts)), miss)


def quantile(made: Band, counts: Sequence[Sequence[float]]) -> Quantile:
    """Return a quantile from noisy counts, one sequence for each length of block. Exact where the counts are whole numbers."""
    share = made.share
    before, behind = share.denominator - share.numerator, share.numerator
    sums = [[0, *accumulate(values)] for values in counts]
    noisy = []
    for runs in cuts(made.values, made.blocks):
        sides = [(sums[run.length], run) for run in runs]
        below = sum(one[run.cut] - one[run.start] for one, run in sides)
        above = sum(one[run.end] - one[run.resume] for one, run in sides)
        noisy.append(before * below - behind * above)
    estimate = _least(noisy)
    widths = [width * share.denominator for width in made.widths]
    last = made.values - 1
    possible = [
        j
        for j in range(made.values)
        if (j == last or noisy[j] >= -widths[j]) and (j == 0 or noisy[j - 1] < widths[j - 1])
    ]  # fmt: skip
    return Quantile(estimate, min([estimate, *possible[:1]]), max([estimate, *possible[-1:]]))


def _least(noisy: Sequence[float]) -> int:
    """Return the first number whose earlier values sum to the least: there their isotonic regression reaches 0."""
    sums = [0, *accumulate(noisy)]
    return sums.index(min(sums))
