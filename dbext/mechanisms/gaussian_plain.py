"""Exact draws of round(N(0, sigma^2)), one at a time, in whole numbers only.

A normal number is built as Karney ("Sampling exactly from the normal distribution", ACM Transactions on Mathematical Software 42, 2016,
arXiv:1303.6257, algorithms N and B) builds it: a cell, an endless binary fraction x within the cell that is drawn only as far as it is
looked at, and comparisons that keep it with the right probability. His cells are one standard deviation long. Here they are 1 / steps long:
almost every candidate is then kept, after one comparison. With steps = 1 the algorithm is his.

  1. cell j >= 0 with probability proportional to exp(-j^2 / (2 steps^2)), from a uniform fraction and exact bounds of the sums of these;
  2. x uniform in (0, 1);
  3. both are kept with probability exp(-x (2 j + x) / (2 steps^2)), and drawn anew otherwise.

The density of t = (j + x) / steps is then proportional to exp(-(j^2 + 2 j x + x^2) / (2 steps^2)) = exp(-t^2 / 2), for every t > 0. With a
random sign it is normal, and round(sigma t) is decided from the first digits of x. A sign of zero does no harm: 0 stands for the whole of
(-1/2, 1/2). Whatever is decided from the first digits of a fraction leaves the later ones uniform and independent, so that drawing them
late, or never, changes nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import Protocol

#: The start of a cell lies less than this above what `cell_starts` says.
START_WITHIN = 2
#: A uniform binary fraction: the words of its leading digits drawn so far.
Digits = list[int]


class Uniform(Protocol):
    """Where whole numbers come from."""

    def below(self, limit: int) -> int:
        """Return a uniform number in [0, limit)."""


@dataclass(frozen=True)
class Grain:
    """How many bits a fraction grows by, and into how many cells a standard deviation is cut. Both change the speed, never the law."""

    word: int = 62
    steps: int = 8

    @property
    def limit(self) -> int:
        """The number of different words."""
        return 1 << self.word

    @property
    def sides(self) -> int:
        """The denominator of the probability that a candidate is kept with: exp(-x (2 j + x) / sides)."""
        return 2 * self.steps**2


GRAIN = Grain()


class Replay:
    """Uniform numbers that were drawn before, in their order, and fresh ones after them."""

    def __init__(self, drawn: Iterable[int], fresh: Uniform):
        self._drawn, self._fresh = iter(drawn), fresh

    def below(self, limit: int) -> int:
        """Return the next number that was drawn before (it was drawn for the same question, so below the same limit), or a fresh one."""
        drawn = next(self._drawn, None)
        return self._fresh.below(limit) if drawn is None else drawn


def rounded_gaussian(uniform: Uniform, variance: int, divisor: int, grain: Grain = GRAIN) -> int:
    """Return one draw with sigma^2 = variance / divisor."""
    while (found := candidate(uniform, grain)) is None:
        pass
    magnitude = rounded(uniform, variance, divisor, *found, grain)
    return -magnitude if uniform.below(2) else magnitude


def candidate(uniform: Uniform, grain: Grain) -> tuple[int, Digits] | None:
    """Return the cell j and the fraction x of one candidate, or None if it is not kept.

    exp(-x (2 j + x) / sides) is that of a run with `runs` times the sides, `runs` times over; that many make the coin's probability at
    most one (Karney's C = 2 k + 2 in k + 1 runs is the least such choice for steps = 1).
    """
    cell = _cell(uniform, grain)
    x = [uniform.below(grain.limit)]
    runs = -(-(2 * cell + 1) // grain.sides)
    for _ in range(runs):
        if not _even_run(uniform, cell, x, runs * grain.sides, grain.limit):
            return None
    return cell, x


def rounded(uniform: Uniform, variance: int, divisor: int, cell: int, x: Digits, grain: Grain) -> int:
    """Return m = floor(sigma t + 1/2), t = (cell + x) / steps: (2 m - 1)^2 <= 4 sigma^2 t^2 < (2 m + 1)^2.

    With v = floor((cell + x) 2^bits), t lies between v / (2^bits steps) and (v + 1) / (2^bits steps). Once both ends round to one number,
    it is the answer; until then x grows. The root of a number has the whole part of the root of its whole part, and
    floor(sigma t + 1/2) = floor((floor(2 sigma t) + 1) / 2), so that whole numbers decide.
    """
    value, bits = cell, 0
    for word in x:
        value, bits = value << grain.word | word, bits + grain.word
    over, under = 4 * variance, divisor * grain.steps**2
    while True:
        low = math.isqrt((over * value * value >> 2 * bits) // under) + 1 >> 1
        high = math.isqrt((over * (value + 1) * (value + 1) >> 2 * bits) // under) + 1 >> 1
        if low == high:
            return low
        value, bits = value << grain.word | uniform.below(grain.limit), bits + grain.word


@cache
def cell_starts(steps: int, bits: int) -> list[int]:
    """Return whole numbers s_j with s_j <= 2^bits c_j < s_j + 2: c_j is the probability of a cell before j. The last are 2^bits - 1.

    c_j = sum(w_i, i < j) / sum(w_i), w_i = q^(i^2), q = exp(-1 / (2 steps^2)). Decimals of p = bits // 3 + 40 places: every operation errs
    by at most e = 10^(1 - p) of its result, so q by 2 e, w_(i + 1) / w_i = q (q^2)^i by (6 i + 2) e, w_i by 3 i^2 e, and the sums of n of
    them by (3 n^2 + n) e, to first order in n^2 e. Terms below 10^-p are left out, which are less than 2 n 10^-p together. So the quotients
    err by less than 10 n^2 e, where n < 3 steps sqrt(p) + 2, and 2^bits times them by less than 1/2 for any bits and steps below 10^9. What
    errs by less than 1/2, and is then lowered by 1/2 and cut, lies below by less than 2.
    """
    with localcontext(Context(prec=bits // 3 + 40)) as context:
        weight, ratio = Decimal(1), (Decimal(-1) / (2 * steps**2)).exp()
        square, least = ratio * ratio, Decimal(10) ** -context.prec
        sums = [Decimal(0)]
        while weight >= least:
            sums.append(sums[-1] + weight)
            weight, ratio = weight * ratio, ratio * square
        scale = (1 << bits) / sums[-1]
        return [int(part * scale - Decimal("0.5")) for part in sums]


def _cell(uniform: Uniform, grain: Grain) -> int:
    """Return j >= 0 with probability proportional to exp(-j^2 / (2 steps^2)).

    A uniform fraction u lies in cell j if c_j <= u < c_(j + 1). What was drawn of it says that drawn <= 2^bits u < drawn + 1. The answer is
    j if drawn >= s_j + 2 (so u >= c_j) and drawn + 1 <= s_(j + 1) (so u < c_(j + 1)); until one j is certain, u grows. Past the last s_j
    (2^bits - 1) nothing ever is, so that the cells go on without end.
    """
    drawn, bits = uniform.below(grain.limit), grain.word
    while True:
        starts = cell_starts(grain.steps, bits)
        cell = bisect_right(starts, drawn) - 1
        if cell == 0 or drawn - starts[cell] >= START_WITHIN:
            return cell
        drawn, bits = drawn << grain.word | uniform.below(grain.limit), bits + grain.word


def _even_run(uniform: Uniform, cell: int, x: Digits, sides: int, limit: int) -> bool:
    """Return True with probability exp(-x p), p = (2 cell + x) / sides <= 1 (Karney's algorithm B).

    Uniform fractions x > z_1 > z_2 > ... are drawn as long as they fall, and as long as a coin of probability p shows heads before each.
    That x > z_1 > ... > z_n has probability x^n / n!, that n coins show heads p^n; so at least n are reached with probability (x p)^n / n!,
    exactly n with (x p)^n / n! - (x p)^(n + 1) / (n + 1)!, and an even number with sum((-1)^n (x p)^n / n!) = exp(-x p).
    """
    last, even = x, True
    while _heads(uniform, cell, x, sides, limit):
        following = [uniform.below(limit)]
        if not _less(uniform, following, last, limit):
            break
        last, even = following, not even
    return even


def _heads(uniform: Uniform, cell: int, x: Digits, sides: int, limit: int) -> bool:
    """Return True with probability (2 cell + x) / sides: 2 cell sides of a die are heads, one more is with probability x."""
    side = uniform.below(sides)
    if side == 2 * cell:
        return _less(uniform, [uniform.below(limit)], x, limit)
    return side < 2 * cell


def _less(uniform: Uniform, one: Digits, other: Digits, limit: int) -> bool:
    """Return whether one fraction lies below another; while all that was drawn of them is equal, both grow."""
    place = 0
    while True:
        for digits in (one, other):
            if len(digits) == place:
                digits.append(uniform.below(limit))
        if one[place] != other[place]:
            return one[place] < other[place]
        place += 1
