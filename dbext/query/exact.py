"""Exact numbers as text."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

from dbext.errors import InternalError

_WIDE = Context(prec=2000)


def exact_decimal(value: Fraction) -> str:
    """A fraction that came from decimals, written out without an exponent, as PostgreSQL's numeric reads it."""
    found = _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
    if Fraction(found) != value:
        raise InternalError("a number is not a decimal fraction")
    return f"{found:f}"
