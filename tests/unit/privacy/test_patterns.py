from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import MonthGrid, RegularGrid, first_of_month, grid_from_json
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pattern import Several, SignedBlocks, Single, Tree, Windows, pattern_from_json

MONDAY = date(2000, 1, 3)
grids = st.one_of(
    st.builds(RegularGrid, st.integers(-50, 50), st.integers(1, 9)),
    st.builds(MonthGrid, st.integers(-40, 300), st.sampled_from([1, 2, 3, 12])),
)


@st.composite
def patterns(draw, *, endless: bool | None = None):
    kind = draw(st.sampled_from(["windows"] if endless else ["single", "windows", "tree", "signed"]))
    count = None if endless else draw(st.integers(1, 20))
    if kind == "single":
        start = draw(st.one_of(st.none(), st.integers(-20, 20)))
        return Single(start, draw(st.integers(1, 9)) + (start or 0))
    if kind == "tree":
        return Tree(draw(grids), count)
    if kind == "signed":
        return SignedBlocks(draw(grids), count, draw(st.integers(2, 5)), draw(st.integers(1, 3)))
    width = draw(st.integers(1, 40))
    ticks, steps = (width, None) if draw(st.booleans()) else (None, width)
    return Windows(draw(grids), ticks, steps, draw(st.integers(0, 3)), count, draw(st.integers(0, 3)), draw(st.integers(1, 3)))


def test_months_begin_where_the_calendar_says():
    for month in range(-1999 * 12, 7999 * 12, 5):
        assert MONDAY + timedelta(days=first_of_month(month)) == date(2000 + month // 12, month % 12 + 1, 1)


def test_the_calendar_repeats_after_four_centuries():
    grid = MonthGrid(first_month=-7, months=5)
    ticks, steps = grid.cycle
    assert ticks % 7 == 0
    assert all(grid.end(period + steps) == grid.end(period) + ticks for period in range(-5, 1000, 13))


@given(grids, st.integers(-3000, 3000))
def test_last_end_is_the_last_boundary_not_after_a_tick(grid, tick):
    period = grid.last_end(tick)
    assert grid.end(period) <= tick < grid.end(period + 1)


@given(grids, st.integers(-30, 30), st.integers(1, 5))
def test_coarser_grids_keep_every_nth_boundary(grid, period, every):
    assert grid.coarser(every).end(period) == grid.end(period * every)
    assert all(grid.end(one) - grid.end(one - 1) <= grid.longest_step for one in range(-5, 40))


@given(patterns(), st.integers(-120, 400), st.integers(1, 200))
def test_filters_between_are_those_that_hold_a_tick_in_between(pattern, since, ticks):
    until = since + ticks
    expected = [(a, b) for a, b in pattern.filters() if b > since and (a is None or a < until)]
    assert list(pattern.filters(since, until)) == expected


@given(patterns(endless=True), st.integers(-120, 400), st.integers(1, 100))
def test_endless_patterns_are_long_finite_ones(pattern, since, ticks):
    long = Windows(pattern.grid, pattern.width_ticks, pattern.width_steps, pattern.age, 800, pattern.lead, pattern.every)
    assert list(pattern.filters(since, since + ticks)) == list(long.filters(since, since + ticks))
    assert pattern.span() == (long.span()[0], None)
    assert all(b - a <= pattern.longest for a, b in pattern.filters(since, since + ticks))


def test_an_endless_pattern_has_no_last_filter():
    with pytest.raises(BadArgument):
        list(Windows(RegularGrid(0, 1), width_ticks=3).filters())


@given(patterns())
def test_spans_cover_all_filters(pattern):
    found = list(pattern.filters())
    start, end = pattern.span()
    assert end == max(b for _, b in found)
    assert start == (None if any(a is None for a, _ in found) else min(a for a, _ in found))


@given(st.lists(patterns(), min_size=1, max_size=3))
def test_several_patterns_are_the_filters_of_all(parts):
    together = Several(tuple(parts))
    assert list(together.filters()) == [f for part in parts for f in part.filters()]
    assert together.is_finite


def test_a_tree_holds_lowbit_periods_per_node():
    assert list(Tree(RegularGrid(10, 2), 6).filters()) == [(10, 12), (10, 14), (14, 16), (10, 18), (18, 20), (18, 22)]


def test_what_has_left_by_a_period():
    daily = RegularGrid(0, 1)
    assert list(Windows(daily, width_steps=1, lead=2).through(2).filters()) == [(-2, -1), (-1, 0), (0, 1), (1, 2)]
    assert list(Windows(daily.coarser(3), width_steps=1, lead=1, every=3).through(2).filters()) == [(-3, 0)]
    assert list(Windows(daily.coarser(3), width_steps=1, every=3).through(7).filters()) == [(0, 3), (3, 6)]
    assert Tree(daily, 9).through(5) == Tree(daily, 5)
    assert Tree(daily, 9).through(50) == Tree(daily, 9)
    assert Several((Single(None, 0), Tree(daily, 9))).through(1) == Several((Single(None, 0), Tree(daily, 1)))


@given(
    st.one_of(patterns(), patterns(endless=True)),
    st.sampled_from([DiscreteLaplace(Fraction(7, 3)), RoundedGaussian(Fraction(10**20, 7))]),
    st.sampled_from(list(Measure)),
    st.booleans(),
    st.sampled_from([None, (1, 4)]),
)
def test_json_round_trip(pattern, noise, measure, grouped, types):
    charge = Charge(pattern, noise, measure, grouped, types)
    assert charge_from_json(charge.to_json()) == charge
    assert pattern_from_json(Several((pattern, pattern)).to_json()) == Several((pattern, pattern))


@pytest.mark.parametrize("read", [grid_from_json, pattern_from_json])
def test_unknown_tags_are_refused(read):
    with pytest.raises(BadArgument):
        read({"kind": "spiral"})


def test_charges_written_before_a_field_existed_are_still_read():
    grid = {"kind": "regular", "origin": 0, "step": 1}
    old = {"kind": "windows", "grid": grid, "width_ticks": 3, "width_steps": None, "age": 0, "count": None, "lead": 0}
    assert pattern_from_json(old) == Windows(RegularGrid(0, 1), width_ticks=3)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Single(3, 3),
        lambda: Windows(RegularGrid(0, 1)),
        lambda: Windows(RegularGrid(0, 1), 3, 3),
        lambda: Windows(RegularGrid(0, 1), 3, age=-1),
        lambda: Tree(RegularGrid(0, 1), 0),
        lambda: RegularGrid(0, 0),
        lambda: MonthGrid(0, 0),
        lambda: Several((Single(0, 1), Windows(RegularGrid(0, 1), 3))),
        lambda: Constraint(max_mutations=0),
        lambda: Constraint(active_within=-1),
    ],
)
def test_impossible_values_are_refused(build):
    with pytest.raises(BadArgument):
        build()


def test_the_loosest_of_two_constraints():
    assert Constraint(3, 7).loosest(Constraint(5, 2)) == Constraint(5, 7)
    assert Constraint(3, 7).loosest(Constraint(None, 2)) == Constraint(None, 7)
