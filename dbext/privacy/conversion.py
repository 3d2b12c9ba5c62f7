"""From losses in rho and in epsilon to (epsilon, delta) and back, always rounded to the safe side.

Gaussian noise alone is converted exactly, by `gaussian`; for every loss rho there is besides, for every order t > 1,

    epsilon(t) = t rho + (ln(1 / delta) - ln(t - 1) + t ln(1 - 1 / t)) / (t - 1)

(Canonne, Kamath and Steinke 2020, proposition 12; Asoodeh et al. 2020). As every t gives a valid bound, floats may look for the best t; the
bound itself is then evaluated at that exact t in 60 decimal digits, where logarithms are correctly rounded, with a margin of 1e-40 for the
few operations around them.

Charges in epsilon and in rho share a budget. At one order t a charge of rho costs t rho, and one that is e-private costs e (its Renyi
divergences are at most e). Costs at a fixed order add up however adaptively they are chosen, so that a budget is a filter: whoever stops
before the sum at t exceeds epsilon less the overhead of t, keeps (epsilon, delta). But t has to be fixed beforehand. "Stop before E +
epsilon(R) exceeds epsilon", with E the sum of the charges in epsilon, R that in rho and the best t for whatever R it came to, is no such
filter: an analyst who watches Gaussian answers and turns to Laplace noise when they came out large exceeds delta, several times over if he
may begin with small charges (`tests/unit/privacy/test_loss.py` works that out). So a budget has a fixed list of filters, each with a part
of delta of its own: the exact one of Gaussian noise, in which charges in epsilon count as rho (`gaussian.pure_as_rho`), and those of the
orders of `DIVISIONS`. A life that ends within what one of them allows was, as far as it went, one that stops by that filter's rule; the
chances of harm of all of them add up to delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dbext.privacy.gaussian import gaussian_epsilon, gaussian_rho, pure_as_rho
from dbext.privacy.pico import PICOS, picos_down, to_decimal

_DIGITS = 60
_MARGIN = Decimal("1e-40")
_RESOLUTION = Decimal("1e-12")
#: Orders are looked for as t = 1 + exp(u); beyond these u nothing is gained for any delta above 1e-300.
_LEAST_LOG, _LARGEST_LOG = -40.0, 60.0
_GOLDEN = (math.sqrt(5) - 1) / 2
#: The part of delta that the filter of Gaussian noise has: nearly all.
ALONE = Fraction(19, 20)
#: How else epsilon may be divided between charges in epsilon and in rho: (the part of epsilon that is left to rho, the part of delta that
#: this division has). The orders are the best ones for each part. In between, they serve well, too.
DIVISIONS = tuple((Fraction(left), Fraction(1, 100)) for left in ("3/4", "1/2", "1/4", "1/10", "1/30"))


def budget_picos(epsilon: Fraction, delta: Fraction) -> int:
    """Return what charges may add up to under (epsilon, delta), rounded down: in epsilon when delta = 0, else in rho alone."""
    return picos_down(epsilon) if delta == 0 else _alone(Fraction(epsilon), Fraction(delta))


def epsilon_of(picos: int, delta: Fraction) -> Decimal:
    """Return the epsilon that a loss amounts to, rounded up: of picos of epsilon when delta = 0, else of rho alone."""
    if delta == 0:
        return to_decimal(picos)
    return gaussian_epsilon(picos, Fraction(delta) * ALONE)


def rho_beside(pure: int, epsilon: Fraction, delta: Fraction, *, stepwise: bool = True) -> int:
    """Return the picos of rho that may be spent beside `pure` picos of epsilon within (epsilon, delta); negative if not even these fit.

    `stepwise`: what each pure step costs an entry is settled when its noise is drawn; else it counts in the filters of the orders alone.
    """
    if delta == 0 or pure >= picos_down(epsilon):
        return min(0, picos_down(epsilon) - pure)
    left = Fraction(epsilon) - Fraction(pure, PICOS)
    alone = _alone(Fraction(epsilon), Fraction(delta)) - pure_as_rho(Fraction(max(pure, 0), PICOS)) if stepwise or pure <= 0 else 0
    return max(0, alone, *(_rho_at(order, left) for order in _orders(Fraction(epsilon), Fraction(delta))))


def _alone(epsilon: Fraction, delta: Fraction) -> int:
    """Return the picos of rho that the filter of Gaussian noise allows."""
    return gaussian_rho(epsilon, delta * ALONE)


def epsilon_of_both(pure: int, rho: int, delta: Fraction, *, stepwise: bool = True) -> Decimal:
    """Return the least epsilon, 12 digits, that holds `pure` picos of epsilon and `rho` picos of rho at `delta`."""
    if rho <= 0:
        return to_decimal(max(pure, 0))
    alone = epsilon_of(rho, delta)
    if pure <= 0:
        return alone
    low = picos_down(max(Fraction(alone), Fraction(pure, PICOS)))
    high = low + pure
    while rho_beside(pure, Fraction(high, PICOS), delta, stepwise=stepwise) < rho:
        low, high = high, high + high // 4 + 1
    while high - low > 1 + high // 10**9:
        middle = (low + high) // 2
        low, high = (low, middle) if rho_beside(pure, Fraction(middle, PICOS), delta, stepwise=stepwise) >= rho else (middle, high)
    return to_decimal(high)


@lru_cache(maxsize=64)
def _orders(epsilon: Fraction, delta: Fraction) -> tuple[tuple[Decimal, Decimal], ...]:
    """Return the orders of a budget, each with its overhead at its part of delta. They depend on the budget alone."""
    return tuple(_largest_rho(epsilon * left, delta * part) for left, part in DIVISIONS)


def _largest_rho(epsilon: Fraction, delta: Fraction) -> tuple[Decimal, Decimal]:
    """Return the order that allows the largest rho within (epsilon, delta), and its overhead."""
    order = _best_order(lambda excess: -(float(epsilon) - _overhead(excess, delta)) / (1 + excess))
    with localcontext() as context:
        context.prec = _DIGITS
        return order, _exact_overhead(order, delta)


def _rho_at(order: tuple[Decimal, Decimal], epsilon: Fraction) -> int:
    """Return the picos of rho that an order with its overhead allows within epsilon, rounded down; negative if none."""
    (at, overhead) = order
    with localcontext() as context:
        context.prec = _DIGITS
        exact = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        return picos_down(Fraction((exact - overhead) / at * (1 - _MARGIN) - _MARGIN))


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
