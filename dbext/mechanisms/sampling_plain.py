"""One exact draw at a time, in plain Python."""

from __future__ import annotations

from collections.abc import Callable

_CHUNK = 64


class Uniform:
    """Uniform whole numbers from a source of random bytes; made anew for every call, so that no bytes outlive it."""

    def __init__(self, source: Callable[[int], bytes]):
        self._source = source
        self._bits = self._left = 0

    def below(self, limit: int) -> int:
        """Return a uniform number in [0, limit): as many bits as limit - 1 has, drawn again until they lie below."""
        width = (limit - 1).bit_length()
        while True:
            drawn = self._take(width)
            if drawn < limit:
                return drawn

    def _take(self, width: int) -> int:
        if self._left < width:
            missing = max(_CHUNK, (width - self._left + 7) // 8)
            self._bits |= int.from_bytes(self._source(missing), "little") << self._left
            self._left += 8 * missing
        taken = self._bits & ((1 << width) - 1)
        self._bits >>= width
        self._left -= width
        return taken


def decays(uniform: Uniform, numerator: int, denominator: int) -> bool:
    """Return True with probability exp(-numerator / denominator), for a ratio >= 0.

    For a ratio g <= 1: coins of probability g / 1, g / 2, g / 3, ... are thrown until one fails; the number of throws is odd with
    probability 1 - g + g^2 / 2! - ... = exp(-g). A larger ratio is that many times exp(-1), and the rest.
    """
    while numerator > denominator:
        if not decays(uniform, 1, 1):
            return False
        numerator -= denominator
    throws = 1
    while uniform.below(denominator * throws) < numerator:
        throws += 1
    return throws % 2 == 1


def discrete_laplace(uniform: Uniform, numerator: int, denominator: int) -> int:
    """Return one draw with scale numerator / denominator.

    U + numerator V is geometric with ratio exp(-1 / numerator): U uniform below the numerator, kept with probability
    exp(-U / numerator), V the number of successes of probability exp(-1). Whole division by the denominator makes the ratio
    exp(-denominator / numerator). A sign is added, and minus zero drawn again so that zero is not doubled.
    """
    while True:
        remainder = uniform.below(numerator)
        if not decays(uniform, remainder, numerator):
            continue
        quotient = 0
        while decays(uniform, 1, 1):
            quotient += 1
        magnitude = (remainder + numerator * quotient) // denominator
        negative = uniform.below(2)
        if magnitude or not negative:
            return -magnitude if negative else magnitude
