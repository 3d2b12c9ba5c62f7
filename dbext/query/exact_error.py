"""The most noise that an error bound allows: found on the noise alone, so that no loss has to be computed on the way."""

from __future__ import annotations

from fractions import Fraction

from dbext.mechanisms.error import half_width_95
from dbext.privacy.noise import DiscreteLaplace, Noise

#: Parameters of noise are multiples of 1 / 1024: fine enough to lose no accuracy, coarse enough for fast exact sampling.
DENOMINATOR = 1024


def largest_noise_within(max_error: Fraction, kind: type[Noise], weights: tuple[int, ...]) -> Noise | None:
    """The noise with the largest parameter whose sum with these weights has a 95% half width of at most `max_error`.

    By bisection: a half width never falls when the parameter grows. None when even the smallest parameter is too much.
    """
    low, high = 0, _beyond(max_error, kind)
    while high - low > 1:
        middle = (low + high) // 2
        fits = half_width_95(kind(Fraction(middle, DENOMINATOR)), weights) <= max_error
        low, high = (middle, high) if fits else (low, middle)
    return kind(Fraction(low, DENOMINATOR)) if low else None


def _beyond(max_error: Fraction, kind: type[Noise]) -> int:
    """A numerator whose noise surely reaches past the bound: half widths exceed the scale, or sigma, of one node by far."""
    bound = max_error + 1
    return int((bound if kind is DiscreteLaplace else bound * bound) * DENOMINATOR) + 1
