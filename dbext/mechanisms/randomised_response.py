"""Randomised response over m categories with exact probabilities, and what a server learns from the reports.

A report is the true category with probability p = r / (r + m - 1) and each other one with q = 1 / (r + m - 1), where r <= e^epsilon is
the ratio of the two: p / q = r bounds what any report can tell apart, so that it is ln(r)-private for every pair of inputs. Here r is
a multiple of 2^-32 rounded down, so that a report is one uniform whole number, drawn exactly.

Net changes of a 0/1 state in a range are three categories, -1, 0 and +1: the sum of reports over p - q is unbiased for the sum of changes,
because the two wrong answers of a zero cancel and those of a one leave p - q of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dbext.errors import BadArgument

_BITS = 32
_DIGITS = 50
#: From this many reports on numpy pays; up to this limit uniform numbers fit into 64 bits.
_WIDE_FROM, _WIDEST = 2_000, 2**62
#: Draws a uniform whole number below its argument.
Uniform = Callable[[int], int]


@dataclass(frozen=True)
class RandomisedResponse:
    """Reports over `categories` values at a loss of at most `epsilon`."""

    categories: int
    epsilon: Fraction

    def __post_init__(self):
        object.__setattr__(self, "epsilon", Fraction(self.epsilon))
        if self.categories < 2 or not 0 < self.epsilon < 200:  # noqa: PLR2004 one category says nothing; e^200 is never needed
            raise BadArgument("randomised response needs two categories or more and an epsilon between 0 and 200")

    @property
    def odds(self) -> int:
        """2^32 r, the largest whole number not above 2^32 e^epsilon."""
        return _odds(self.epsilon)

    @property
    def keep(self) -> Fraction:
        """p, the chance of the true category."""
        return Fraction(self.odds, self.odds + (self.categories - 1) * 2**_BITS)

    @property
    def other(self) -> Fraction:
        """q, the chance of each other category."""
        return Fraction(2**_BITS, self.odds + (self.categories - 1) * 2**_BITS)

    @property
    def spent(self) -> float:
        """The loss of one report, ln(p / q): a little below epsilon."""
        return math.log(self.odds / 2**_BITS)

    def report(self, category: int, uniform: Uniform | None = None) -> int:
        """Return a randomised category for a true one, both 0 ... categories - 1. Randomness is the operating system's."""
        if not 0 <= category < self.categories:
            raise BadArgument(f"categories are numbered from 0 to {self.categories - 1}")
        drawn = (uniform or uniform_below)(self.odds + (self.categories - 1) * 2**_BITS)
        if drawn < self.odds:
            return category
        other = (drawn - self.odds) >> _BITS
        return other + (other >= category)

    def report_all(self, true: Sequence[int]) -> list[int]:
        """Return a randomised category for each of many true ones: the same law, in arrays where that pays."""
        limit = self.odds + (self.categories - 1) * 2**_BITS
        if len(true) < _WIDE_FROM or limit > _WIDEST:
            return [self.report(category) for category in true]
        return self._report_wide(true, os.urandom)

    def _report_wide(self, true: Sequence[int], source: Callable[[int], bytes]) -> list[int]:
        import numpy as np

        from dbext.mechanisms import sampling_wide

        categories = np.asarray(true, dtype=np.int64)
        if categories.min(initial=0) < 0 or categories.max(initial=0) >= self.categories:
            raise BadArgument(f"categories are numbered from 0 to {self.categories - 1}")
        drawn = sampling_wide.Uniform(source).below(self.odds + (self.categories - 1) * 2**_BITS, len(categories))
        other = (drawn - self.odds) >> _BITS
        return np.where(drawn < self.odds, categories, other + (other >= categories)).tolist()

    def estimate(self, reported: Sequence[int]) -> list[float]:
        """Return unbiased numbers of entries per category from the numbers of reports: (count - n q) / (p - q)."""
        total, p, q = sum(reported), float(self.keep), float(self.other)
        return [(count - total * q) / (p - q) for count in reported]

    def estimate_variance(self, true: Sequence[int]) -> list[float]:
        """Return the variances of `estimate` for true numbers: (n_c p (1 - p) + (n - n_c) q (1 - q)) / (p - q)^2."""
        total, p, q = sum(true), float(self.keep), float(self.other)
        return [(count * p * (1 - p) + (total - count) * q * (1 - q)) / (p - q) ** 2 for count in true]


@dataclass(frozen=True)
class NetChangeResponse:
    """Reports -1, 0 or +1 about the net change of a 0/1 state."""

    epsilon: Fraction

    @property
    def response(self) -> RandomisedResponse:
        """The response over three categories."""
        return RandomisedResponse(3, self.epsilon)

    def report(self, change: int, uniform: Uniform | None = None) -> int:
        """Return a randomised change for a true one."""
        return self.response.report(change + 1, uniform) - 1

    def estimate(self, reports: Sequence[int]) -> float:
        """Return the unbiased sum of the changes: the sum of the reports over p - q."""
        return sum(reports) / float(self.response.keep - self.response.other)

    def variance(self, still: int, changed: int) -> float:
        """Return the variance of `estimate` for this many entries without and with a change.

        Each without: 2 q / (p - q)^2. Each with: (p + q - (p - q)^2) / (p - q)^2.
        """
        p, q = float(self.response.keep), float(self.response.other)
        return (still * 2 * q + changed * (p + q - (p - q) ** 2)) / (p - q) ** 2


@lru_cache(maxsize=256)
def _odds(epsilon: Fraction) -> int:
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS + 90, ROUND_FLOOR
        exponent = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        grown = exponent.exp() * (1 - Decimal(10) ** -_DIGITS)
        return max(int(grown * 2**_BITS), 2**_BITS)


def uniform_below(limit: int) -> int:
    """Return a uniform whole number below `limit` from the operating system's randomness, by rejection."""
    size = limit.bit_length()
    while True:
        drawn = int.from_bytes(os.urandom((size + 7) // 8), "big") >> (-size % 8)
        if drawn < limit:
            return drawn
