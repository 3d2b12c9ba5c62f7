"""Certified lower bounds on the error of every factorisation of the running-total matrix: the denominator of accuracy ratios.

For M = L R with Gaussian noise the error at sensitivity 1 and sigma 1 is, over all factorisations, at least
    gamma_F (root mean square over time) = max over v of |M D_v^(1/2)|_* / sqrt(n),         v >= 0, sum v = 1
    gamma_2 (worst time)                 = max over u, v of |D_u^(1/2) M D_v^(1/2)|_*,      u likewise,
where |.|_* is the sum of singular values: every u, v gives a valid lower bound. With B = D_u^(1/2) M D_v^(1/2) the steps
v <- diag((B'B)^(1/2)) / trace, u <- diag((BB')^(1/2)) / trace never lower it and converge to the optimum; the factorisation that belongs
to v certifies the gap from above. Half the horizon is solved first and interpolated, so that few steps are left at full size.

No singular value is computed. M^-1 takes differences, so that K = (B'B)^-1 is tridiagonal: K = L D L' with the unit bidiagonal L of
-sqrt(v_i / v_(i+1)) below the diagonal, and D = 1 / (u v). Its inverse root is an integral,
    K^(-1/2) = (2 / pi) integral over s of e^s (K + e^(2s))^-1 ds,
whose trapezoid sum with steps h is off by a factor of at most 1 + 2 sum over m of sech(m pi^2 / h), for every eigenvalue alike: the
integrand is a sech, which is its own Fourier transform. The diagonals of the inverses come from the differential forms of the
quotient-difference algorithm, where every term is positive, so that nothing cancels. A step costs O(n).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

_COARSEST = 32
_BEYOND = 1.8
#: The relative error of the trapezoid sum, of its step and of its ends together: allowed for in the bounds.
_ERROR = 1e-10
_STEP = math.pi**2 / math.log(8 / _ERROR)
_TAIL = math.log(8 / math.pi / _ERROR)


class Bounds(NamedTuple):
    """A certified interval around the least error."""

    lower: float
    upper: float


def mean_optimum(periods: int, gap: float = 1e-7) -> Bounds:
    """Return bounds on gamma_F, the least root mean square error over time."""
    return _optimum(periods, gap, worst=False)[0]


def worst_optimum(periods: int, gap: float = 1e-7) -> Bounds:
    """Return bounds on gamma_2, the least error at the worst time."""
    return _optimum(periods, gap, worst=True)[0]


def nuclear_bound(periods: int) -> float:
    """Return |M|_* / n = (1/n) sum over j of 1 / (2 sin((2j - 1) pi / (4n + 2))), a lower bound for both in closed form."""
    j = np.arange(1, periods + 1)
    return float((1 / (2 * np.sin((2 * j - 1) * np.pi / (4 * periods + 2)))).mean())


def window_optimum(steps: int) -> float:
    """Return the least error of any shift-invariant mechanism for endless windows: the mean of abs(sin(W t / 2) / sin(t / 2))."""
    from dbext.mechanisms.sliding_root import best_error

    return best_error(steps)


def _optimum(periods: int, gap: float, *, worst: bool) -> tuple[Bounds, np.ndarray, np.ndarray]:
    even = np.full(periods, 1 / periods)
    rows, columns = even, even
    if periods > _COARSEST:
        _, rows, columns = _optimum((periods + 1) // 2, gap, worst=worst)
        rows, columns = (_stretched(weights, periods) for weights in (rows, columns))
    best = Bounds(0.0, np.inf)
    for _ in range(2000):
        used = rows if worst else even
        column_shares = root_diagonal(used, columns)
        row_shares = root_diagonal(columns[::-1], used[::-1])[::-1] if worst else column_shares
        total = float(column_shares.sum())
        error = float((row_shares / used).max()) if worst else total
        upper = math.sqrt(error * float((column_shares / columns).max()))
        best = Bounds(max(best.lower, total * (1 - _ERROR)), min(best.upper, upper * (1 + _ERROR)))
        if best.upper - best.lower <= gap * best.lower:
            break
        rows, columns = _step(rows, row_shares), _step(columns, column_shares)
    return best, rows, columns


def root_diagonal(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the diagonal of (B'B)^(1/2) for B = D_rows^(1/2) M D_columns^(1/2); its sum is that of the singular values of B.

    That of (BB')^(1/2) is the same in reversed time, where M is its own transpose.
    """
    pivots, links = 1 / (rows * columns), 1 / (rows[:-1] * columns[1:])
    largest = pivots.max() + links.max(initial=0) + 2 * np.sqrt(pivots[:-1] * links).max(initial=0)
    smallest = 1 / (np.cumsum(rows[::-1])[::-1] * columns).sum()
    nodes = np.arange(math.log(smallest) / 2 - _TAIL, math.log(largest) / 2 + _TAIL + _STEP, _STEP)
    weights, shifts = 2 * _STEP / np.pi * np.exp(nodes), np.exp(2 * nodes)
    forward, found = np.zeros((len(rows), len(nodes))), np.empty(len(rows))
    for i, (pivot, link) in enumerate(zip(pivots[:-1].tolist(), links.tolist(), strict=True)):
        shifted = forward[i] + shifts
        np.divide(shifted * link, shifted + pivot, out=forward[i + 1])
    backward = pivots[-1] + shifts
    found[-1] = weights @ (1 / (forward[-1] + backward))
    for i in range(len(rows) - 2, -1, -1):
        backward = backward * pivots[i] / (backward + links[i]) + shifts
        found[i] = weights @ (1 / (forward[i] + backward))
    return found


def _step(weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Move the weights beyond the shares they got: the plain step converges linearly, this one about twice as fast."""
    moved = weights * (shares / weights) ** _BEYOND
    return moved / moved.sum()


def _stretched(weights: np.ndarray, periods: int) -> np.ndarray:
    """Interpolate weights of a shorter horizon; the ends keep their distance from the nearer end of time."""
    places = (np.arange(periods) + 0.5) / periods
    known = (np.arange(len(weights)) + 0.5) / len(weights)
    density = np.exp(np.interp(np.log(places / (1 - places)), np.log(known / (1 - known)), np.log(weights)))
    return density / density.sum()
