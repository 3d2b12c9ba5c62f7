"""Vectors of square-root factorisations, their optimum, and sliding windows."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.optimum import mean_optimum, nuclear_bound, worst_optimum
from dbext.mechanisms.alternating import alternating_bounds
from dbext.mechanisms.sliding_root import best_error
from dbext.mechanisms.square_root import root_coefficients
from tests.literature import column_norm_squared, root_coefficient, square_root_errors
from tests.unit.vectors.registry import runner

FINE = 40
EXACT_UP_TO = 3


@runner("sqrt_coefficients_f0_f7")
def _(inputs):
    return [str(root_coefficient(k)) for k in range(inputs["n"])]


def encoder(inputs) -> list[int]:
    """Return the whole-number encoder at a scale; dbext's own ones are powers of two."""
    bits = inputs["scale"].bit_length() - 1
    if inputs["scale"] == 1 << bits:
        return list(root_coefficients(inputs["n"], bits))
    return [round(inputs["scale"] * root_coefficient(k)) for k in range(inputs["n"])]


@runner("sqrt_integer_encoder_2^16")
def _(inputs):
    return encoder(inputs)


@runner("sqrt_integer_encoder_sens2")
def _(inputs):
    return sum(value**2 for value in encoder(inputs))


@runner("sqrt_factorisation_error")
def _(inputs):
    mean, worst = square_root_errors(inputs["T"])
    return {"col_norm_sq": column_norm_squared(inputs["T"]), "normalised_mean_rmse": mean, "normalised_max_rmse": worst}


@runner("sqrt_multi_participation_n12")
def _(inputs):
    """State changes up to three are exact in dbext; more are enumerated, and dbext's bound is held against the enumeration."""
    horizon, k = inputs["T"], inputs["k"]
    columns = _columns(horizon)
    bound = alternating_bounds(columns[:, 0], k, horizon).one_cell
    state = max(bound[:k]) if k <= EXACT_UP_TO else _alternating(columns, k)
    assert state <= max(bound[:k])
    together = columns[:, :k].sum(axis=1)
    return {
        "state_change_sens2": state,
        "upper_bound_k_times_col": k * column_norm_squared(horizon),
        "independent_sign_sens2": together @ together,
    }


@runner("sqrt_min_separation_sens2")
def _(inputs):
    last = (inputs["k"] - 1) * inputs["min_sep"] + 1
    together = _columns(inputs["T"])[:, : last : inputs["min_sep"]].sum(axis=1)
    return together @ together


@runner("optimal_factorisation")
def _(inputs):
    horizon = inputs["T"]
    return {"gamma_F": mean_optimum(horizon).lower, "gamma_2": worst_optimum(horizon).lower, "nuclear_over_n": nuclear_bound(horizon)}


@runner("optimal_factorisation_large")
def _(inputs):
    """The lower bound is far closer to the optimum than the certified gap: its error is of second order."""
    return {"gamma_F": mean_optimum(inputs["T"], 1e-2).lower, "gamma_2": worst_optimum(inputs["T"], 1e-2).lower}


@runner("sliding_window_optimal_normalised_rmse")
def _(inputs):
    """Windows of W in steps of P, P a divisor of W: windows of W / P periods."""
    steps, rest = divmod(inputs["W"], inputs["P"])
    assert rest == 0
    return best_error(steps)


def _columns(horizon: int) -> np.ndarray:
    """Return R, lower triangular, from the whole-number encoder at a precision far beyond the record's tolerance."""
    coefficients = np.array([value / 2**FINE for value in root_coefficients(horizon, FINE)])
    return np.array([[coefficients[t - j] if t >= j else 0.0 for j in range(horizon)] for t in range(horizon)])


def _alternating(columns: np.ndarray, k: int) -> float:
    gram, best = columns.T @ columns, 0.0
    for count in range(1, k + 1):
        signs = (-1.0) ** np.arange(count)
        best = max(best, *(signs @ gram[np.ix_(p, p)] @ signs for p in itertools.combinations(range(len(gram)), count)))
    return best
