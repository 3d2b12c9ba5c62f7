"""Tests of stored noise: honest noise passes at any size, and every way of being wrong is seen."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dbext.mechanisms.sampling import draw
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.noise_tests import correlation, law, signs, spread
from tests.chance import ALARM, most

LAWS = [
    DiscreteLaplace(Fraction(1, 3)), DiscreteLaplace(Fraction(7, 2)), DiscreteLaplace(Fraction(900)),
    RoundedGaussian(Fraction(1, 4)), RoundedGaussian(Fraction(30)), RoundedGaussian(Fraction(10**9)),
]  # fmt: skip
LEVEL = math.log(ALARM)


def drawn(noise, nodes, cells):
    return np.array(draw(noise, nodes * cells), float).reshape(nodes, cells)


def everything(noise, draws):
    return [spread(noise, draws), signs(draws), correlation(draws, 0), correlation(draws, 1), law(noise, draws)]


@pytest.mark.parametrize("noise", LAWS, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (20, 5), (40, 100)])
def test_honest_noise_passes(noise, shape):
    assert all(one.log_chance >= LEVEL for one in everything(noise, drawn(noise, *shape)))


@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_the_bounds_are_bounds(noise):
    """At level 0.2 no test of honest noise fails more often than that, in 600 rounds."""
    rounds = drawn(noise, 600 * 6, 4).reshape(600, 6, 4)
    for number in range(5):
        failed = sum(everything(noise, one)[number].log_chance < math.log(0.2) for one in rounds)
        assert failed <= most(600, 0.2)


@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_the_expected_spread_is_the_law_s(noise):
    """The narrowest law varies most, being nearly always 0: the ratio deviates by 0.0098 in 360,000 draws of it."""
    assert spread(noise, drawn(noise, 600, 600)).figure == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("right", [DiscreteLaplace(Fraction(8)), RoundedGaussian(Fraction(64))], ids=str)
@pytest.mark.parametrize("factor", [Fraction(1, 4), Fraction(4)])
def test_another_scale_is_seen(right, factor):
    wrong = DiscreteLaplace(right.scale * factor) if isinstance(right, DiscreteLaplace) else RoundedGaussian(right.sigma_squared * factor)
    assert spread(right, drawn(wrong, 100, 4)).log_chance < LEVEL


def test_a_bias_is_seen():
    noise = RoundedGaussian(Fraction(100))
    assert signs(drawn(noise, 400, 4) + 5).log_chance < LEVEL


@pytest.mark.parametrize("axis", [0, 1])
def test_noise_used_twice_is_seen(axis):
    noise = DiscreteLaplace(Fraction(5))
    draws = drawn(noise, 100, 100)
    twice = np.repeat(np.take(draws, range(50), axis=axis), 2, axis=axis)
    assert correlation(twice, axis).log_chance < LEVEL
    assert correlation(draws, axis).log_chance >= LEVEL


def test_another_law_of_the_same_variance_is_seen():
    laplace = DiscreteLaplace(Fraction(20))
    gaussian = RoundedGaussian(Fraction(laplace.variance))
    assert law(laplace, drawn(gaussian, 100, 80)).log_chance < LEVEL
    assert law(gaussian, drawn(laplace, 100, 80)).log_chance < LEVEL
