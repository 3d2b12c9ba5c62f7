"""Plausible mistakes, each of which the checks of the other files would see: the checks are tested here."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.epochs import continuing
from dbext.mechanisms.error import half_width_95
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.simultaneous import union_tail
from dbext.mechanisms.sliding_root import SlidingRoot, column_products, window_root
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.toeplitz import answer_weights, encode
from dbext.mechanisms.weighted_square_root import weighted_encoder
from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace
from dbext.privacy.profile import cost_per_touch, lifetime, reach

DAILY = RegularGrid(0, 1)


def norm_of(coefficients, changes) -> int:
    """Return the exact squared norm of what changes {period: sign} do to all rows."""
    horizon = len(coefficients)
    return sum(value**2 for value in encode(coefficients, [changes.get(t, 0) for t in range(horizon)]))


def certified(mechanism, constraint, measure, horizon):
    limits = reach(constraint, horizon, 1, 1)
    return lifetime(mechanism.profile(measure, False, limits), measure, limits)


def test_a_horizon_short_by_one_row_is_seen():
    coefficients = SquareRoot(DAILY, 12).coefficients
    assert (
        sum(value**2 for value in coefficients[:-1])
        < norm_of(coefficients, {0: 1})
        == certified(SquareRoot(DAILY, 12), Constraint(1), Measure.NET, 12)
    )


def test_events_charged_like_state_changes_are_seen():
    """k norms are enough for changes that alternate, never for events of one sign."""
    mechanism = SquareRoot(DAILY, 12)
    worst = norm_of(mechanism.coefficients, {0: 1, 2: 1, 4: 1})
    assert 3 * norm_of(mechanism.coefficients, {0: 1}) < worst == certified(mechanism, Constraint(6), Measure.ENTERED, 12)


def test_window_roots_charged_one_norm_per_change_are_seen():
    """The k rule needs inner products that decline; those of a window's root become negative."""
    release = SlidingRoot(DAILY, 7)
    products = column_products(release.coefficients)
    assert 2 * products[0] < 2 * products[0] - 2 * products[7]
    limits = reach(Constraint(2), None, 1, 1)
    assert cost_per_touch(release.profile(Measure.NET, False, limits), Measure.NET, limits) > sum(c * c for c in release.coefficients)


@pytest.mark.parametrize("place", ["rows", "factors"])
def test_weights_of_the_wrong_row_or_column_are_seen(place):
    encoder = weighted_encoder(12)
    moved = list(getattr(encoder, place))
    moved = moved[1:] + moved[-1:]
    assert max(encoder._replace(**{place: moved}).norms()) > max(encoder.norms()) * 1.05


def test_a_level_forgotten_in_a_signed_tree_is_seen():
    tree = SignedTree(DAILY, 40, 4, 3)
    (pattern,) = tree.patterns()
    touched = [sum(start < tick <= end for start, end in pattern.filters()) for tick in range(1, 41)]
    assert max(touched) == tree.levels > tree.levels - 1


def test_noise_drawn_again_is_seen():
    """Each node must be drawn in one period only: a second draw of the same block is a second charge."""
    tree = SignedTree(DAILY, 40, 4, 3)
    used = [number for period in range(1, 41) for number, _ in tree.answer(period)]
    drawn = [node.number for period in range(1, 41) for node in tree.nodes(period)]
    assert len(drawn) == len(set(used)) < len(used)


def test_leaving_out_far_rows_is_a_bias():
    series, band = answer_weights(window_root(7), 7, 200), 60
    counts = [1000] * 200
    noisy = encode(window_root(7), counts)
    full, cut = (sum(series[j] * noisy[199 - j] for j in range(length)) for length in (200, band))
    assert full == pytest.approx(7000, abs=1e-6)
    assert abs(cut - 7000) > 1


def test_rounding_the_encoder_but_inverting_the_exact_root_is_a_bias():
    coarse = [round(value / 2**12) for value in SquareRoot(DAILY, 50).coefficients]
    exact = np.array(SquareRoot(DAILY, 50).answer_series()) * 2.0**12
    noisy = encode(coarse, [100_000] * 50)
    assert abs(sum(exact[j] * noisy[49 - j] for j in range(50)) - 5_000_000) > 1
    right = answer_weights(coarse, None, 50)
    assert sum(right[j] * noisy[49 - j] for j in range(50)) == pytest.approx(5_000_000, abs=1e-3)


