"""Errors that mix noises of several streams: half-widths of weighted sums of independent errors, one law for each stream."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from dbext.mechanisms.error import Norms, rounded_half_width
from dbext.privacy.noise import DiscreteLaplace, Noise, RoundedGaussian

#: Rates that Chernoff's bound is tried at.
_RATES = 48


@dataclass(frozen=True)
class ErrorLaw:
    """The error of one noisy number: independent draws, each a noise with its weight."""

    draws: tuple[tuple[Noise, float], ...]

    @property
    def is_gaussian(self) -> bool:
        """Whether all noise is Gaussian."""
        return not self._laplace

    @cached_property
    def variance(self) -> float:
        """Variance of the error; of Gaussian noise its proxy, which is never smaller."""
        return self.proxy + math.fsum(count * noise.variance * weight * weight for (noise, weight), count in self._laplace)

    @cached_property
    def largest(self) -> float:
        """The largest weight: the step of the error's law."""
        return max(abs(weight) for _, weight in self.draws)

    @cached_property
    def steps(self) -> float:
        """The sum of all weights: how far rounding could move the error."""
        return math.fsum(abs(weight) for _, weight in self.draws)

    @cached_property
    def _counts(self) -> tuple[tuple[tuple[Noise, float], int], ...]:
        """How often each noise comes with each weight; few noises are hashed, not one for each draw."""
        noises = {id(noise): noise for noise, _ in self.draws}
        counts = Counter((id(noise), abs(weight)) for noise, weight in self.draws if weight)
        return tuple(((noises[number], weight), count) for (number, weight), count in counts.items())

    @cached_property
    def _laplace(self) -> tuple[tuple[tuple[DiscreteLaplace, float], int], ...]:
        return tuple(one for one in self._counts if isinstance(one[0][0], DiscreteLaplace))

    @cached_property
    def _gaussian(self) -> tuple[tuple[tuple[RoundedGaussian, float], int], ...]:
        return tuple(one for one in self._counts if isinstance(one[0][0], RoundedGaussian))

    @cached_property
    def normal(self) -> float:
        """The variance of the Gaussian part before rounding."""
        return math.fsum(count * float(noise.sigma_squared) * weight * weight for (noise, weight), count in self._gaussian)

    @cached_property
    def proxy(self) -> float:
        """The variance proxy of the Gaussian part."""
        return math.fsum(count * noise.proxy * weight * weight for (noise, weight), count in self._gaussian)

    @cached_property
    def slack(self) -> float:
        """What goes with the proxy."""
        return math.fsum(count * noise.slack for (noise, _), count in self._gaussian)

    def fastest(self, factor: float) -> float:
        """The rate below which E exp(u factor error) is finite."""
        return min((1 / (float(noise.scale) * weight * abs(factor)) for (noise, weight), _ in self._laplace), default=math.inf)

    def growth(self, u: float) -> float:
        """An upper bound on ln E exp(u error); exact for Laplace noise."""
        return self.slack + u * u / 2 * self.proxy + math.fsum(
            count * _log_moment(float(1 / noise.scale), u * weight) for (noise, weight), count in self._laplace
        )


@dataclass(frozen=True)
class NormsLaw:
    """The same for very many draws of one Gaussian, and whatever else is rounded, known by the norms of their weights alone."""

    noise: RoundedGaussian
    norms: Norms

    is_gaussian = True
    slack = 0.0

    @property
    def variance(self) -> float:
        """Variance of the error, a little too large."""
        return self.noise.proxy * self.norms.squares

    @property
    def normal(self) -> float:
        """The variance before rounding."""
        return float(self.noise.sigma_squared) * self.norms.squares

    @property
    def proxy(self) -> float:
        """Rounding is known by its largest size only, which passes every step that a proxy could save."""
        return math.inf

    @property
    def largest(self) -> float:
        """The largest weight."""
        return self.norms.largest

    @property
    def steps(self) -> float:
        """The sum of all weights, and of what else is rounded."""
        return self.norms.sizes

    def fastest(self, _factor: float) -> float:
        """E exp(u factor error) is finite for every u."""
        return math.inf

    def growth(self, u: float) -> float:
        """An upper bound on ln E exp(u error)."""
        return u * u / 2 * self.normal + abs(u) / 2 * self.steps


def _log_moment(rate: float, u: float) -> float:
    """Return ln E exp(u X) of discrete Laplace noise with q = exp(-rate), for abs(u) < rate."""
    return 2 * math.log(-math.expm1(-rate)) - math.log(-math.expm1(u - rate)) - math.log(-math.expm1(-u - rate))


Law = ErrorLaw | NormsLaw
Mix = tuple[tuple[float, Law], ...]


@lru_cache(maxsize=4096)
def mixed_half_width(mix: Mix, miss: float) -> float:
    """Return a half-width that the sum of factor times error passes with probability at most `miss`.

    Gaussian noise: as in `error`. With Laplace noise in it: Chernoff's bound, P(S >= x) <= exp(-u x) E exp(u S).
    """
    present = [(abs(factor), law) for factor, law in mix if factor]
    if not present:
        return 0.0
    if all(law.is_gaussian for _, law in present):
        return _gaussian(present, miss)
    top = min(law.fastest(factor) for factor, law in present)
    rates = (top * step / _RATES for step in range(1, _RATES))
    return min((math.log(2 / miss) + math.fsum(law.growth(u * factor) for factor, law in present)) / u for u in rates)


def _gaussian(present: Sequence[tuple[float, Law]], miss: float) -> float:
    normal = math.fsum(factor * factor * law.normal for factor, law in present)
    proxy = math.fsum(factor * factor * law.proxy for factor, law in present)
    slack, largest = math.fsum(law.slack for _, law in present), max(factor * law.largest for factor, law in present)
    return rounded_half_width(normal, math.fsum(factor * law.steps for factor, law in present), (proxy, slack, largest), miss)


def mixed_deviation(mix: Sequence[tuple[float, Law]]) -> float:
    """Return the standard deviation of the sum of factor times error."""
    return math.sqrt(math.fsum(factor * factor * law.variance for factor, law in mix))
