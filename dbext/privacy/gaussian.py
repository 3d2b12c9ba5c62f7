"""Gaussian differential privacy: what Gaussian noise costs, exactly, and what a pure charge costs beside it.

A mechanism is mu-GDP if no test tells two neighbouring databases apart better than one tells N(0, 1) from N(mu, 1) (Dong, Roth and Su
2022). Whatever is computed from Gaussian noise of sigma on a figure that an entry moves by d is (d / sigma)-GDP: rounded noise on a whole
number is, for round(x + noise) = x + round(noise). With rho = mu^2 / 2, which is the zero-concentrated loss of the same noise,

    delta(epsilon) = P(Z > epsilon / mu - mu / 2) - exp(epsilon) P(Z > epsilon / mu + mu / 2)      (Balle and Wang 2018, theorem 8).

rho adds up, however adaptively figures are asked for: whoever stops before the sum passes rho keeps (epsilon, delta(epsilon)) (Smith
and Thakurta 2022). For a step that is mu-GDP can be computed from x + N(0, 1) with x in {0, mu}; at the end a last such figure is added so
that the squares come to mu^2 on every path. The log likelihood ratio of all steps is then a sum of normal steps whose variances, chosen
one after the other by what was seen, add up to mu^2 without fail: given the past, each multiplies E exp(i u log ratio) by what its
variance says, so that the whole is N(-mu^2 / 2, mu^2), as from one figure, and N(mu^2 / 2, mu^2) on the other side.

An e-private step is mu-GDP with P(Z > mu / 2) = 1 / (1 + exp(e)): its trade-off lies above that of a coin that tells the truth with
probability exp(e) / (1 + exp(e)), two lines that meet at the point whose both errors are 1 / (1 + exp(e)). The curve of N(mu, 1) is
convex, runs through that point and both ends, and so below the lines (Liu, Sun and others 2022). As x = mu / 2 grows, e / x^2 falls:
e' = s(x) = phi(x) / (P(Z < x) P(Z > x)), and s / x falls because x (m - x) < 1 for m = phi(x) / P(Z > x) < (x + sqrt(x^2 + 4)) / 2. So
mu^2 of a sum of epsilons is never below the sum of their mu^2. All this is of steps whose loss is settled by what came before: noise of a
signed tree is drawn before it is known whether an entry will touch its block, so that its epsilon bounds the loss of every path but is not
the sum of such steps if data react to what was published. It is not counted so.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dbext.privacy.normal import density_at, upper_tail
from dbext.privacy.pico import picos_down, picos_up, to_decimal

_DIGITS = 60
_MARGIN = Decimal("1e-30")
_RESOLUTION = Decimal("1e-12")
_MOST_STEPS = 100
#: From here on 4 epsilon stands for the price of a pure step.
_LARGEST_PURE = 1_000
#: Beyond this epsilon or rho, which nobody may ask for, what holds of any zero-concentrated loss stands for the exact figure.
_LARGEST = 100_000


@lru_cache(maxsize=256)
def gaussian_rho(epsilon: Fraction, delta: Fraction) -> int:
    """Return the picos of rho that Gaussian noises may add up to within (epsilon, delta), rounded down."""
    with localcontext() as context:
        context.prec = _DIGITS
        wanted, exact = _decimal(delta), _decimal(epsilon)

        def excess(mu: Decimal) -> tuple[Decimal, Decimal]:
            found = _delta(exact, mu)
            return _logarithm(found) - wanted.ln(), density_at(exact / mu - mu / 2) / found if found else found

        # at this mu, 2 sqrt(epsilon + log) - 2 sqrt(log) with log = ln(1 / delta), any zero-concentrated loss keeps delta (Bun and Steinke
        # 2016); and at an epsilon of 0, a mu of 2 delta does
        simple = ((exact - wanted.ln()).sqrt() - (-wanted.ln()).sqrt()) * Decimal(2).sqrt()
        mu = simple * (1 - _MARGIN) if epsilon > _LARGEST else _crossing(excess, max(simple, 2 * wanted), 1)
        return picos_down(Fraction(mu * mu / 2))


@lru_cache(maxsize=256)
def gaussian_epsilon(rho: int, delta: Fraction) -> Decimal:
    """Return the epsilon that `rho` picos of Gaussian noises amount to at `delta`: 12 digits, rounded up."""
    with localcontext() as context:
        context.prec = _DIGITS
        wanted, mu = _decimal(delta), (2 * to_decimal(rho)).sqrt()
        if rho <= 0 or (to_decimal(rho) <= _LARGEST and _delta(Decimal(0), mu) <= wanted):
            return Decimal(0).quantize(_RESOLUTION)

        def excess(epsilon: Decimal) -> tuple[Decimal, Decimal]:
            found = _delta(epsilon, mu)
            lost = epsilon.exp() * upper_tail(epsilon / mu + mu / 2)[0]
            return _logarithm(found) - wanted.ln(), -lost / found if found else found

        simple = to_decimal(rho) + mu * (-2 * wanted.ln()).sqrt()  # rho + 2 sqrt(rho log): the same bound
        epsilon = simple * (1 + _MARGIN) if to_decimal(rho) > _LARGEST else _crossing(excess, simple, -1)
        return epsilon.quantize(_RESOLUTION, ROUND_CEILING)


@lru_cache(maxsize=4096)
def pure_as_rho(epsilon: Fraction) -> int:
    """Return mu^2 / 2 in picos, rounded up, of the least mu for which every epsilon-private step is mu-GDP.

    At most pi / 4 epsilon^2 and 4 epsilon. It is a bound on the zero-concentrated loss of the step, too, as mu^2 / 2 is for whatever is
    mu-GDP; by itself that is epsilon tanh(epsilon / 2) (Kairouz, Oh and Viswanath 2015).
    """
    if epsilon > _LARGEST_PURE:
        return picos_up(4 * epsilon)
    with localcontext() as context:
        context.prec = _DIGITS
        exact = _decimal(epsilon)
        error = 1 / (1 + exact.exp())

        def excess(x: Decimal) -> tuple[Decimal, Decimal]:
            tail = upper_tail(x)[1]
            return tail.ln() - error.ln(), -density_at(x) / tail

        x = _crossing(excess, (2 * exact).sqrt(), -1)  # there the tail is at most exp(-x^2 / 2) / 2, which is below the error
        return picos_up(Fraction(2 * x * x))


def _crossing(excess: Callable[[Decimal], tuple[Decimal, Decimal]], good: Decimal, side: int) -> Decimal:
    """Return a point at which a monotone function is at most 0, very close to where it is 0.

    `excess` gives value and slope; `good` is a point where it is at most 0, `side` the direction in which it rises. Newton's method, with
    a bisection wherever that would leave what is known.
    """
    bad, x = None, good
    for _ in range(_MOST_STEPS):
        value, slope = excess(x)
        good, bad = (x, bad) if value <= 0 else (good, x)
        step = -value / slope if slope else None
        if step is not None and abs(step) < x * _MARGIN:
            break
        following = None if step is None else x + step
        if following is None or (bad is not None and not min(good, bad) < following < max(good, bad)):
            following = good * Decimal(2) ** side if bad is None else (good + bad) / 2
        x = following
    near = x * (1 - side * 4 * _MARGIN)
    return near if excess(near)[0] <= 0 else good


def _delta(epsilon: Decimal, mu: Decimal) -> Decimal:
    """Return an upper bound on delta(epsilon), at most 1e-20 of it too large."""
    above, beyond = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return (upper_tail(above)[1] - epsilon.exp() * upper_tail(beyond)[0] * (1 - _MARGIN)) * (1 + _MARGIN)


def _logarithm(value: Decimal) -> Decimal:
    """Return the logarithm, of what is too small for a decimal number a very small one."""
    return value.ln() if value > 0 else Decimal(-(10**6))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
