"""What an entry adds to a sum: sensitivities against every admissible life on a short axis, its values at and between their bounds."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from dbext.errors import BadArgument
from dbext.mechanisms.joint_bounds import joint_bounds
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.calibrate import noise_for
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import COUNT, Measure, Sensitivity, Values, sensitivity, values_from_json
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pattern import Single, Windows
from dbext.privacy.pico import PICOS
from tests.unit.privacy.entries import effect, norms, paths
from tests.unit.privacy.test_joint import row_norm_squared

DAILY = RegularGrid(0, 1)
BOUNDS = [Values(0, 3), Values(2, 5), Values(-4, -1), Values(-2, 3), Values(-3, 3)]
LIMITS = [Constraint(1), Constraint(2), Constraint(3), Constraint(4), Constraint(None, 0), Constraint(None, 2), Constraint(3, 2)]


def worths(values):
    """Both bounds and one value between them."""
    return sorted({values.low, values.high, (values.low + values.high) // 2})


@cache
def lives(constraint, cells, values, last=4):
    return [path for path in paths(-1, last, constraint, cells, worths(values)) if path]


def test_a_range_holds_zero():
    """A value of 18 to 90 that appears adds up to 90, not 72; the deliberately wrong range is exceeded by an insertion."""
    assert Values(18, 90).swing == Values(18, 90).magnitude == 90
    assert (Values(-5, 90).swing, Values(-5, 90).magnitude) == (95, 90)
    assert (Values(-7, -3).swing, Values(-7, -3).magnitude) == (7, 7)
    largest = max(norms(path, Measure.NET, [(0, 4)])[0] for path in lives(Constraint(2), 1, Values(2, 5)))
    assert largest == Values(2, 5).swing > 5 - 2


@pytest.mark.parametrize("bounds", [(3, 2), (0, 0)])
def test_bounds_without_a_range_are_refused(bounds):
    with pytest.raises(BadArgument):
        Values(*bounds)


def test_a_count_is_a_sum_of_ones():
    assert COUNT == Values(0, 1) == values_from_json(None)
    assert sensitivity(Measure.NET, True, 3, Constraint(4)) == Sensitivity(2, 2)
    assert sensitivity(Measure.NET, True, 3, Constraint(4), Values(-3, 3)) == Sensitivity(6, 36)
    assert sensitivity(Measure.NET, True, 3, Constraint(4), Values(0, 3)) == Sensitivity(6, 18)


@pytest.mark.parametrize("values", BOUNDS, ids=str)
@pytest.mark.parametrize("measure", list(Measure))
@pytest.mark.parametrize("grouped", [False, True])
def test_one_filter_moves_exactly_as_far_as_stated(values, measure, grouped):
    """No life moves a filter further, and one moves it as far; with two slots the second is a departure, so that nothing is exchanged."""
    window = (None, 4) if measure is Measure.STATE else (1, 4)
    for constraint in LIMITS:
        stated = sensitivity(measure, grouped, None if window[0] is None else 3, constraint, values)
        moved = [norms(path, measure, [window]) for path in lives(constraint, 2 if grouped else 1, values)]
        most = max(l1 for l1, _ in moved), max(square for _, square in moved)
        assert most[0] <= stated.l1
        assert most[1] <= stated.l2_squared
        if constraint.max_mutations != 2 and measure is not Measure.LEFT:
            assert most == (stated.l1, stated.l2_squared), constraint


PATTERNS = [Windows(DAILY, width_steps=1, count=4), Windows(DAILY, width_steps=2, count=4), Single(None, 2)]


@pytest.mark.parametrize("values", BOUNDS, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("measure", [Measure.NET, Measure.ENTERED])
def test_no_life_costs_more_than_charged(values, pattern, grouped, measure):
    """Under both kinds of noise; the pure price without groups is attained where a life has time for it."""
    filters = list(pattern.filters())
    if measure is Measure.ENTERED and filters[0][0] is None:
        return  # events since the beginning have their own test
    for constraint in LIMITS:
        types = [EntryType(1, "any", constraint)]
        laplace = worst_case_loss([Charge(pattern, DiscreteLaplace(1), measure, grouped, values=values)], types, pure=True)[1] / PICOS
        gaussian = worst_case_loss([Charge(pattern, RoundedGaussian(1), measure, grouped, values=values)], types, pure=False)[1] / PICOS
        moved = [norms(path, measure, filters) for path in lives(constraint, 2 if grouped else 1, values)]
        assert max(l1 for l1, _ in moved) <= laplace
        assert max(square for _, square in moved) / 2 <= gaussian
        if measure is Measure.NET and not grouped and constraint.max_mutations in (1, 2) and constraint.active_within is None:
            assert max(l1 for l1, _ in moved) >= laplace / 2


def test_a_value_that_changes_sign_changes_three_times_and_is_gone():
    """Three slots: 0, 3, -2, 0. A count could only change twice; the shortcut for odd limits must not be taken."""
    daily, types = Windows(DAILY, width_steps=1, count=4), [EntryType(1, "any", Constraint(3))]
    costs = {
        values: worst_case_loss([Charge(daily, DiscreteLaplace(1), Measure.NET, values=values)], types, pure=True)[1] / PICOS
        for values in (COUNT, Values(0, 3), Values(-2, 3))
    }
    assert costs == {COUNT: 2, Values(0, 3): 6, Values(-2, 3): 11}
    most = max(norms(path, Measure.NET, list(daily.filters()))[0] for path in lives(Constraint(3), 1, Values(-2, 3)))
    assert most == 3 + 5 + 2


MECHANISMS = [SquareRoot(DAILY, 5), SquareRoot(DAILY, 5, baseline=True), WeightedSquareRoot(DAILY, 5), SlidingRoot(DAILY, 2, count=5)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("values", [Values(1, 3), Values(-2, 3)], ids=str)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("measure", [Measure.NET, Measure.ENTERED])
def test_no_life_moves_noised_rows_further_than_charged(mechanism, values, grouped, measure):
    if measure is Measure.ENTERED and getattr(mechanism, "baseline", False):
        return  # events have no baseline
    (pattern,) = mechanism.patterns()
    for constraint in (Constraint(1), Constraint(2), Constraint(3), Constraint(3, 2)):
        bounds = joint_bounds(mechanism, measure, grouped, [constraint])
        charge = Charge(pattern, RoundedGaussian(Fraction(10**9)), measure, grouped, joint=bounds, values=values)
        charged = 2 * 10**9 * Fraction(worst_case_loss([charge], [EntryType(1, "any", constraint)], pure=False)[1], PICOS)
        ends = sorted({values.low, values.high})
        moved = max(row_norm_squared(mechanism, path, measure) for path in paths(0, 5, constraint, 2 if grouped else 1, ends))
        assert moved <= charged
        if constraint == Constraint(1) and isinstance(mechanism, SquareRoot) and measure is Measure.NET:
            exact, least = charged * values.magnitude**2, 1 if type(mechanism) is SquareRoot else 1 - Fraction(1, 10**6)
            assert least * exact <= moved * values.swing**2 <= exact, "columns of weighted rows have norms just below one bound"


def test_calibrated_noise_grows_with_the_values():
    types, week = [EntryType(1, "any", Constraint(2))], Windows(DAILY, width_steps=1, count=7)
    one, ninety = (
        noise_for([week], Measure.NET, False, types, PICOS, True, DiscreteLaplace, values=values).scale
        for values in (COUNT, Values(18, 90))
    )
    assert ninety == 90 * one


def test_json_round_trip():
    charge = Charge(Single(0, 3), RoundedGaussian(1), Measure.NET, values=Values(-2, 7))
    assert charge_from_json(charge.to_json()) == charge
    old = {key: value for key, value in charge.to_json().items() if key != "values"}
    assert charge_from_json(old).values == COUNT


def test_a_moved_value_leaves_one_cell_and_enters_another():
    path = {1: "cell 0 2", 3: "cell 1 5"}
    assert effect(path, Measure.NET, 2, 4) == {"cell 0": -2, "cell 1": 5}
