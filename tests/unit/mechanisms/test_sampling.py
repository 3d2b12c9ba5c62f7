"""The samplers' arithmetic: exact probabilities of small steps, both forms, numbers too long for 64 bits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from dbext.errors import BadArgument
from dbext.mechanisms import sampling, sampling_plain, sampling_wide
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from tests.chance import away
from tests.unit.mechanisms.dictated import exact_probability

pytest.importorskip("numpy")
import numpy as np

FORMS = pytest.mark.parametrize("wide", [False, True], ids=["plain", "wide"])


@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(3, 2)])
def test_decay_has_the_probability_of_its_series(ratio):
    """Every sequence of up to five draws, weighed exactly: what is decided brackets exp(-ratio)."""
    results = exact_probability(lambda u: sampling_plain.decays(u, ratio.numerator, ratio.denominator), 6)
    assert results[True] <= math.exp(-ratio) + 1e-12
    assert 1 - results[False] >= math.exp(-ratio) - 1e-12
    assert results[True] + results[False] > Fraction(9, 10)


def test_the_number_of_throws_matters():
    """A coin that stops one throw early would have another probability: the test above can tell."""
    first = exact_probability(lambda u: sampling_plain.decays(u, 1, 2), 3)
    assert first[True] == Fraction(1, 2), "no throw succeeded"
    assert first[False] == Fraction(1, 2) * Fraction(3, 4)


def test_uniform_numbers_use_every_value_and_no_bit_twice():
    taken = []

    def source(size):
        taken.append(size)
        return bytes(range(size))

    uniform = sampling_plain.Uniform(source)
    drawn = [uniform.below(256) for _ in range(64)]
    assert drawn == list(range(64)), "eight bits each, in order"
    assert taken == [64]
    assert uniform.below(1) == 0


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 255, 256, 257, 70_000, 2**40 + 1, 2**62, 2**62 + 1, 2**90])
def test_wide_uniform_numbers_lie_below_their_limit(limit):
    drawn = sampling_wide.Uniform(sampling.os.urandom).below(limit, 10_000)  # one of 257 numbers is left out with a chance of 3e-15
    assert len(drawn) == 10_000
    assert min(drawn) >= 0
    assert max(drawn) < limit
    if limit <= 257:
        assert set(drawn.tolist()) == set(range(limit))
    if limit >= 2**40:
        assert max(drawn) > limit // 100 * 98


@pytest.mark.parametrize("denominator", [3, 2**61 + 1, 2**62, 2**62 + 1, 2**70, 3 * 10**40])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1)])
def test_coins_of_any_length(denominator, share):
    numerators = np.full(20_000, int(share * denominator), dtype=object if denominator >= 2**63 else np.int64)
    heads = sampling_wide._coins(sampling_wide.Uniform(sampling.os.urandom), numerators, denominator).mean()
    exact = int(share * denominator) / denominator
    assert abs(heads - exact) <= away(20_000, exact)


def test_a_tie_of_the_first_62_bits_is_decided_by_the_rest(monkeypatch):
    uniform = sampling_wide.Uniform(sampling.os.urandom)
    denominator = 3 * 2**62
    numerator = denominator // 2 + 1  # its first 62 bits are those of one half, and 3 of 3 * 2^62 are left
    monkeypatch.setattr(uniform, "below", lambda limit, size: np.full(size, limit // 2))
    asked = []

    def one_below(limit):
        asked.append(limit)
        return len(asked) % 3 * 2**62

    monkeypatch.setattr(uniform, "one_below", one_below)
    rest = numerator * 2**62 % denominator
    success = sampling_wide._coins(uniform, np.full(6, numerator, dtype=object), denominator)
    assert asked == [denominator] * 6
    assert success.tolist() == [value * 2**62 < rest for value in (1, 2, 0, 1, 2, 0)]


@FORMS
@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 10**30), Fraction(2**61, 3), Fraction(10**25 + 1, 7), Fraction(7, 2**65)])
def test_laplace_of_any_length(wide, scale):
    """Tiny scales give zeros, huge ones stay exact whole numbers of the right size."""
    drawn = sampling._discrete_laplace(scale, 8000, wide=wide)
    assert all(type(value) is int for value in drawn)
    if scale < Fraction(1, 100):
        assert set(drawn) == {0}
    else:
        mean = sum(abs(value) for value in drawn) / 8000
        assert 0.9 * scale < mean < 1.1 * scale, "a chance of exp(-8000 (0.1 - ln 1.1)) = 5e-17 (Chernoff)"
        assert len({value % 64 for value in drawn}) == 64, "the last bits are as random as the first"


@pytest.mark.parametrize("size", [0, 1, 1999, 2000, 40_000])
def test_as_many_draws_as_asked_for(size):
    assert len(sampling.discrete_laplace(Fraction(5), size)) == size
    assert len(sampling.rounded_gaussian(Fraction(5), size)) == size
    assert len(sampling.draw(DiscreteLaplace(Fraction(5)), size)) == size
    assert len(sampling.draw(RoundedGaussian(Fraction(5)), size)) == size


@FORMS
def test_the_source_decides_everything(wide):
    """The same bytes give the same noise, so that nothing but the source is random; a call without one takes fresh bytes."""

    def counter():
        state = itertools.count()

        def source(size):
            return b"".join((next(state) * 2654435761 % 2**32).to_bytes(4, "little") for _ in range(size // 4 + 1))[:size]

        return source

    for draw in (sampling._discrete_laplace, sampling._rounded_gaussian):
        assert draw(Fraction(50), 500, wide=wide, source=counter()) == draw(Fraction(50), 500, wide=wide, source=counter())
        assert draw(Fraction(10**6), 50, wide=wide) != draw(Fraction(10**6), 50, wide=wide)


def test_no_seed_is_reachable_from_the_public_functions():
    for function in (sampling.draw, sampling.discrete_laplace, sampling.rounded_gaussian):
        assert set(function.__code__.co_varnames[: function.__code__.co_argcount]) <= {"noise", "scale", "sigma_squared", "size"}
        assert function.__code__.co_kwonlyargcount == 0


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1)])
def test_impossible_parameters_are_refused(value):
    for function in (sampling.discrete_laplace, sampling.rounded_gaussian):
        with pytest.raises(BadArgument):
            function(value, 1)
