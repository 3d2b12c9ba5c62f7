"""Whole-number Toeplitz encoders: y = Rx + z with integer R, and the real weights that turn stored y into answers.

A mechanism of this kind stores, for each period t, the noisy number y_t = c_0 x_t + c_1 x_(t-1) + ... + z_t, where x_s is the exact
count of period s, c_0 ... c_(n-1) are the encoder's `coefficients` (whole numbers, c_0 > 0, zero beyond) and z_t is rounded Gaussian
noise drawn once. What an entry can do to Rx is a vector of integers, so that the privacy statement is exact: no float is ever noised.
An answer is post-processing: weighted sums of stored y with the coefficients of A(z) / c(z), where A holds the coefficients of the
wanted sum (all ones for a running total, W ones for a window).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: Below this length a power series is inverted term by term, above it by Newton's iteration with fast transforms.
_DIRECT = 64


def encode(coefficients: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Return Rx exactly: entry t is the sum over s <= t of c_(t-s) x_s. Cost: length of `counts` times length of `coefficients`."""
    band = len(coefficients)
    return [sum(coefficients[t - s] * counts[s] for s in range(max(0, t - band + 1), t + 1)) for t in range(len(counts))]


def encoder_row(coefficients: Sequence[int], position: int) -> Iterable[tuple[int, int]]:
    """Return (period, weight) of the counts that y at a 0-based position sums; weights of zero are left out."""
    band = len(coefficients)
    return ((s, coefficients[position - s]) for s in range(max(0, position - band + 1), position + 1) if coefficients[position - s])


def scaled(coefficients: Sequence[int]) -> np.ndarray:
    """Return the coefficients divided by c_0, as floats."""
    import numpy as np

    return np.array([value / coefficients[0] for value in coefficients])


def inverse_series(series: np.ndarray, length: int) -> np.ndarray:
    """Return the first `length` coefficients of 1 / c(z), c given as floats with c_0 = 1.

    Newton's iteration b <- b (2 - c b) doubles the number of correct terms; its float error is that of a fast transform, about
    1e-15 of the largest term. Cost: O(n log n).
    """
    import numpy as np

    inverse = _direct_inverse(series, min(length, _DIRECT))
    while len(inverse) < length:
        size = min(2 * len(inverse), length)
        points = 1 << (3 * size - 1).bit_length()
        known = np.fft.rfft(inverse, points)
        product = np.fft.irfft(np.fft.rfft(series[:size], points) * known * known, points)[:size]
        doubled = np.zeros(size)
        doubled[: len(inverse)] = 2 * inverse
        inverse = doubled - product
    return inverse


def answer_weights(coefficients: Sequence[int], window: int | None, length: int) -> np.ndarray:
    """Return l_0 ... l_(length-1) with: the sum of the last `window` periods (None: of all) at position t is the sum of l_j y_(t-j).

    These are the coefficients of A(z) / c(z). The variance of the answer at position t is sigma^2 (l_0^2 + ... + l_t^2).
    """
    import numpy as np

    weights = np.cumsum(inverse_series(scaled(coefficients), length)) / coefficients[0]
    if window is None or window >= length:
        return weights
    return np.concatenate([weights[:window], weights[window:] - weights[:-window]])


def _direct_inverse(series: np.ndarray, length: int) -> np.ndarray:
    import numpy as np

    inverse = np.zeros(length)
    inverse[0] = 1.0
    for k in range(1, length):
        reach = min(k, len(series) - 1)
        inverse[k] = -series[1 : reach + 1] @ inverse[k - reach : k][::-1]
    return inverse
