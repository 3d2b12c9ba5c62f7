"""How far an answer is from the truth: variance, and the half-width of a two-sided 95% interval.

An answer's error is a sum of independent noises with coefficients; all laws here are symmetric, so that signs do not matter.
Intervals cover the noise, not what admission leaves out. A half-width h promises P(abs(error) <= h) >= 0.95.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

from dbext.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise

COVERAGE = 0.95
#: Head room for the rounding of floats in sums of a few thousand terms.
_ROUNDING = 1e-9
#: Longest Fourier sum that is still worked out when no law of decay cuts it short.
_LONGEST_SUM = 20_000
_SMALLEST_TERM = 1e-17

Terms = tuple[tuple[int, int], ...]


def answer_variance(noise: Noise, coefficients: Sequence[float]) -> float:
    """Return the variance of a sum of independent draws with these coefficients."""
    return noise.variance * math.fsum(c * c for c in coefficients)


def half_width_95(noise: Noise, coefficients: Sequence[float]) -> float:
    """Return the half-width of a 95% interval.

    With whole coefficients the error is a whole number (times their common divisor) and the smallest half-width is found exactly, from
    the law of the sum. Otherwise a bound is returned: for Laplace noise Chernoff's, for Gaussian noise the normal quantile widened by half
    a step of the largest coefficient, which covers the steps of a discrete law.
    """
    sizes = [abs(c) for c in coefficients if c]
    if not sizes:
        return 0.0
    if all(c == int(c) for c in sizes):
        divisor = math.gcd(*(int(c) for c in sizes))
        counts = Counter(int(c) // divisor for c in sizes)
        return float(divisor * _whole_half_width(noise, tuple(sorted(counts.items()))))
    if isinstance(noise, DiscreteLaplace):
        return _chernoff(noise, Counter(sizes))
    deviation = math.sqrt(float(noise.sigma_squared) * math.fsum(c * c for c in sizes))
    return NormalDist().inv_cdf((1 + COVERAGE) / 2) * deviation + max(sizes) / 2


@lru_cache(maxsize=4096)
def _whole_half_width(noise: Noise, terms: Terms) -> int:
    """Return the smallest whole x with P(abs(S) <= x) >= 0.95, for S a sum of `count` draws times `coefficient` for each term."""
    if isinstance(noise, DiscreteLaplace) and terms in (((1, 1),), ((1, 2),)):
        return _smallest(lambda x: 1 - _laplace_tail(noise, terms[0][1], x), noise, terms)
    law = _fourier_terms(noise, terms)
    if law is None:
        return math.ceil(_chernoff(noise, dict(terms)))
    return _smallest(lambda x: _probability_within(law, x), noise, terms)


def _smallest(within: Callable[[int], float], noise: Noise, terms: Terms) -> int:
    """Return the smallest whole number that `within` gives enough probability."""
    low, high = -1, math.ceil(_farthest(noise, terms))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) >= COVERAGE + _ROUNDING else (middle, high)
    return high


def _laplace_tail(noise: DiscreteLaplace, count: int, x: int) -> float:
    """Return P(abs(S) > x) for one discrete Laplace draw, or for the sum of two.

    One: 2 q^(x + 1) / (1 + q). Two: P(S = s) = ((1 - q) / (1 + q))^2 q^s (s + (1 + q^2) / (1 - q^2)) for s >= 0, summed over s > x.
    """
    rate = float(1 / noise.scale)
    q, gap = math.exp(-rate), -math.expm1(-rate)
    if count == 1:
        return 2 * math.exp(-rate * (x + 1)) / (1 + q)
    level = x + 1 + (1 + q * q) / (gap * (1 + q)) + q / gap
    return 2 * gap / (1 + q) ** 2 * math.exp(-rate * (x + 1)) * level


def _fourier_terms(noise: Noise, terms: Terms) -> tuple[int, list[tuple[float, float]]] | None:
    """Return N and (angle, weight) pairs whose sum gives the law of S, or None if they would be too many.

    For a whole-valued S with characteristic function f, the mean over N equally spaced angles of f(angle) times the sum of cos(s angle)
    over abs(s) <= x is P(abs(S) <= x) plus the probability of the points that N wraps onto them. N is large enough for that to vanish.
    """
    length = max(64, math.ceil(2 * _farthest(noise, terms)) + 1)
    single = terms[0][0] == 1 and len(terms) == 1
    law = []
    for step in range(1, length // 2 + 1):
        angle = 2 * math.pi * step / length
        weight = math.prod(_characteristic(noise, c * angle) ** count for c, count in terms)
        if single and weight < _SMALLEST_TERM:
            break
        law.append((angle, weight if 2 * step == length else 2 * weight))
        if len(law) > _LONGEST_SUM:
            return None
    return length, law


def _probability_within(law: tuple[int, list[tuple[float, float]]], x: int) -> float:
    length, terms = law
    waves = math.fsum(weight * math.sin((x + 0.5) * angle) / math.sin(angle / 2) for angle, weight in terms)
    return (2 * x + 1 + waves) / length


def _characteristic(noise: Noise, angle: float) -> float:
    """Return E cos(angle X)."""
    if isinstance(noise, DiscreteLaplace):
        rate = float(1 / noise.scale)
        gap = -math.expm1(-rate)
        return gap * gap / (gap * gap + 4 * math.exp(-rate) * math.sin(angle / 2) ** 2)
    sigma_squared = float(noise.sigma_squared)
    if sigma_squared < 1:
        weights = [math.exp(-x * x / (2 * sigma_squared)) for x in range(60)]
        return (1 + 2 * sum(w * math.cos(x * angle) for x, w in enumerate(weights) if x)) / (1 + 2 * sum(weights[1:]))
    reduced = math.remainder(angle, 2 * math.pi)
    return _wrapped(sigma_squared, reduced) / _wrapped(sigma_squared, 0.0)


def _wrapped(sigma_squared: float, angle: float) -> float:
    """Return the sum of exp(-sigma^2 (angle + 2 pi j)^2 / 2) over whole j: Poisson's summation of the discrete Gaussian."""
    return math.fsum(math.exp(-sigma_squared * (angle + 2 * math.pi * j) ** 2 / 2) for j in range(-3, 4))


