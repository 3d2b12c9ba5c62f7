"""Rounded Gaussian noise step by step: exact probabilities, exact rounding, and arrays that do what single draws do."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from fractions import Fraction

import pytest

from dbext.errors import BadArgument
from dbext.mechanisms import gaussian_plain, sampling, sampling_plain
from dbext.mechanisms.gaussian_plain import GRAIN, Grain
from tests.unit.mechanisms.dictated import Dictated, exact_probability

pytest.importorskip("numpy")
import mpmath
import numpy as np

from dbext.mechanisms import gaussian_wide, sampling_wide

#: How many draws are gone through in full for a die of so many sides.
DEPTHS = {2: 12, 4: 9, 8: 8, 18: 6}

FORMS = pytest.mark.parametrize("wide", [False, True], ids=["plain", "wide"])


def bracketed(results, outcome, expected, loosest):
    """Say whether what is decided, and what is left undecided, enclose a probability, and tightly enough."""
    left = 1 - sum(results.values())
    return results[outcome] <= expected <= results[outcome] + left and left < loosest


def kept(cell, sides, low, high):
    """Return the chance that a candidate is kept, for x uniform between two ends."""
    return mpmath.quad(lambda x: mpmath.exp(-x * (2 * cell + x) / sides), [low, high]) / (high - low)


@pytest.mark.parametrize(("cell", "sides"), [(0, 2), (1, 4), (0, 8), (1, 8), (3, 8), (2, 18)])
@pytest.mark.parametrize(("word", "digits"), [(1, [0]), (1, [1]), (2, [2]), (1, [1, 0])])
def test_a_run_is_even_with_the_probability_of_its_exponential(cell, sides, word, digits):
    """Every short sequence of draws, weighed exactly, for x known by its first digits: Karney's algorithm B, ties and all."""
    low = sum(Fraction(value, 2 ** (word * place)) for place, value in enumerate(digits, 1))
    high = low + Fraction(1, 2 ** (word * len(digits)))
    results = exact_probability(lambda u: gaussian_plain._even_run(u, cell, list(digits), sides, 2**word), DEPTHS[sides])
    expected = Fraction(str(kept(cell, sides, float(low), float(high))))
    assert bracketed(results, True, expected, 0.4)
    assert bracketed(results, False, 1 - expected, 0.4)


def test_the_bracket_tells_a_run_that_leaves_ties_out(monkeypatch):
    """Equal first digits taken as `not below` change the probability of a run, and the enumeration sees it."""
    monkeypatch.setattr(gaussian_plain, "_less", lambda uniform, one, other, limit: one[0] < other[0])
    results = exact_probability(lambda u: gaussian_plain._even_run(u, 1, [1], 4, 2), DEPTHS[4])
    assert not bracketed(results, True, Fraction(str(kept(1, 4, 0.5, 1))), 0.4)


@pytest.mark.parametrize(("cell", "sides"), [(0, 2), (1, 3), (1, 4), (3, 8)])
def test_a_coin_shows_heads_with_its_probability(cell, sides):
    results = exact_probability(lambda u: gaussian_plain._heads(u, cell, [1], sides, 2), 14)
    assert bracketed(results, True, (2 * cell + Fraction(3, 4)) / sides, 0.01)


