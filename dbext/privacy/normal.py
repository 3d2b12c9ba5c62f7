"""Tails of the normal law between proven bounds, in decimal numbers: no library's error function is trusted with a guarantee."""

from __future__ import annotations

from decimal import Decimal, localcontext

_DIGITS = 60
_MARGIN = Decimal("1e-45")
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
#: Below, a series is exact enough: it loses ten digits of sixty to a tail of 1e-9.
_SERIES_UNTIL = 6
#: Convergents of the continued fraction: with so many its bounds agree to 20 digits at the least from there on.
_DEPTH = 40
#: Beyond, a tail is below 1e-217000.
_FARTHEST = 1_000


def upper_tail(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return a lower and an upper bound on P(Z > x) of a standard normal Z, for any x.

    Up to 6 by the series 1/2 - P(Z > x) = phi(x) (x + x^3 / 3 + x^5 / (3 5) + ...), whose terms are positive: a few hundred operations
    of 60 digits and a difference of at least 9e-10 leave 45. Beyond by Laplace's continued fraction
    P(Z > x) = phi(x) / (x + 1 / (x + 2 / (x + 3 / ...))), whose convergents lie above and below in turn.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        if x < 0:
            low, high = upper_tail(-x)
            return (1 - high) * (1 - _MARGIN), (1 - low) * (1 + _MARGIN)
        if x > _FARTHEST:
            return Decimal(0), (-x * x / 2).exp()
        density = density_at(x)
        if x < _SERIES_UNTIL:
            value = Decimal("0.5") - density * _series(x)
            return value * (1 - _MARGIN), value * (1 + _MARGIN)
        bounds = sorted(density / _fraction(x, depth) for depth in (_DEPTH, _DEPTH + 1))
        return bounds[0] * (1 - _MARGIN), bounds[1] * (1 + _MARGIN)


def density_at(x: Decimal) -> Decimal:
    """Return exp(-x^2 / 2) / sqrt(2 pi) in the precision of the context."""
    return (-x * x / 2).exp() / (2 * _PI).sqrt()


def _series(x: Decimal) -> Decimal:
    """Return x + x^3 / 3 + x^5 / 15 + ..., until what is left is below the last digit."""
    square, term, total, odd = x * x, x, x, 1
    while term > total.scaleb(-_DIGITS):
        odd += 2
        term = term * square / odd
        total += term
    return total


def _fraction(x: Decimal, depth: int) -> Decimal:
    """Return x + 1 / (x + 2 / (x + ... depth / x))."""
    value = x
    for number in range(depth, 0, -1):
        value = x + number / value
    return value