def _farthest(noise: Noise, terms: Terms) -> float:
    """Return a distance that abs(S) passes with probability below 1e-12: Chernoff at half the largest rate, or sub-Gaussian."""
    largest = max(c for c, _ in terms)
    count = sum(number for _, number in terms)
    if isinstance(noise, DiscreteGaussian):
        return 8 * math.sqrt(float(noise.sigma_squared) * sum(c * c * number for c, number in terms)) + 1
    return 2 * float(noise.scale) * largest * (30 + 0.3 * count) + 1


def _chernoff(noise: DiscreteLaplace, counts: dict[float, int]) -> float:
    """Return a distance that abs(S) passes with probability at most 0.05, by Chernoff's bound.

    P(S >= x) <= exp(-u x) prod M(c u) for every 0 < u < 1 / (scale max c), with M(u) = (1 - q)^2 / ((1 - q e^u)(1 - q e^-u)).
    """
    rate = float(1 / noise.scale)
    top = rate / max(counts)

    def distance(u: float) -> float:
        growth = sum(number * _log_moment(rate, c * u) for c, number in counts.items())
        return (math.log(2 / (1 - COVERAGE)) + growth) / u

    return min(distance(top * share / 400) for share in range(1, 400))


def _log_moment(rate: float, u: float) -> float:
    """Return ln E exp(u X) of discrete Laplace noise with q = exp(-rate), for abs(u) < rate."""
    return 2 * math.log(-math.expm1(-rate)) - math.log(-math.expm1(u - rate)) - math.log(-math.expm1(-u - rate))