@pytest.mark.parametrize(("steps", "word"), [(1, 1), (1, 3), (2, 1), (3, 2)])
def test_cells_have_the_probabilities_of_their_exponentials(steps, word):
    results = exact_probability(lambda u: gaussian_plain._cell(u, Grain(word, steps)), 12 // word + 1)
    weights = [math.exp(-j * j / (2 * steps**2)) for j in range(60)]
    for cell in range(4):
        assert bracketed(results, cell, weights[cell] / sum(weights), 0.01)


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("bits", [1, 2, 3, 62, 124, 700])
def test_the_starts_of_cells_enclose_the_exact_sums(steps, bits):
    """Against theta functions to many more digits, out to where the last start is all ones."""
    starts = gaussian_plain.cell_starts(steps, bits)
    with mpmath.workdps(bits // 3 + 80):
        weights = [mpmath.exp(-mpmath.mpf(j * j) / (2 * steps**2)) for j in range(len(starts))]
        total = (mpmath.jtheta(3, 0, mpmath.exp(-mpmath.mpf(1) / (2 * steps**2))) + 1) / 2
        for start, before in zip(starts, itertools.accumulate(weights, initial=mpmath.mpf(0)), strict=False):
            assert start <= before / total * 2**bits < start + 2
    assert starts[0] == 0
    assert starts[-1] == 2**bits - 1
    assert starts == sorted(starts)


@pytest.mark.parametrize("grain", [GRAIN, Grain(62, 1), Grain(2, 3)])
@pytest.mark.parametrize("cell", [0, 1, 5, 63, 64, 200])
def test_the_coins_of_all_runs_together_make_the_exponent(monkeypatch, grain, cell):
    """Whatever the cell, the coin's probability is at most one, and runs / sides is 1 / (2 steps^2)."""
    runs = []
    monkeypatch.setattr(gaussian_plain, "_cell", lambda uniform, grain: cell)
    monkeypatch.setattr(gaussian_plain, "_even_run", lambda uniform, cell, x, sides, limit: runs.append(sides) or True)
    assert gaussian_plain.candidate(Dictated([1]), grain) == (cell, [1])
    assert sum(Fraction(1, sides) for sides in runs) == Fraction(1, 2 * grain.steps**2)
    assert 2 * cell + 1 <= runs[0]
    if grain.steps == 1:
        assert runs == [2 * cell + 2] * (cell + 1), "Karney's choice"


def exactly_rounded(sigma_squared, height):
    """Round sigma * height for a rational height: half up."""
    return (math.isqrt(int(4 * sigma_squared * height**2)) + 1) // 2


@pytest.mark.parametrize("sigma_squared", [Fraction(1, 100), Fraction(4, 9), Fraction(9), Fraction(2**80), Fraction(10**40 + 1, 3 * 10**7)])
@pytest.mark.parametrize("grain", [GRAIN, Grain(1, 1), Grain(3, 8)])
def test_rounding_holds_whatever_digits_follow(sigma_squared, grain):
    """What the first digits decide, both ends of what they leave open round to; where they do not, more are drawn."""
    uniform = sampling_plain.Uniform(sampling.os.urandom)
    for cell in (0, 1, 7, 30):
        x = [uniform.below(grain.limit)]
        drawn = []

        class Recorded:
            @staticmethod
            def below(limit, drawn=drawn):
                drawn.append(uniform.below(limit))
                return drawn[-1]

        result = gaussian_plain.rounded(Recorded, sigma_squared.numerator, sigma_squared.denominator, cell, x, grain)
        digits = x + drawn
        low = cell + sum(Fraction(value, 2 ** (grain.word * place)) for place, value in enumerate(digits, 1))
        high = low + Fraction(1, 2 ** (grain.word * len(digits))) - Fraction(1, 2**2000)
        assert exactly_rounded(sigma_squared, low / grain.steps) == result == exactly_rounded(sigma_squared, high / grain.steps)


def test_heights_beside_a_half_are_told_apart():
    """sigma 2, eight cells: a height of 1/4 is the border of 0 and 1."""
    full = GRAIN.limit - 1
    assert gaussian_plain.rounded(Dictated(), 4, 1, 2, [0], GRAIN) == 1
    assert gaussian_plain.rounded(Dictated(), 4, 1, 1, [full - 1], GRAIN) == 0
    assert gaussian_plain.rounded(Dictated([full, 5]), 4, 1, 1, [full], GRAIN) == 0
    nearest, unsure = gaussian_wide._nearest(np.array([2, 1, 1, 3]), np.array([0, full, 2**61, 0]), 4, 1, GRAIN)
    assert unsure.tolist() == [True, True, False, False]
    assert nearest.tolist()[2:] == [0, 1]


@pytest.mark.parametrize(
    "sigma_squared", [Fraction(1, 10**400), Fraction(1, 100), Fraction(4, 9), Fraction(4), Fraction(10**9, 7), Fraction(2**60, 3), Fraction(2**90, 11)]
)
def test_certain_floats_round_as_whole_numbers_do(sigma_squared):
    """First words at random, and those nearest to a border, one by one so that the margin is their own: what calls itself certain is right."""
    variance, divisor = sigma_squared.numerator, sigma_squared.denominator
    words = [int.from_bytes(sampling.os.urandom(8), "little") >> 2 for _ in range(400)]
    lanes = [(place % 60, word) for place, word in enumerate(words)]
    for half in range(1, min(200, int(30 * sigma_squared) + 1), 2):  # heights where 2 sigma t is an odd number
        border = math.isqrt(half**2 * divisor * GRAIN.steps**2 * 4**62 // (4 * variance))
        near = [border + shift for away in range(20) for shift in (-(1 << away), 0, 1 << away)]
        lanes += [divmod(place, GRAIN.limit) for place in near if place >> 62 < 64]
    certain = 0
    for cell, word in lanes:
        nearest, unsure = gaussian_wide._nearest(np.array([cell]), np.array([word]), variance, divisor, GRAIN)
        if not unsure[0]:
            certain += 1
            for end in (Fraction(word, GRAIN.limit), Fraction(word + 1, GRAIN.limit)):
                assert exactly_rounded(sigma_squared, (cell + end) / GRAIN.steps) == nearest[0]
    assert certain > 300


def test_deviations_too_large_for_doubles_are_never_certain():
    _, unsure = gaussian_wide._nearest(np.arange(60), np.zeros(60, dtype=np.int64), 10**400, 1, GRAIN)
    assert unsure.all()


@pytest.mark.parametrize("grain", [GRAIN, Grain(3, 8), Grain(1, 1), Grain(4, 1), Grain(5, 1), Grain(7, 4), Grain(9, 8)], ids=str)
def test_a_lane_gone_through_again_does_the_same(grain):
    """On what a lane has drawn, single draws come to the same end as the arrays did, without one fresh digit."""
    uniform = sampling_wide.Uniform(sampling.os.urandom)
    lanes = gaussian_wide._Lanes(uniform, grain)
    cells, x, stays, tied = gaussian_wide._candidates(lanes, 2000, grain)
    uniform.plain = Dictated()  # has nothing to give
    for lane in np.flatnonzero(~tied).tolist():
        expected = (int(cells[lane]), [int(x[lane])]) if stays[lane] else None
        assert lanes.again(lane) == expected
    for lane in np.flatnonzero(tied & (2 * cells < grain.sides)).tolist():
        with pytest.raises(IndexError):
            lanes.again(lane)
    assert tied.any() == (grain.word < 62)


@pytest.mark.parametrize("sigma_squared", [Fraction(4, 9), Fraction(10**9, 7), Fraction(2**80, 3)])
def test_rounding_late_and_early_agree(monkeypatch, sigma_squared):
    """With a margin so wide that whole numbers decide every lane, the same bytes give the same noise."""
    early = sampling._rounded_gaussian(sigma_squared, 5000, wide=True, source=counter())
    monkeypatch.setattr(gaussian_wide, "_ROUNDING", 1.0)
    assert sampling._rounded_gaussian(sigma_squared, 5000, wide=True, source=counter()) == early


def counter():
    """Return a source that hands out the same bytes to each that asks the same."""
    state = itertools.count()

    def source(size):
        return b"".join((next(state) * 0x9E3779B97F4A7C15 % 2**64 >> 24).to_bytes(5, "little") for _ in range(size // 5 + 1))[:size]

    return source


@FORMS
@pytest.mark.parametrize("grain", [GRAIN, Grain(2, 8), Grain(1, 1)], ids=str)
def test_the_source_decides_everything(wide, grain):
    """The same bytes give the same noise, so that nothing but the source is random; a call without one takes fresh bytes."""
    one, other = (sampling._rounded_gaussian(Fraction(50), 300, wide=wide, source=counter(), grain=grain) for _ in range(2))
    assert one == other
    assert sampling._rounded_gaussian(Fraction(10**6), 50, wide=wide) != sampling._rounded_gaussian(Fraction(10**6), 50, wide=wide)


@FORMS
@pytest.mark.parametrize(
    "sigma_squared", [Fraction(1, 10**400), Fraction(10**9, 7), Fraction(2**96), Fraction(10**40 + 1, 3), Fraction(2**300, 5), Fraction(10**400)]
)
def test_deviations_of_any_length(wide, sigma_squared):
    drawn = sampling._rounded_gaussian(sigma_squared, 5000, wide=wide)
    assert all(type(value) is int for value in drawn)
    if sigma_squared < 1:
        assert set(drawn) == {0}
    else:
        square = sum(Fraction(value * value) for value in drawn) / 5000 / sigma_squared
        assert Fraction(83, 100) < square < Fraction(117, 100), "a chance of exp(-2500 (0.17 - ln 1.17)) = 8e-15 (Chernoff)"
        assert len({value % 64 for value in drawn}) == 64, "the last bits are as random as the first"


@pytest.mark.parametrize("size", [0, 1, 99, 100, 40_000])
def test_as_many_draws_as_asked_for(size):
    assert len(sampling.rounded_gaussian(Fraction(5), size)) == size


def test_numpy_is_not_loaded_for_a_few_draws():
    """A new session that publishes a handful does not wait for it; one that draws many does."""
    code = (
        "import sys; from fractions import Fraction; from dbext.mechanisms import sampling;"
        "sampling.rounded_gaussian(Fraction(5), 5000); assert 'numpy' not in sys.modules;"
        "sampling.rounded_gaussian(Fraction(5), 50000); assert 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_seed_is_reachable_from_the_public_function():
    function = sampling.rounded_gaussian
    assert function.__code__.co_varnames[: function.__code__.co_argcount] == ("sigma_squared", "size")
    assert function.__code__.co_kwonlyargcount == 0


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1)])
def test_impossible_parameters_are_refused(value):
    with pytest.raises(BadArgument):
        sampling.rounded_gaussian(value, 1)
