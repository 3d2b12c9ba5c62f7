"""The exact privacy curve of repeated discrete Laplace answers of any whole sensitivity: to compare with, never to spend by."""

from __future__ import annotations

import math
from functools import lru_cache

_STEPS = 200


def repeated_laplace_delta(epsilon: float, parameter: float, sensitivity: int, times: int) -> float:
    """Return delta at `epsilon` of `times` independent answers with noise P(x) ~ exp(-parameter |x|), each moved by `sensitivity`.

    The loss of one answer x is parameter (|x - s| - |x|), which takes the values parameter (s - 2 j), j = 0 ... s. Losses of
    independent answers add, so that their law is a power of one polynomial: exact but for the rounding of positive sums.
    """
    law = _loss_law(parameter, sensitivity, times)
    return math.fsum(share * -math.expm1(epsilon - loss) for loss, share in law if loss > epsilon)


def repeated_laplace_epsilon(delta: float, parameter: float, sensitivity: int, times: int) -> float:
    """Return the least epsilon >= 0 at `delta`; never above times * parameter * sensitivity."""
    low, high = 0.0, times * parameter * sensitivity
    if repeated_laplace_delta(low, parameter, sensitivity, times) <= delta:
        return low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if repeated_laplace_delta(middle, parameter, sensitivity, times) <= delta:
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=16)
def _loss_law(parameter: float, sensitivity: int, times: int) -> tuple[tuple[float, float], ...]:
    q = math.exp(-parameter)
    # The tail x <= 0, then x = 1 ... s - 1, then the tail x >= s.
    single = [1 / (1 + q), *((1 - q) / (1 + q) * q**j for j in range(1, sensitivity)), q**sensitivity / (1 + q)]
    law = [1.0]
    for _ in range(times):
        reach = len(law) + sensitivity
        law = [sum(law[i] * single[n - i] for i in range(max(0, n - sensitivity), min(n + 1, len(law)))) for n in range(reach)]
    most = times * sensitivity
    return tuple((parameter * (most - 2 * n), share) for n, share in enumerate(law))
