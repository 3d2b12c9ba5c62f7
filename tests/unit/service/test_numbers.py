"""Epsilon and delta as users write and read them."""

from decimal import Decimal
from fractions import Fraction

import pytest

from dbext.errors import BadArgument
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.service.numbers import delta_from, epsilon_from, plain, require_noise_fits, rounded_down, rounded_up


@pytest.mark.parametrize(
    "text", ["0", "-0", "-1", "nan", "sNaN", "inf", "-inf", "1000.000000000001", "1e400", "0.0000000000001", "x", "", None]
)
def test_epsilon_outside_its_range_is_refused(text):
    with pytest.raises(BadArgument):
        epsilon_from(text, "f(epsilon => 1)")


@pytest.mark.parametrize(("text", "shown"), [("1000", "1000"), ("0.50", "0.5"), ("1e-12", "0.000000000001"), ("1E2", "100")])
def test_epsilon_is_exact(text, shown):
    assert plain(epsilon_from(text, "")) == shown


@pytest.mark.parametrize("text", ["1", "-1e-9", "nan", "2", "x"])
def test_delta_outside_its_range_is_refused(text):
    with pytest.raises(BadArgument):
        delta_from(text)


def test_delta_may_be_nothing_or_tiny():
    assert delta_from("0") == 0
    assert delta_from("1e-40") == Decimal("1e-40")


def test_losses_are_shown_rounded_up_and_what_is_left_rounded_down():
    assert (rounded_up(Decimal("0.1234561")), rounded_down(Decimal("0.1234569"))) == ("0.123457", "0.123456")
    assert rounded_down(Decimal("-0.5")) == "0"


def test_noise_must_fit_into_a_bigint():
    for noise in (DiscreteLaplace(Fraction(2**44)), RoundedGaussian(Fraction(2**88))):
        require_noise_fits(noise)
    for noise in (DiscreteLaplace(Fraction(2**44 + 1)), RoundedGaussian(Fraction(2**90))):
        with pytest.raises(BadArgument, match="bigint"):
            require_noise_fits(noise)
