"""Hierarchical releases over declared levels: what they draw, what they answer, and what that costs, against enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product

import pytest

from dbext.errors import BadArgument, HorizonReached
from dbext.mechanisms.levelled import LevelledSums, course, ranges_that_matter
from dbext.mechanisms.ranges import combination, range_boundaries
from dbext.mechanisms.registry import mechanism_from_json
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian, scaled
from dbext.privacy.pattern import Blocks, Several, pattern_from_json
from dbext.privacy.pico import PICOS
from tests.unit.privacy.entries import norms, paths

DAYS = RegularGrid(3, 1)
ONE = Fraction(1)


def levelled(*lengths, steps=1, count=None, factors=None, baseline=False, grid=DAYS):
    first = grid.end(0 if steps is None else 1 - steps)
    levels = tuple(RegularGrid(-(-first // length) * length, length) for length in lengths)
    return LevelledSums(grid, levels, steps, factors or (ONE,) * (len(lengths) + baseline), baseline, 0, count)


CALENDAR = LevelledSums(
    RegularGrid(-2, 1), (RegularGrid(-2, 1), RegularGrid(0, 7), MonthGrid(0, 1), MonthGrid(0, 12)), None, (ONE,) * 4, False, 0, 800
)
MONTHLY = LevelledSums(MonthGrid(2, 1), (MonthGrid(-3, 1), MonthGrid(0, 3), MonthGrid(0, 12)), 6, (ONE,) * 3, False, 0, None)
MECHANISMS = {
    "days": levelled(1, 7, 28),
    "sliding": levelled(1, 7, 28, steps=30),
    "totals": levelled(1, 4, 16, steps=None, count=90),
    "state": levelled(1, 4, 16, steps=None, count=90, baseline=True),
    "not nested": levelled(1, 4, 6, steps=9, factors=(ONE, Fraction(1, 2), Fraction(1, 3))),
    "pairs": levelled(2, 8, steps=3, grid=RegularGrid(2, 2)),
    "calendar": CALENDAR,
    "months": MONTHLY,
}


@pytest.mark.parametrize("widths", [(1, 1, 1, 1), (1, 2, 4, 8), (3, 1, 2, 1), (8, 4, 2, 1), (1, 16, 3, 2)])
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_a_course_counts_the_blocks_of_covers(mechanism, widths):
    weighted = replace(mechanism, factors=(*map(Fraction, widths[: len(mechanism.levels)]), *mechanism.factors[len(mechanism.levels) :]))
    weights = [float(factor) ** 2 for factor in weighted.factors[: len(mechanism.levels)]]
    for start, ends in [(0, [1, 2, 13, 40, 66]), (5, [6, 30, 75])]:
        counts = [0] * len(mechanism.levels)
        for level, _ in (block for end in ends for block in weighted.cover(start, end)):
            counts[level] += 1
        assert course(weighted, start, max(ends)).uses(weights, ends) == counts


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_every_answer_is_a_cover_of_its_window_by_nodes_drawn_before(mechanism):
    known = {}
    for period in range(1, 80):
        for node in mechanism.nodes(period):
            assert node.number not in known, "a node is drawn once"
            assert node.end <= mechanism.grid.end(period), "a node is drawn when it is over"
            known[node.number] = node
        blocks = sorted((known[number] for number, _ in mechanism.answer(period)), key=lambda node: node.end)
        start, end = mechanism.window(period)
        assert (blocks[0].start, blocks[-1].end) == (start, end)
        assert all(before.end == after.start for before, after in pairwise(blocks))


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_charges_hold_exactly_what_is_drawn(mechanism):
    drawn = [(node.start, node.end) for period in range(1, 80) for node in mechanism.nodes(period)]
    last = mechanism.grid.end(79)
    for patterns in (
        mechanism.patterns(),
        replace(mechanism, factors=tuple(Fraction(n + 1) for n in range(len(mechanism.factors)))).patterns(),
    ):
        spent = [one for pattern in patterns for one in pattern.through(79).filters()]
        assert sorted(spent, key=str) == sorted(drawn, key=str)
        lifetime = [one for pattern in patterns for one in pattern.filters(None, last) if one[1] <= last]
        assert sorted(lifetime, key=str) == sorted(drawn, key=str)


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_covers_have_the_least_noise(mechanism):
    weight = [float(factor) ** 2 for factor in mechanism.factors]
    for start, end in [(10, 31), (11, 30), (13, 60), (0, 45)]:
        blocks = [
            (level, grid.end(index - 1), grid.end(index))
            for level, grid in enumerate(mechanism.levels)
            for index in range(1, 400)
            if mechanism.grid.end(start) <= grid.end(index - 1) and grid.end(index) <= mechanism.grid.end(end)
        ]
        lightest = {mechanism.grid.end(start): 0.0}
        for level, left, right in sorted(blocks, key=lambda one: (one[2], one[1])):
            if left in lightest:
                lightest[right] = min(lightest.get(right, 1e9), lightest[left] + weight[level])
        assert sum(weight[level] for level, _ in mechanism.cover(start, end)) == pytest.approx(lightest[mechanism.grid.end(end)])


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_every_range_between_periods_is_answered_no_worse_than_by_its_cover(mechanism):
    def variance(number):
        return float(mechanism.factor(number)) ** 2

    for end in (mechanism.grid.end(period) for period in range(1, 80)):
        assert end in range_boundaries(mechanism, 79, end)
    for start, end in [(3, 4), (3, 45), (20, 79), (1, 79), (33, 47)]:
        weights = combination(mechanism, 79, variance, mechanism.grid.end(start), mechanism.grid.end(end))
        cover = sum(variance(level) for level, _ in mechanism.cover(start, end)) if not mechanism.baseline else None
        best = sum(weight * weight * variance(number) for number, weight in weights)
        assert cover is None or best <= cover + 1e-9


def test_mechanisms_survive_storage():
    for mechanism in MECHANISMS.values():
        assert mechanism_from_json(mechanism.to_json()) == mechanism
        for pattern in mechanism.patterns():
            assert pattern_from_json(pattern.to_json()) == pattern


def test_the_horizon_holds_and_a_hierarchy_needs_levels():
    with pytest.raises(HorizonReached):
        MECHANISMS["totals"].answer(91)
    with pytest.raises(BadArgument):
        levelled(1, 7, factors=(ONE,))
    with pytest.raises(BadArgument):
        levelled(1, factors=(Fraction(0),))


def loss(mechanism, constraint, *, pure=True, measure=Measure.NET, noise=None):
    noise = noise or (DiscreteLaplace(ONE) if pure else RoundedGaussian(Fraction(1, 2)))
    charges = [
        Charge(pattern, scaled(noise, factor), measure)
        for pattern, factor in zip(mechanism.patterns(), mechanism.pattern_factors(), strict=True)
    ]
    return worst_case_loss(charges, [EntryType(1, "any", constraint)], pure)[1] / PICOS


LIMITS = [Constraint(k, w) for k, w in product((None, 1, 2, 4, 6), (None, 0, 1, 3, 6, 8)) if (k, w) != (None, None)]


def touched_by_enumeration(filters, constraint, span, weights):
    """Return the most that the touched filters weigh, over all sets of mutation ticks that a constraint allows."""
    ticks = range(span[0] + 1, span[1] + 1)
    if constraint.max_mutations is None:
        windows = [range(first, first + constraint.active_within + 1) for first in range(span[0] - 9, span[1] + 1)]
        return max(sum(w for (a, b), w in zip(filters, weights, strict=True) if any(a < t <= b for t in one)) for one in windows)
    best = 0
    for count in range(1, constraint.max_mutations + 1):
        for points in combinations(ticks, count):
            if constraint.active_within is None or points[-1] - points[0] <= constraint.active_within:
                best = max(best, sum(w for (a, b), w in zip(filters, weights, strict=True) if any(a < t <= b for t in points)))
    return best


@pytest.mark.parametrize("lengths", [(1, 2, 4), (1, 3), (1, 2, 3), (2, 4)])
@pytest.mark.parametrize("factors", [None, "unequal"])
def test_the_loss_is_that_of_enumeration_under_every_constraint(lengths, factors):
    """Entries that move a predicate at will: `net` over all levels, where each touched block costs its level's price."""
    grid = RegularGrid(0, lengths[0])
    widths = None if factors is None else tuple(Fraction(1, n + 1) for n in range(len(lengths)))
    mechanism = levelled(*lengths, count=12 // lengths[0], factors=widths, grid=grid)
    filters, weights = [], []
    for level, length in enumerate(lengths):
        filters += [(start, start + length) for start in range(0, 12 - length + 1, length)]
        weights += [float(1 / mechanism.factors[level])] * (12 // length)
    for constraint in LIMITS:
        touched = touched_by_enumeration(filters, constraint, (0, 12), weights)
        stated = loss(mechanism, constraint)
        k = constraint.max_mutations
        if k is not None and k > 1 and k % 2:
            assert stated <= touched
        else:
            assert stated == pytest.approx(touched), constraint


@pytest.mark.parametrize("measure", list(Measure)[1:])
@pytest.mark.parametrize("factors", [None, (ONE, Fraction(1, 2))])
def test_no_entry_loses_more_than_is_stated(measure, factors):
    mechanism = levelled(1, 2, count=4, factors=factors, grid=RegularGrid(0, 1))
    nodes = [node for period in range(1, 5) for node in mechanism.nodes(period)]
    for constraint in (
        Constraint(1),
        Constraint(2),
        Constraint(3),
        Constraint(4),
        Constraint(None, 1),
        Constraint(None, 2),
        Constraint(3, 1),
    ):
        worst = 0.0
        for path in paths(0, 5, constraint, 1):
            worst = max(worst, sum(norms(path, measure, [(n.start, n.end)])[0] / float(mechanism.factor(n.number)) for n in nodes))
        assert loss(mechanism, constraint, measure=measure) >= worst - 1e-9


@pytest.mark.parametrize("k", [1, 2, 4, 6, 10])
def test_at_most_k_mutations_touch_k_blocks_of_each_level(k):
    """Sum over levels of min(k, number of blocks), in epsilon and in rho; for even k (an odd one is priced as one less)."""
    mechanism = levelled(1, 4, 16, count=32, grid=RegularGrid(0, 1))
    blocks = (32, 8, 2)
    assert loss(mechanism, Constraint(k)) == sum(min(k, n) for n in blocks)
    assert loss(mechanism, Constraint(k), pure=False) == sum(min(k, n) for n in blocks)


@pytest.mark.parametrize("w", [1, 2, 3, 4, 5, 8, 15, 16, 17, 31])
def test_a_time_bound_touches_the_blocks_its_ticks_can_meet(w):
    """Sum over levels of ceil(w / length) + 1: exact when the release goes on beyond a boundary of all levels."""
    endless = levelled(1, 4, 16, grid=RegularGrid(0, 1))
    assert loss(endless, Constraint(None, w)) == sum(-(-w // length) + 1 for length in (1, 4, 16))
    short = levelled(1, 4, 16, count=16, grid=RegularGrid(0, 1))
    assert loss(short, Constraint(None, w)) <= sum(min(16 // length, -(-w // length) + 1) for length in (1, 4, 16))


def test_irregular_levels_cost_their_worst_window():
    """Days and calendar months, endless: 29 ticks meet two months only, 30 can meet three (February)."""
    days, months = RegularGrid(0, 1), MonthGrid(0, 1)
    mechanism = LevelledSums(RegularGrid(-2, 1), (days, months), 1, (ONE, ONE))
    for w, met in [(0, 1), (1, 2), (27, 2), (28, 2), (29, 3), (31, 3), (60, 4)]:
        assert loss(mechanism, Constraint(None, w)) == w + 1 + met, w
    assert loss(mechanism, Constraint(4)) == 8


def test_types_are_priced_apart():
    mechanism = levelled(1, 7, grid=RegularGrid(0, 1))
    charges = [Charge(pattern, DiscreteLaplace(ONE), Measure.NET) for pattern in mechanism.patterns()]
    types = [EntryType(1, "tickets", Constraint(12)), EntryType(2, "passes", Constraint(None, 31)), EntryType(3, "both", Constraint(4, 31))]
    losses = worst_case_loss(charges, types, pure=True)
    assert {number: value // PICOS for number, value in losses.items()} == {1: 24, 2: 32 + 6, 3: 8}


def test_blocks_before_the_horizon_only():
    blocks = Blocks(RegularGrid(0, 7), RegularGrid(3, 1), 20)
    assert list(blocks.filters()) == [(0, 7), (7, 14), (14, 21)]
    assert list(blocks.through(4).filters()) == [(0, 7)]
    assert list(blocks.through(3).filters()) == []
    assert list(replace(blocks, count=None).filters(None, 8)) == [(0, 7), (7, 14)]
    assert list(Several((blocks.through(3), Blocks(RegularGrid(3, 1), RegularGrid(3, 1), 3))).filters()) == [(3, 4), (4, 5), (5, 6)]


def test_ranges_that_matter_lie_where_something_is_published():
    for mechanism in (MECHANISMS["totals"], replace(MECHANISMS["totals"], ranges=(5, 90)), replace(MECHANISMS["days"], ranges=(7, 365))):
        found = ranges_that_matter(mechanism)
        assert len(found) > 40
        assert all(0 <= start < end for start, end in found)
        assert mechanism.count is None or max(end for _, end in found) <= mechanism.count
