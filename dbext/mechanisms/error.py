"""How far an answer is from the truth: variance, and the half-width of a two-sided interval.

An answer's error is a sum of independent noises with coefficients; all laws here are symmetric, so that signs do not matter.
Intervals cover the noise, not what admission leaves out. A half-width h for the tail probability `tail` promises P(abs(error) > h) <= tail;
without one named, 0.05. Many intervals that hold together need smaller tails (`simultaneous`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

from dbext.privacy.noise import DiscreteLaplace, Noise, RoundedGaussian

TAIL = 0.05
#: Head room for the rounding of floats in sums of a few thousand terms.
_ROUNDING = 1e-9
#: Smaller tails are lost in that rounding: Chernoff's bound is taken instead.
_SMALLEST_TAIL = 1e-6
#: Longest Fourier sum that is still worked out when no law of decay cuts it short.
_LONGEST_SUM = 20_000
_SMALLEST_TERM = 1e-17
#: -ln of a chance below 1e-13.
_FARTHEST = 32
#: Independent noises with their coefficients, whose sum is an answer's error.
Draws = Sequence[tuple[Noise, float]]
#: (noise, whole coefficient, number of such draws).
Terms = tuple[tuple[Noise, int, int], ...]


class Norms(NamedTuple):
    """What many coefficients come to: the sum of their squares, of their sizes, the largest size, and how many there are."""

    squares: float
    sizes: float
    largest: float
    number: int


def answer_variance(noise: Noise, coefficients: Sequence[float]) -> float:
    """Return the variance of a sum of independent draws with these coefficients."""
    return noise.variance * math.fsum(c * c for c in coefficients)


def half_width_95(noise: Noise, coefficients: Sequence[float], tail: float = TAIL) -> float:
    """Return the half-width of a 95% interval (or of tail probability `tail`) of a sum of draws of one noise."""
    return half_width([(noise, c) for c in coefficients], tail)


def variance_of(draws: Draws) -> float:
    """Return the variance of a sum of independent draws."""
    return math.fsum(noise.variance * c * c for noise, c in draws)


def half_width(draws: Draws, tail: float = TAIL) -> float:
    """Return a half-width that the sum of draws passes with probability at most `tail`.

    With whole coefficients the error is a whole number (times their common divisor) and the smallest half-width is found exactly, from
    the law of the sum. Otherwise a bound is returned: for Laplace noise Chernoff's, for Gaussian noise the normal quantile, widened for
    rounding.
    """
    return half_width_of(_sizes(draws), tail)


def half_width_of(sizes: Sequence[tuple[Noise, float, int]], tail: float = TAIL) -> float:
    """Return the half-width of a sum of draws that are counted: noise, size of the coefficient (above 0), number of such draws."""
    if not sizes:
        return 0.0
    if all(c == int(c) for _, c, _ in sizes):
        divisor = math.gcd(*(int(c) for _, c, _ in sizes))
        terms = tuple(sorted(((noise, int(c) // divisor, n) for noise, c, n in sizes), key=lambda term: (repr(term[0]), term[1])))
        return float(divisor * _whole_half_width(terms, tail))
    if any(isinstance(noise, DiscreteLaplace) for noise, _, _ in sizes):
        return _chernoff(sizes, tail)
    return _gaussian_half_width(sizes, tail)


def _sizes(draws: Draws) -> list[tuple[Noise, float, int]]:
    """Return (noise, size of the coefficient, number of such draws); each noise is hashed once, not for every draw."""
    kept: dict[Noise, Noise] = {}
    same = {number: kept.setdefault(noise, noise) for number, noise in {id(noise): noise for noise, _ in draws}.items()}
    counts = Counter((id(same[id(noise)]), abs(c)) for noise, c in draws if c)
    known = {id(noise): noise for noise in kept}
    return [(known[number], c, n) for (number, c), n in counts.items()]


def _gaussian_half_width(terms: Sequence[tuple[RoundedGaussian, float, int]], tail: float) -> float:
    """Return the half-width of a sum of rounded Gaussians with any coefficients."""
    noises = {id(noise): noise for noise, _, _ in terms}
    counted: dict[int, list[tuple[float, int]]] = {number: [] for number in noises}
    for noise, c, n in terms:
        counted[id(noise)].append((c, n))
    return half_width_of_norms([(noises[number], norms_of(one)) for number, one in counted.items()], tail)


def norms_of(counted: Sequence[tuple[float, int]]) -> Norms:
    """Return what sizes of coefficients, each with a number of draws, come to."""
    squares, sizes = math.fsum(c * c * n for c, n in counted), math.fsum(c * n for c, n in counted)
    return Norms(squares, sizes, max(c for c, _ in counted), sum(n for _, n in counted))


def half_width_of_norms(summed: Sequence[tuple[RoundedGaussian, Norms]], tail: float) -> float:
    """Return the half-width of a sum of rounded Gaussians, from the norms of the coefficients of each."""
    normal = math.fsum(float(noise.sigma_squared) * norms.squares for noise, norms in summed)
    proxy = math.fsum(noise.proxy * norms.squares for noise, norms in summed)
    slack = math.fsum(noise.slack * norms.number for noise, norms in summed)
    steps, largest = math.fsum(norms.sizes for _, norms in summed), max(norms.largest for _, norms in summed)
    return rounded_half_width(normal, steps, (proxy, slack, largest), tail)


def gaussian_half_width(noise: RoundedGaussian, norms: Norms, tail: float = TAIL) -> float:
    """Return the half-width of a sum of draws of one Gaussian, and whatever else is rounded in it, from its norms alone."""
    return _quantile(tail) * math.sqrt(float(noise.sigma_squared) * norms.squares) + norms.sizes / 2


def rounded_half_width(normal: float, steps: float, coarse: tuple[float, float, float], tail: float) -> float:
    """Return the half-width of a normal sum of variance `normal` that rounding moves by at most half of `steps`.

    That is one bound. Where draws are coarse another is smaller, from their variance proxies, slacks and the largest coefficient: at
    everyday tails the normal quantile, widened by half a step of the largest coefficient; far out Chernoff's bound.
    """
    proxy, slack, largest = coarse
    exact = _quantile(tail) * math.sqrt(normal) + steps / 2
    if tail < TAIL:
        return min(exact, math.sqrt(2 * (math.log(2 / tail) + slack) * proxy))
    return min(exact, _quantile(tail) * math.sqrt(proxy) + largest / 2)


def _quantile(tail: float) -> float:
    """Return the size that a standard normal variable passes with this chance."""
    return -NormalDist().inv_cdf(tail / 2)


@lru_cache(maxsize=4096)
def _whole_half_width(terms: Terms, tail: float) -> int:
    """Return the smallest whole x with P(abs(S) > x) <= tail, for S a sum of `number` draws times `coefficient` for each term."""
    noise, coefficient, number = terms[0]
    if len(terms) == 1 and isinstance(noise, DiscreteLaplace) and coefficient == 1 and number <= 2:  # noqa: PLR2004 known in closed form
        return _smallest(lambda x: _laplace_tail(noise, number, x) <= tail * (1 - _ROUNDING), terms)
    law = _fourier_terms(terms) if tail >= _SMALLEST_TAIL else None
    if law is None:
        return math.ceil(_chernoff(terms, tail))
    return _smallest(lambda x: _probability_within(law, x) >= 1 - tail + _ROUNDING, terms)


def _smallest(covers: Callable[[int], bool], terms: Terms) -> int:
    """Return the smallest whole number that covers enough probability."""
    low, high = -1, max(1, math.ceil(_farthest(terms)))
    while not covers(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if covers(middle) else (middle, high)
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


def _fourier_terms(terms: Terms) -> tuple[int, list[tuple[float, float]]] | None:
    """Return N and (angle, weight) pairs whose sum gives the law of S, or None if they would be too many.

    For a whole-valued S with characteristic function f, the mean over N equally spaced angles of f(angle) times the sum of cos(s angle)
    over abs(s) <= x is P(abs(S) <= x) plus the probability of the points that N wraps onto them. N is large enough for that to vanish.
    """
    length = max(64, math.ceil(2 * _farthest(terms)) + 1)
    ones = all(coefficient == 1 for _, coefficient, _ in terms)
    law = []
    for step in range(1, length // 2 + 1):
        angle = 2 * math.pi * step / length
        weight = math.prod(_characteristic(noise, c * angle) ** number for noise, c, number in terms)
        if ones and weight < _SMALLEST_TERM:
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
        return math.fsum(chance * math.cos(x * angle) for x, chance in enumerate(_chances(sigma_squared)))
    return _wrapped(sigma_squared, math.remainder(angle, 2 * math.pi))


@lru_cache(maxsize=64)
def _chances(sigma_squared: float) -> tuple[float, ...]:
    """Return P(abs(X) = x) of a rounded Gaussian for x = 0, 1, 2, ..., as far as a float goes for sigma below 1."""
    beyond = [1.0, *(math.erfc((x + 0.5) / math.sqrt(2 * sigma_squared)) for x in range(60))]
    return tuple(one - other for one, other in pairwise(beyond))


def _wrapped(sigma_squared: float, angle: float) -> float:
    """Return E cos(angle X): the sum over whole j, at angle + 2 pi j, of what a normal variable and a uniform one come to (Poisson)."""
    if not angle:
        return 1.0
    terms = ((-1) ** j * math.exp(-sigma_squared * (angle + 2 * math.pi * j) ** 2 / 2) / (angle / 2 + math.pi * j) for j in range(-3, 4))
    return math.sin(angle / 2) * math.fsum(terms)


def _farthest(terms: Terms) -> float:
    """Return a distance that abs(S) passes with probability below 1e-12: the sum of those of its Gaussian and its Laplace part.

    Gaussian: from proxy and slack. Laplace: Chernoff at half the largest rate.
    """
    gaussian = [(noise, c, number) for noise, c, number in terms if isinstance(noise, RoundedGaussian)]
    laplace = [(noise, c, number) for noise, c, number in terms if isinstance(noise, DiscreteLaplace)]
    proxy, slack = sum(noise.proxy * c * c * n for noise, c, n in gaussian), sum(noise.slack * n for noise, _, n in gaussian)
    distance = math.sqrt(2 * (_FARTHEST + slack) * proxy) + 1
    if laplace:
        distance += 2 * max(float(noise.scale) * c for noise, c, _ in laplace) * (30 + 0.3 * sum(number for *_, number in laplace))
    return distance


def _chernoff(terms: Sequence[tuple[Noise, float, int]], tail: float = TAIL) -> float:
    """Return a distance that abs(S) passes with probability at most `tail`, by Chernoff's bound.

    P(S >= x) <= exp(-u x) prod M(c u) for every u > 0 (below 1 / (scale c) of every Laplace term), with
    M(u) = (1 - q)^2 / ((1 - q e^u)(1 - q e^-u)) for discrete Laplace noise and, for a rounded Gaussian, the bound of its proxy.
    """
    rates = [float(1 / noise.scale) / c for noise, c, _ in terms if isinstance(noise, DiscreteLaplace)]
    if not rates:
        slack = math.fsum(noise.slack * n for noise, _, n in terms)
        return math.sqrt(2 * (math.log(2 / tail) + slack) * math.fsum(noise.proxy * c * c * n for noise, c, n in terms))
    top = min(rates)

    def distance(u: float) -> float:
        return (math.log(2 / tail) + sum(number * _log_moment(noise, c * u) for noise, c, number in terms)) / u

    return min(distance(top * share / 400) for share in range(1, 400))


def _log_moment(noise: Noise, u: float) -> float:
    """Return ln E exp(u X), or a bound on it, of one noise; for Laplace noise abs(u) < 1 / scale."""
    if isinstance(noise, RoundedGaussian):
        return noise.slack + noise.proxy * u * u / 2
    rate = float(1 / noise.scale)
    return 2 * math.log(-math.expm1(-rate)) - math.log(-math.expm1(u - rate)) - math.log(-math.expm1(-u - rate))