def test_a_window_shifted_by_a_tick_is_seen():
    release = SlidingRoot(DAILY, 3)
    leaves = {leaf.number: (leaf.start, leaf.end) for n in range(1, 6) for leaf in release.leaves(n)}
    inside = [leaves[n] for n in (3, 4, 5)]
    assert (inside[0][0], inside[-1][1]) == release.window(5)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(inside))


def touches(filters, ticks):
    return max(sum((start is None or start < tick) and tick <= end for start, end in filters) for tick in range(1, ticks + 1))


def test_a_root_forgotten_in_a_binary_tree_is_seen():
    """A period of 1 ... 16 lies in five nodes; without the root that holds all of them it would be charged for four."""
    filters = list(BinaryTree(DAILY, 16).patterns()[0].filters())
    drawn = [(node.start, node.end) for period in range(1, 17) for node in BinaryTree(DAILY, 16).nodes(period)]
    assert sorted(filters) == sorted(drawn)
    without = [one for one in filters if one != (0, 16)]
    assert touches(filters, 16) == 5 > touches(without, 16)


def test_a_level_too_few_is_seen():
    tree = SignedTree(DAILY, 40, 4, 3)
    (pattern,) = tree.patterns()
    filters = list(pattern.filters())
    fewer = [one for one in filters if one[1] - one[0] < 16]
    drawn = {(node.start, node.end) for period in range(1, 41) for node in tree.nodes(period) if node.start != node.end}
    assert drawn <= set(filters)
    assert not drawn <= set(fewer)


def test_k_squared_and_a_single_norm_are_seen():
    """k changes that alternate cost more than one norm and no more than k, never k squared."""
    year = SquareRoot(DAILY, 60)
    norm = norm_of(year.coefficients, {0: 1})
    for k in (2, 4, 6):
        claimed = certified(year, Constraint(k), Measure.NET, 60)
        spread_out = norm_of(year.coefficients, {n * 60 // k: 1 - 2 * (n % 2) for n in range(k)})
        assert norm < spread_out <= claimed <= k * norm < k * k * norm


def test_a_range_that_begins_a_tick_early_is_seen():
    """(a, b] holds b and not a: with both ends a tick at a boundary would count twice."""
    tree = BinaryTree(DAILY, 8, baseline=True)
    nodes = {node.number: node for period in range(1, 9) for node in tree.nodes(period)}

    def counted(tick, early):
        return sum(
            weight * ((nodes[n].start is None or nodes[n].start - early < tick) and tick <= nodes[n].end) for n, weight in tree.answer(7)
        )

    assert [counted(tick, 0) for tick in range(-1, 10)] == [1] * 9 + [0, 0]
    assert max(counted(tick, 1) for tick in range(-1, 10)) == 2


def test_a_new_epoch_that_draws_old_numbers_again_is_seen():
    epochs = continuing(SignedTree(DAILY, 9, 3, 2))
    numbers = [node.number for period in range(1, 28) for node in epochs.nodes(period)]
    again = [node.number for period in range(1, 28) for node in epochs.epoch(epochs.epoch_of(period)).nodes((period - 1) % 9 + 1)]
    assert len(set(numbers)) == len(numbers) == len(again) > len(set(again))


def test_a_second_epoch_for_free_is_seen():
    """An entry that comes in the first epoch and leaves in the second moves both encoders by a norm."""
    first, second = SquareRoot(DAILY, 12), SquareRoot(DAILY.after(12), 12)
    in_one = certified(first, Constraint(2), Measure.NET, 12)
    in_both = norm_of(first.coefficients, {0: 1}) + norm_of(second.coefficients, {0: -1})
    assert in_one < in_both


def test_a_band_that_forgets_its_groups_is_seen():
    noise = DiscreteLaplace(Fraction(20))
    one_group, ten_groups = (half_width_95(noise, [1], union_tail(30 * groups)) for groups in (1, 10))
    missed = 30 * 10 * 2 * math.exp(-(one_group + 1) / 20) / (1 + math.exp(-1 / 20))
    assert missed > 0.4
    assert 30 * 10 * 2 * math.exp(-(ten_groups + 1) / 20) / (1 + math.exp(-1 / 20)) <= 0.05
