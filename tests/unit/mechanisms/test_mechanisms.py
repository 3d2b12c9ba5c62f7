"""What every mechanism must keep: nodes drawn once and in time, answers that are exact sums, charges that name every draw."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument, HorizonReached
from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.disjoint import DisjointSums, disjoint_sums
from dbext.mechanisms.hierarchical import HierarchicalSums, best_levels, cover, hierarchical_sums, mean_blocks
from dbext.mechanisms.independent import IndependentWindows, OneWindow
from dbext.mechanisms.plain_sums import PlainSums
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.spread import spread
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace
from dbext.privacy.pattern import Windows, pattern_from_json
from dbext.privacy.pico import PICOS
from tests.unit.privacy.entries import norms, paths

DAYS, WEEKS, MONTHS = RegularGrid(0, 1), RegularGrid(3, 7), MonthGrid(180, 1)
MECHANISMS = {
    "one window": OneWindow(None, 9),
    "tumbling": IndependentWindows(Windows(WEEKS, width_steps=1, count=6)),
    "sliding": IndependentWindows(Windows(WEEKS, width_ticks=17, age=2)),
    "months": IndependentWindows(Windows(MONTHS, width_steps=2)),
    "short windows": IndependentWindows(Windows(WEEKS, width_ticks=3, count=9)),
    "blocks": DisjointSums(DAYS, 14),
    "blocks of months": DisjointSums(MONTHS, 3, count=12),
    "aged blocks": DisjointSums(WEEKS, 2, age=5, count=7),
    "refined blocks": DisjointSums(WEEKS, 1, 3),
    "refined finite blocks": DisjointSums(WEEKS, 2, 1, age=1, count=4),
    "hierarchy": HierarchicalSums(DAYS, 30, 5, 2),
    "aged hierarchy": HierarchicalSums(WEEKS, 12, 3, 3, age=4, count=23),
    "hierarchy of months": HierarchicalSums(MONTHS, 12, 3, 2),
    "plain sums": PlainSums(DAYS, 12),
    "plain sums with baseline": PlainSums(MONTHS, 7, baseline=True),
    "tree": BinaryTree(DAYS, 21),
    "tree with baseline": BinaryTree(WEEKS, 16, baseline=True),
    "tree of months": BinaryTree(MONTHS, 5, baseline=True),
}
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)


def periods(mechanism, most=40):
    return range(1, (mechanism.horizon or most) + 1)


@every_mechanism
def test_no_node_is_drawn_twice_and_none_before_it_is_over(name):
    mechanism = MECHANISMS[name]
    drawn = [node for period in periods(mechanism) for node in mechanism.nodes(period)]
    assert len({node.number for node in drawn}) == len(drawn)
    assert len({(node.start, node.end) for node in drawn}) == len(drawn)
    for period in periods(mechanism):
        assert all(node.end <= mechanism.window(period)[1] for node in mechanism.nodes(period))


@every_mechanism
def test_an_answer_is_the_exact_sum_over_its_window(name):
    """Every tick of the window once, no other tick: on counts that are all different."""
    mechanism, drawn = MECHANISMS[name], {}
    for period in periods(mechanism):
        drawn.update({node.number: node for node in mechanism.nodes(period)})
        start, end = mechanism.window(period)
        ticks = Counter()
        for number, coefficient in mechanism.answer(period):
            node = drawn[number]
            ticks.update(dict.fromkeys(range((-400 if node.start is None else node.start) + 1, node.end + 1), coefficient))
        assert +ticks == Counter(range((-400 if start is None else start) + 1, end + 1))


@every_mechanism
def test_charges_name_every_node_once(name):
    mechanism = MECHANISMS[name]
    drawn = Counter((node.start, node.end) for period in periods(mechanism) for node in mechanism.nodes(period))
    last = mechanism.window(periods(mechanism)[-1])[1]
    charged = Counter(f for pattern in mechanism.patterns() for f in pattern.filters(until=last) if f[1] <= last)
    assert charged == drawn


@every_mechanism
def test_the_part_that_has_left_is_what_was_drawn(name):
    mechanism = MECHANISMS[name]
    for period in periods(mechanism, 25):
        drawn = Counter((node.start, node.end) for one in range(1, period + 1) for node in mechanism.nodes(one))
        assert Counter(f for pattern in mechanism.patterns() for f in pattern.through(period).filters()) == drawn


@every_mechanism
def test_stored_and_read_again(name):
    mechanism = MECHANISMS[name]
    assert mechanism_from_json(json.loads(json.dumps(mechanism.to_json()))) == mechanism


@every_mechanism
def test_periods_outside_the_horizon_are_refused(name):
    mechanism = MECHANISMS[name]
    for call in (mechanism.window, mechanism.nodes, mechanism.answer):
        with pytest.raises(BadArgument):
            call(0)
        if mechanism.horizon is not None:
            with pytest.raises(HorizonReached):
                call(mechanism.horizon + 1)


@pytest.mark.parametrize("name", ["tumbling", "sliding", "blocks", "refined blocks", "hierarchy", "tree", "tree with baseline"])
@pytest.mark.parametrize("grouped", [False, True])
def test_no_history_moves_the_drawn_nodes_further_than_charged(name, grouped):
    """The coverage bound against the true L1 effect of every history on a short horizon, and of pairs of moves far apart."""
    small = {
        "tumbling": IndependentWindows(Windows(RegularGrid(0, 2), width_steps=1, count=3)),
        "sliding": IndependentWindows(Windows(RegularGrid(0, 1), width_ticks=3, count=5)),
        "blocks": DisjointSums(RegularGrid(0, 1), 3, count=4),
        "refined blocks": DisjointSums(RegularGrid(0, 3), 1, 1, count=2),
        "hierarchy": HierarchicalSums(RegularGrid(0, 1), 4, 2, 3, count=5),
        "tree": BinaryTree(RegularGrid(0, 1), 5),
        "tree with baseline": BinaryTree(RegularGrid(0, 1), 4, baseline=True),
    }[name]
    filters = [f for pattern in small.patterns() for f in pattern.filters()]
    for measure, constraint in itertools.product(
        (Measure.NET, Measure.ENTERED), (Constraint(1), Constraint(2), Constraint(3), Constraint(None, 2))
    ):
        if measure is Measure.ENTERED and name == "tree with baseline":
            continue
        charges = [Charge(pattern, DiscreteLaplace(Fraction(1)), measure, grouped) for pattern in small.patterns()]
        charged = worst_case_loss(charges, [EntryType(1, "any", constraint)], pure=True)[1] / PICOS
        moved = max(norms(path, measure, filters)[0] for path in paths(-1, 5, constraint, 2 if grouped else 1))
        assert moved <= charged
        if measure is Measure.NET and not grouped and constraint.max_mutations == 1:
            assert moved == charged, "one mutation: nothing cancels"


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (5, 2), (12, 2), (19, 1), (4, 4)])
def test_signed_trees_charge_what_they_have_drawn_at_every_period(shape):
    """Blocks that are not over yet are drawn with the first total that takes them away: they have left, too."""
    for horizon in (1, 7, 40, 100):
        tree, drawn = SignedTree(WEEKS, horizon, *shape), set()
        (pattern,) = tree.patterns()
        for period in range(1, horizon + 1):
            drawn |= {(node.start, node.end) for node in tree.nodes(period) if node.start < node.end}
            assert drawn <= set(pattern.through(period).filters())
        charged = worst_case_loss(
            [Charge(pattern, DiscreteLaplace(Fraction(1)), Measure.NET)], [EntryType(1, "any", Constraint(1))], pure=True
        )
        assert charged[1] == max(sum(start < tick <= end for start, end in drawn) for tick in range(7 * horizon + 20)) * PICOS
        assert all(end <= WEEKS.end(horizon) for _, end in drawn), "nothing beyond the horizon is in a block"


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize(
    ("radix", "levels", "sections", "places"),
    [
        (3, 2, (1, 4), ()),
        (4, 3, (2,), ()),
        (12, 2, (1, 2, 3), ()),
        (4, 3, (2,), (0, 1, 2, 1)),
        (3, 3, (1, 2, 3), (0, 1, 0)),
        (3, 4, (), (1, 0, 0)),
        (2, 4, (3,), (0, 1)),
        (5, 2, (2,), (0, 1, 2, 1, 0)),
    ],
)
def test_sections_of_a_signed_tree_are_charged_with_their_own_noise(radix, levels, sections, places, baseline):
    """At every period all that was drawn is charged with the noise it has; in the end everything once, in one pattern."""
    in_a_section = (max(places, default=0) + 1) * (levels - 1) + 1
    factors = tuple(Fraction(3 + n, 4) for n in range(in_a_section * (len(sections) + 1) + (baseline and radix > 3)))
    tree = SignedTree(WEEKS, 40, radix, levels, baseline, factors, sections, places)
    alike = SignedTree(WEEKS, 40, radix, levels, baseline)
    parts, drawn = list(zip(tree.patterns(), tree.pattern_factors(), strict=True)), []
    for period in range(1, 41):
        assert tree.answer(period) == alike.answer(period)
        drawn += [(node.start, node.end, tree.factor(node.number)) for node in tree.nodes(period) if node.start != node.end]
        charged = {(*one, factor) for pattern, factor in parts for one in pattern.through(period).filters()}
        assert set(drawn) <= charged
        assert spread(tree).period in range(1, 41)
    whole = sorted(((*one, factor) for pattern, factor in parts for one in pattern.filters()), key=str)
    assert [one[:2] for one in whole] == sorted((one for pattern in alike.patterns() for one in pattern.filters()), key=str)
    for pattern, _ in parts:
        held = list(pattern.filters())
        start, end = pattern.span()
        assert all((start is None or (one[0] is not None and start <= one[0])) and one[1] <= end for one in held)
        assert pattern_from_json(pattern.to_json()) == pattern
    exact = [sum(float(tree.factor(number)) ** 2 for number, _ in tree.answer(period)) for period in range(1, 41)]
    assert spread(tree).mean == pytest.approx(sum(exact) / 40)
    assert mechanism_from_json(json.loads(json.dumps(tree.to_json()))) == tree
    for wrong in ((factors[2:], sections, places), ((), sections or (1,), places), (factors, (*sections, 5), places), (factors, sections, (0,))):
        with pytest.raises(BadArgument):
            SignedTree(WEEKS, 40, radix, levels, baseline, *wrong)


def test_a_tree_uses_a_node_for_every_binary_digit():
    tree = BinaryTree(DAYS, 1023)
    assert [len(tree.answer(period)) for period in range(1, 1024)] == [period.bit_count() for period in range(1, 1024)]


class TestAssembly:
    def test_windows_of_whole_periods_and_of_ticks(self):
        assert disjoint_sums(Windows(WEEKS, width_steps=2)) == DisjointSums(WEEKS, 2)
        assert disjoint_sums(Windows(WEEKS, width_ticks=14, age=1, count=5)) == DisjointSums(WEEKS, 2, 0, 1, 5)
        assert disjoint_sums(Windows(WEEKS, width_ticks=17)) == DisjointSums(WEEKS, 2, 3)
        assert disjoint_sums(Windows(MONTHS, width_steps=3)) == DisjointSums(MONTHS, 3)

    def test_what_cannot_be_assembled(self):
        assert disjoint_sums(Windows(WEEKS, width_ticks=6)) is None
        assert disjoint_sums(Windows(MONTHS, width_ticks=45)) is None
        assert hierarchical_sums(Windows(WEEKS, width_ticks=701), 1) is None

    @given(st.integers(1, 60), st.integers(1, 9))
    def test_assembled_windows_are_the_windows(self, width, step):
        windows = Windows(RegularGrid(2, step), width_ticks=width, age=1)
        assembled = disjoint_sums(windows)
        if assembled is not None:
            assert [assembled.window(period) for period in (1, 2, 9)] == [windows.filter(period) for period in (1, 2, 9)]
            assert len(assembled.answer(4)) == width // step * (2 if width % step else 1) + (1 if width % step else 0)

    @given(st.integers(2, 5), st.integers(1, 4), st.integers(-40, 40), st.integers(1, 70))
    def test_a_cover_is_disjoint_and_as_small_as_possible(self, radix, levels, start, length):
        blocks = cover(start, start + length, radix, levels)
        ticks = [t for level, index in blocks for t in range((index - 1) * radix**level, index * radix**level)]
        assert sorted(ticks) == list(range(start, start + length))
        fewest = {start: 0}
        for position in range(start, start + length):
            for level in range(levels):
                following = position + radix**level
                if position in fewest and position % radix**level == 0:
                    fewest[following] = min(fewest.get(following, length), fewest[position] + 1)
        assert len(blocks) == fewest[start + length]

    @pytest.mark.parametrize(("steps", "radix", "levels"), [(7, 2, 2), (30, 5, 2), (365, 19, 2), (365, 4, 4), (10, 3, 3)])
    def test_mean_blocks_is_the_mean_of_answers(self, steps, radix, levels):
        mechanism, cycle = HierarchicalSums(DAYS, steps, radix, levels), radix ** (levels - 1)
        assert mean_blocks(steps, radix, levels) == sum(len(mechanism.answer(period)) for period in range(1, cycle + 1)) / cycle

    def test_levels_are_added_only_where_they_help(self):
        assert best_levels(30, 2)[1] == 1
        assert best_levels(365, 2) == (19, 2)
        assert hierarchical_sums(Windows(DAYS, width_ticks=30), 2) is None
        assert hierarchical_sums(Windows(WEEKS, width_ticks=7 * 52, age=3, count=9), 1) == HierarchicalSums(
            WEEKS, 52, *best_levels(52, 1), 3, 9
        )

    @pytest.mark.parametrize(
        "build",
        [
            lambda: DisjointSums(DAYS, 0),
            lambda: DisjointSums(MONTHS, 1, 3),
            lambda: DisjointSums(WEEKS, 1, 7),
            lambda: HierarchicalSums(DAYS, 10, 1, 2),
            lambda: HierarchicalSums(DAYS, 10, 11, 2),
            lambda: BinaryTree(DAYS, 0),
            lambda: IndependentWindows(Windows(DAYS, width_steps=1, lead=1)),
            lambda: mechanism_from_json({"kind": "crystal ball"}),
        ],
    )
    def test_impossible_mechanisms_are_refused(self, build):
        with pytest.raises(BadArgument):
            build()
