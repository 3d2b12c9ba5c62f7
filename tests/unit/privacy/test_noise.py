from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument, NotSupported
from dbext.privacy.measure import Sensitivity
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian, cost, noise_from_json
from dbext.privacy.pico import PICOS, picos_down, picos_up, to_decimal

positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000)


def test_costs_of_each_kind():
    assert cost(DiscreteLaplace(Fraction(20)), Sensitivity(2, 2), pure=True) == PICOS // 10
    assert cost(RoundedGaussian(Fraction(20)), Sensitivity(2, 2), pure=False) == PICOS // 20
    assert cost(DiscreteLaplace(Fraction(3)), Sensitivity(1, 1), pure=True) == 333_333_333_334
    with pytest.raises(NotSupported):
        cost(RoundedGaussian(Fraction(20)), Sensitivity(1, 1), pure=True)


def test_laplace_noise_is_priced_in_epsilon_alone():
    with pytest.raises(NotSupported):
        cost(DiscreteLaplace(Fraction(20)), Sensitivity(1, 1), pure=False)


def laplace_law(scale, reach):
    weights = [mpmath.exp(-mpmath.mpf(x) * scale.denominator / scale.numerator) for x in range(reach)]
    total = weights[0] + 2 * mpmath.fsum(weights[1:])
    return [weight / total for weight in weights]


def gaussian_law(sigma_squared, reach):
    sigma = mpmath.sqrt(mpmath.mpf(sigma_squared.numerator) / sigma_squared.denominator)
    beyond = [mpmath.erfc((x - mpmath.mpf(1) / 2) / sigma / mpmath.sqrt(2)) / 2 for x in range(reach + 1)]
    return [one - other for one, other in itertools.pairwise(beyond)]


@pytest.mark.parametrize("parameter", [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(7, 2), Fraction(9), Fraction(60)])
def test_variances_are_those_of_the_laws(parameter):
    for noise, law in ((DiscreteLaplace(parameter), laplace_law), (RoundedGaussian(parameter), gaussian_law)):
        with mpmath.workdps(40):
            chances = law(parameter, int(60 * parameter) + 120)
            assert abs(chances[0] + 2 * mpmath.fsum(chances[1:]) - 1) < mpmath.mpf(10) ** -20
            exact = 2 * mpmath.fsum(x * x * chance for x, chance in enumerate(chances))
            assert math.isclose(noise.variance, exact, rel_tol=1e-9, abs_tol=1e-200)


def test_variance_never_exceeds_that_of_its_parts():
    for parameter in (Fraction(1, 10), Fraction(1), Fraction(8), Fraction(9), Fraction(10**12)):
        assert RoundedGaussian(parameter).variance <= RoundedGaussian(parameter).proxy == float(parameter) + 1 / 12
        assert DiscreteLaplace(parameter).variance <= 2 * float(parameter) ** 2 * (1 + 1e-15)


@pytest.mark.parametrize("parameter", [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(20)])
def test_proxy_and_slack_bound_every_moment(parameter):
    noise = RoundedGaussian(parameter)
    with mpmath.workdps(40):
        chances = gaussian_law(parameter, 600)
        for u in (0.01, 0.1, 0.5, 1, 2, 5, 9):
            moment = chances[0] + mpmath.fsum(2 * chance * mpmath.cosh(u * x) for x, chance in enumerate(chances) if x)
            assert moment <= mpmath.exp(noise.slack + noise.proxy * u * u / 2)
            assert u < 2 or parameter < 1 or moment > mpmath.exp(float(parameter) * u * u / 2), "rounding adds to the moments"
        thetas = mpmath.fsum(mpmath.exp(-2 * mpmath.pi**2 * k * k * parameter.numerator / parameter.denominator) for k in range(-60, 61))
        assert math.isclose(math.exp(noise.slack), thetas, rel_tol=1e-9)


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(22, 7)), RoundedGaussian(Fraction(10**30, 3))])
def test_json_round_trip(noise):
    assert noise_from_json(noise.to_json()) == noise


def test_impossible_noises_are_refused():
    for build in (lambda: DiscreteLaplace(Fraction(0)), lambda: RoundedGaussian(Fraction(-1)), lambda: noise_from_json({"kind": "pink"})):
        with pytest.raises(BadArgument):
            build()


@given(st.fractions(min_value=0, max_value=10**9))
def test_rounding_is_against_the_spender(value):
    assert Fraction(picos_down(value), PICOS) <= value <= Fraction(picos_up(value), PICOS)
    assert picos_up(value) - picos_down(value) in (0, 1)
    assert to_decimal(picos_down(value)) == Decimal(picos_down(value)) / PICOS
