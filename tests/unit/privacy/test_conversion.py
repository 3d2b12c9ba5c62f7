from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
from hypothesis import given, settings
from hypothesis import strategies as st

from dbext.privacy.conversion import ALONE, budget_picos, epsilon_of
from dbext.privacy.gaussian import gaussian_epsilon, gaussian_rho
from dbext.privacy.pico import PICOS
from tests.literature import epsilon_to_rho, rho_to_epsilon

rhos = st.integers(1, 20 * PICOS)
deltas = st.sampled_from([Fraction(1, 10**power) for power in (1, 2, 3, 5, 6, 9, 12, 15)] + [Fraction(1, 3), Fraction(9, 10)])


def optimum(rho: int, delta: Fraction) -> mpmath.mpf:
    """Formula (ii) minimised over a fine grid of orders in 50 digits: a valid epsilon, an upper bound on the best one."""
    exact, log = mpmath.mpf(rho) / PICOS, mpmath.log(mpmath.mpf(delta.denominator) / delta.numerator)

    def at(excess):
        order = 1 + excess
        return order * exact + (log - mpmath.log(excess) + order * mpmath.log1p(-1 / order)) / excess

    coarse = min((mpmath.mpf(2) ** (power / mpmath.mpf(4)) for power in range(-120, 200)), key=at)
    return min(at(coarse * (1 + mpmath.mpf(step) / 2000)) for step in range(-400, 401))


@settings(max_examples=40)
@given(rhos, deltas)
def test_epsilon_is_the_optimum_of_the_formula_rounded_up(rho, delta):
    with mpmath.workdps(50):
        best = max(mpmath.mpf(0), optimum(rho, delta))
        epsilon = mpmath.mpf(str(rho_to_epsilon(rho, delta)))
        assert epsilon <= best + mpmath.mpf(10) ** -11, "not tight"
        assert epsilon >= best * (1 - mpmath.mpf(10) ** -6) - mpmath.mpf(10) ** -12, "below every order: not a bound"


@given(rhos, deltas)
def test_every_order_says_the_bound_holds(rho, delta):
    """The bound returned is one order's: evaluated at 80 digits there, it lies below what is returned."""
    epsilon = rho_to_epsilon(rho, delta)
    assert epsilon == epsilon.quantize(Decimal("1e-12"))
    assert epsilon_to_rho(Fraction(epsilon), delta) >= rho - 2, "the inverse allows what was converted, up to rounding"


@given(st.fractions(min_value=Fraction(1, 1000), max_value=50), deltas)
def test_what_may_be_spent_converts_back_to_no_more(epsilon, delta):
    rho = epsilon_to_rho(epsilon, delta)
    assert rho == 0 or rho_to_epsilon(rho, delta) <= epsilon + Fraction(1, 10**12)
    assert rho_to_epsilon(rho + PICOS // 10**6, delta) > epsilon, "and a little more does not fit"


@given(rhos, rhos, deltas)
def test_monotone(one, other, delta):
    small, large = sorted((one, other))
    assert rho_to_epsilon(small, delta) <= rho_to_epsilon(large, delta)
    assert rho_to_epsilon(small, delta) >= rho_to_epsilon(small, min(1 - Fraction(1, 100), 2 * delta))


def test_nothing_spent_is_nothing():
    assert rho_to_epsilon(0, Fraction(1, 10**6)) == 0
    assert epsilon_to_rho(Fraction(1, 10**9), Fraction(1, 10**9)) == 0


def test_pure_budgets_need_no_conversion():
    assert budget_picos(Fraction(1, 3), Fraction(0)) == 333_333_333_333
    assert epsilon_of(333_333_333_334, Fraction(0)) == Decimal("0.333333333334")


def test_of_one_unit_alone_nearly_all_of_delta_is_for_it():
    delta = Fraction(1, 10**6)
    part = delta * ALONE
    assert budget_picos(Fraction(1), delta) == gaussian_rho(Fraction(1), part) > 1.14 * epsilon_to_rho(Fraction(1), part)
    assert epsilon_of(PICOS // 50, delta) == gaussian_epsilon(PICOS // 50, part) < 0.94 * float(rho_to_epsilon(PICOS // 50, part))
    assert rho_to_epsilon(PICOS // 50, delta) == Decimal("0.899935267661")
