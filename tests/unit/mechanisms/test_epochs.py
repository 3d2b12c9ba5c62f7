"""Epochs: totals that go on when a horizon is reached, exactly, and at the price of the epochs that an entry lives through."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.encoded import is_encoded
from dbext.mechanisms.epochs import continuing
from dbext.mechanisms.error import variance_of
from dbext.mechanisms.joint_bounds import joint_bounds
from dbext.mechanisms.plain_sums import PlainSums
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.joint import lifetime_for
from dbext.privacy.measure import Measure
from dbext.privacy.pico import PICOS
from dbext.query.calendar import Span
from dbext.query.planner import Request, candidates
from tests.unit.query.tables import DAY, DELTA, PURE
from tests.unit.query.test_planner import TOTAL, declared

LENGTH, PERIODS = 5, 17
FIRSTS = {
    "plain": lambda grid, baseline: PlainSums(grid, LENGTH, baseline),
    "binary": lambda grid, baseline: BinaryTree(grid, LENGTH, baseline),
    "signed": lambda grid, baseline: SignedTree(grid, LENGTH, 3, 2, baseline),
    "root": lambda grid, baseline: SquareRoot(grid, LENGTH, baseline),
    "weighted": lambda grid, baseline: WeightedSquareRoot(grid, LENGTH, baseline),
}


def drawn(mechanism):
    """Return {number: exact stored value} of all periods: the effect of tick t is 3 t + 1, of everything before tick 101 it is 50."""
    known, counts = {}, {}

    def about(node):
        ticks = range((100 if node.start is None else node.start) + 1, node.end + 1)
        return sum(3 * tick + 1 for tick in ticks) + (50 if node.start is None else 0)

    for period in range(1, PERIODS + 1):
        if is_encoded(mechanism):
            counts.update((leaf.number, about(leaf)) for leaf in mechanism.leaves(period))
            fresh = {row.number: sum(weight * counts[leaf] for leaf, weight in row.weights) for row in mechanism.rows(period)}
        else:
            fresh = {node.number: about(node) for node in mechanism.nodes(period)}
        assert not known.keys() & fresh.keys(), "a number is drawn twice"
        known.update(fresh)
        yield period, known


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("name", FIRSTS)
def test_totals_go_on_from_epoch_to_epoch(name, baseline):
    mechanism = continuing(FIRSTS[name](RegularGrid(100, 2), baseline))
    assert mechanism_from_json(mechanism.to_json()) == mechanism
    for period, known in drawn(mechanism):
        start, end = mechanism.window(period)
        assert (start, end) == (None if baseline else 100, 100 + 2 * period)
        exact = sum(3 * tick + 1 for tick in range(101, end + 1)) + (50 if baseline else 0)
        assert sum(weight * known[number] for number, weight in mechanism.answer(period)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("kind", [SquareRoot, WeightedSquareRoot])
@pytest.mark.parametrize("length", [63, 76, 127, 153, 1023])
def test_later_epochs_of_encoders_cost_and_err_as_the_first(kind, length):
    """Their encoder is that of one position less, under the noise of the first: its whole numbers must be of the same size."""
    first, once = kind(RegularGrid(0, 1), length, baseline=True), Constraint(max_mutations=1)
    later = continuing(first).epoch(2)
    before = lifetime_for(joint_bounds(first, Measure.STATE, False, [once]), once)
    after = lifetime_for(joint_bounds(later, Measure.NET, False, [once]), once)
    assert 0.99 * before < after <= before
    own, same = (sum(weight**2 for _, weight in one.answer(length)) for one in (later, first))
    assert 0.99 * same < own <= same


@pytest.mark.parametrize("name", FIRSTS)
def test_errors_add_up_over_epochs(name):
    mechanism = continuing(FIRSTS[name](RegularGrid(0, 1), False))

    def squares(period):
        return sum(weight**2 for _, weight in mechanism.answer(period))

    for period in range(1, PERIODS + 1):
        finished, local = divmod(period - 1, LENGTH)
        assert squares(period) == pytest.approx(finished * squares(LENGTH) + squares(local + 1))


def test_epochs_of_months_follow_the_calendar():
    mechanism = continuing(SquareRoot(MonthGrid(240, 1), 12))
    assert mechanism.window(13)[1] == MonthGrid(240, 1).end(13)
    assert [mechanism.epoch_of(period) for period in (1, 12, 13, 24, 25)] == [1, 1, 2, 2, 3]


def lives(ticks, slots, within):
    """Every 0/1 life over ticks 0 ... (0: before the first period) with so many changes, the last slot kept for a departure."""
    for count in range(1, slots + 1):
        for chosen in itertools.combinations(range(ticks + 1), count):
            if (count < slots or slots == 1 or count % 2 == 0) and (within is None or chosen[-1] - chosen[0] <= within):
                yield {tick: 1 - 2 * (n % 2) for n, tick in enumerate(chosen)}


@pytest.mark.parametrize(("delta", "measure"), [(PURE, "state"), (DELTA, "state"), (DELTA, "net")])
@pytest.mark.parametrize(
    "limits", [{"max_mutations": 1}, {"max_mutations": 2}, {"max_mutations": 4}, {"max_mutations": 3, "active_within": 3}]
)
def test_the_charges_of_two_epochs_cover_every_life_through_both(delta, measure, limits):
    """All that an entry does to all stored numbers of both epochs, for every candidate; a second epoch that is free would be seen."""
    types, seen = (EntryType(1, "one", Constraint(**limits)),), 0
    request = Request(start_tick=5700, every=Span(days=1), epsilon=Fraction(1), horizon=4, measure=measure, at_horizon="renew")
    for one in candidates(declared(TOTAL), request, DAY, types, delta):
        plan, mechanism = one.plan, one.plan.mechanism
        charges = (*plan.charges, *plan.charges_of_epoch(2, types))
        claimed = worst_case_loss(charges, types, delta == 0)[1]
        worst = 0
        for life in lives(8, limits["max_mutations"], limits.get("active_within")):
            if measure == "net" and 0 in life:
                continue
            effects = effect(mechanism, life)
            rho = sum(value**2 for _, value in effects) / (2 * float(getattr(plan.noise, "sigma_squared", 1)))
            pure = sum(abs(value) / float(getattr(plan.node_noise(number), "scale", 1)) for number, value in effects)
            if delta == 0:
                worst = max(worst, pure)
            elif hasattr(plan.noise, "sigma_squared"):
                worst = max(worst, rho)
            else:
                worst = max(
                    worst, sum(epsilon * math.tanh(epsilon / 2) for epsilon in (abs(v) / float(plan.noise.scale) for _, v in effects))
                )
        assert worst * PICOS <= claimed * (1 + 1e-9)
        if limits != {"max_mutations": 1}:
            continue
        alone = worst_case_loss(plan.charges, types, delta == 0)[1]
        assert claimed == alone, "one mutation lies in one epoch"
        seen += 1
    assert seen or limits != {"max_mutations": 1}


def effect(mechanism, life, periods=8):
    """What a life adds to every stored number of periods 1 ... 8 (or of fewer), by number."""
    start = 5700
    found = []
    for period in range(1, periods + 1):
        if is_encoded(mechanism):
            leaves = {leaf.number: leaf for n in range(1, periods + 1) for leaf in mechanism.leaves(n)}
            rows = mechanism.rows(period)
            found += [(row.number, sum(weight * inside(leaves[leaf], life, start) for leaf, weight in row.weights)) for row in rows]
        else:
            found += [(node.number, inside(node, life, start)) for node in mechanism.nodes(period)]
    return found


def inside(node, life, start):
    return sum(sign for tick, sign in life.items() if (node.start is None or node.start < start + tick) and start + tick <= node.end)


def test_variances_of_published_errors_are_those_of_the_sum():
    request = Request(start_tick=5700, every=Span(days=1), epsilon=Fraction(1), horizon=6, at_horizon="renew")
    for delta in (PURE, DELTA):
        for one in candidates(declared(TOTAL), request, DAY, (EntryType(1, "one", Constraint(1)),), delta):
            first, second = (variance_of(one.plan.draws(one.plan.mechanism.answer(period))) for period in (6, 8))
            own = variance_of(one.plan.draws(one.plan.mechanism.own(2, 2)))
            assert second == pytest.approx(first + own)
            assert one.plan.std_error(8) == pytest.approx(math.sqrt(first + own))
            assert one.plan.half_width_95(8) > one.plan.half_width_95(2)


def moving_lives(ticks, slots):
    """Every life over ticks 0 ... with images absent, cell 0, cell 1, and at most so many mutations: what it adds to (tick, cell)."""
    for images in itertools.product((None, 0, 1), repeat=ticks):
        before, changed = None, []
        effect = np.zeros((ticks, 2))
        for tick, image in enumerate(images):
            if image != before:
                changed.append(tick)
                if image is not None:
                    effect[tick, image] += 1
                if before is not None:
                    effect[tick, before] -= 1
            before = image
        if changed and (len(changed) < slots or (len(changed) == slots and (slots == 1 or images[-1] is None))):
            yield effect


@pytest.mark.parametrize("delta", [PURE, DELTA])
@pytest.mark.parametrize("slots", [2, 3])
def test_moves_between_groups_are_covered_across_epochs(delta, slots):
    """An entry that is there when the second epoch begins, and moves in it, changes two cells at once: that is charged."""
    types = (EntryType(1, "one", Constraint(slots)),)
    request = Request(start_tick=5700, every=Span(days=1), epsilon=Fraction(1), horizon=3, at_horizon="renew")
    sql = "SELECT county, count(*) FROM cases GROUP BY county"
    for one in candidates(declared(sql), request, DAY, types, delta):
        plan, mechanism = one.plan, one.plan.mechanism
        if delta and not hasattr(plan.noise, "sigma_squared"):
            continue
        columns = [effect(mechanism, {tick: 1}, 6) for tick in range(7)]
        widths = [plan.node_noise(number) for number, _ in columns[0]]
        matrix = np.array([[value for _, value in column] for column in columns]).T
        claimed = worst_case_loss((*plan.charges, *plan.charges_of_epoch(2, types)), types, delta == 0)[1] / PICOS
        for life in moving_lives(7, slots):
            moved = matrix @ life
            if delta == 0:
                loss = sum(np.abs(row).sum() / float(noise.scale) for row, noise in zip(moved, widths, strict=True))
            else:
                loss = (moved**2).sum() / (2 * float(plan.noise.sigma_squared))
            assert loss <= claimed * (1 + 1e-9)
