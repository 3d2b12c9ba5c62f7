"""The two exact noises and what one use of them costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dbext.errors import BadArgument, NotSupported
from dbext.privacy.measure import Sensitivity
from dbext.privacy.pico import picos_up

#: Above this variance a discrete Gaussian's variance equals sigma^2 to the last bit of a float (the gap is below exp(-2 pi^2 sigma^2)).
_WIDE = 9
_DIGITS = 60
_MARGIN = Decimal("1e-45")


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(X = x) = (1 - q) / (1 + q) q^abs(x) with q = exp(-1 / scale)."""

    scale: Fraction

    def __post_init__(self):
        object.__setattr__(self, "scale", _positive(self.scale, "scale"))

    @property
    def variance(self) -> float:
        """Variance of the discrete law, 2q / (1 - q)^2: a little below 2 scale^2."""
        inverse = float(1 / self.scale)
        return 2 * math.exp(-inverse) / math.expm1(-inverse) ** 2

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `noise_from_json` reads."""
        return {"kind": "discrete_laplace", "scale": str(self.scale)}


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(X = x) proportional to exp(-x^2 / (2 sigma_squared))."""

    sigma_squared: Fraction

    def __post_init__(self):
        object.__setattr__(self, "sigma_squared", _positive(self.sigma_squared, "sigma_squared"))

    @property
    def variance(self) -> float:
        """Variance of the discrete law: never above sigma_squared (Canonne, Kamath and Steinke 2020, corollary 9)."""
        sigma_squared = float(self.sigma_squared)
        if sigma_squared >= _WIDE:
            return sigma_squared
        weights = [(x * x, math.exp(-x * x / (2 * sigma_squared))) for x in range(1, 150)]
        return 2 * sum(square * weight for square, weight in weights) / (1 + 2 * sum(weight for _, weight in weights))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `noise_from_json` reads."""
        return {"kind": "discrete_gaussian", "sigma_squared": str(self.sigma_squared)}


#: A report at this loss is the truth but for a chance of about 10^-43: nobody asks for more.
LARGEST_RESPONSE = 100


@dataclass(frozen=True)
class Response:
    """Randomised response, the noise of the local model: every entry reports one of `categories` by itself.

    A report is private at `epsilon` for every pair of truths, an entry's absence included.
    """

    categories: int
    epsilon: Fraction

    def __post_init__(self):
        object.__setattr__(self, "epsilon", _positive(self.epsilon, "epsilon"))
        if self.categories < 2 or self.epsilon > LARGEST_RESPONSE:  # noqa: PLR2004 one category says nothing
            raise BadArgument(f"a randomised response has two categories or more and an epsilon of at most {LARGEST_RESPONSE}")

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `noise_from_json` reads."""
        return {"kind": "randomised_response", "categories": self.categories, "epsilon": str(self.epsilon)}


Noise = DiscreteLaplace | DiscreteGaussian | Response


def noise_from_json(data: dict[str, Any]) -> Noise:
    """Rebuild a noise from its tagged form."""
    if data.get("kind") == "randomised_response":
        return Response(data["categories"], Fraction(data["epsilon"]))
    kinds = {"discrete_laplace": (DiscreteLaplace, "scale"), "discrete_gaussian": (DiscreteGaussian, "sigma_squared")}
    if data.get("kind") not in kinds:
        raise BadArgument(f"unknown noise {data.get('kind')!r}")
    build, parameter = kinds[data["kind"]]
    return build(Fraction(data[parameter]))


def scaled(noise: Noise, factor: Fraction) -> Noise:
    """Return noise of the same kind that is `factor` times as wide."""
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(noise.scale * factor)
    if isinstance(noise, Response):
        return Response(noise.categories, noise.epsilon / factor)
    return DiscreteGaussian(noise.sigma_squared * factor * factor)


def cost(noise: Noise, sensitivity: Sensitivity, pure: bool) -> int:  # noqa: FBT001 the kind of budget, as everywhere
    """Return the loss of one use in picos, rounded up: of epsilon if `pure`, else of rho.

    Pure: Laplace costs l1 / scale; Gaussian noise has no finite epsilon and is refused.
    Zero-concentrated: Gaussian costs l2^2 / (2 sigma^2), exactly as in the continuous case (Canonne, Kamath and Steinke 2020, theorem 4).
    Laplace is e-DP with e = l1 / scale, and every e-DP mechanism satisfies rho = e tanh(e / 2):
    it is a post-processing of binary randomised response (Kairouz, Oh and Viswanath 2015), whose Renyi divergence of order t is
    ln(cosh((t - 1/2) e) / cosh(e / 2)) / (t - 1). As a function of v = u^2, ln cosh(u) is concave (its slope tanh(u) / (2u) falls), so
    the tangent at u = e / 2 bounds it and gives divergence <= t e tanh(e / 2). This is never above e^2 / 2.
    """
    if isinstance(noise, DiscreteLaplace):
        epsilon = sensitivity.l1 / noise.scale
        return picos_up(epsilon) if pure else _response_rho(epsilon)
    return rho_of_norm(noise, Fraction(sensitivity.l2_squared), pure)


def response_cost(noise: Response, pure: bool) -> int:  # noqa: FBT001 the kind of budget, as everywhere
    """Return the picos of one report of one entry, rounded up: whatever is epsilon-private satisfies rho = epsilon tanh(epsilon / 2)."""
    return picos_up(noise.epsilon) if pure else _response_rho(noise.epsilon)


def rho_of_norm(noise: Noise, norm_squared: Fraction, pure: bool) -> int:  # noqa: FBT001 the kind of budget, as everywhere
    """Return the picos of rho that Gaussian noise costs an effect of this squared L2 norm, rounded up."""
    if isinstance(noise, DiscreteLaplace):
        raise NotSupported("a squared norm prices Gaussian noise only")
    if pure:
        raise NotSupported(
            "Gaussian noise has no finite epsilon at delta = 0",
            hint="Use a budget with delta > 0, or a mechanism with Laplace noise.",
        )
    return picos_up(norm_squared / (2 * noise.sigma_squared))


@lru_cache(maxsize=1024)
def _response_rho(epsilon: Fraction) -> int:
    """Return epsilon tanh(epsilon / 2) in picos, rounded up; exp is correctly rounded to 60 digits, far finer than the margin."""
    with localcontext() as context:
        context.prec = _DIGITS
        exact = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        decay = (-exact).exp()
        rho = exact * (1 - decay) / (1 + decay) * (1 + _MARGIN) + _MARGIN
        return min(picos_up(Fraction(rho)), picos_up(epsilon * epsilon / 2))


def _positive(value: Fraction, name: str) -> Fraction:
    exact = Fraction(value)
    if exact <= 0:
        raise BadArgument(f"{name} must be positive, not {exact}")
    return exact
