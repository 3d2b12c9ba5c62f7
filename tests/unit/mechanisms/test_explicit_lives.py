"""Explicit lives against the accountant: never above its figure, at it where it is exact, and above it as soon as noise is missing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dbext.mechanisms.explicit_lives import Noised, largest_loss, patterns
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pattern import Tree, Windows
from dbext.privacy.pico import PICOS

GRID = RegularGrid(0, 1)
DAYS = 8
SHAPES = {
    "disjoint": Windows(GRID, width_steps=1, count=DAYS),
    "sliding": Windows(GRID, width_steps=3, count=DAYS),
    "tree": Tree(GRID, DAYS),
}
LIMITS = [Constraint(1), Constraint(2), Constraint(3), Constraint(4), Constraint(None, 2), Constraint(3, 2)]


def noised(pattern, noise, measure, grouped, ticks):
    ranges = list(pattern.filters())
    columns = np.array([[start < tick <= end for start, end in ranges] for tick in ticks], float)
    return Noised(columns, noise, measure, grouped)


def figures(pattern, noise, measure, grouped, limits, less=1):
    """Return the largest loss found with a share of the noise, and what the accountant says, both in its unit."""
    pure = isinstance(noise, DiscreteLaplace)
    charge = Charge(pattern, noise, measure, grouped)
    (said,) = worst_case_loss([charge], [EntryType(1, "any", limits)], pure).values()
    smaller = DiscreteLaplace(noise.scale / less) if pure else RoundedGaussian(noise.sigma_squared / less**2)
    ticks = range(-1, DAYS + 1)
    return largest_loss([noised(pattern, smaller, measure, grouped, ticks)], ticks, limits, pure=pure), said / PICOS


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("measure", [Measure.NET, Measure.ENTERED, Measure.LEFT])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_life_loses_more_than_the_accountant_says(shape, measure, grouped, limits):
    for noise in (DiscreteLaplace(Fraction(3)), RoundedGaussian(Fraction(9))):
        found, said = figures(SHAPES[shape], noise, measure, grouped, limits)
        assert 0 <= found <= said * (1 + 1e-9)


@pytest.mark.parametrize("measure", [Measure.NET, Measure.ENTERED])
@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(3)), RoundedGaussian(Fraction(9))], ids=str)
@pytest.mark.parametrize("limits", LIMITS[:2], ids=str)
def test_the_worst_life_is_found_where_the_accountant_is_exact(noise, limits, measure):
    found, said = figures(SHAPES["disjoint"], noise, measure, False, limits)
    assert found == pytest.approx(said, rel=1e-9)


def test_missing_noise_is_noticed():
    found, said = figures(SHAPES["tree"], DiscreteLaplace(Fraction(3)), Measure.NET, False, Constraint(2), less=2)
    assert found > said


def test_a_last_slot_is_for_leaving():
    assert patterns(1, Constraint(1)) == [(0,)]
    assert {life[-1] for life in patterns(3, Constraint(3))} == {None}
    assert (0, 1, 2) in patterns(3, Constraint(4))
