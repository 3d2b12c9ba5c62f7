"""Quantiles from noisy counts: against enumeration of small worlds, isotonic regression by definition, and simulated publications."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

from dbext.mechanisms.mixed_error import ErrorLaw
from dbext.mechanisms.quantiles import Sums, _least, band, cuts, quantile
from dbext.mechanisms.sampling import draw
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.query.bounds import Bounds
from dbext.query.column import Column
from dbext.query.predicate import ColumnRef
from dbext.query.spread import Spread, margin, spreads_of
from tests.chance import most

AGE = ColumnRef("age", Column("age", 1, "pg_catalog.int4", "N", "integer"))
SCORE = ColumnRef("score", Column("score", 1, "pg_catalog.float8", "N", "float"))
NOTHING = ErrorLaw(((DiscreteLaplace(Fraction(1, 1000)), 1.0),))
SHARES = [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10), Fraction(1, 3), Fraction(999, 1000)]
BLOCKS = [(1,), (2, 1), (3, 1), (4, 2, 1), (5, 1), (9, 3, 1)]


def exact(counts, share):
    """percentile_disc: the first value that at least the share of all values do not exceed."""
    total, below = sum(counts), 0
    for value, count in enumerate(counts):
        below += count
        if below >= share * total:
            return value
    raise AssertionError("never reached")


def by_blocks(counts, blocks):
    return [[sum(counts[start : start + block]) for start in range(0, len(counts), block)] for block in blocks]


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("values", [1, 2, 5, 7])
def test_without_noise_quantiles_are_exact(blocks, values):
    """All counts of up to 3 entries for each value, or a thousand random ones."""
    worlds = itertools.product(range(4), repeat=values) if values < 6 else (random.Random(n).choices(range(4), k=values) for n in range(999))
    bands = {share: band((NOTHING,) * len(blocks), values, blocks, share, 0.05) for share in SHARES}
    for counts in worlds:
        for share, made in bands.items():
            found = quantile(made, by_blocks(counts, blocks))
            assert found.value == exact(counts, share) if sum(counts) else found.value == 0
            assert found.first <= found.value <= found.last


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("values", [2, 3, 8, 10, 17])
def test_blocks_on_both_sides_of_a_cut_are_all_values_once(blocks, values):
    for j, runs in enumerate(cuts(values, blocks)):
        below = [v for run in runs for n in range(run.start, run.cut) for v in range(n * blocks[run.length], (n + 1) * blocks[run.length])]
        above = [
            v for run in runs for n in range(run.resume, run.end) for v in range(n * blocks[run.length], min((n + 1) * blocks[run.length], values))
        ]
        assert sorted(below) == list(range(j + 1))
        assert sorted(above) == list(range(j + 1, values))


def isotonic(values):
    """The isotonic regression by its definition as a maximum of least means (for each place, over where blocks begin and end)."""
    return [
        max(min(Fraction(sum(values[a : b + 1]), b - a + 1) for b in range(j, len(values))) for a in range(j + 1)) for j in range(len(values))
    ]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_the_estimate_is_where_the_isotonic_regression_reaches_zero(length):
    for noisy in itertools.product(range(-2, 3), repeat=length):
        regression = isotonic(noisy)
        assert _least(noisy) == next((j for j, value in enumerate(regression) if value >= 0), length)


NOISES = [DiscreteLaplace(Fraction(3)), DiscreteLaplace(Fraction(1, 3)), RoundedGaussian(Fraction(9)), RoundedGaussian(Fraction(1, 5))]


def worlds():
    """Counts by value: none, few, many in one place, many everywhere, two crowds."""
    return {
        "empty": [0] * 24,
        "one": [0] * 11 + [1] + [0] * 12,
        "few": [1, 0, 0] * 8,
        "one place": [0] * 7 + [400] + [0] * 16,
        "everywhere": [50] * 24,
        "two crowds": [200, *[0] * 22, 201],
    }


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("blocks", [(1,), (5, 1), (9, 3, 1)])
def test_intervals_and_rank_errors_hold_as_often_as_they_say(noise, blocks):
    """1,000 publications of each world: what is true is outside no more often than 5%."""
    rounds, allowed = 1000, most(1000, 0.05)
    law = ErrorLaw(((noise, 1.0), (noise, 1.0)))
    for counts in worlds().values():
        for share in (Fraction(1, 2), Fraction(1, 10)):
            made = band((law,) * len(blocks), len(counts), blocks, share, 0.05)
            true, total, missed, far = by_blocks(counts, blocks), sum(counts), 0, 0
            sizes = [len(one) for one in true]
            drawn = iter(draw(noise, 2 * rounds * sum(sizes)))
            for _ in range(rounds):
                noisy = [[count + next(drawn) + next(drawn) for count in one] for one in true]
                found = quantile(made, noisy)
                missed += total > 0 and not found.first <= exact(counts, share) <= found.last
                up_to, before = sum(counts[: found.value + 1]), sum(counts[: found.value])
                far += max(share * total - up_to, before - share * total, 0) > made.rank_error
            assert missed <= allowed
            assert far <= allowed


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("blocks", [(1,), (3, 1)])
def test_the_interval_is_what_the_tests_of_all_values_leave(noise, blocks):
    """Against the definition: G from the blocks on both sides, the widths from the law of their sum."""
    law, values, share = ErrorLaw(((noise, 1.0),)), 8, Fraction(1, 3)
    made, sums = band((law,) * len(blocks), values, blocks, share, 0.05), Sums((law,) * len(blocks), 2 / 3, 1 / 3)
    for number in range(300):
        counts = [draw(noise, 12)[: -(-values // block)] for block in blocks]
        counts[-1][number % values] += number % 40
        left = set()
        for j in range(values):
            at, before = (_tested(made, sums, counts, blocks, k) for k in (j, j - 1))
            if (at is None or at[0] >= -at[1]) and (before is None or before[0] < before[1]):
                left.add(j)
        found = quantile(made, counts)
        assert (found.first, found.last) == (min({found.value, *left}), max({found.value, *left}))


def _tested(made, sums, counts, blocks, j):
    """G(j) and its width; None where nothing is to be tested."""
    if not 0 <= j < made.values - 1:
        return None
    runs = cuts(made.values, blocks)[j]
    below = sum(sum(counts[run.length][run.start : run.cut]) for run in runs)
    above = sum(sum(counts[run.length][run.resume : run.end]) for run in runs)
    sizes = [(run.length, run.cut - run.start, run.end - run.resume) for run in runs]
    return (1 - made.share) * below - made.share * above, sums.half_width(sizes, 0.05)


def test_intervals_of_an_empty_table_are_as_wide_as_the_bounds():
    made = band((ErrorLaw(((DiscreteLaplace(Fraction(4)), 1.0),)),), 20, (1,), Fraction(1, 2), 0.05)
    wide = [quantile(made, [draw(DiscreteLaplace(Fraction(4)), 20)]) for _ in range(200)]
    assert sum((one.first, one.last) == (0, 19) for one in wide) > 150


def test_half_widths_are_those_of_the_sum():
    """Against the law of the sum, by simulation: at most 5% are beyond, and not far fewer where the noise is Gaussian (4.5% of 12,000)."""
    tries = 12_000
    for noise in NOISES:
        laws = ErrorLaw(((noise, 1.0), (noise, 2.0))), ErrorLaw(((noise, 1.0),))
        width = Sums(laws, 0.3, 0.7).half_width([(0, 5, 0), (1, 0, 9)], 0.05)
        weights = [0.3, 0.6] * 5 + [0.7] * 9
        drawn = draw(noise, tries * len(weights))
        sums = [sum(w * x for w, x in zip(weights, drawn[n::tries], strict=True)) for n in range(tries)]
        beyond = sum(abs(one) > width for one in sums)
        assert beyond <= most(tries, 0.05)
        if isinstance(noise, RoundedGaussian) and noise.sigma_squared > 1:
            assert beyond > 0.03 * tries


def test_few_values_need_no_blocks_and_many_do():
    """A second length of block pays from some 60 values on where noise adds up in epsilon, from some 12 where it adds up in rho."""

    def lengths(values, *, pure):
        return [one.block for one in spreads_of(AGE, Bounds(Fraction(0), Fraction(values - 1)), pure=pure)]

    assert lengths(20, pure=True) == lengths(55, pure=True) == [1]
    assert lengths(100, pure=True) == [10, 1]
    assert lengths(10, pure=False) == [1]
    assert lengths(30, pure=False) == [6, 1]
    assert len(lengths(4096, pure=True)) == 3
    for pure in (True, False):
        for values in (1, 2, 17, 500, 4096):
            made = spreads_of(AGE, Bounds(Fraction(0), Fraction(values - 1)) if values > 1 else Bounds(Fraction(0), Fraction(0)), pure=pure)
            assert made[-1].block == 1
            assert all(a.block % b.block == 0 and b.parent == a.block for a, b in itertools.pairwise(made))


def test_rounding_moves_a_value_by_less_than_the_margin():
    for grid in (1, 2, 5):
        made = Spread(AGE, Bounds(Fraction(0), Fraction(100), Fraction(grid)))
        assert margin(made) == max(abs(v - grid * round(Fraction(v, grid) + Fraction(1, 10**6))) for v in range(100))
    assert margin(Spread(SCORE, Bounds(Fraction(0), Fraction(1), Fraction(1, 10)))) == Fraction(1, 20)
