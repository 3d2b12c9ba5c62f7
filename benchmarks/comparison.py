"""Other conversions and compositions of the literature, in floats: to compare with, never to spend by.

The ledger adds picos and converts with `dbext.privacy.conversion` alone. What stands here answers "what would another rule say?".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


def simple_epsilon(rho: float, delta: float) -> float:
    """Return rho + 2 sqrt(rho ln(1 / delta)): Bun and Steinke 2016, proposition 1.3."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def simple_rho(epsilon: float, delta: float) -> float:
    """Return the rho at which `simple_epsilon` is epsilon."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the exact delta of continuous Gaussian noise with sensitivity / sigma = mu (Balle and Wang 2018, theorem 8)."""
    return _lower_tail(mu / 2 - epsilon / mu) - math.exp(epsilon) * _lower_tail(-mu / 2 - epsilon / mu)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """Return the least sigma of continuous Gaussian noise at sensitivity 1 that is (epsilon, delta)-private."""
    return _bisect(lambda sigma: gaussian_delta(1 / sigma, epsilon) <= delta, 1e-3, 1 / math.sqrt(2 * simple_rho(epsilon, delta)))


def laplace_epsilon(epsilon: float, delta: float) -> float:
    """Return the exact epsilon at `delta` of one continuous Laplace query that is `epsilon`-private."""
    return max(0.0, epsilon + 2 * math.log1p(-delta))


def pure_rho(epsilon: float) -> float:
    """Return epsilon^2 / 2, which every epsilon-private mechanism satisfies: Bun and Steinke 2016, proposition 1.4."""
    return epsilon * epsilon / 2


def advanced_composition(epsilons: Sequence[float], delta: float) -> float:
    """Return the epsilon of a fully adaptive composition of epsilon_i-private queries at `delta`: each is epsilon_i^2 / 2 of rho."""
    return simple_epsilon(sum(pure_rho(epsilon) for epsilon in epsilons), delta)


def _lower_tail(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the point from which on `holds` is true, to the last bits of a float."""
    if holds(low):
        return low
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
