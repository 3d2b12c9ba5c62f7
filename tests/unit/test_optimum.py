"""Bounds on the error of every factorisation, against singular values and explicit factorisations."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.optimum import mean_optimum, nuclear_bound, root_diagonal, worst_optimum
from tests.literature import square_root_errors


def weights(size: int, spread: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(size) ** spread + 1e-4


@pytest.mark.parametrize("size", [1, 2, 3, 16, 65])
@pytest.mark.parametrize("spread", [0, 1, 6])
def test_diagonals_of_the_root_are_those_of_the_singular_values(size, spread):
    rows, columns = weights(size, spread, 1), weights(size, spread, 2)
    left, values, right = np.linalg.svd(np.sqrt(rows)[:, None] * np.tri(size) * np.sqrt(columns))
    assert root_diagonal(rows, columns) == pytest.approx(right.T**2 @ values, rel=3e-10)
    assert root_diagonal(columns[::-1], rows[::-1])[::-1] == pytest.approx(left**2 @ values, rel=3e-10)


def test_equal_weights_give_the_closed_form():
    assert root_diagonal(np.full(5000, 1 / 5000), np.full(5000, 1 / 5000)).sum() == pytest.approx(nuclear_bound(5000), rel=3e-10)


@pytest.mark.parametrize("size", [5, 40, 200])
def test_bounds_hold_between_closed_forms(size):
    """The nuclear norm lies below the optimum, the square root above it, and the worst time never errs less than the mean."""
    mean, worst = mean_optimum(size, 1e-6), worst_optimum(size, 1e-4)
    plain_mean, plain_worst = square_root_errors(size)
    assert nuclear_bound(size) <= mean.lower <= mean.upper <= plain_mean
    assert mean.lower <= worst.lower <= worst.upper <= plain_worst
    assert mean.upper - mean.lower <= 1e-6 * mean.lower
    assert worst.upper - worst.lower <= 1e-4 * worst.lower
