"""Gaussian loss: the exact conversion, and what an e-private step costs beside it, against 60 digits and by brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.comparison import gaussian_delta
from dbext.privacy.gaussian import gaussian_epsilon, gaussian_rho, pure_as_rho
from dbext.privacy.noise import RoundedGaussian
from dbext.privacy.pico import PICOS
from tests.literature import epsilon_to_rho, rho_to_epsilon

epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=1000)
deltas = st.sampled_from([Fraction(1, 10**power) for power in (1, 2, 3, 5, 6, 9, 12, 15)] + [Fraction(1, 3), Fraction(9, 10)])


def tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def exact_delta(epsilon, rho):
    """delta(epsilon) of Gaussian noises of `rho` picos; differences of tails lose digits, so there are many."""
    mu, at = mpmath.sqrt(2 * mpmath.mpf(rho) / PICOS), mpmath.mpf(epsilon.numerator) / epsilon.denominator
    return tail(at / mu - mu / 2) - mpmath.exp(at) * tail(at / mu + mu / 2)


@settings(max_examples=60, deadline=None)
@given(epsilons, deltas)
def test_what_may_be_spent_is_the_most_that_keeps_delta(epsilon, delta):
    least = epsilon_to_rho(epsilon, delta)
    rho = gaussian_rho(epsilon, delta)
    assert rho >= least, "the conversion that holds for every loss allows no more"
    with mpmath.workdps(60):
        allowed = mpmath.mpf(delta.numerator) / delta.denominator
        assert rho == 0 or exact_delta(epsilon, rho) <= allowed
        assert exact_delta(epsilon, rho + 2 + rho // 10**11) > allowed


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 500 * PICOS), deltas)
def test_epsilon_is_the_least_that_keeps_delta(rho, delta):
    most = rho_to_epsilon(rho, delta)
    epsilon = gaussian_epsilon(rho, delta)
    assert epsilon <= most
    with mpmath.workdps(60):
        allowed = mpmath.mpf(delta.numerator) / delta.denominator
        assert exact_delta(Fraction(epsilon), rho) <= allowed
        assert epsilon == 0 or exact_delta(Fraction(epsilon) - Fraction(1, 10**11), rho) > allowed
    assert epsilon.as_tuple().exponent == -12


@pytest.mark.parametrize("rho", [99_999, 100_001, 600_000, 3_000_000, 10**12])
def test_losses_that_nobody_may_ask_for_have_a_figure_too(rho):
    """It says how far out of reach they are; no power of e is too large for it."""
    found, delta = gaussian_epsilon(rho * PICOS, Fraction(1, 10**6)), Fraction(1, 10**6)
    assert rho < found < rho + math.sqrt(60 * rho)
    allowed = gaussian_rho(Fraction(found), delta)
    assert allowed <= rho * PICOS < allowed + 4 * PICOS * math.sqrt(rho)


def test_known_values():
    """rho at (1, 1e-6), and epsilon of some rho (also in the vectors): 15% more than any zero-concentrated loss may have."""
    assert gaussian_rho(Fraction(1), Fraction(1, 10**6)) == pytest.approx(0.028014481912 * PICOS, abs=1)
    for rho, delta, epsilon in ((0.02, 1e-6, 0.8341), (0.1, 1e-6, 1.9945), (0.5, 1e-6, 4.8866), (1, 1e-9, 9.0926)):
        found = gaussian_epsilon(int(rho * PICOS), Fraction(str(delta)))
        assert float(found) == pytest.approx(epsilon, abs=1e-4)
        assert gaussian_delta(math.sqrt(2 * rho), float(found)) == pytest.approx(delta, rel=1e-6)


def test_nothing_is_nothing():
    assert gaussian_epsilon(0, Fraction(1, 10**6)) == 0
    assert gaussian_rho(Fraction(1, 10**9), Fraction(1, 10**30)) == 0


@pytest.mark.parametrize("sigma_squared", [Fraction(1, 4), Fraction(1), Fraction(5), Fraction(40)])
@pytest.mark.parametrize("shift", [1, 2])
def test_rounded_noise_never_tells_more(sigma_squared, shift):
    """Its exact delta at every epsilon, by summing the law, is at most that of continuous noise."""
    sigma, reach = float(sigma_squared) ** 0.5, int(45 * float(sigma_squared) ** 0.5) + 45
    with mpmath.workdps(40):
        edges = [tail((mpmath.mpf(x) - mpmath.mpf(1) / 2) / sigma) for x in range(-reach, reach + 2)]
        law = [one - other for one, other in itertools.pairwise(edges)]
        for epsilon in (0, 0.1, 0.5, 1, 3):
            lost = mpmath.fsum(max(mpmath.mpf(0), p - mpmath.exp(epsilon) * q) for p, q in zip(law[:-shift], law[shift:], strict=True))
            assert lost <= gaussian_delta(shift / sigma, epsilon) * (1 + 1e-9)
    assert RoundedGaussian(sigma_squared).variance < float(sigma_squared) + 1 / 11


@settings(deadline=None)
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=2000))
def test_a_pure_step_is_priced_by_the_curve_through_its_corner(epsilon):
    price = pure_as_rho(epsilon)
    assert price <= 4 * epsilon * PICOS + 1
    with mpmath.workdps(60):
        at = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        corner = 1 / (1 + mpmath.exp(at))
        assert tail(mpmath.sqrt(mpmath.mpf(price) / PICOS / 2)) <= corner
        assert price < 3 or epsilon > 1000 or tail(mpmath.sqrt(mpmath.mpf(price - 2) / PICOS / 2)) > corner
        assert price >= at * mpmath.tanh(at / 2) * PICOS, "no less than its zero-concentrated loss"


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(12)])
def test_no_test_tells_more_of_a_pure_step_than_of_its_gaussian(epsilon):
    """Randomised response is the worst pure step. Its delta at every level is at most that of the Gaussian, and at a price 1% lower not."""
    truth = 1 / (1 + math.exp(-epsilon))
    levels = np.linspace(0, float(epsilon) * 0.999, 200)
    lost = [max(0.0, truth - math.exp(level) * (1 - truth)) for level in levels]
    mu = math.sqrt(2 * pure_as_rho(epsilon) / PICOS)
    assert all(one <= gaussian_delta(mu, level) + 1e-12 for one, level in zip(lost, levels, strict=True))
    assert any(one > gaussian_delta(0.99 * mu, level) for one, level in zip(lost, levels, strict=True))


@given(st.lists(st.fractions(min_value=Fraction(1, 10**4), max_value=600), min_size=2, max_size=6))
def test_a_sum_of_epsilons_costs_no_less_than_its_parts(epsilons):
    """What lets a budget keep the sum alone; each price is rounded up by less than a pico."""
    assert pure_as_rho(sum(epsilons)) >= sum(pure_as_rho(one) - 1 for one in epsilons)
