"""Intervals that hold at every time together, not at each time by itself."""

from __future__ import annotations

import math
from statistics import NormalDist

from dbext.errors import BadArgument
from dbext.mechanisms.error import TAIL


def union_tail(answers: int, tail: float = TAIL) -> float:
    """Return how often each of n intervals may miss, so that all hold together but with probability `tail`: its n-th part.

    By the union bound, for errors of any law and any dependence. For jointly Gaussian errors Sidak's constant is less than 0.5% narrower.
    """
    if answers < 1 or not 0 < tail < 1:
        raise BadArgument("a simultaneous band is for one answer or more, at a confidence between 0 and 1")
    return tail / answers


def sidak_constant(answers: int, confidence: float = 0.95) -> float:
    """Return c = Phi^-1((1 + confidence^(1/n)) / 2): n jointly Gaussian errors all stay within c standard deviations that often.

    For any correlation between them (Sidak 1967): symmetric slabs are positively dependent, so that independent errors are the worst
    case. For answers of a square root or a tree over time it is about 3% wider than needed.
    """
    union_tail(answers, 1 - confidence)
    tail = -math.expm1(math.log(confidence) / answers) / 2
    return -NormalDist().inv_cdf(tail)
