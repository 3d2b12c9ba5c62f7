"""Means, variances and standard deviations from noisy sums, with intervals that hold whatever the noise was: all of it post-processing.

A mean r of values in [low, high] satisfies S - r n = 0 for the exact sum S and count n. Of the noisy ones abs(S - r n) is the error of a
weighted sum of two streams, below its 95% half-width h(r) with at least that probability: the values of r for which it is form the interval
(Fieller 1940). h is convex, so that straight lines between its values at a few points lie above it. A variance is a mean of squares less
the square of a mean: both intervals hold together if each misses with half the probability (Bonferroni).
Values are in units of the grid, relative to a centre near the middle of the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dbext.mechanisms.mixed_error import ErrorLaw, mixed_deviation, mixed_half_width

_PIECES = 32


class Estimate(NamedTuple):
    """A figure with its standard error and the ends of its 95% interval."""

    value: float
    std_error: float
    lower: float
    upper: float


@dataclass(frozen=True)
class MeanBand:
    """The intervals of a mean in [low, high] for one period: half-widths of S - r n at some r, for all cells."""

    total: ErrorLaw
    count: ErrorLaw
    points: tuple[float, ...]
    widths: tuple[float, ...]

    def interval(self, total: float, count: float) -> tuple[float, float]:
        """Return the outermost means that the noisy sum and count do not exclude; the estimate always lies between."""
        estimate = self.estimate(total, count)
        above = [total - r * count - width for r, width in zip(self.points, self.widths, strict=True)]
        below = [r * count - total - width for r, width in zip(self.points, self.widths, strict=True)]
        lower = _first_within(self.points, above)
        upper = _first_within(self.points[::-1], below[::-1])
        return min(lower, estimate), max(upper, estimate)

    def estimate(self, total: float, count: float) -> float:
        """Return the mean; a count below 1 is taken as 1, so that where there is nobody it tends to the middle of the bounds."""
        low, high = self.points[0], self.points[-1]
        middle = (low + high) / 2
        return min(max(middle + (total - middle * count) / max(count, 1.0), low), high)

    def deviation(self, mean: float, count: float) -> float:
        """Return the standard error of a mean, to first order; never more than the bounds are apart."""
        error = mixed_deviation(((1.0, self.total), (mean, self.count))) / max(count, 1.0)
        return min(error, self.points[-1] - self.points[0])


def mean_band(total: ErrorLaw, count: ErrorLaw, low: float, high: float, miss: float | None) -> MeanBand:
    """Prepare the intervals of means in [low, high] that miss with probability at most `miss`; None: estimates alone are wanted."""
    points = tuple(low + (high - low) * piece / _PIECES for piece in range(_PIECES + 1))
    if miss is None:
        return MeanBand(total, count, points, (0.0,) * len(points))
    return MeanBand(total, count, points, tuple(mixed_half_width(((1.0, total), (r, count)), miss) for r in points))


def _first_within(points: Sequence[float], excess: Sequence[float]) -> float:
    """Return where the excess, a straight line between points, first falls to 0; the last point if it never does."""
    for place, value in enumerate(excess):
        if value <= 0:
            if place == 0:
                return points[0]
            before = excess[place - 1]
            return points[place - 1] + (points[place] - points[place - 1]) * before / (before - value)
    return points[-1]


def mean(band: MeanBand, total: float, count: float) -> Estimate:
    """Return the mean of one cell."""
    value = band.estimate(total, count)
    return Estimate(value, band.deviation(value, count), *band.interval(total, count))


@dataclass(frozen=True)
class VarianceBand:
    """The intervals of a variance for one period.

    `shift` is the centre of the mean less that of the squares, `spread` how far the bounds are apart.
    """

    squares: MeanBand
    means: MeanBand
    shift: float
    spread: float
    sample: bool
    count_width: float

    @property
    def largest(self) -> float:
        """The largest variance of values within the bounds; that of a sample of two is twice as large."""
        return self.spread**2 / (2 if self.sample else 4)


def variance_band(
    squares: ErrorLaw, total: ErrorLaw, count: ErrorLaw, bounds: tuple[int, int, int, int], miss: float | None, *, sample: bool
) -> VarianceBand:
    """Prepare the intervals of a variance; `bounds` are low, high, and the centres of the sum and of the squares.

    Three statements that each miss with a third of `miss`: about the mean square, the mean, and (of a sample) the count.
    """
    low, high, centre, middle = bounds
    miss = None if miss is None else miss / 3
    return VarianceBand(
        mean_band(squares, count, 0.0, float(max((low - middle) ** 2, (high - middle) ** 2)), miss),
        mean_band(total, count, float(low - centre), float(high - centre), miss),
        float(centre - middle),
        float(high - low),
        sample,
        0.0 if miss is None else mixed_half_width(((1.0, count),), miss),
    )


def variance(band: VarianceBand, squares: float, total: float, count: float) -> Estimate:
    """Return the variance of one cell: the mean square less the squared mean, both about the middle."""
    square, centred = band.squares.estimate(squares, count), band.means.estimate(total, count)
    middle = centred + band.shift
    size = max(count, 2.0)
    value = min(max(square - middle**2, 0.0) * (size / (size - 1) if band.sample else 1.0), band.largest)
    laws = ((1.0, band.squares.total), (-2 * middle, band.means.total), (2 * middle * centred - square, band.means.count))
    error = min(mixed_deviation(laws) / max(count, 1.0), band.largest)
    lower, upper = _variance_interval(band, squares, total, count)
    return Estimate(value, error, min(lower, value), max(upper, value))


def _variance_interval(band: VarianceBand, squares: float, total: float, count: float) -> tuple[float, float]:
    low_square, high_square = band.squares.interval(squares, count)
    low, high = (end + band.shift for end in band.means.interval(total, count))
    nearest = 0.0 if low <= 0 <= high else min(low**2, high**2)
    upper = high_square - nearest
    if band.sample:
        smallest = count - band.count_width
        upper *= smallest / (smallest - 1) if smallest >= 2 else 2.0  # noqa: PLR2004 a sample of two has the largest factor
    return min(max(low_square - max(low**2, high**2), 0.0), band.largest), min(max(upper, 0.0), band.largest)


def deviation(band: VarianceBand, squares: float, total: float, count: float) -> Estimate:
    """Return the standard deviation of one cell: the root of the variance and of its interval."""
    found = variance(band, squares, total, count)
    value, largest = math.sqrt(found.value), math.sqrt(band.largest)
    error = min(found.std_error / (2 * value), largest) if value else largest
    return Estimate(value, error, math.sqrt(found.lower), math.sqrt(found.upper))
