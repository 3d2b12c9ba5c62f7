"""Small minimax problems: the non-negative combination of a few functions that flattens another one best.

A linear programme with few unknowns and many constraints, solved by Newton's method on a logarithmic barrier. Nothing that matters
depends on the answer being optimal: callers certify what they get.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_ROUNDS, _STEPS, _SHRINK = 10, 5, 0.2


def flattest(target: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """Return weights a >= 0 that nearly minimise max(target - functions @ a).

    `target` has n values, `functions` n rows and m columns. Cost: about 100 factorisations of m + 1 unknowns over n rows.
    """
    import numpy as np

    rows, unknowns = functions.shape
    size = float(np.abs(target).max()) or 1.0
    matrix, goal = np.hstack([functions / size, np.ones((rows, 1))]), target / size
    point = np.append(np.full(unknowns, 1e-3), 0.0)
    point[-1] = float((goal - matrix[:, :-1] @ point[:-1]).max()) + 1.0
    weight = 1.0 / rows
    for _ in range(_ROUNDS):
        for _ in range(_STEPS):
            point = _newton(np, matrix, goal, point, weight)
        weight *= _SHRINK
    return np.maximum(point[:-1], 0.0)


def _newton(np, matrix: np.ndarray, goal: np.ndarray, point: np.ndarray, weight: float) -> np.ndarray:  # noqa: ANN001 imported late
    """Take one damped step on: height - weight * (sum of log slacks + sum of log unknowns)."""
    slack = matrix @ point - goal
    unknown = point[:-1]
    gradient = -weight * (matrix.T @ (1 / slack))
    gradient[:-1] -= weight / unknown
    gradient[-1] += 1.0
    scaled = matrix / slack[:, None]
    hessian = weight * (scaled.T @ scaled)
    hessian[np.arange(len(unknown)), np.arange(len(unknown))] += weight / unknown**2
    step = -np.linalg.lstsq(hessian, gradient, rcond=None)[0]
    change = matrix @ step
    values, changes = np.concatenate([slack, unknown]), np.concatenate([change, step[:-1]])
    falling = changes < 0
    longest = float((values[falling] / -changes[falling]).min()) if falling.any() else 1.0
    return point + min(1.0, 0.95 * longest) * step
