"""The two exact noises and what one use of them costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from dbext.errors import BadArgument, NotSupported
from dbext.privacy.gaussian import pure_as_rho
from dbext.privacy.measure import Sensitivity
from dbext.privacy.pico import picos_up

#: From this sigma^2 on, the variance of rounded noise is sigma^2 + 1/12 to the last bit of a float (the gap is below exp(-2 pi^2 sigma^2)).
_WIDE = 9


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
class RoundedGaussian:
    """The nearest whole number to a normal draw: P(X = x) = P(x - 1/2 < sigma Z < x + 1/2).

    On whole numbers it is what rounding makes of continuous Gaussian noise, so that it costs exactly what that costs.
    """

    sigma_squared: Fraction

    def __post_init__(self):
        object.__setattr__(self, "sigma_squared", _positive(self.sigma_squared, "sigma_squared"))

    @cached_property
    def variance(self) -> float:
        """Variance of the rounded law: sigma^2 and that of rounding, 1/12, as soon as sigma is not small; never above that sum.

        For small sigma it is the sum of (2x + 1) P(abs(X) > x) over x >= 0.
        """
        sigma_squared = float(self.sigma_squared)
        if sigma_squared >= _WIDE:
            return sigma_squared + 1 / 12
        width = math.sqrt(2 * sigma_squared)
        return math.fsum((2 * x + 1) * math.erfc((x + 0.5) / width) for x in range(120))

    @property
    def proxy(self) -> float:
        """sigma^2 + 1/12, the variance proxy: E exp(u X) <= exp(slack + proxy u^2 / 2) for every u.

        By Poisson's summation E exp(u X) is exp(sigma^2 u^2 / 2) sinh(u / 2) / (u / 2), the second factor at most exp(u^2 / 24), times a
        sum over whole k whose terms are at most exp(-2 pi^2 k^2 sigma^2) in size.
        """
        return float(self.sigma_squared) + 1 / 12

    @cached_property
    def slack(self) -> float:
        """The logarithm of the sum of exp(-2 pi^2 k^2 sigma^2) over whole k: 5e-9 at sigma = 1, and vanishing beyond."""
        return log_theta(float(self.sigma_squared))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `noise_from_json` reads."""
        return {"kind": "rounded_gaussian", "sigma_squared": str(self.sigma_squared)}


def log_theta(sigma_squared: float) -> float:
    """Return the logarithm of the sum of exp(-2 pi^2 k^2 sigma^2) over whole k, from whichever of its two forms converges fast."""
    if sigma_squared * 2 * math.pi >= 1:
        return math.log1p(2 * math.fsum(math.exp(-2 * math.pi**2 * k * k * sigma_squared) for k in range(1, 6)))
    near = math.log1p(2 * math.fsum(math.exp(-x * x / (2 * sigma_squared)) for x in range(1, 6)))
    return near - math.log(2 * math.pi * sigma_squared) / 2


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


Noise = DiscreteLaplace | RoundedGaussian | Response


def law_of(*, pure: bool) -> type[Noise]:
    """Return the noise of prices in epsilon (`pure`) or in rho: in rho, Laplace noise errs no less than Gaussian noise for any price."""
    return DiscreteLaplace if pure else RoundedGaussian


def noise_from_json(data: dict[str, Any]) -> Noise:
    """Rebuild a noise from its tagged form."""
    if data.get("kind") == "randomised_response":
        return Response(data["categories"], Fraction(data["epsilon"]))
    kinds = {"discrete_laplace": (DiscreteLaplace, "scale"), "rounded_gaussian": (RoundedGaussian, "sigma_squared")}
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
    return RoundedGaussian(noise.sigma_squared * factor * factor)


def cost(noise: Noise, sensitivity: Sensitivity, pure: bool) -> int:  # noqa: FBT001 the kind of budget, as everywhere
    """Return the loss of one use in picos, rounded up: of epsilon if `pure`, else of rho.

    Pure: Laplace costs l1 / scale; Gaussian noise has no finite epsilon and is refused.
    Rho: Gaussian costs l2^2 / (2 sigma^2), as in the continuous case, of which rounding is a post-processing; Laplace noise is priced in
    epsilon alone.
    """
    if isinstance(noise, DiscreteLaplace) and pure:
        return picos_up(sensitivity.l1 / noise.scale)
    return rho_of_norm(noise, Fraction(sensitivity.l2_squared), pure)


def response_cost(noise: Response, pure: bool) -> int:  # noqa: FBT001 the kind of budget, as everywhere
    """Return the picos of one report of one entry, rounded up: in rho as any step that is epsilon-private."""
    return picos_up(noise.epsilon) if pure else pure_as_rho(noise.epsilon)


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


def _positive(value: Fraction, name: str) -> Fraction:
    exact = Fraction(value)
    if exact <= 0:
        raise BadArgument(f"{name} must be positive, not {exact}")
    return exact
