"""Thresholds for group keys taken from the data as the literature states them, to hold those of the product against.

A key that a single entry supports must stay hidden but with probability delta. That costs a delta of its own, whatever the noise: pure
differential privacy cannot publish keys of the data. An entry that touches several keys pays for each of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from dbext.errors import BadArgument


def laplace_threshold(epsilon: float, delta: float, keys_per_entry: int = 1) -> float:
    """Return the threshold for one check of counts with Laplace noise of scale keys / epsilon: 1 + ln(keys / (2 delta)) keys / epsilon.

    A key of one entry passes with probability exp(-(threshold - 1) / scale) / 2 = delta / keys.
    """
    _check(epsilon, delta, keys_per_entry)
    return 1 + math.log(keys_per_entry / (2 * delta)) * keys_per_entry / epsilon


@dataclass(frozen=True)
class ContinualThreshold:
    """Checks of a continual count of distinct entries per key; a key that has crossed once stays published.

    `sigma`: the largest standard deviation of the count's noise over all checks; `keys`: keys that one entry can ever touch; `checks`:
    the number of times at which a key could cross. One crossing is enough to reveal a key, so that all checks share the delta: each may
    be crossed with probability delta / (keys * checks). Fewer checks (weekly instead of daily) lower the threshold.
    """

    sigma: float
    delta: float
    keys: int
    checks: int

    def __post_init__(self):
        _check(self.sigma, self.delta, self.keys * self.checks)

    @property
    def gaussian(self) -> float:
        """1 + sigma * Phi^-1(1 - delta / (keys checks)), for continuous Gaussian noise."""
        return 1 - self.sigma * NormalDist().inv_cdf(self.delta / (self.keys * self.checks))

    @property
    def subgaussian(self) -> float:
        """1 + sigma sqrt(2 ln(keys checks / delta)), for every weighted sum of discrete Gaussians of this standard deviation.

        Discrete Gaussian noise of parameter sigma^2 is subgaussian with that variance proxy (Canonne, Kamath and Steinke 2020), proxies
        of independent noises add with the squares of their weights, and P(S >= x) <= exp(-x^2 / (2 sigma^2)).
        """
        return 1 + self.sigma * math.sqrt(2 * math.log(self.keys * self.checks / self.delta))

    def summable(self, check: int) -> ContinualThreshold:
        """Return the threshold of check number 1, 2, ... of an endless release, at 6 / (pi check)^2 of the delta: these sum to 1."""
        if check < 1:
            raise BadArgument(f"checks are numbered from 1, not {check}")
        return ContinualThreshold(self.sigma, self.delta * 6 / (math.pi * check) ** 2, self.keys, 1)


def optimal_probabilities(epsilon: float, delta: float, largest: int) -> list[float]:
    """Return the best chances of publishing a key with 1 ... `largest` entries, an entry touching one key.

    p_n = min(e^epsilon p_(n-1) + delta, 1 - e^-epsilon (1 - p_(n-1) - delta), 1), p_0 = 0: the two constraints of
    (epsilon, delta)-privacy between n - 1 and n entries, met with equality (Desfontaines, Voss, Gipson and Mandayam 2022).
    """
    _check(epsilon, delta, largest)
    chances, chance = [], 0.0
    for _ in range(largest):
        chance = min(math.exp(epsilon) * chance + delta, 1 - math.exp(-epsilon) * (1 - chance - delta), 1.0)
        chances.append(chance)
    return chances


def _check(positive: float, delta: float, count: int) -> None:
    if positive <= 0 or not 0 < delta < 1 or count < 1:
        raise BadArgument("key selection needs a positive epsilon or sigma, a delta between 0 and 1, and at least one key and check")
