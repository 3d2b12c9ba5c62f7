"""Certified lower bounds on the error of every factorisation of the running-total matrix: the denominator of accuracy ratios.

For M = L R with Gaussian noise the error at sensitivity 1 and sigma 1 is, over all factorisations, at least
    gamma_F (root mean square over time) = max over v of |M D_v^(1/2)|_* / sqrt(n),         v >= 0, sum v = 1
    gamma_2 (worst time)                 = max over u, v of |D_u^(1/2) M D_v^(1/2)|_*,      u likewise,
where |.|_* is the sum of singular values: every u, v gives a valid lower bound. With B = D_u^(1/2) M D_v^(1/2) the steps
v <- diag((B'B)^(1/2)) / trace, u <- diag((BB')^(1/2)) / trace never lower it and converge to the optimum; the factorisation that belongs
to v certifies the gap from above. Half the horizon is solved first and interpolated, so that few steps are left at full size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_COARSEST = 32
_BEYOND = 1.8


class Bounds(NamedTuple):
    """A certified interval around the least error."""

    lower: float
    upper: float


def mean_optimum(periods: int, gap: float = 1e-7) -> Bounds:
    """Return bounds on gamma_F, the least root mean square error over time. Cost: some singular value decompositions of n x n."""
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
    rows, columns = np.full(periods, 1 / periods), np.full(periods, 1 / periods)
    if periods > _COARSEST:
        _, rows, columns = _optimum((periods + 1) // 2, gap, worst=worst)
        rows, columns = (_stretched(weights, periods) for weights in (rows, columns))
    best = Bounds(0.0, np.inf)
    for _ in range(2000):
        used = rows if worst else np.full(periods, 1 / periods)
        row_shares, column_shares, total = _shares(np.sqrt(used)[:, None] * np.tri(periods) * np.sqrt(columns))
        best = Bounds(max(best.lower, total), min(best.upper, _primal(row_shares / used, column_shares / columns, worst=worst)))
        if best.upper - best.lower <= gap * best.lower:
            break
        rows, columns = _step(rows, row_shares), _step(columns, column_shares)
    return best, rows, columns


def _shares(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the diagonals of (BB')^(1/2) and (B'B)^(1/2), and their trace, the sum of the singular values."""
    squares, right = np.linalg.eigh(matrix.T @ matrix)
    values = np.sqrt(np.maximum(squares, 0))
    row_shares = ((matrix @ right) ** 2) @ (1 / values)
    return row_shares, right**2 @ values, float(values.sum())


def _step(weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Move the weights beyond the shares they got: the plain step converges linearly, this one about twice as fast."""
    moved = weights * (shares / weights) ** _BEYOND
    return moved / moved.sum()


def _primal(row_errors: np.ndarray, column_norms: np.ndarray, *, worst: bool) -> float:
    """Return the error of the factorisation L L' = D_u^(-1/2) (BB')^(1/2) D_u^(-1/2), R'R = D_v^(-1/2) (B'B)^(1/2) D_v^(-1/2)."""
    error = row_errors.max() if worst else row_errors.mean()
    return float(np.sqrt(error * column_norms.max()))


def _stretched(weights: np.ndarray, periods: int) -> np.ndarray:
    """Interpolate weights of a shorter horizon; the ends keep their distance from the nearer end of time."""
    places = (np.arange(periods) + 0.5) / periods
    known = (np.arange(len(weights)) + 0.5) / len(weights)
    density = np.exp(np.interp(np.log(places / (1 - places)), np.log(known / (1 - known)), np.log(weights)))
    return density / density.sum()
