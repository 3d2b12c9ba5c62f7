"""Empirical lower bounds on the privacy loss: what repeated runs on two neighbouring databases prove, with confidence.

An event seen in `hits_with` of `runs_with` runs with the entry and in `hits_without` of `runs_without` without it shows
epsilon >= ln((p_with - delta) / p_without). Exact (Clopper and Pearson 1934) one-sided limits on both chances, each wrong with
probability (1 - confidence) / 2, make the bound right with probability `confidence`. Pick the event on one half of the runs and
test it on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from dbext.errors import BadArgument

_TINY, _STEPS = 1e-300, 200
_CONVERGED = 1e-16


def epsilon_lower_bound(
    hits_with: int, runs_with: int, hits_without: int, runs_without: int, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Return the epsilon that the counts prove at `delta`, 0 if they prove none."""
    error = (1 - confidence) / 2
    low = lower_limit(hits_with, runs_with, error) - delta
    high = upper_limit(hits_without, runs_without, error)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def mu_lower_bound(hits_with: int, runs_with: int, hits_without: int, runs_without: int, confidence: float = 0.95) -> float:
    """Return the Gaussian parameter mu (sensitivity / sigma, rho = mu^2 / 2) that the counts prove, 0 if none.

    For every test of a mu-private mechanism, Phi^-1(chance with) - Phi^-1(chance without) <= mu.
    """
    error = (1 - confidence) / 2
    low, high = lower_limit(hits_with, runs_with, error), upper_limit(hits_without, runs_without, error)
    if low <= 0 or high >= 1:
        return 0.0
    normal = NormalDist()
    return max(0.0, normal.inv_cdf(low) - normal.inv_cdf(high))


def lower_limit(hits: int, runs: int, error: float) -> float:
    """Return the chance p at which `hits` or more out of `runs` would have probability `error`: the true one is below it that often."""
    _check(hits, runs, error)
    return 0.0 if hits == 0 else _root(lambda p: beta_share(hits, runs - hits + 1, p) - error)


def upper_limit(hits: int, runs: int, error: float) -> float:
    """Return the chance p at which `hits` or fewer out of `runs` would have probability `error`."""
    _check(hits, runs, error)
    return 1.0 if hits == runs else _root(lambda p: error - beta_share(runs - hits, hits + 1, 1 - p))


def binomial_tail(hits: int, trials: int, chance: float) -> float:
    """Return P(X >= hits) for a binomial X: the p-value of guessing `hits` of `trials` canaries, chance e^epsilon / (1 + e^epsilon) each.

    If a run with independently included canaries is epsilon-private, its correct guesses are stochastically at most such an X
    (Steinke, Nasr and Jagielski 2023).
    """
    if hits <= 0:
        return 1.0
    return beta_share(hits, trials - hits + 1, chance) if hits <= trials else 0.0


def beta_share(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz's method), to about 1e-13."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """Return 1 + d_1 / (1 + d_2 / (1 + ...)), the denominator of the expansion."""
    value = numerator = 1.0
    denominator = 0.0
    for step in range(1, 100_000):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / (1 + term * denominator or _TINY)
        numerator = 1 + term / numerator or _TINY
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < _CONVERGED * 10:
            break
    return value


def _root(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2


def _check(hits: int, runs: int, error: float) -> None:
    if not 0 <= hits <= runs or runs < 1 or not 0 < error < 1:
        raise BadArgument("an audit counts between 0 and all of its runs, with an error between 0 and 1")
