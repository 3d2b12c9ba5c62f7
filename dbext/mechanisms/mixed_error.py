"""Errors that mix noises of several streams: half-widths of weighted sums of independent errors, one law for each stream."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

from dbext.mechanisms.error import FINE, TAIL, Norms
from dbext.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise

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
        """Variance of the error; of Gaussian noise that of the continuous law, which is never smaller."""
        return self._normal + math.fsum(count * noise.variance * weight * weight for (noise, weight), count in self._laplace)

    @cached_property
    def largest(self) -> float:
        """The largest weight: the step of the error's law."""
        return max(abs(weight) for _, weight in self.draws)

    @cached_property
    def steps(self) -> float:
        """The sum of all weights: how far rounding could move the error."""
        return math.fsum(abs(weight) for _, weight in self.draws)

    @cached_property
    def apart(self) -> float:
        """How likely the error is not that of rounded normal variables: 1 / (16 sigma^2) for each fine draw, certain for a coarse one."""
        counts = [(noise, count) for (noise, _), count in self._counts]
        if any(isinstance(noise, DiscreteLaplace) or noise.sigma_squared < FINE for noise, _ in counts):
            return 1.0
        return math.fsum(count / (16 * float(noise.sigma_squared)) for noise, count in counts)

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
    def _normal(self) -> float:
        """The variance of the Gaussian part."""
        parts = (one for one in self._counts if not isinstance(one[0][0], DiscreteLaplace))
        return math.fsum(count * float(noise.sigma_squared) * weight * weight for (noise, weight), count in parts)

    def fastest(self, factor: float) -> float:
        """The rate below which E exp(u factor error) is finite."""
        return min((1 / (float(noise.scale) * weight * abs(factor)) for (noise, weight), _ in self._laplace), default=math.inf)

    def growth(self, u: float) -> float:
        """An upper bound on ln E exp(u error); exact for Laplace noise, that of a continuous Gaussian, which is larger, for the other."""
        return u * u / 2 * self._normal + math.fsum(
            count * _log_moment(float(1 / noise.scale), u * weight) for (noise, weight), count in self._laplace
        )


@dataclass(frozen=True)
class NormsLaw:
    """The same for very many draws of one fine discrete Gaussian, known by the norms of their weights alone."""

    noise: DiscreteGaussian
    norms: Norms

    is_gaussian = True

    @property
    def variance(self) -> float:
        """Variance of the continuous law."""
        return float(self.noise.sigma_squared) * self.norms.squares

    @property
    def largest(self) -> float:
        """The largest weight."""
        return self.norms.largest

    @property
    def steps(self) -> float:
        """The sum of all weights."""
        return self.norms.sizes

    @property
    def apart(self) -> float:
        """How likely the error is not that of rounded normal variables."""
        return self.norms.number / (16 * float(self.noise.sigma_squared)) if self.noise.sigma_squared >= FINE else 1.0

    def fastest(self, _factor: float) -> float:
        """E exp(u factor error) is finite for every u."""
        return math.inf

    def growth(self, u: float) -> float:
        """An upper bound on ln E exp(u error)."""
        return u * u / 2 * self.variance


def _log_moment(rate: float, u: float) -> float:
    """Return ln E exp(u X) of discrete Laplace noise with q = exp(-rate), for abs(u) < rate."""
    return 2 * math.log(-math.expm1(-rate)) - math.log(-math.expm1(u - rate)) - math.log(-math.expm1(-u - rate))


Law = ErrorLaw | NormsLaw
Mix = tuple[tuple[float, Law], ...]


@lru_cache(maxsize=4096)
def mixed_half_width(mix: Mix, miss: float) -> float:
    """Return a half-width that the sum of factor times error passes with probability at most `miss`.

    Gaussian noise: as in `error`, the normal quantile, widened for the steps of discrete laws, or far out of coarse ones the sub-Gaussian
    bound. With Laplace noise in it: Chernoff's bound, P(S >= x) <= exp(-u x) E exp(u S).
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
    deviation = math.sqrt(math.fsum(factor * factor * law.variance for factor, law in present))
    apart = math.fsum(law.apart for _, law in present)
    if apart <= miss / 100:
        steps = math.fsum(factor * law.steps for factor, law in present) / 2
        return -NormalDist().inv_cdf((miss - apart) / 2) * deviation + steps
    if miss < TAIL:
        return math.sqrt(2 * math.log(2 / miss)) * deviation
    return -NormalDist().inv_cdf(miss / 2) * deviation + max(factor * law.largest for factor, law in present) / 2


def mixed_deviation(mix: Sequence[tuple[float, Law]]) -> float:
    """Return the standard deviation of the sum of factor times error."""
    return math.sqrt(math.fsum(factor * factor * law.variance for factor, law in mix))
