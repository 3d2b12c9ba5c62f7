"""The sliding-window root: algebra, optimal error, stability of the cut encoder, and its certified prices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument, HorizonReached
from dbext.mechanisms.minimax import flattest
from dbext.mechanisms.same_sign import packed_norms, pairwise_norms
from dbext.mechanisms.sliding_root import BAND, BITS, SlidingRoot, best_error, column_products, window_root
from dbext.mechanisms.square_root import root_coefficients
from dbext.mechanisms.stationary import certified_supremum, price_per_change, worst_three, worst_two
from dbext.mechanisms.toeplitz import answer_weights
from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.profile import cost_per_touch, lifetime, reach

WIDTHS = [1, 2, 3, 7, 14, 30]


@pytest.mark.parametrize("steps", WIDTHS)
def test_the_encoder_squares_to_the_window(steps):
    root = np.array(window_root(steps)) / 2.0**BITS
    square = np.convolve(root, root)[: BAND * steps]
    assert square == pytest.approx(np.append(np.ones(steps), np.zeros((BAND - 1) * steps)), abs=2e-3)


@pytest.mark.parametrize("steps", WIDTHS)
def test_error_is_within_a_thousandth_of_the_bound_for_ever(steps):
    norm = sum(value * value for value in window_root(steps))
    variances = np.cumsum(answer_weights(window_root(steps), steps, 20_000) ** 2) * norm
    assert np.sqrt(variances[-1]) <= best_error(steps) * 1.0004
    assert variances[-1] == pytest.approx(variances[10_000], rel=1e-9)


@pytest.mark.parametrize("steps", WIDTHS)
def test_the_cut_encoder_has_no_zero_in_the_unit_disc(steps):
    values = np.fft.fft(np.array(window_root(steps)) / 2.0**BITS, 1 << 15)
    turns = np.unwrap(np.angle(np.append(values, values[0])))
    assert np.abs(values).min() > 0.1
    assert turns[-1] - turns[0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 5, 8, 31])
def test_the_optimum_is_the_mean_of_the_kernel(steps):
    middle = (np.arange(200_000) + 0.5) * np.pi / 200_000
    assert best_error(steps) == pytest.approx(np.abs(np.sin(steps * middle / 2) / np.sin(middle / 2)).mean(), abs=1e-5)


@pytest.mark.parametrize("steps", [1, 3, 4])
def test_answers_are_the_window_sums(steps):
    release = SlidingRoot(RegularGrid(5, 7), steps, age=2)
    counts = {leaf.number: (leaf.number * 53) % 17 - 5 for n in range(1, 40) for leaf in release.leaves(n)}
    noisy: dict[int, int] = {}
    for period in range(1, 40):
        noisy.update((row.number, sum(weight * counts[leaf] for leaf, weight in row.weights)) for row in release.rows(period))
        assert {number for number, _ in release.answer(period)} == set(noisy)
        answer = sum(weight * noisy[number] for number, weight in release.answer(period))
        assert answer == pytest.approx(sum(counts[n] for n in range(period - steps + 1, period + 1)), abs=1e-8)


def test_leaves_are_what_is_charged_and_windows_move_back_by_their_age():
    release = SlidingRoot(RegularGrid(5, 7), 3, age=2, count=4)
    leaves = [(leaf.start, leaf.end) for n in range(1, 5) for leaf in release.leaves(n)]
    assert leaves == list(release.patterns()[0].filters())
    assert release.window(1) == (leaves[0][0], leaves[2][1])
    with pytest.raises(HorizonReached):
        release.rows(5)
    with pytest.raises(BadArgument):
        SlidingRoot(RegularGrid(0, 1), 0)


def alternating_norms(products, positions):
    signs = (-1.0) ** np.arange(len(positions))
    distance = np.abs(np.subtract.outer(positions, positions))
    return signs @ np.append(products, np.zeros(20_000))[distance] @ signs


@pytest.mark.parametrize("steps", [2, 7, 30])
def test_reference_points_of_alternating_changes(steps):
    products = column_products(window_root(steps))
    one = products[0]
    two, three = worst_two(products, 16 * steps) / one, worst_three(products, 16 * steps) / one
    assert two == pytest.approx({2: 2.134, 7: 2.283, 30: 2.379}[steps], abs=1e-3)
    assert three == pytest.approx({2: 3.235, 7: 3.504, 30: 3.677}[steps], abs=1e-3)
    price = price_per_change(products, steps) / one
    apart = alternating_norms(products, np.arange(0, 400 * steps, steps)) / 400 / one
    assert apart <= price <= apart * 1.02
    assert price < {2: 1.12, 7: 1.25, 30: 1.34}[steps]


@given(st.sampled_from([2, 3, 7]), st.lists(st.integers(1, 20), min_size=3, max_size=12))
def test_no_alternating_life_costs_more_than_its_price(steps, gaps):
    products = column_products(window_root(steps))
    positions = np.cumsum([0, *gaps])
    norm = alternating_norms(products, positions)
    assert norm <= len(positions) * price_per_change(products, steps)


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=30))
def test_certified_suprema_are_never_below_a_value(products):
    values = np.array(products)
    angles = np.linspace(0, np.pi, 3001)
    curve = values[0] + 2 * np.cos(np.outer(angles, np.arange(1, len(values)))) @ values[1:]
    bound = certified_supremum(values)
    assert curve.max() <= bound <= curve.max() + 2e-3 * np.abs(values).sum() + 1e-9


def test_events_crowd_as_closely_as_days_allow():
    limits = reach(Constraint(8), None, 1, 1)
    profile = SlidingRoot(RegularGrid(0, 1), 7).profile(Measure.ENTERED, False, limits)
    products = column_products(window_root(7)) / column_products(window_root(7))[0]
    every_other_day = sum(products[abs(i - j)] for i in range(0, 8, 2) for j in range(0, 8, 2))
    assert profile.after(4) / profile.after(1) == pytest.approx(every_other_day, rel=1e-9)
    next_to_each_other = sum(products[abs(i - j)] for i in range(4) for j in range(4))
    assert next_to_each_other == pytest.approx(9.4, abs=0.1)


@given(st.integers(1, 9), st.integers(1, 5))
def test_pairwise_bounds_are_never_below_packed_ones(events, longest):
    coefficients = root_coefficients(24, 20)
    products = [sum(a * b for a, b in zip(coefficients, coefficients[d:], strict=False)) / 4.0**20 for d in range(24)]
    exact, above = packed_norms(coefficients, events, longest), pairwise_norms(np.array(products), events, longest)
    if longest % 2 == 0 or longest == 1:
        assert all(norm / 4.0**20 <= bound * (1 + 1e-9) for norm, bound in zip(exact, above, strict=True))


def test_prices_end_the_table_for_every_number_of_changes():
    release = SlidingRoot(RegularGrid(0, 1), 7)
    limits = reach(Constraint(12), None, 1, 1)
    profile = release.profile(Measure.NET, False, limits)
    one = profile.stay[0]
    assert lifetime(profile, Measure.NET, limits) / one == pytest.approx(14.96, abs=0.05)
    assert float(cost_per_touch(profile, Measure.NET, limits)) / one == pytest.approx(1.2466, abs=5e-3)
    bounded = reach(Constraint(None, 6), None, 1, 1)
    assert lifetime(release.profile(Measure.NET, False, bounded), Measure.NET, bounded) / one < 3


def test_flattest_finds_a_known_optimum():
    """max(1 - a, a - 1, 2 - 3 a) is least, 0, at a = 1."""
    target, functions = np.array([1.0, -1.0, 2.0]), np.array([[1.0], [-1.0], [3.0]])
    assert flattest(target, functions) == pytest.approx([1.0], abs=1e-4)
