"""Means and variances from noisy sums: what their intervals cover, at both kinds of noise, from nobody to many entries."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from dbext.mechanisms.error import half_width
from dbext.mechanisms.mixed_error import ErrorLaw, mixed_deviation, mixed_half_width
from dbext.mechanisms.moments import deviation, mean, mean_band, variance, variance_band
from dbext.mechanisms.sampling import draw
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from tests.chance import most

LOW, HIGH, TRIES = -20, 20, 1500
#: Intervals that hold in 95% of all cases miss 75 times in 1,500 tries, give or take 8.5.
TOO_MANY = most(TRIES, 0.05)
NOISES = [DiscreteLaplace(Fraction(6)), RoundedGaussian(Fraction(70)), RoundedGaussian(Fraction(2**22))]
PEOPLE = {
    0: [],
    1: [17],
    700: [19] * 700,
    5: [-20, -3, 0, 4, 20],
    40: list(range(-20, 20)),
    2000: random.Random(3).choices(range(-4, 10), k=2000),
}


def law(noise, copies=1, factor=1.0):
    return ErrorLaw(((noise, factor),) * copies)


def noisy(noise, copies, factor=1.0, tries=TRIES):
    drawn = draw(noise, tries * copies)
    return [factor * sum(drawn[n * copies : (n + 1) * copies]) for n in range(tries)]


def streams(noise, ages, powers, copies=2, tries=TRIES):
    """Noisy sums of powers, with noise in proportion to the largest power, as often as there are tries."""
    columns = []
    for power in powers:
        factor = float(HIGH**power)
        columns.append([sum(age**power for age in ages) + error for error in noisy(noise, copies, factor, tries)])
    return list(zip(*columns, strict=True)), [law(noise, copies, float(HIGH**power)) for power in powers]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("ages", PEOPLE.values(), ids=PEOPLE.keys())
def test_intervals_of_means_hold_for_every_number_of_entries(noise, ages):
    rows, laws = streams(noise, ages, (1, 0))
    band = mean_band(*laws, float(LOW), float(HIGH), 0.05)
    found = [mean(band, *row) for row in rows]
    assert all(LOW <= one.lower <= one.value <= one.upper <= HIGH for one in found)
    assert all(0 <= one.std_error <= HIGH - LOW for one in found)
    if ages:
        true = sum(ages) / len(ages)
        assert sum(not one.lower <= true <= one.upper for one in found) <= TOO_MANY


def test_intervals_of_means_are_not_needlessly_wide():
    """Of many entries the interval is that of the normal law (it misses 4.5%), and a scale of 0.8 would be seen: it misses 11%."""
    noise, ages, tries = RoundedGaussian(Fraction(70)), PEOPLE[2000] * 3, 4000
    rows, laws = streams(noise, ages, (1, 0), tries=tries)
    true = sum(ages) / len(ages)
    misses = {}
    for scale in (1, 0.8):
        shrunk = [ErrorLaw(tuple((one, weight * scale) for one, weight in law_.draws)) for law_ in laws]
        band = mean_band(*shrunk, float(LOW), float(HIGH), 0.05)
        misses[scale] = sum(not one.lower <= true <= one.upper for one in (mean(band, *row) for row in rows))
    assert 0.02 * tries < misses[1] <= most(tries, 0.05) < misses[0.8]


def test_the_naive_interval_fails_where_counts_are_small():
    """The deliberately wrong variant: estimate plus or minus two standard errors misses far more often than 1 in 20."""
    noise, ages = DiscreteLaplace(Fraction(6)), PEOPLE[5]
    rows, laws = streams(noise, ages, (1, 0))
    band = mean_band(*laws, float(LOW), float(HIGH), 0.05)
    found = [(row, mean(band, *row)) for row in rows]
    naive = sum(abs(row[0] / row[1] if row[1] else math.inf) > abs(sum(ages) / len(ages)) + 1.96 * one.std_error for row, one in found)
    assert naive > TOO_MANY
    assert sum(not one.lower <= 0.2 <= one.upper for _, one in found) <= TOO_MANY


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("ages", [PEOPLE[5], PEOPLE[40], PEOPLE[2000]], ids=[5, 40, 2000])
@pytest.mark.parametrize("sample", [False, True])
def test_intervals_of_variances_hold(noise, ages, sample):
    rows, laws = streams(noise, ages, (2, 1, 0))
    band = variance_band(*laws, (LOW, HIGH, 0, 0), 0.05, sample=sample)
    middle = sum(ages) / len(ages)
    true = sum((age - middle) ** 2 for age in ages) / (len(ages) - sample)
    found = [variance(band, *row) for row in rows]
    assert all(0 <= one.lower <= one.value <= one.upper <= band.largest for one in found)
    assert sum(not one.lower <= true <= one.upper for one in found) <= TOO_MANY
    roots = [deviation(band, *row) for row in rows]
    assert all(one.lower == pytest.approx(math.sqrt(other.lower)) for one, other in zip(roots, found, strict=True))
    assert sum(not one.lower <= math.sqrt(true) <= one.upper for one in roots) <= TOO_MANY


@pytest.mark.parametrize("sample", [False, True])
def test_without_noise_figures_are_exact(sample):
    silent = law(DiscreteLaplace(Fraction(1, 10**6)))
    ages = PEOPLE[40]
    total, squares, count = sum(ages), sum((age + 3) ** 2 for age in ages), len(ages)
    shifted = total - 5 * count  # the mean is counted from 5, squares from -3
    band = variance_band(silent, silent, silent, (LOW, HIGH, 5, -3), 0.05, sample=sample)
    true = sum((age - total / count) ** 2 for age in ages) / (count - sample)
    assert variance(band, squares, shifted, count).value == pytest.approx(true)
    assert deviation(band, squares, shifted, count).value == pytest.approx(math.sqrt(true))
    one = mean(mean_band(silent, silent, LOW - 5.0, HIGH - 5.0, 0.05), shifted, count)
    assert one.value == pytest.approx(total / count - 5)


def test_standard_errors_are_those_of_the_first_order():
    """Exactly, from the derivatives by each sum; and as drawn: the spread of 1,500 estimates deviates by 1.8% of itself."""
    noise, ages = RoundedGaussian(Fraction(70)), PEOPLE[2000] * 3
    rows, laws = streams(noise, ages, (2, 1, 0))
    band = variance_band(*laws, (LOW, HIGH, 0, 0), 0.05, sample=False)
    number, middle, square = len(ages), sum(ages) / len(ages), sum(age**2 for age in ages) / len(ages)
    slopes = [1 / number, -2 * middle / number, (2 * middle**2 - square) / number]
    right = math.sqrt(sum(slope**2 * one.variance for slope, one in zip(slopes, laws, strict=True)))
    assert variance(band, square * number, middle * number, number).std_error == pytest.approx(right)
    found = [variance(band, *row) for row in rows]
    spread = math.sqrt(sum((one.value - square + middle**2) ** 2 for one in found) / TRIES)
    assert 0.85 < spread / right < 1.15


@pytest.mark.parametrize("noise", NOISES[:2], ids=repr)
@pytest.mark.parametrize("miss", [0.05, 0.01])
def test_half_widths_of_mixtures_hold_and_agree_with_those_of_one_stream(noise, miss):
    one, other = law(noise, 3), law(noise, 1, 5.0)
    mix = ((1.0, one), (-0.37, other))
    width = mixed_half_width(mix, miss)
    errors = [a - 0.37 * b for a, b in zip(noisy(noise, 3), noisy(noise, 1, 5.0), strict=True)]
    assert sum(abs(error) > width for error in errors) <= most(TRIES, miss)
    assert width >= half_width([(noise, 1.0)] * 3 + [(noise, -0.37 * 5.0)], miss) * 0.97
    assert mixed_deviation(mix) == pytest.approx(math.sqrt(one.variance + 0.37**2 * other.variance))


def test_kinds_of_noise_may_mix():
    """A sum of Laplace and Gaussian noise: Chernoff's bound covers both."""
    laplace, gaussian = law(DiscreteLaplace(Fraction(4))), law(RoundedGaussian(Fraction(90)))
    width = mixed_half_width(((1.0, laplace), (2.0, gaussian)), 0.05)
    errors = [a + 2 * b for a, b in zip(noisy(DiscreteLaplace(Fraction(4)), 1), noisy(RoundedGaussian(Fraction(90)), 1), strict=True)]
    assert sum(abs(error) > width for error in errors) <= TOO_MANY
    assert width < 3 * math.sqrt(laplace.variance + 4 * gaussian.variance)


def test_no_noise_has_no_width():
    assert mixed_half_width(((0.0, law(DiscreteLaplace(Fraction(4)))),), 0.05) == 0
