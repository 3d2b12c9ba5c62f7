from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument, NotSupported
from dbext.privacy.measure import Sensitivity
from dbext.privacy.noise import DiscreteGaussian, DiscreteLaplace, cost, noise_from_json
from dbext.privacy.pico import PICOS, picos_down, picos_up, to_decimal

positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000)


def test_costs_of_each_kind():
    assert cost(DiscreteLaplace(Fraction(20)), Sensitivity(2, 2), pure=True) == PICOS // 10
    assert cost(DiscreteGaussian(Fraction(20)), Sensitivity(2, 2), pure=False) == PICOS // 20
    assert cost(DiscreteLaplace(Fraction(3)), Sensitivity(1, 1), pure=True) == 333_333_333_334
    with pytest.raises(NotSupported):
        cost(DiscreteGaussian(Fraction(20)), Sensitivity(1, 1), pure=True)


@given(positive, st.integers(1, 5))
def test_laplace_rho_is_rounded_up_and_close(scale, l1):
    with mpmath.workdps(60):
        epsilon = mpmath.mpf(l1) * scale.denominator / scale.numerator
        exact = epsilon * mpmath.tanh(epsilon / 2) * PICOS
    assert 0 <= cost(DiscreteLaplace(scale), Sensitivity(l1, l1), pure=False) - exact <= 1


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 2.0, 4.0, 9.0])
def test_laplace_rho_bounds_every_renyi_order_and_is_attained_at_one(epsilon):
    """Two discrete Laplace laws one apart: the likelihood ratio is exp(epsilon) on one side and exp(-epsilon) on the other."""
    with mpmath.workdps(40):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        q = 1 - p
        rho = mpmath.mpf(cost(DiscreteLaplace(1 / Fraction(epsilon)), Sensitivity(1, 1), pure=False)) / PICOS
        for order in [1 + mpmath.mpf(10) ** power for power in range(-8, 3)] + [1.3, 2, 3, 7.5, 40]:
            divergence = mpmath.log(p**order * q ** (1 - order) + q**order * p ** (1 - order)) / (order - 1)
            assert divergence <= order * rho
        assert rho - divergence_at_one(p, q) < mpmath.mpf(10) ** -11


def divergence_at_one(p, q):
    return p * mpmath.log(p / q) + q * mpmath.log(q / p)


@pytest.mark.parametrize("shift", [1, 2, 3, 6])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(2), Fraction(7)])
def test_laplace_rho_holds_for_larger_shifts(shift, scale):
    """Renyi divergences of discrete Laplace laws `shift` apart, by summing their laws."""
    rate = 1 / float(scale)
    span = range(-int(60 * scale) - 40, int(60 * scale) + 40 + shift)
    norm = math.tanh(rate / 2)
    rho = cost(DiscreteLaplace(scale), Sensitivity(shift, shift), pure=False) / PICOS
    for order in (1.001, 1.5, 2, 4, 12, 50):
        logs = [-rate * (order * abs(x) + (1 - order) * abs(x - shift)) for x in span]
        top = max(logs)
        divergence = (top + math.log(norm * math.fsum(math.exp(one - top) for one in logs))) / (order - 1)
        assert divergence <= order * rho * (1 + 1e-9)


@given(positive)
def test_variances_are_those_of_the_discrete_laws(parameter):
    for noise, exponent in (
        (DiscreteLaplace(parameter), lambda x: abs(x) / parameter),
        (DiscreteGaussian(parameter), lambda x: x * x / 2 / parameter),
    ):
        weights = [(x, mpmath.exp(-mpmath.mpf(float(exponent(x))))) for x in range(min(4000, int(60 * parameter) + 60))]
        total = weights[0][1] + 2 * mpmath.fsum(w for _, w in weights[1:])
        exact = 2 * mpmath.fsum(x * x * w for x, w in weights[1:]) / total
        if parameter < 60:
            assert math.isclose(noise.variance, exact, rel_tol=1e-9, abs_tol=1e-200)


def test_variance_never_exceeds_the_continuous_one():
    for parameter in (Fraction(1, 10), Fraction(1), Fraction(8), Fraction(9), Fraction(10**12)):
        assert DiscreteGaussian(parameter).variance <= parameter
        assert DiscreteLaplace(parameter).variance <= 2 * float(parameter) ** 2 * (1 + 1e-15)


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(22, 7)), DiscreteGaussian(Fraction(10**30, 3))])
def test_json_round_trip(noise):
    assert noise_from_json(noise.to_json()) == noise


def test_impossible_noises_are_refused():
    for build in (lambda: DiscreteLaplace(Fraction(0)), lambda: DiscreteGaussian(Fraction(-1)), lambda: noise_from_json({"kind": "pink"})):
        with pytest.raises(BadArgument):
            build()


@given(st.fractions(min_value=0, max_value=10**9))
def test_rounding_is_against_the_spender(value):
    assert Fraction(picos_down(value), PICOS) <= value <= Fraction(picos_up(value), PICOS)
    assert picos_up(value) - picos_down(value) in (0, 1)
    assert to_decimal(picos_down(value)) == Decimal(picos_down(value)) / PICOS
