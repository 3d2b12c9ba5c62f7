"""The square-root mechanisms: their algebra, their error, and the bounds that their certified losses rest on."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.optimum import mean_optimum, worst_optimum
from dbext.errors import BadArgument, HorizonReached
from dbext.mechanisms.alternating import alternating_bounds, declines, long_bounds, runs_repel
from dbext.mechanisms.dense_paths import dense_bound
from dbext.mechanisms.gram import rows_from_the_last
from dbext.mechanisms.square_root import SquareRoot, encoder_bits, root_coefficients
from dbext.mechanisms.toeplitz import answer_weights, encode, inverse_series, scaled
from dbext.mechanisms.weighted_square_root import NORM, WeightedSquareRoot, error_variances, row_weights, weighted_encoder
from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.profile import lifetime, reach
from tests.literature import column_norm_squared, root_coefficient, square_root_errors

DAILY = RegularGrid(0, 1)


def gram(coefficients, kind=object) -> np.ndarray:
    total = len(coefficients)
    matrix = np.array([[coefficients[t - j] if t >= j else 0 for j in range(total)] for t in range(total)], dtype=kind)
    return matrix.T @ matrix


def share(mechanism, constraint, measure, grouped=False):
    """Return the certified lifetime norm over that of one change."""
    limits = reach(constraint, mechanism.positions, 1, 1)
    one = sum(value * value for value in mechanism.coefficients)
    return lifetime(mechanism.profile(measure, grouped, limits), measure, limits) / one


@pytest.mark.parametrize("bits", [16, 30])
def test_coefficients_are_the_rounded_root(bits):
    assert list(root_coefficients(40, bits)) == [round(root_coefficient(k) * 2**bits) for k in range(40)]


@pytest.mark.parametrize("mechanism", [SquareRoot, WeightedSquareRoot])
@pytest.mark.parametrize("baseline", [False, True])
def test_answers_undo_the_encoder(mechanism, baseline):
    release = mechanism(MonthGrid(3, 1), 9, baseline)
    counts = {leaf.number: (leaf.number * 37) % 11 - 4 for n in range(1, 10) for leaf in release.leaves(n)}
    noisy: dict[int, int] = {}
    for period in range(1, 10):
        for row in release.rows(period):
            noisy[row.number] = sum(weight * counts[leaf] for leaf, weight in row.weights)
        assert {number for number, _ in release.answer(period)} == set(noisy)
        total = sum(weight * noisy[number] for number, weight in release.answer(period))
        assert total == pytest.approx(sum(counts[leaf] for leaf in counts if leaf <= period), abs=1e-9)


def test_rows_are_the_encoder_and_leaves_are_the_windows():
    release = SquareRoot(RegularGrid(10, 7), 4, baseline=True)
    assert [(leaf.number, leaf.start, leaf.end) for leaf in release.leaves(1)] == [(0, None, 10), (1, 10, 17)]
    assert release.window(3) == (None, 31)
    filters = [found for pattern in release.patterns() for found in pattern.filters()]
    assert filters == [(None, 10), (10, 17), (17, 24), (24, 31), (31, 38)]
    counts = [5, -1, 2, 0, 3]
    rows = [row for n in range(1, 5) for row in release.rows(n)]
    assert [sum(weight * counts[leaf] for leaf, weight in row.weights) for row in rows] == encode(release.coefficients, counts)


def test_periods_outside_the_horizon_are_refused():
    with pytest.raises(HorizonReached):
        SquareRoot(DAILY, 3).rows(4)
    with pytest.raises(BadArgument):
        WeightedSquareRoot(DAILY, 3).answer(0)
    with pytest.raises(BadArgument):
        SquareRoot(DAILY, 0)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=90), st.integers(1, 90))
def test_inverse_series_inverts(tail, length):
    series = np.concatenate([[1.0], np.array(tail) / 100])
    product = np.convolve(series, inverse_series(series, length))[:length]
    assert product == pytest.approx(np.eye(1, length)[0], abs=1e-6 * max(1.0, np.abs(inverse_series(series, length)).max()))


@pytest.mark.parametrize("positions", [3, 100, 700])
def test_answer_weights_are_the_root_again(positions):
    weights = answer_weights(root_coefficients(positions, encoder_bits(positions)), None, positions)
    exact = np.array([float(root_coefficient(k)) for k in range(positions)])
    assert weights * 2.0 ** encoder_bits(positions) == pytest.approx(exact, abs=1e-5)


def test_errors_of_the_encoder_in_use_are_the_predicted_ones():
    mechanism = SquareRoot(DAILY, 256)
    norm = sum(value * value for value in mechanism.coefficients)
    variances = np.cumsum(mechanism.answer_series() ** 2) * norm
    assert (np.sqrt(variances.mean()), np.sqrt(variances[-1])) == pytest.approx(square_root_errors(256), rel=1e-7)
    assert column_norm_squared(256) * 4.0 ** encoder_bits(256) == pytest.approx(norm, rel=1e-6)


@pytest.mark.parametrize("positions", [1, 2, 3, 10, 60])
def test_norms_of_weighted_columns_are_exact(positions):
    encoder = weighted_encoder(positions)
    rows, column, factors = encoder
    assert encoder.norms() == [sum((rows[t] * column[t - j] * factors[j]) ** 2 for t in range(j, positions)) for j in range(positions)]


@pytest.mark.parametrize("positions", [1, 2, 76, 77, 1023, 1024, 5000, 20_001])
def test_norms_of_weighted_columns_are_the_same_at_every_horizon(positions):
    """Later epochs, whose encoder is that of one position less, cost what the first does at the noise of the first."""
    norms = weighted_encoder(positions).norms()
    assert max(norms) <= NORM
    assert min(norms) > (1 - 2e-4) * NORM
    one = reach(Constraint(1), positions, 1, 1)
    assert WeightedSquareRoot(DAILY, positions).profile(Measure.NET, False, one).after(1) == NORM


@pytest.mark.parametrize(("positions", "mean", "worst"), [(16, 1.0068, 1.0083), (64, 1.0042, 1.0072), (256, 1.0031, 1.0046)])
def test_weighted_rows_and_columns_are_next_to_the_optimum(positions, mean, worst):
    norms, variances = weighted_encoder(positions).norms(), error_variances(positions)
    assert min(norms) / max(norms) > 1 - 2e-4
    assert math.sqrt(max(norms) * variances.mean()) == pytest.approx(mean * mean_optimum(positions).lower, rel=1e-4)
    assert math.sqrt(max(norms) * variances.max()) == pytest.approx(worst * worst_optimum(positions, 1e-4).lower, rel=2e-4)


@pytest.mark.parametrize("position", [0, 1, 7, 38, 39])
def test_variances_are_those_of_the_answers(position):
    weights = dict(WeightedSquareRoot(DAILY, 40).answer(position + 1))
    assert error_variances(40)[position] == pytest.approx(sum(weight**2 for weight in weights.values()))


def test_weights_of_rows_are_the_power_of_the_formula():
    weights = row_weights(1000)
    exact = [((20 * t + 1010) * (2 * (1000 - t) + 1)) ** (9 / 32) for t in range(1000)]
    unit = max(weights) / max(exact)
    assert all(-2 <= weight - unit * value <= 1 for weight, value in zip(weights, exact, strict=True))
    assert max(row_weights(20_000)) < 2**12 < 2 * max(row_weights(1))


@pytest.mark.parametrize("positions", [1, 2, 3, 5, 16, 100, 365, 1024, 3650, 16384])
def test_runs_repel_in_every_encoder_in_use(positions):
    assert runs_repel(root_coefficients(positions, encoder_bits(positions)))


@given(st.lists(st.integers(0, 30), min_size=2, max_size=7))
def test_runs_repel_only_if_they_do(drops):
    coefficients = list(itertools.accumulate(drops, initial=0))[::-1]
    if coefficients[0] == 0 or not runs_repel(coefficients):
        return
    matrix, total = gram(coefficients), len(coefficients)
    for a, b, c, d in itertools.combinations_with_replacement(range(total + 1), 4):
        if a < b < c < d or (a < b == c < d):
            end = 0 if d == total else matrix[a, d] - matrix[b, d]
            assert matrix[a, c] - matrix[b, c] - end <= 0


def test_coarse_rounding_is_noticed():
    assert not runs_repel(root_coefficients(365, 12))
    assert not declines([4, 2, 3])
    assert not runs_repel([4, 2, 2, 0])


@pytest.mark.parametrize("width", [1, 2, 4, 9])
def test_bounds_against_all_positions(width):
    coefficients = root_coefficients(9, encoder_bits(9))
    matrix = gram(coefficients).astype(float) / coefficients[0] ** 2
    bounds = alternating_bounds(scaled(coefficients), 6, width)
    everything = 0.0
    for k in range(1, width + 1):
        signs = (-1.0) ** np.arange(k)
        exact = max(signs @ matrix[np.ix_(p, p)] @ signs for p in itertools.combinations(range(width), k))
        everything = max(everything, exact)
        if k <= 6:
            assert exact <= bounds.one_cell[k - 1] <= exact * (1 + 1e-9 if k <= 3 else 1.2)
    dense = dense_bound(rows_from_the_last(scaled(coefficients), width), width)
    assert dense == pytest.approx(everything, abs=1e-9)


@pytest.mark.parametrize("positions", [30, 365])
def test_bounds_for_long_horizons_are_never_below_the_searched_ones(positions):
    c = scaled(root_coefficients(positions, encoder_bits(positions)))
    searched, quick = alternating_bounds(c, 9, positions), long_bounds(c, 9)
    # With two changes and two moves both are exact maxima over one run.
    for exact, above in ((searched.one_cell[1], quick.one_cell[1]), (searched.moves_stay[0], quick.moves_stay[0])):
        assert exact == pytest.approx(above, rel=1e-6)
    for k in range(9):
        assert quick.moves_stay[k] >= searched.moves_stay[k] * (1 - 1e-9)
        assert quick.moves_leave[k] >= searched.moves_leave[k] * (1 - 1e-9)
        assert quick.one_cell[k] >= locally_best(c, k + 1) * (1 - 1e-9)


def locally_best(c, k):
    """Return the norm of some good positions: evenly spread, then improved one at a time."""
    total = len(c)
    matrix = gram(c, float)
    signs = (-1.0) ** np.arange(k)
    positions = [i * total // k for i in range(k)]
    value = signs @ matrix[np.ix_(positions, positions)] @ signs
    for i in list(range(1, k)) * 3:
        for p in range(positions[i - 1] + 1, positions[i + 1] if i + 1 < k else total):
            moved = [*positions[:i], p, *positions[i + 1 :]]
            new = signs @ matrix[np.ix_(moved, moved)] @ signs
            positions, value = (moved, new) if new > value else (positions, value)
    return value


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_certified_bounds_lie_between_search_and_ten_percent_above(k):
    c = scaled(root_coefficients(120, encoder_bits(120)))
    found, certified = locally_best(c, k), alternating_bounds(c, k, 120).one_cell[k - 1]
    assert found * (1 - 1e-9) <= certified <= found * 1.1


def test_reference_points_of_a_year():
    year = SquareRoot(DAILY, 365)
    twelve = reach(Constraint(24), 365, 2, 2)  # periods of two ticks: an event in each
    together = lifetime(year.profile(Measure.ENTERED, False, twelve), Measure.ENTERED, twelve)
    assert together / sum(c * c for c in year.coefficients) == pytest.approx(98, abs=0.1)
    assert share(year, Constraint(12), Measure.ENTERED) == pytest.approx(25.06, abs=0.01)
    assert share(year, Constraint(None, 28), Measure.STATE) == pytest.approx(5.64, abs=0.01)
    assert share(year, Constraint(2), Measure.STATE) == pytest.approx(1.619, abs=1e-3)
    assert share(year, Constraint(12), Measure.STATE) < 7.1
    assert share(year, Constraint(12), Measure.STATE, grouped=True) < 13


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(1, 12), st.booleans())
def test_profiles_grow_with_changes_span_and_horizon(horizon, k, grouped):
    one = share(SquareRoot(DAILY, horizon), Constraint(k), Measure.NET, grouped)
    assert one <= (2 * k - 1 if grouped else k)
    assert one <= share(SquareRoot(DAILY, horizon), Constraint(k + 1), Measure.NET, grouped)
    assert share(SquareRoot(DAILY, horizon), Constraint(k, 3), Measure.NET, grouped) <= one * (1 + 1e-9)


def test_many_changes_continue_the_table():
    year = SquareRoot(DAILY, 365)
    limits = reach(Constraint(300), 365, 1, 1)
    profile = year.profile(Measure.NET, False, limits)
    assert len(profile.stay) == 300
    assert list(profile.stay) == sorted(profile.stay)
    assert profile.after(128) <= 2 * profile.after(64)
    assert lifetime(profile, Measure.NET, limits) < 65 * profile.stay[0]
