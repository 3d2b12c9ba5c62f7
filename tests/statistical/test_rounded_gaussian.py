"""Rounded Gaussian noise against its exact law: it passes with fractions of any word length, and every shortcut in the algorithm fails.

Thresholds leave a false alarm a chance below 1e-9 a test.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from dbext.mechanisms import gaussian_plain, gaussian_wide, sampling, sampling_wide
from dbext.mechanisms.gaussian_plain import GRAIN, Grain

DRAWS = 60_000
FALSE_ALARM = 1e-10

FORMS = pytest.mark.parametrize("wide", [False, True], ids=["plain", "wide"])
SQUARES = [Fraction(1, 9), Fraction(4, 9), Fraction(9), Fraction(10**30 + 7, 9 * 10**28), Fraction(2252801, 512)]
#: Words so short that most candidates are decided late, and Karney's own cells.
SHORT = [Grain(1, 1), Grain(2, 8), Grain(5, 1)]


def share(low: float, high: float) -> float:
    """Return the normal probability of an interval, from the tail that it lies in."""
    if low < 0 < high:
        return (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
    near, far = sorted((abs(low), abs(high)))
    return (math.erfc(near / math.sqrt(2)) - math.erfc(far / math.sqrt(2))) / 2


def chance(drawn: list[int], sigma: float) -> float:
    """Return a bound on how likely counts are to lie this far from the rounded law: relative entropy of some forty cuts and both tails.

    With n draws in k classes, P(n D >= x) <= e^-x (e x / (k - 1))^(k - 1) for x > k - 1 (Agrawal 2020). It holds for classes that hardly
    any draw is in, too, which chi-square is wrong about.
    """
    width = max(1, round(sigma / 8))
    cuts = [(start, start + width) for start in range(-20 * width - width // 2, 20 * width, width)]
    masses = [share((start - 0.5) / sigma, (end - 0.5) / sigma) for start, end in cuts]
    cuts = [cut for cut, mass in zip(cuts, masses, strict=True) if mass * len(drawn) >= 20]
    counts = Counter(drawn)
    expected = [len(drawn) * share((start - 0.5) / sigma, (end - 0.5) / sigma) for start, end in cuts]
    observed = [sum(counts[value] for value in range(*cut)) for cut in cuts]
    for edge, tail in ((cuts[0][0], -1), (cuts[-1][1], 1)):
        expected.append(len(drawn) * share(*sorted(((edge - 0.5) / sigma, tail * 40.0))))
        observed.append(sum(count for value, count in counts.items() if (value >= edge) == (tail > 0) and (value < edge) == (tail < 0)))
    entropy = sum(o * math.log(o / e) if e else math.inf for o, e in zip(observed, expected, strict=True) if o)
    freedom = len(expected) - 1
    return math.exp(freedom * (1 + math.log(entropy / freedom)) - entropy) if freedom < entropy < math.inf else float(entropy <= freedom)


@FORMS
@pytest.mark.parametrize("sigma_squared", SQUARES, ids=str)
def test_the_law(sigma_squared, wide):
    drawn = sampling._rounded_gaussian(sigma_squared, DRAWS, wide=wide)
    sigma = math.sqrt(sigma_squared)
    assert chance(drawn, sigma) > FALSE_ALARM
    for wrong in (0.9, 1.1):
        assert chance(drawn, wrong * sigma) < FALSE_ALARM**2


@FORMS
@pytest.mark.parametrize("grain", SHORT, ids=str)
@pytest.mark.parametrize("sigma_squared", [Fraction(4, 9), Fraction(9), Fraction(2252801, 512)], ids=str)
def test_the_law_holds_where_ties_abound(sigma_squared, grain, wide):
    """Nearly all candidates are gone through again and most heights rounded late; the law is the same."""
    assert chance(sampling._rounded_gaussian(sigma_squared, DRAWS // 3, wide=wide, grain=grain), math.sqrt(sigma_squared)) > FALSE_ALARM


@pytest.mark.parametrize(("cell", "steps", "word"), [(0, 1, 1), (0, 1, 2), (1, 2, 1), (3, 2, 2)])
def test_lanes_are_kept_with_the_probability_of_their_exponential(monkeypatch, cell, steps, word):
    """Given the cell and the first word of x: what arrays decide at once and what is gone through again, taken together."""
    monkeypatch.setattr(gaussian_plain, "_cell", lambda uniform, grain: cell)
    grain, everyone = Grain(word, steps), np.arange(DRAWS // 2)
    lanes = gaussian_wide._Lanes(sampling_wide.Uniform(os.urandom), grain)
    x = lanes.draw(everyone, grain.limit)
    kept, tied = gaussian_wide._even_runs(lanes, everyone, np.full(x.size, cell), x, grain)
    assert 0.03 < tied.mean() < 0.7
    for lane in np.flatnonzero(tied).tolist():
        kept[lane] = lanes.again(lane) is not None
    for value in range(grain.limit):
        inner = (value + (np.arange(1000) + 0.5) / 1000) / grain.limit
        expected = np.exp(-inner * (2 * cell + inner) / grain.sides).mean()
        of_it = kept[x == value]
        assert abs(of_it.mean() - expected) < 6.5 * math.sqrt(expected * (1 - expected) / of_it.size)


def test_draws_decided_late_stand_in_their_place():
    """Of many small calls, which end in the midst of a candidates' array: what is cut off is as good as what is kept."""
    drawn = [value for _ in range(1500) for value in sampling._rounded_gaussian(Fraction(9), 20, wide=True, grain=Grain(3, 1))]
    assert chance(drawn, 3.0) > FALSE_ALARM


