"""Epsilon and delta as users write and read them: exact decimals, never floats."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation, localcontext
from fractions import Fraction

from dbext.errors import BadArgument
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian

MAX_EPSILON = 1000
MAX_DIGITS = 12
#: 2^62 / (64 deviations x 4096 draws).
MAX_DEVIATION = 2.0**44


def epsilon_from(text: str | None, example: str) -> Decimal:
    """Return an epsilon: positive, finite, at most 1000, at most 12 decimals. `example` shows how the call is written."""
    if text is None:
        raise BadArgument("epsilon is missing", hint=f"Say what it may cost: {example}")
    value = _decimal("epsilon", text)
    if not 0 < value <= MAX_EPSILON:
        raise BadArgument(f"epsilon must be above 0 and at most {MAX_EPSILON}")
    return value


def delta_from(text: str, name: str = "delta") -> Decimal:
    """Return a delta: 0 for pure differential privacy, and below 1."""
    value = _decimal(name, text, digits=40)
    if not 0 <= value < 1:
        raise BadArgument(f"{name} must be at least 0 and below 1")
    return value


def _decimal(name: str, text: str, digits: int = MAX_DIGITS) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation as fault:
        raise BadArgument(f"{name} must be a number") from fault
    if not value.is_finite():
        raise BadArgument(f"{name} must be a finite number")
    value = value.normalize()
    if value.as_tuple().exponent < -digits:
        raise BadArgument(f"{name} has more than {digits} decimals")
    return value


def require_noise_fits(noise: DiscreteLaplace | RoundedGaussian) -> None:
    """Refuse noise so wide that a sum of a few thousand draws could leave the range of a bigint (chance below exp(-64))."""
    deviations = float(noise.scale) if isinstance(noise, DiscreteLaplace) else float(noise.sigma_squared) ** 0.5
    if deviations > MAX_DEVIATION:
        raise BadArgument("epsilon is so small that its noise would not fit into a bigint", hint="Ask for a larger epsilon.")


def plain(value: Decimal) -> str:
    """Write a decimal without an exponent: the form that PostgreSQL's numeric takes and users read."""
    return f"{value.normalize():f}"


def rounded_up(value: Decimal) -> str:
    """Show a loss: six decimals, rounded up."""
    return plain(value.quantize(Decimal("0.000001"), ROUND_CEILING))


def significant_up(value: Fraction) -> str:
    """Show a small probability: four digits, rounded up."""
    with localcontext() as context:
        context.prec, context.rounding = 4, ROUND_CEILING
        return f"{Decimal(value.numerator) / Decimal(value.denominator):g}"


def rounded_down(value: Decimal) -> str:
    """Show what is left: six decimals, rounded down, not below zero."""
    return plain(max(value, Decimal(0)).quantize(Decimal("0.000001"), ROUND_FLOOR))
