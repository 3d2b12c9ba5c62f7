"""From zero-concentrated loss rho to (epsilon, delta) and back, always rounded to the safe side.

For every order t > 1, rho-zCDP implies (epsilon, delta)-DP with

    epsilon(t) = t rho + (ln(1 / delta) - ln(t - 1) + t ln(1 - 1 / t)) / (t - 1)

(Canonne, Kamath and Steinke 2020, proposition 12; Asoodeh et al. 2020). It holds for every mechanism, not only for Gaussian ones. As
every t gives a valid bound, floats may look for the best t; the bound itself is then evaluated at that exact t in 60 decimal digits, where
logarithms are correctly rounded, with a margin of 1e-40 for the few operations around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dbext.errors import BadArgument
from dbext.privacy.pico import PICOS, picos_down, to_decimal

_DIGITS = 60
_MARGIN = Decimal("1e-40")
_RESOLUTION = Decimal("1e-12")
#: Orders are looked for as t = 1 + exp(u); beyond these u nothing is gained for any delta above 1e-300.
_LEAST_LOG, _LARGEST_LOG = -40.0, 60.0
_GOLDEN = (math.sqrt(5) - 1) / 2


@lru_cache(maxsize=256)
def rho_to_epsilon(rho: int, delta: Fraction) -> Decimal:
    """Return the epsilon that `rho` picos of zero-concentrated loss amount to at `delta`: 12 digits, rounded up."""
    _check(delta)
    if rho <= 0:
        return Decimal(0).quantize(_RESOLUTION)
    order = _best_order(lambda excess: (1 + excess) * rho / PICOS + _overhead(excess, delta))
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_CEILING
        epsilon = order * to_decimal(rho) + _exact_overhead(order, delta) + _MARGIN
        return max(Decimal(0), epsilon).quantize(_RESOLUTION)


@lru_cache(maxsize=256)
def epsilon_to_rho(epsilon: Fraction, delta: Fraction) -> int:
    """Return the picos of rho that may be spent within (epsilon, delta), rounded down; 0 if no order allows any."""
    _check(delta)
    order = _best_order(lambda excess: -(float(epsilon) - _overhead(excess, delta)) / (1 + excess))
    with localcontext() as context:
        context.prec = _DIGITS
        exact = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        rho = (exact - _exact_overhead(order, delta)) / order * (1 - _MARGIN) - _MARGIN
    return max(0, picos_down(Fraction(rho)))


def budget_picos(epsilon: Fraction, delta: Fraction) -> int:
    """Return what may be spent under (epsilon, delta), rounded down: picos of epsilon when delta = 0, else of rho."""
    return picos_down(epsilon) if delta == 0 else epsilon_to_rho(Fraction(epsilon), Fraction(delta))


def epsilon_of(picos: int, delta: Fraction) -> Decimal:
    """Return the epsilon that a loss amounts to, rounded up: picos are of epsilon when delta = 0, else of rho."""
    return to_decimal(picos) if delta == 0 else rho_to_epsilon(picos, Fraction(delta))


def _check(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise BadArgument(f"delta must lie between 0 and 1, not {delta}")


def _overhead(excess: float, delta: Fraction) -> float:
    """Return (ln(1 / delta) - ln(t - 1) + t ln(1 - 1 / t)) / (t - 1) at t = 1 + excess."""
    return (-_log(delta) - math.log(excess) - (1 + excess) * math.log1p(1 / excess)) / excess


def _exact_overhead(order: Decimal, delta: Fraction) -> Decimal:
    excess = order - 1
    log_delta = Decimal(delta.numerator).ln() - Decimal(delta.denominator).ln()
    return (-log_delta - excess.ln() + order * (excess / order).ln()) / excess


def _log(delta: Fraction) -> float:
    return math.log(delta.numerator) - math.log(delta.denominator)


def _best_order(value: Callable[[float], float]) -> Decimal:
    """Return an order t > 1 (a short decimal) near the minimum of `value` over excess = t - 1, by golden section on its logarithm.

    A wrong minimum would cost tightness, never validity.
    """
    low, high = _LEAST_LOG, _LARGEST_LOG
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = value(math.exp(left)), value(math.exp(right))
    for _ in range(100):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(math.exp(right))
    return 1 + Decimal(repr(math.exp((low + high) / 2)))
