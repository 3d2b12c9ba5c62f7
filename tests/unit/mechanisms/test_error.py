from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erfc

from dbext.mechanisms import error
from dbext.mechanisms.error import Norms, answer_variance, gaussian_half_width, half_width, half_width_95
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian

SCALES = [Fraction(1, 5), Fraction(1), Fraction(5), Fraction(61, 3), Fraction(90)]
SQUARES = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(9), Fraction(2500)]


def law(noise, coefficient=1):
    """Return the probabilities of coefficient * X on a symmetric range that holds all but 1e-15."""
    reach = int(40 * noise.scale) + 20 if isinstance(noise, DiscreteLaplace) else int(9 * math.sqrt(noise.sigma_squared)) + 10
    x = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteLaplace):
        weights = np.exp(-np.abs(x) / float(noise.scale))
    else:
        beyond = erfc((np.abs(x)[:, None] + [-0.5, 0.5]) / math.sqrt(2 * noise.sigma_squared)) / 2
        weights = beyond[:, 0] - beyond[:, 1]
    spread = np.zeros(2 * reach * coefficient + 1)
    spread[::coefficient] = weights / weights.sum()
    return spread


def convolved(noise, coefficients):
    total = np.ones(1)
    for coefficient in coefficients:
        total = np.convolve(total, law(noise, coefficient))
    return total


def smallest(noise, coefficients):
    """Return the smallest x with P(abs(S) <= x) >= 0.95, by convolution."""
    total = convolved(noise, coefficients)
    center = len(total) // 2
    inside = np.cumsum(np.concatenate([total[center : center + 1], 2 * total[center + 1 :]]))
    return int(np.argmax(inside >= 0.95))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 14])
@pytest.mark.parametrize("noise", [*map(DiscreteLaplace, SCALES), *map(RoundedGaussian, SQUARES)], ids=str)
def test_whole_sums_have_the_smallest_half_width(noise, count):
    assert half_width_95(noise, [1] * count) == smallest(noise, [1] * count)
    assert half_width_95(noise, [-1, 1] * count) == half_width_95(noise, [1] * (2 * count))


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(3)), RoundedGaussian(Fraction(4))])
@pytest.mark.parametrize("coefficients", [[2], [1, 2], [3, 3, 1], [4, 6, 2]])
def test_whole_coefficients(noise, coefficients):
    assert half_width_95(noise, coefficients) == smallest(noise, coefficients)


def test_the_coverage_bound_is_not_met_by_one_less():
    """Discrete Laplace of scale 5, four of them: 28 covers 95%, 27 does not."""
    total = convolved(DiscreteLaplace(Fraction(5)), [1] * 4)
    center = len(total) // 2
    assert total[center - 28 : center + 29].sum() >= 0.95 > total[center - 27 : center + 28].sum()


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_large_noises_approach_their_continuous_laws(count):
    gaussian = RoundedGaussian(Fraction(10**12))
    assert math.isclose(half_width_95(gaussian, [1] * count), 1.959964 * math.sqrt(answer_variance(gaussian, [1] * count)), rel_tol=1e-5)
    if count == 1:
        assert math.isclose(half_width_95(DiscreteLaplace(Fraction(10**9)), [1]), 1e9 * math.log(20), rel_tol=1e-6)
    if count == 40:
        laplace = DiscreteLaplace(Fraction(10**9))
        assert math.isclose(half_width_95(laplace, [1] * count), 1.96 * math.sqrt(answer_variance(laplace, [1] * count)), rel_tol=0.01)


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(2)), DiscreteLaplace(Fraction(9)), RoundedGaussian(Fraction(1)), RoundedGaussian(Fraction(50))]
)
@pytest.mark.parametrize("coefficients", [[0.5, 1.5], [1, 0.75, 0.25], [2.5] * 4, [0.25] * 9])
def test_fractional_coefficients_are_covered(noise, coefficients):
    """Scaled to whole numbers the law is known exactly: the bound holds, and is not absurd."""
    exact = smallest(noise, [round(4 * c) for c in coefficients]) / 4
    bound = half_width_95(noise, coefficients)
    assert exact <= bound
    assert bound <= 2 * exact + 2


@given(st.sampled_from(SCALES), st.integers(1, 6))
def test_chernoff_bounds_the_exact_half_width(scale, count):
    noise = DiscreteLaplace(scale)
    assert half_width_95(noise, [1] * count) <= error._chernoff([(noise, 1, count)])


def test_long_sums_fall_back_to_the_bound():
    noise = DiscreteLaplace(Fraction(5000))
    assert half_width_95(noise, [1, 2, 3]) >= 1.96 * math.sqrt(answer_variance(noise, [1, 2, 3])) * 0.99


def test_no_noise_no_width():
    assert half_width_95(DiscreteLaplace(Fraction(5)), []) == 0
    assert half_width_95(DiscreteLaplace(Fraction(5)), [0, 0]) == 0


@given(st.lists(st.sampled_from([1, -1, 2, 0.5]), min_size=1, max_size=8))
def test_variances_add_in_squares(coefficients):
    noise = DiscreteLaplace(Fraction(7))
    assert math.isclose(answer_variance(noise, coefficients), noise.variance * sum(c * c for c in coefficients))


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("tail", [1e-3, 1e-20, 1e-35, 1e-80])
def test_tails_far_beyond_what_is_ever_drawn_are_met_too(number, tail):
    """One draw beyond x: 2 q^(x + 1) / (1 + q); of two draws, one must be beyond x / 2, and never less likely than one beyond x."""
    q = math.exp(-1 / 100)
    x = half_width([(DiscreteLaplace(Fraction(100)), 1)] * number, tail)
    assert math.log(2) + (x + 1) * math.log(q) - math.log1p(q) <= math.log(tail)


@pytest.mark.parametrize("sigma_squared", [100, 2**30])
@pytest.mark.parametrize("tail", [1e-3, 1e-20])
def test_what_rounding_adds_is_beside_what_bounds_the_draws(sigma_squared, tail):
    """Sizes count the draws' own steps and those of rounding: no bound on the draws alone holds for their sum."""
    noise, sizes = RoundedGaussian(Fraction(sigma_squared)), 10_000.0
    without, rounded = (gaussian_half_width(noise, Norms(50.0, total, 1.0, 50), tail) for total in (0.0, sizes))
    assert rounded >= without + sizes / 2


@pytest.mark.parametrize("tail", [0.05, 1e-9])
def test_equal_draws_count_as_often_as_they_are(tail):
    noise = RoundedGaussian(Fraction(1, 10))
    nearly = [(noise, 0.3 * (1 + 1e-12 * n)) for n in range(40)]
    assert half_width([(noise, 0.3)] * 40, tail) == pytest.approx(half_width(nearly, tail), rel=1e-9)
