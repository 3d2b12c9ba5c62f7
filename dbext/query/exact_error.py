"""The most noise that an error bound allows: found on the noise alone, so that no loss has to be computed on the way."""

from __future__ import annotations

import math
from fractions import Fraction

from dbext.mechanisms.error import TAIL, half_width_95
from dbext.privacy.noise import DiscreteLaplace, Noise

#: Parameters of noise are multiples of 1 / 1024: fine enough to lose no accuracy, coarse enough for fast exact sampling.
DENOMINATOR = 1024
_BITS = 22


def largest_noise_within(max_error: Fraction, kind: type[Noise], weights: tuple[float, ...], tail: float = TAIL) -> Noise | None:
    """The noise with the largest parameter whose sum with these weights has a half width (95%, or of another tail) of at most `max_error`.

    By bisection: a half width never falls when the parameter grows. None when even the smallest parameter is too much. Large parameters
    (encoded mechanisms weigh with small fractions) are cut to 22 bits, for fast exact sampling.
    """
    low, high = 0, _beyond(max_error, kind, weights)
    while high - low > max(1, low >> _BITS):
        middle = (low + high) // 2
        fits = half_width_95(kind(Fraction(middle, DENOMINATOR)), weights, tail) <= max_error
        low, high = (middle, high) if fits else (low, middle)
    spare = max(0, low.bit_length() - _BITS)
    return kind(Fraction(low >> spare << spare, DENOMINATOR)) if low else None


def _beyond(max_error: Fraction, kind: type[Noise], weights: tuple[float, ...]) -> int:
    """A numerator whose noise surely reaches past the bound: half widths exceed the scale, or sigma, of one node by far."""
    norm = min(1.0, math.sqrt(math.fsum(weight * weight for weight in weights)))
    bound = (max_error + 1) / Fraction(norm)
    return int((bound if kind is DiscreteLaplace else bound * bound) * DENOMINATOR) + 1
