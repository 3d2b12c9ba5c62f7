"""Several windows from one stream: algebra, error, stability and joint sensitivity."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dbext.errors import BadArgument
from dbext.mechanisms.limits import period_lengths, reach_on
from dbext.mechanisms.shared_windows import SharedWindows, shared_root
from dbext.mechanisms.sliding_root import BITS, best_error, column_products, window_root
from dbext.mechanisms.toeplitz import answer_weights
from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.profile import lifetime


@pytest.mark.parametrize("steps", [1, 7, 30])
def test_one_window_is_the_window_root(steps):
    assert np.array(shared_root([steps])) / 2.0**BITS == pytest.approx(np.array(window_root(steps)) / 2.0**BITS, abs=2e-3)


@pytest.mark.parametrize("windows", [(7, 14, 28), (1, 7, 30), (2, 3)])
def test_all_windows_are_near_their_own_optimum_at_one_price(windows):
    encoder = shared_root(windows)
    norm = sum(value * value for value in encoder)
    for steps in windows:
        variances = np.cumsum(answer_weights(encoder, steps, 6000) ** 2) * norm
        assert variances[-1] == pytest.approx(variances[3000], rel=1e-6)
        assert np.sqrt(variances[-1]) < 1.2 * best_error(steps)
    values = np.fft.fft(np.array(encoder) / 2.0**BITS, 1 << 14)
    turns = np.unwrap(np.angle(np.append(values, values[0])))
    assert turns[-1] - turns[0] == pytest.approx(0, abs=1e-6)


def test_no_other_weighting_improves_the_weighted_sum():
    windows = (2, 5)
    own = [best_error(steps) ** -2 for steps in windows]

    def total(encoder):
        norm = sum(value * value for value in encoder)
        return sum(share * norm * (answer_weights(encoder, steps, 4000) ** 2).sum() for share, steps in zip(own, windows, strict=True))

    best = total(shared_root(windows, own))
    for share in (0.5, 0.8, 1.25, 2.0):
        assert total(shared_root(windows, [own[0] * share, own[1]])) >= best * (1 - 1e-4)
    assert total(window_root(5)) > best


def test_answers_are_the_window_sums():
    release = SharedWindows(RegularGrid(5, 7), (2, 4), shared_root((2, 4)), age=1)
    counts = {leaf.number: (leaf.number * 53) % 17 - 5 for n in range(1, 30) for leaf in release.leaves(n)}
    noisy: dict[int, int] = {}
    for period in range(1, 30):
        noisy.update((row.number, sum(weight * counts[leaf] for leaf, weight in row.weights)) for row in release.rows(period))
        for steps in release.windows:
            answer = sum(weight * noisy[number] for number, weight in release.answer(period, steps))
            assert answer == pytest.approx(sum(counts[n] for n in range(period - steps + 1, period + 1)), abs=1e-8)
    assert release.window(3, 4) == (5 - 7 - 1, 5 + 21 - 1)
    assert next(iter(release.patterns()[0].filters(until=20))) == (5 - 21 - 1, 5 - 14 - 1)
    with pytest.raises(BadArgument):
        release.answer(1, 3)
    with pytest.raises(BadArgument):
        SharedWindows(RegularGrid(0, 1), (2, 2), (1,))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_lifetimes_are_never_below_a_search(k):
    release = SharedWindows(RegularGrid(0, 1), (2, 4), shared_root((2, 4)))
    limits = reach_on(release.grid, None, Constraint(k))
    claimed = lifetime(release.profile(Measure.NET, False, limits), Measure.NET, limits) / release.coefficients[0] ** 2
    products = np.append(column_products(release.coefficients), np.zeros(50))
    signs = (-1.0) ** np.arange(k)
    found = max(
        signs @ products[np.abs(np.subtract.outer(positions, positions))] @ signs
        for positions in itertools.combinations(range(14), k)
        if positions[0] == 0
    )
    assert found <= claimed * (1 + 1e-9)
    assert claimed <= found * 1.2


def test_month_lengths_bound_the_reach():
    assert period_lengths(RegularGrid(3, 7)) == (7, 7)
    assert period_lengths(MonthGrid(0, 1)) == (28, 31)
    assert period_lengths(MonthGrid(2, 12)) == (365, 366)
    limits = reach_on(MonthGrid(0, 1), 24, Constraint(None, 30))
    assert (limits.span, limits.longest) == (3, 31)
