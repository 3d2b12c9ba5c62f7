"""The most noise that an error bound allows: found on the noise alone, so that no loss has to be computed on the way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from dbext.mechanisms.error import TAIL, half_width_of, half_width_of_norms, norms_of
from dbext.privacy.noise import DiscreteLaplace, Noise, RoundedGaussian, scaled

#: Parameters of noise are multiples of 1 / 1024: fine enough to lose no accuracy, coarse enough for fast exact sampling.
DENOMINATOR = 1024
_BITS = 22

Draws = Sequence[tuple[Fraction, float]]


def largest_noise_within(max_error: Fraction, kind: type[Noise], draws: Draws, tail: float = TAIL) -> Noise | None:
    """The noise with the largest parameter whose weighted sum has a half width (95%, or of another tail) of at most `max_error`.

    `draws` are (factor, weight) pairs: how wide each noise is as a multiple of the one sought, and with what weight it is summed.
    By bisection: a half width never falls when the parameter grows. None when even the smallest parameter is too much. Large parameters
    (encoded mechanisms weigh with small fractions) are cut to 22 bits, for fast exact sampling.
    """
    counts = Counter((factor, abs(weight)) for factor, weight in draws if weight)
    factors = list(dict.fromkeys(factor for factor, _ in counts))
    if kind is RoundedGaussian and not all(float(weight).is_integer() for _, weight in counts):
        norms = [norms_of([(weight, n) for (of, weight), n in counts.items() if of == factor]) for factor in factors]

        def width(noise: Noise) -> float:
            return half_width_of_norms([(scaled(noise, factor), one) for factor, one in zip(factors, norms, strict=True)], tail)
    else:
        places = {factor: place for place, factor in enumerate(factors)}
        terms = [(places[factor], weight, number) for (factor, weight), number in counts.items()]

        def width(noise: Noise) -> float:
            noises = [scaled(noise, factor) for factor in factors]
            return half_width_of([(noises[place], weight, number) for place, weight, number in terms], tail)

    norm = math.sqrt(math.fsum((float(factor) * weight) ** 2 for factor, weight in draws))
    return largest_noise(max_error, kind, width, norm)


def largest_noise(max_error: Fraction, kind: type[Noise], width: Callable[[Noise], float], norm: float) -> Noise | None:
    """The same for any sum of draws, given its half width for a noise, and the root of the sum of its squared weights."""

    def fits(numerator: int) -> bool:
        return width(kind(Fraction(numerator, DENOMINATOR))) <= max_error

    low, high = 0, _beyond(max_error, kind, norm)
    while high - low > max(1, low >> _BITS):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    spare = max(0, low.bit_length() - _BITS)
    return kind(Fraction(low >> spare << spare, DENOMINATOR)) if low else None


def _beyond(max_error: Fraction, kind: type[Noise], norm: float) -> int:
    """A numerator whose noise surely reaches past the bound: half widths exceed the scale, or sigma, of one node by far."""
    bound = (max_error + 1) / Fraction(min(1.0, norm))
    return int((bound if kind is DiscreteLaplace else bound * bound) * DENOMINATOR) + 1
