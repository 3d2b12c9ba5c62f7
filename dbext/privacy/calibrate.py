"""Noise for a price: the smallest noise whose worst-case loss stays within a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from dbext.errors import BadArgument
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import EntryType
from dbext.privacy.joint import JointBound
from dbext.privacy.measure import COUNT, Measure, Values
from dbext.privacy.noise import DiscreteLaplace, Noise, RoundedGaussian, scaled
from dbext.privacy.pattern import Pattern
from dbext.privacy.pico import ceil_divide

#: Parameters have numerators of at least this many bits and denominators 2^j: within 2^-21 of the exact figure, and short enough for
#: the samplers' 64-bit form.
_BITS = 22
_LONGEST_SEARCH = 40
_CLOSE_ENOUGH = 1 + Fraction(1, 2**16)
_LARGEST_SCALE = 2**60
_TOO_SMALL = "the price is too small for the number of filters that one entry can touch"


def noise_for(
    patterns: Sequence[Pattern],
    measure: Measure,
    grouped: bool,  # noqa: FBT001 a property of the release
    types: Sequence[EntryType],
    target_picos: int,
    pure: bool,  # noqa: FBT001 the kind of budget
    kind: Callable[[Fraction], Noise],
    restricted_to: tuple[int, ...] | None = None,
    joint: tuple[JointBound, ...] | None = None,
    values: Values = COUNT,
    factors: Sequence[Fraction] = (),
) -> Noise:
    """Return the smallest noise of a kind with which releasing `patterns` costs no entry more than `target_picos`.

    The parameter is a short rational, found from the loss at parameter 1 and then checked with the accountant: what is returned has
    been seen to cost at most the target. `joint` holds the bounds of a mechanism that noises its patterns together, `values` what an entry
    adds, `factors` how wide the noise of each pattern is beside what is returned (without them all are alike). Raises UnboundedLoss when
    no noise is enough, NotSupported for Gaussian noise when `pure`.
    """
    if target_picos < 1:
        raise BadArgument("a release needs a positive price", hint="Ask for a larger epsilon.")

    widths = factors or [Fraction(1)] * len(patterns)

    def loss(parameter: Fraction) -> int:
        noises = [scaled(kind(parameter), factor) for factor in widths]
        charges = [Charge(*each, measure, grouped, restricted_to, joint, values, pure) for each in zip(patterns, noises, strict=True)]
        return max(worst_case_loss(charges, types, pure).values(), default=0)

    at_one = loss(Fraction(1))
    if at_one == 0:
        raise BadArgument("no entry type can touch this release, so that no noise can be priced")
    if kind is not RoundedGaussian and not pure:
        return kind(_search(loss, target_picos, math.sqrt(at_one / target_picos)))
    # Every cost is proportional to 1 / parameter: the loss at 1 says what is needed, up to the rounding of costs.
    return kind(_first_within(loss, Fraction(at_one, target_picos), target_picos))


def stretched(noise: Noise, factor: Fraction) -> Noise:
    """Return noise whose parameter (scale, or sigma squared) is a factor times that of another, or a little more."""
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(short_rational(noise.scale * factor))
    return RoundedGaussian(short_rational(noise.sigma_squared * factor))


def factor_for(loss: Callable[[Fraction], int], target_picos: int) -> Fraction:
    """Return the least factor on all noise parameters (scale, sigma squared) at which a loss is at most `target_picos`.

    Every cost must be inversely proportional to its parameter, as in pure epsilon and with Gaussian noise in rho.
    """
    return _first_within(loss, Fraction(loss(Fraction(1)), target_picos), target_picos)


def short_rational(value: Fraction) -> Fraction:
    """Round up to a numerator of about _BITS bits over a power of two, or to a whole number if the value is large."""
    shift = max(0, _BITS - value.numerator.bit_length() + value.denominator.bit_length())
    return Fraction(ceil_divide(value.numerator << shift, value.denominator), 1 << shift)


def _first_within(loss: Callable[[Fraction], int], needed: Fraction, target: int) -> Fraction:
    """Return a short rational at `needed` or little above whose loss is within the target.

    Only the rounding of costs, at most a pico per touched filter, can ask for more than `needed`.
    """
    for step in range(_BITS):
        parameter = short_rational(needed * (1 + Fraction(2**step - 1, 2**_BITS)))
        if loss(parameter) <= target:
            return parameter
    raise BadArgument(_TOO_SMALL)


def _search(loss: Callable[[Fraction], int], target: int, guess: float) -> Fraction:
    """Return a short rational whose loss is within the target, and close to it, for costs between 1 / x and 1 / x^2.

    Such are costs in rho of what is epsilon-private, as randomised responses are. Regula falsi on logarithms, where such a loss is nearly
    a line, with every third step a bisection. Losses are whole and fall with x. `guess` says where to begin.
    """
    low, high = _bracket(loss, target, Fraction(2) ** round(math.log2(guess)))
    for step in range(_LONGEST_SEARCH):
        if high[0] <= low[0] * _CLOSE_ENOUGH:
            break
        width = math.log(high[0] / low[0])
        share = 0.5 if step % 3 == 2 else math.log(low[1] / target) / math.log(low[1] / max(1, high[1]))  # noqa: PLR2004 every third
        middle = short_rational(low[0] * Fraction(math.exp(width * min(max(share, 0.001), 0.999))))
        if middle >= high[0]:
            break
        cost = loss(middle)
        low, high = (low, (middle, cost)) if cost <= target else ((middle, cost), high)
    return high[0]


def _bracket(loss: Callable[[Fraction], int], target: int, begin: Fraction) -> tuple[tuple[Fraction, int], tuple[Fraction, int]]:
    """Return (x, loss) twice: an x that costs more than the target, and twice that, which does not."""
    low = high = (begin, loss(begin))
    while high[1] > target:
        low, high = high, (high[0] * 2, loss(high[0] * 2))
        if high[0] > _LARGEST_SCALE:
            raise BadArgument(_TOO_SMALL)
    while low[1] <= target:
        low, high = (low[0] / 2, loss(low[0] / 2)), low
    return low, high
