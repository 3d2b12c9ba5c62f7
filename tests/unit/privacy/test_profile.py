"""Sensitivity profiles as data: what they say for a constraint, and that they come back as they went."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument, UnboundedLoss
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.shared_windows import SharedWindows, shared_root
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot
from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.profile import Profile, cost_per_touch, lifetime, profile_from_json, reach

TABLE = Profile(stay=(100, 160, 210), leave=(0, 160, 160), rate=100)


def test_tables_go_on_at_their_rate_up_to_their_ceiling():
    assert [TABLE.after(changes) for changes in (0, 1, 3, 4, 10)] == [0, 100, 210, 400, 1000]
    assert TABLE.after(3, leaves=True) == 160
    assert Profile((100,), (0,), 100, ceiling=250).after(10) == 250


@pytest.mark.parametrize(("k", "norm"), [(1, 100), (2, 160), (3, 160), (4, 400)])
def test_the_last_slot_is_a_departure(k, norm):
    assert lifetime(TABLE, Measure.STATE, reach(Constraint(k), 50, 1, 1)) == norm


def test_reach_of_constraints():
    assert reach(Constraint(5, 10), None, 7, 7).touches == 3
    assert reach(Constraint(5, 10), None, 1, 1).touches == 5
    assert reach(Constraint(5), None, 1, 1).events == 2
    assert reach(Constraint(None, 4), None, 1, 1).events == 3
    assert reach(Constraint(), 4, 1, 3).events == 6
    assert reach(Constraint(9), None, 1, 1).events_in(3) == 2
    assert reach(Constraint(9), None, 4, 4).events_in(1) == 2


def test_a_touch_costs_the_worst_share():
    assert cost_per_touch(TABLE, Measure.STATE, reach(Constraint(3), None, 1, 1)) == 100
    rising = Profile((100, 260), (0, 260), 140)
    assert cost_per_touch(rising, Measure.NET, reach(Constraint(2), None, 1, 1)) == 130
    assert cost_per_touch(rising, Measure.NET, reach(Constraint(5), None, 1, 1)) == 140
    events = Profile((100, 350), (100, 350), 500)
    assert cost_per_touch(events, Measure.ENTERED, reach(Constraint(4), None, 1, 1)) == Fraction(350, 3)
    assert cost_per_touch(events, Measure.ENTERED, reach(Constraint(4), None, 3, 3)) == Fraction(350)
    assert cost_per_touch(events, Measure.ENTERED, reach(Constraint(), None, 1, 1)) == 500


@pytest.mark.parametrize("measure", [Measure.NET, Measure.ENTERED])
def test_what_nothing_limits_is_refused(measure):
    with pytest.raises(UnboundedLoss):
        lifetime(TABLE, measure, reach(Constraint(), None, 1, 1))
    with pytest.raises(BadArgument):
        Profile((), (), 1)


numbers = st.integers(0, 2**90)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5), numbers, st.none() | numbers, st.none() | st.integers(1, 99))
def test_profiles_come_back(pairs, rate, ceiling, span):
    profile = Profile(tuple(stay for stay, _ in pairs), tuple(leave for _, leave in pairs), rate, ceiling, span)
    assert profile_from_json(json.loads(json.dumps(profile.to_json()))) == profile


@pytest.mark.parametrize(
    "mechanism",
    [
        SquareRoot(RegularGrid(3, 7), 40, baseline=True),
        WeightedSquareRoot(MonthGrid(4, 1), 12),
        SlidingRoot(RegularGrid(3, 7), 4, age=2, count=9),
        SharedWindows(RegularGrid(3, 7), (2, 4), shared_root((2, 4)), age=1),
        SignedTree(RegularGrid(0, 1), 100, 12, 2, baseline=True),
    ],
)
def test_mechanisms_come_back(mechanism):
    again = mechanism_from_json(json.loads(json.dumps(mechanism.to_json())))
    assert again == mechanism
    assert type(again) is type(mechanism)


def test_a_sum_with_both_signs_keeps_no_slot_to_itself():
    """+high, low - high, -low: three changes that end in absence; only counts make them in pairs."""
    limits = reach(Constraint(3), 50, 1, 1)
    assert lifetime(TABLE, Measure.STATE, limits, two_sided=True) == TABLE.after(3)
    mechanism = SquareRoot(RegularGrid(0, 1), 6)
    columns = [[mechanism.coefficients[t - j] if t >= j else 0 for t in range(6)] for j in range(6)]
    profile, worst = mechanism.profile(Measure.NET, False, reach(Constraint(3), 6, 1, 1)), 0
    for a, b, c in itertools.combinations(range(6), 3):
        effect = [2 * x - 5 * y + 3 * z for x, y, z in zip(columns[a], columns[b], columns[c], strict=True)]
        worst = max(worst, sum(value**2 for value in effect))
    assert worst <= 25 * lifetime(profile, Measure.NET, reach(Constraint(3), 6, 1, 1), two_sided=True)
