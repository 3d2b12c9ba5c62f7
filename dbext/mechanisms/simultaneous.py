"""Half-widths that hold at every time together, not at each time by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from dbext.errors import BadArgument


def sidak_constant(answers: int, confidence: float = 0.95) -> float:
    """Return c = Phi^-1((1 + confidence^(1/n)) / 2): n jointly Gaussian errors all stay within c standard deviations that often.

    For any correlation between them (Sidak 1967): symmetric slabs are positively dependent, so that independent errors are the worst
    case. For answers of a square root or a tree over time it is about 3% wider than needed.
    """
    _check(answers, confidence)
    tail = -math.expm1(math.log(confidence) / answers) / 2
    return -NormalDist().inv_cdf(tail)


def union_half_width(answers: int, half_width: Callable[[float], float], confidence: float = 0.95) -> float:
    """Return a half-width that n errors of any law and dependence keep together: each one's own at confidence 1 - (1 - confidence) / n.

    `half_width` maps a confidence to the pointwise half-width of one answer, the widest if they differ.
    """
    _check(answers, confidence)
    return half_width(1 - (1 - confidence) / answers)


def _check(answers: int, confidence: float) -> None:
    if answers < 1 or not 0 < confidence < 1:
        raise BadArgument("a simultaneous band is for one answer or more, at a confidence between 0 and 1")
