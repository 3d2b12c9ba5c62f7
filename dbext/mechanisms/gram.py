"""Inner products of an encoder's columns: G(i, j) = sum over t of R(t, i) R(t, j), in floats with a certified error.

Everything here is for a lower-triangular Toeplitz R with T rows and columns and coefficients c >= 0, scaled to c_0 = 1, so that
G(i, j) = sum over u < T - j of c_u c_(u+j-i) for i <= j. All terms are non-negative: summed in any order the relative error of a G is at
most (T + 3) 2^-53. `margin` turns that into an absolute allowance for a sum of such terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_ROUNDING = 2.0**-53


def first_row(c: np.ndarray, width: int) -> np.ndarray:
    """Return G(0, 0) ... G(0, width - 1). Cost: width * T."""
    import numpy as np

    return np.correlate(np.concatenate([c, np.zeros(width - 1)]), c, "valid")


def autocorrelation(c: np.ndarray) -> np.ndarray:
    """Return the sum over u of c_u c_(u+d) for d = 0 ... T - 1, by fast transform: error about 1e-15 of the first. Cost: T log T."""
    import numpy as np

    points = 1 << (2 * len(c) - 1).bit_length()
    return np.fft.irfft(np.abs(np.fft.rfft(c, points)) ** 2, points)[: len(c)]


def rows_from_the_last(c: np.ndarray, width: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (i, [G(i, i) ... G(i, width - 1)]) for i = width - 1 down to 0. Cost: width * (T + width), memory O(T).

    Along a diagonal, G(i, j) = G(i + 1, j + 1) + c_(T-1-i) c_(T-1-j); the last column is summed directly.
    """
    import numpy as np

    total = len(c)
    last_column = np.correlate(c, c[: total - width + 1], "valid")[:width]
    row = np.empty(0)
    for i in range(width - 1, -1, -1):
        last_terms = c[total - 1 - i] * c[total - 1 - np.arange(i, width - 1)]
        row = np.append(row + last_terms, last_column[width - 1 - i])
        yield i, row


def margin(terms: int, rows: int, largest: float) -> float:
    """Return an allowance that covers the rounding of a signed sum of 8 * terms values G <= largest, each with `rows` summands."""
    return 8 * terms * (rows + 8) * _ROUNDING * largest


def round_up(value: float, unit: int) -> int:
    """Return value * unit^2, rounded up to a whole number: a squared norm in the units of the integer encoder (unit = c_0)."""
    return math.ceil(Fraction(value) * unit * unit)
