"""Whether stored noise is what it was calibrated to be: its spread, its signs, its independence from neighbour to neighbour, its law.

Every test returns the logarithm of an upper bound on the chance that honest noise looks so bad or worse, right for any number of draws
(Chernoff and Hoeffding bounds, no limit theorems), so that a fixed level gives a fixed chance of false alarm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbext.privacy.noise import DiscreteLaplace, Noise

if TYPE_CHECKING:
    import numpy as np

#: Largest number of classes in the test of the law.
_CLASSES = 16
#: Above this parameter the discrete Gaussian's distribution function is that of the normal law to nine digits.
_WIDE = 1_000_000.0
_POINTS = 40


@dataclass(frozen=True)
class Evidence:
    """A figure, what it is for honest noise, and the logarithm of a bound on the chance of one so far away."""

    figure: float
    expected: float
    log_chance: float


def spread(noise: Noise, draws: np.ndarray) -> Evidence:
    """Compare the mean of x^2 (Gaussian) or abs(x) (Laplace) with the law's; the figure is their ratio, in units of variance."""
    sizes = abs(draws).ravel()
    if isinstance(noise, DiscreteLaplace):
        mean = float(sizes.mean())
        exponent, expected = _laplace_exponent(float(1 / noise.scale), mean)
        ratio = (mean / expected) ** 2
    else:
        mean = float((sizes * sizes).mean())
        exponent, expected = _gaussian_exponent(float(noise.sigma_squared), mean), noise.variance
        ratio = mean / expected
    return Evidence(ratio, 1.0, min(0.0, math.log(2) - sizes.size * exponent))


def _laplace_exponent(rate: float, mean: float) -> tuple[float, float]:
    """Return Chernoff's exponent for the mean of abs(x), and its expectation.

    E exp(u abs(X)) = (1 - q)(1 + y) / ((1 + q)(1 - y)) with y = q e^u; the best y solves 2y / (1 - y^2) = mean.
    """
    q = math.exp(-rate)
    best = mean / (1 + math.sqrt(1 + mean * mean))
    growth = math.log(-math.expm1(-rate) / (1 + q)) + math.log1p(best) - math.log1p(-best)
    shift = (math.log(best) + rate) * mean if best > 0 else 0.0
    return max(0.0, shift - growth), 2 * q / (-math.expm1(-2 * rate))


def _gaussian_exponent(parameter: float, mean: float) -> float:
    """Return Chernoff's exponent for the mean of x^2: the tilted law is the same with another parameter; any of them gives a bound."""
    tilted = max(mean, 1e-3)
    slope = 1 / (2 * parameter) - 1 / (2 * tilted)
    return max(0.0, slope * mean - _log_theta(tilted) + _log_theta(parameter))


def _log_theta(parameter: float) -> float:
    """Return the logarithm of the sum of exp(-x^2 / (2 parameter)) over whole x."""
    if parameter >= 1:
        return 0.5 * math.log(2 * math.pi * parameter) + math.log1p(2 * math.exp(-2 * math.pi**2 * parameter))
    return math.log1p(2 * math.fsum(math.exp(-x * x / (2 * parameter)) for x in range(1, _POINTS)))


def signs(draws: np.ndarray) -> Evidence:
    """Compare the sum with 0: given their sizes, the signs of symmetric noise are fair coins (Hoeffding)."""
    return _coins(draws.ravel())


def correlation(draws: np.ndarray, axis: int) -> Evidence:
    """Look at products of neighbours along an axis of (nodes, cells): given the sizes, their signs are fair and independent coins."""
    import numpy as np

    moved = np.moveaxis(draws, axis, 0)
    return _coins((moved[1:] * moved[:-1]).ravel())


def _coins(terms: np.ndarray) -> Evidence:
    """Return sum / sqrt(sum of squares); its chance of passing x either way is at most 2 exp(-x^2 / 2)."""
    length = math.sqrt(float((terms * terms).sum()))
    figure = float(terms.sum()) / length if length else 0.0
    return Evidence(figure, 0.0, min(0.0, math.log(2) - figure * figure / 2))


def law(noise: Noise, draws: np.ndarray) -> Evidence:
    """Compare the shares of up to 16 classes of about equal chance with the exact law; the figure is the relative entropy times draws.

    P(n D >= x) <= e^-x (e x / (classes - 1))^(classes - 1) for x > classes - 1 (Agrawal 2020).
    """
    import numpy as np

    values = draws.ravel()
    edges, below = _classes(noise)
    chances = np.diff(np.concatenate([[0.0], below, [1.0]]))
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(chances))
    seen = counts > 0
    figure = float((counts[seen] * np.log(counts[seen] / (values.size * chances[seen]))).sum())
    freedom = len(chances) - 1
    log_chance = -figure + freedom * (1 + math.log(figure / freedom)) if freedom and figure > freedom else 0.0
    return Evidence(figure, float(freedom) / 2, min(0.0, log_chance))


def _classes(noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers e_1 < e_2 < ... and P(X <= e_i), so that the classes between them have about equal chances."""
    import numpy as np

    deviation = math.sqrt(noise.variance)
    wanted = np.arange(1, _CLASSES) / _CLASSES
    if isinstance(noise, DiscreteLaplace):
        rate = float(1 / noise.scale)
        edges = np.unique([_laplace_edge(rate, float(share)) for share in wanted])
        return edges, np.array([_laplace_below(rate, int(edge)) for edge in edges])
    if float(noise.sigma_squared) > _WIDE:
        from statistics import NormalDist

        normal = NormalDist(0, deviation)
        edges = np.unique([round(normal.inv_cdf(float(share))) for share in wanted])
        return edges, np.array([normal.cdf(int(edge) + 0.5) for edge in edges])
    reach = math.ceil(_POINTS * max(deviation, 1))
    points = np.arange(-reach, reach + 1)
    weights = np.exp(-(points.astype(float) ** 2) / (2 * float(noise.sigma_squared)))
    below = np.cumsum(weights) / weights.sum()
    places = np.unique(np.searchsorted(below, wanted))
    return points[places], below[places]


def _laplace_edge(rate: float, share: float) -> int:
    """Return about the quantile of a share."""
    size = -math.log(2 * min(share, 1 - share)) / rate
    return round(-size if share < 1 / 2 else size)


def _laplace_below(rate: float, edge: int) -> float:
    """Return P(X <= edge) of discrete Laplace noise."""
    q = math.exp(-rate)
    tail = math.exp(-rate * (abs(edge) + (edge >= 0))) / (1 + q)
    return 1 - tail if edge >= 0 else tail