@FORMS
@pytest.mark.parametrize("sigma_squared", [Fraction(2**40), Fraction(2**80), Fraction(2**131, 3)], ids=str)
def test_the_law_of_large_deviations(sigma_squared, wide):
    """Beside which rounding is nothing: against the normal law itself."""
    drawn = sampling._rounded_gaussian(sigma_squared, DRAWS, wide=wide)
    normalised = np.array([value / math.sqrt(sigma_squared) for value in drawn])
    assert kstest(normalised, "norm").pvalue > FALSE_ALARM
    for wrong in (0.9, 1.1):
        assert kstest(normalised * wrong, "norm").pvalue < FALSE_ALARM**2
    moments = [1, 3, 15, 105, 945]  # of the powers 2, 4, ..., 10; the deviation of power n is below that of power 2 n
    for place in (1, 2):
        power = float(np.mean(normalised ** (2 * place)))
        assert abs(power - moments[place - 1]) < 6.5 * math.sqrt(moments[2 * place - 1] / DRAWS)
    assert abs(float(np.mean(normalised))) < 6.5 / math.sqrt(DRAWS)
    residues = Counter(value % 16 for value in drawn)
    assert chi2.sf(sum((residues[value] - DRAWS / 16) ** 2 for value in range(16)) / (DRAWS / 16), 15) > FALSE_ALARM


@FORMS
def test_tiny_deviations_round_to_zero_save_for_the_share_beyond_one_half(wide):
    assert set(sampling._rounded_gaussian(Fraction(1, 100), 3000, wide=wide)) <= {-1, 0, 1}
    rare = Fraction(1, 36)  # three deviations reach one half: 27 in 10,000
    drawn = sampling._rounded_gaussian(rare, DRAWS, wide=wide)
    beyond = math.erfc(3 / math.sqrt(2))
    assert abs(sum(value != 0 for value in drawn) - DRAWS * beyond) < 7 * math.sqrt(DRAWS * beyond)


def rounded_down(uniform, variance, divisor, cell, x, grain):
    return int(math.sqrt(variance / divisor) * (cell + x[0] / grain.limit) / grain.steps)


def geometric(uniform, grain):
    """Karney's first step without his second."""
    return int(-2 * math.log(1 - int.from_bytes(os.urandom(6), "little") / 2**48))


def first_words_only(uniform, one, other, limit):
    return one[0] < other[0]


def first_cell(uniform, grain):
    drawn = uniform.below(grain.limit)
    return max(place for place, start in enumerate(gaussian_plain.cell_starts(grain.steps, grain.word)) if start <= drawn)


@pytest.mark.parametrize(
    ("name", "broken", "grain"),
    [
        ("rounded", rounded_down, GRAIN),
        ("_cell", geometric, Grain(62, 1)),
        ("_cell", first_cell, Grain(4, 1)),
        ("_even_run", lambda *_: True, Grain(62, 1)),
        ("_less", first_words_only, Grain(2, 1)),
    ],
    ids=["floor", "cells that decay too slowly", "cells from first words", "all are kept", "ties of single draws"],
)
def test_a_shortcut_in_single_draws_shows(monkeypatch, name, broken, grain):
    monkeypatch.setattr(gaussian_plain, name, broken)
    size = 4 * DRAWS if name == "_less" else DRAWS  # a small effect
    assert chance(sampling._rounded_gaussian(Fraction(9), size, wide=False, grain=grain), 3.0) < FALSE_ALARM**2


@pytest.mark.parametrize("shortcut", ["ties are not told", "ties are dropped", "ties are drawn anew", "all are kept", "all roundings are certain"])
def test_a_shortcut_in_arrays_shows(monkeypatch, shortcut):
    grain = Grain(3, 1)
    candidates, nearest = gaussian_wide._candidates, gaussian_wide._nearest
    if shortcut == "ties are not told":
        monkeypatch.setattr(gaussian_wide, "_candidates", lambda *given: (*candidates(*given)[:3], np.zeros(given[1], dtype=bool)))
    elif shortcut == "ties are dropped":
        monkeypatch.setattr(gaussian_wide._Lanes, "again", lambda self, lane: None)
    elif shortcut == "ties are drawn anew":
        monkeypatch.setattr(gaussian_wide._Lanes, "again", lambda self, lane: gaussian_plain.candidate(self._uniform.plain, self._grain))
    elif shortcut == "all are kept":
        monkeypatch.setattr(gaussian_wide, "_even_runs", lambda _, lanes, cells, *__: (np.ones(cells.size, bool), np.zeros(cells.size, bool)))
    else:
        monkeypatch.setattr(gaussian_wide, "_nearest", lambda *given: (nearest(*given)[0], np.zeros(given[0].size, dtype=bool)))
    assert chance(sampling._rounded_gaussian(Fraction(9), 2 * DRAWS, wide=True, grain=grain), 3.0) < FALSE_ALARM**2
