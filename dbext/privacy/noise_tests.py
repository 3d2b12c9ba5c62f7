"""Whether stored noise is what it was calibrated to be: its spread, its signs, its independence from neighbour to neighbour, its law.

Every test returns the logarithm of an upper bound on the chance that honest noise looks so bad or worse, right for any number of draws
(Chernoff and Hoeffding bounds, no limit theorems), so that a fixed level gives a fixed chance of false alarm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

from dbext.privacy.noise import DiscreteLaplace, Noise

if TYPE_CHECKING:
    import numpy as np

#: Largest number of classes in the test of the law.
_CLASSES = 16
#: Below, chances are summed value by value.
_NARROW = 25
#: The mean of x^2 is compared with what this many times the spread, at most, would give: sums of 40 deviations then hold all that counts.
_MOST_TILT, _REACH = 4, 40


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
        exponent, expected = _gaussian_exponent(float(noise.sigma_squared), mean - 1 / 12), noise.variance
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
    """Return Chernoff's exponent for the mean of x^2 + 1/12: any tilt gives a bound, and that to about this variance the best one."""
    tilted = min(max(mean, parameter / _MOST_TILT, 1e-3), _MOST_TILT * parameter)
    slope = 1 / (2 * parameter) - 1 / (2 * tilted)
    return max(0.0, slope * (mean + 1 / 12) - _log_square_moment(parameter, slope))


def _log_square_moment(parameter: float, slope: float) -> float:
    """Return the logarithm of E exp(slope X^2), or of a little more, for a rounded Gaussian and 1 / (2 slope) above its parameter.

    From a variance of 25 on, sums over whole numbers are integrals but for exp(-2 pi^2 6): with V uniform on (-1/2, 1/2) and
    t = 1 / (1 - 2 parameter slope), E exp(slope X^2) is sqrt(t) E exp(t slope V^2).
    """
    if parameter < _NARROW:
        chances = _chances(parameter)
        return math.log(math.fsum(chance * math.exp(slope * x * x) for x, chance in enumerate(chances) if chance))
    stretch = 1 / (1 - 2 * parameter * slope)
    within = math.fsum((stretch * slope / 4) ** power / math.factorial(power) / (2 * power + 1) for power in range(20))
    return math.log(stretch) / 2 + math.log(within) + 1e-12


def _chances(parameter: float) -> list[float]:
    """Return P(abs(X) = x) of a rounded Gaussian for x = 0, 1, 2, ... up to 40 deviations."""
    width = math.sqrt(2 * parameter)
    beyond = [1.0, *(math.erfc((x + 0.5) / width) for x in range(math.ceil(_REACH * math.sqrt(parameter)) + _REACH))]
    return [one - other for one, other in pairwise(beyond)]


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

    wanted = np.arange(1, _CLASSES) / _CLASSES
    if isinstance(noise, DiscreteLaplace):
        rate = float(1 / noise.scale)
        edges = np.unique([_laplace_edge(rate, float(share)) for share in wanted])
        return edges, np.array([_laplace_below(rate, int(edge)) for edge in edges])
    normal = NormalDist(0, math.sqrt(float(noise.sigma_squared)))
    edges = np.unique([round(normal.inv_cdf(float(share))) for share in wanted])
    return edges, np.array([normal.cdf(int(edge) + 0.5) for edge in edges])


def _laplace_edge(rate: float, share: float) -> int:
    """Return about the quantile of a share."""
    size = -math.log(2 * min(share, 1 - share)) / rate
    return round(-size if share < 1 / 2 else size)


def _laplace_below(rate: float, edge: int) -> float:
    """Return P(X <= edge) of discrete Laplace noise."""
    q = math.exp(-rate)
    tail = math.exp(-rate * (abs(edge) + (edge >= 0))) / (1 + q)
    return 1 - tail if edge >= 0 else tail
