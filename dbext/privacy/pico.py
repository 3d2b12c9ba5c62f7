"""The unit of privacy loss: one pico, 1e-12 of epsilon (pure budgets, delta = 0) or of rho (Gaussian, delta > 0).

Losses are whole numbers of picos, so that sums are exact and a ledger never drifts. What is spent is rounded up, what may be spent is
rounded down: every rounding is against the spender.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

PICOS = 10**12


def picos_up(loss: Fraction | int) -> int:
    """Round a loss up to whole picos."""
    exact = Fraction(loss)
    return -(-exact.numerator * PICOS // exact.denominator)


def picos_down(allowance: Fraction | int) -> int:
    """Round an allowance down to whole picos."""
    exact = Fraction(allowance)
    return exact.numerator * PICOS // exact.denominator


def to_decimal(picos: int) -> Decimal:
    """Return picos as an exact decimal number of epsilon or rho."""
    return Decimal(picos).scaleb(-12)


def ceil_divide(numerator: int, denominator: int) -> int:
    """Return the quotient of whole numbers, rounded up."""
    return -(-numerator // denominator)
