"""Many exact draws at a time: the algorithm of `sampling_plain` on numpy arrays of whole numbers.

Numbers that could pass 62 bits are carried as Python integers in object arrays; nothing is ever rounded or wrapped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dbext.mechanisms import sampling_plain

#: Whole numbers below this are safe in 64 bits, also when added once.
_LIMIT = 2**62
#: So many candidates at a time stay in the processor's cache.
_CHUNK = 1 << 15


class Uniform:
    """Arrays of uniform whole numbers from a source of random bytes."""

    def __init__(self, source: Callable[[int], bytes]):
        self._source = source
        self.plain = sampling_plain.Uniform(source)

    def below(self, limit: int, size: int) -> np.ndarray:
        """Return `size` uniform numbers in [0, limit): leading bits, drawn again where they do not lie below."""
        if limit > _LIMIT:
            return np.array([self.one_below(limit) for _ in range(size)], dtype=object)
        drawn = self._bits((limit - 1).bit_length(), size)
        if limit & (limit - 1):
            wrong = np.flatnonzero(drawn >= limit)
            while wrong.size:
                drawn[wrong] = self._bits((limit - 1).bit_length(), wrong.size)
                wrong = wrong[drawn[wrong] >= limit]
        return drawn

    def one_below(self, limit: int) -> int:
        """Return one uniform number below any limit."""
        return self.plain.below(limit)

    def _bits(self, width: int, size: int) -> np.ndarray:
        if width == 0:
            return np.zeros(size, dtype=np.int64)
        length = next(length for length in (1, 2, 4, 8) if width <= 8 * length)
        raw = np.frombuffer(self._source(size * length), dtype=f"<u{length}")
        return (raw >> (8 * length - width)).astype(np.int64)


def discrete_laplace(uniform: Uniform, numerator: int, denominator: int, size: int) -> list[int]:
    """Return `size` draws with scale numerator / denominator: of candidates, half of which are kept."""
    kept: list[int] = []
    while len(kept) < size:
        kept += _laplace(uniform, numerator, denominator, min(_CHUNK, 2 * (size - len(kept)) + 16)).tolist()
    return kept[:size]


def _laplace(uniform: Uniform, numerator: int, denominator: int, count: int) -> np.ndarray:
    """Return what `count` candidates leave: draws of scale numerator / denominator."""
    remainder = uniform.below(numerator, count)
    remainder = remainder[_decays(uniform, remainder, numerator)]
    quotient = _geometric(uniform, remainder.size)
    if max(denominator, numerator * (int(quotient.max(initial=0)) + 1)) >= _LIMIT:
        remainder, quotient = remainder.astype(object), quotient.astype(object)
    magnitude = (remainder + numerator * quotient) // denominator
    negative = uniform.below(2, magnitude.size) == 1
    keep = ~negative | (magnitude != 0)
    return np.where(negative, -magnitude, magnitude)[keep]


def _geometric(uniform: Uniform, size: int) -> np.ndarray:
    """Return numbers of successes of probability exp(-1) before the first failure."""
    successes = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    while active.size:
        active = active[_decays_at_most_once(uniform, np.ones(active.size, dtype=np.int64), 1)]
        successes[active] += 1
    return successes


def _decays(uniform: Uniform, numerators: np.ndarray, denominator: int) -> np.ndarray:
    """Return True with probability exp(-numerator / denominator) for each numerator >= 0."""
    if denominator >= _LIMIT:
        numerators = numerators.astype(object)
    whole = numerators // denominator
    kept = np.ones(numerators.size, dtype=bool)
    active = np.flatnonzero(whole > 0)
    left = whole[active]
    while active.size:
        success = _decays_at_most_once(uniform, np.ones(active.size, dtype=np.int64), 1)
        kept[active[~success]] = False
        left = left[success] - 1
        active = active[success][left > 0]
        left = left[left > 0]
    alive = np.flatnonzero(kept)
    kept[alive] = _decays_at_most_once(uniform, (numerators - whole * denominator)[alive], denominator)
    return kept


def _decays_at_most_once(uniform: Uniform, numerators: np.ndarray, denominator: int) -> np.ndarray:
    """Return True with probability exp(-g) for each ratio g <= 1: the number of throws of coins g / 1, g / 2, ... is odd."""
    odd = np.zeros(numerators.size, dtype=bool)
    active, throws = np.arange(numerators.size), 1
    while active.size:
        success = _coins(uniform, numerators[active], denominator * throws)
        odd[active[~success]] = throws % 2 == 1
        active = active[success]
        throws += 1
    return odd


def _coins(uniform: Uniform, numerators: np.ndarray, denominator: int) -> np.ndarray:
    """Return True with probability numerator / denominator.

    A long denominator compares 62 random bits with the first 62 bits of the ratio; the rare tie is decided by the rest of it.
    """
    if denominator <= _LIMIT:
        return uniform.below(denominator, numerators.size) < numerators.astype(np.int64)
    scaled = numerators.astype(object) * _LIMIT
    leading = (scaled // denominator).astype(np.int64)
    drawn = uniform.below(_LIMIT, numerators.size)
    success = drawn < leading
    for tie in np.flatnonzero(drawn == leading):
        success[tie] = uniform.one_below(denominator) < scaled[tie] % denominator
    return success
