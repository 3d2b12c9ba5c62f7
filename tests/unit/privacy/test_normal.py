"""Bounds on the tails of the normal law, against 80 digits."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.privacy.normal import density_at, upper_tail

REACH = 60


def holds(x):
    low, high = upper_tail(x)
    with mpmath.workdps(80 + REACH * REACH):
        exact = mpmath.erfc(mpmath.mpf(str(x)) / mpmath.sqrt(2)) / 2
        assert mpmath.mpf(str(low)) <= exact <= mpmath.mpf(str(high))
        assert mpmath.mpf(str(high)) - mpmath.mpf(str(low)) <= exact * mpmath.mpf(10) ** -25


@given(st.decimals(-REACH, REACH, places=20))
def test_bounds_hold_and_are_tight(x):
    holds(x)


@pytest.mark.parametrize("x", ["0", "1e-30", "-1e-30", "5.999999999999", "6"])
def test_where_the_method_changes(x):
    holds(Decimal(x))


def test_far_out_there_still_is_a_bound():
    low, high = upper_tail(Decimal(1001))
    assert low == 0
    assert 0 < high < Decimal("1e-200000")
    assert 0 < 1 - Fraction(upper_tail(Decimal(-1001))[0]) < Fraction(1, 10**40)


def test_the_density():
    assert abs(float(density_at(Decimal(1))) - 0.24197072451914337) < 1e-16
