"""Plausible mistakes, each of which the checks of the other files would see: the checks are tested here."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dbext.mechanisms.normalised_square_root import normalised_encoder
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.sliding_root import SlidingRoot, column_products, window_root
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.toeplitz import answer_weights, encode
from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
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


def test_factors_of_the_wrong_column_are_seen():
    column, factors = normalised_encoder(12)
    norms = [sum(value**2 for value in column[: 12 - j]) for j in range(12)]
    wrong = [factors[min(j + 1, 11)] ** 2 * norm for j, norm in enumerate(norms)]
    assert max(wrong) > max(factor**2 * norm for factor, norm in zip(factors, norms, strict=True)) * 1.05


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
