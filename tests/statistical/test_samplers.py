"""The samplers against their exact laws: they pass at the right parameter, and fail at 0.9 and 1.1 of it.

The bound that the comparison rests on is proven: a false alarm has a chance below 1e-12, a wrong parameter is missed as rarely.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest

from dbext.mechanisms import sampling
from tests.chance import SIGMAS

DRAWS = 80_000
#: Draws of the right law are more surprising than that with a chance below 10^-12.
LIMIT = 12

FORMS = pytest.mark.parametrize("wide", [False, True], ids=["plain", "wide"])
SCALES = [Fraction(2, 3), Fraction(3), Fraction(47, 4), Fraction(3604481, 8192)]
SQUARES = [Fraction(4, 9), Fraction(9), Fraction(555, 4), Fraction(2252801, 512)]


def laplace_law(scale: float, x: int) -> float:
    return math.tanh(1 / (2 * scale)) * math.exp(-abs(x) / scale)


def gaussian_law(sigma: float, x: int) -> float:
    reach = int(12 * sigma) + 12
    norm = sum(math.exp(-y * y / (2 * sigma**2)) for y in range(-reach, reach + 1))
    return math.exp(-x * x / (2 * sigma**2)) / norm


def bins(law, spread: float) -> list[range]:
    """Cut the whole numbers into about forty ranges around 0 that hold enough draws each, and two tails."""
    width = max(1, round(spread / 8))
    edge = width * 20
    cuts = [range(start, start + width) for start in range(-edge, edge, width)]
    return [cut for cut in cuts if DRAWS * sum(law(x) for x in cut) >= 20]


def surprise(drawn: list[int], law, spread: float) -> float:
    """Return a number that draws of this law reach or pass with a chance of at most 10 to the minus that.

    With n draws in k classes, P(n D >= x) <= e^-x (e x / (k - 1))^(k - 1) of the relative entropy D, for x > k - 1 (Agrawal 2020).
    """
    counts = Counter(drawn)
    cuts = bins(law, spread)
    expected = [len(drawn) * sum(law(x) for x in cut) for cut in cuts]
    observed = [sum(counts[x] for x in cut) for cut in cuts]
    expected.append(len(drawn) - sum(expected))
    observed.append(len(drawn) - sum(observed))
    entropy = sum(o * math.log(o / e) for o, e in zip(observed, expected, strict=True) if o)
    freedom = len(expected) - 1
    return (entropy - freedom * (1 + math.log(entropy / freedom))) / math.log(10) if entropy > freedom else 0.0


@FORMS
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace(scale, wide):
    drawn = sampling._discrete_laplace(scale, DRAWS, wide=wide)
    spread = float(scale) * math.sqrt(2)
    assert surprise(drawn, lambda x: laplace_law(float(scale), x), spread) < LIMIT
    for wrong in (0.9, 1.1):
        assert surprise(drawn, lambda x, s=wrong * float(scale): laplace_law(s, x), spread) > 2 * LIMIT


@FORMS
def test_rounded_continuous_noise_is_told_apart(wide):
    """The tester sees shape, not only scale: a geometric sampler that doubles zero, and Laplace noise in place of Gaussian."""
    laplace = sampling._discrete_laplace(Fraction(3), DRAWS, wide=wide)
    doubled = [value for number, value in enumerate(laplace) if value or number % 2] + [0] * (DRAWS // 25)
    assert surprise(doubled, lambda x: laplace_law(3.0, x), 3 * math.sqrt(2)) > 2 * LIMIT
    same_variance = math.sqrt(2 * math.exp(-1 / 3)) / (1 - math.exp(-1 / 3))
    assert surprise(laplace, lambda x: gaussian_law(same_variance, x), same_variance) > 2 * LIMIT


@FORMS
@pytest.mark.parametrize("draw", [sampling._discrete_laplace, sampling._rounded_gaussian])
def test_draws_are_independent_of_their_neighbours(draw, wide):
    """Lag-one correlation of values and of magnitudes, and the balance of signs."""
    drawn = draw(Fraction(400), DRAWS, wide=wide)
    for series in (drawn, [abs(value) for value in drawn]):
        mean = sum(series) / DRAWS
        square = sum((value - mean) ** 2 for value in series)
        lagged = sum((one - mean) * (other - mean) for one, other in pairwise(series))
        assert abs(lagged / square) < SIGMAS / math.sqrt(DRAWS)
    positive = sum(value > 0 for value in drawn) / sum(value != 0 for value in drawn)
    assert abs(positive - 0.5) < SIGMAS / 2 / math.sqrt(DRAWS)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("size", [8, 3000])
def test_forked_processes_draw_different_noise(size):
    """Two children of one parent that has drawn already: neither repeats the other, nor the parent."""
    sampling.discrete_laplace(Fraction(10**9), size)
    children = [_drawn_in_child(size) for _ in range(2)]
    own = sampling.discrete_laplace(Fraction(10**9), size)
    assert len({tuple(one) for one in (*children, own)}) == 3
    assert len(set(children[0]) & set(children[1])) < size // 100 + 2


def _drawn_in_child(size: int) -> list[int]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, " ".join(map(str, sampling.discrete_laplace(Fraction(10**9), size)[:3000])).encode()[:60_000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return [int(word) for word in text.split()]
