"""Running totals from the square root of the summing matrix: variance about (ln t / pi + 1.07)^2 / (2 rho), for a known horizon.

The matrix M of running totals is the power series 1 / (1 - z); its square root has the coefficients f_k = C(2k, k) / 4^k, so that with
R = L = M^(1/2) the release M x + L z has column norm^2 S_T = f_0^2 + ... + f_(T-1)^2 and variance S_t sigma^2 at time t (Fichtenberger,
Henzinger and Upadhyay 2022; Henzinger, Upadhyay and Upadhyay 2023). Here R is the whole-number encoder c_k = round(2^bits f_k).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dbext.mechanisms.encoded import Row
from dbext.mechanisms.profiles import toeplitz_profile
from dbext.mechanisms.toeplitz import answer_weights, encoder_row
from dbext.mechanisms.totals import SeriesTotals
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.pattern import Pattern, Windows
from dbext.privacy.profile import Profile, Reach

if TYPE_CHECKING:
    import numpy as np

_GUARD_BITS = 64
_COARSEST = 16


@lru_cache(maxsize=32)
def root_coefficients(length: int, bits: int) -> tuple[int, ...]:
    """Return round(2^bits f_k) for k = 0 ... length - 1, by f_k = f_(k-1) (2k - 1) / (2k) in fixed point with 64 bits to spare.

    The same on every machine; non-increasing, because the fixed-point value never increases. The value lies at most k 2^-64 below the
    exact one before it is rounded.
    """
    value, half = 1 << (bits + _GUARD_BITS), 1 << (_GUARD_BITS - 1)
    coefficients = [1 << bits]
    for k in range(1, length):
        value = value * (2 * k - 1) // (2 * k)
        coefficients.append((value + half) >> _GUARD_BITS)
    return tuple(coefficients)


def encoder_bits(positions: int) -> int:
    """Return a precision at which rounding disturbs neither the error nor the repulsion of runs.

    The steps f_(k-1) - f_k are about k^(-3/2) / 3.5, and runs repel while rounding moves them by less than the share 1 - f_T: about
    2^bits > 4 pi T^2.
    """
    return max(_COARSEST, 2 * positions.bit_length() + 4)


@dataclass(frozen=True)
class SquareRoot(SeriesTotals):
    """Running totals of periods 1 ... horizon. With `baseline`, everything up to end(0) is one more count before them (`state`)."""

    grid: RegularGrid | MonthGrid
    horizon: int
    baseline: bool = False

    name = "square_root"

    @property
    def coefficients(self) -> Sequence[int]:
        """The whole-number encoder: with and without a baseline of one precision, so that later epochs cost and err as the first."""
        return root_coefficients(self.positions, encoder_bits(self.horizon + 1))

    def rows(self, period: int) -> tuple[Row, ...]:
        """Return the row of the period; at the first one also that of the baseline."""
        return tuple(Row(leaf.number, self._weights(leaf.number)) for leaf in self.leaves(period))

    def answer_series(self) -> np.ndarray:
        """Return the coefficients of 1 / ((1 - z) c(z)): total t is the sum of l_j y_(t-j), its variance sigma^2 (l_0^2 + ... + l_t^2)."""
        return _answer_series(self.coefficients)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the leaves."""
        return self._and_baseline(Windows(self.grid, None, 1, 0, self.horizon))

    def profile(self, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 a property of the release
        """Return the joint sensitivity of all rows; one change costs the column norm^2 of the whole numbers, exactly."""
        return _profile(self.coefficients, measure, grouped, limits)

    def _weights(self, number: int) -> tuple[tuple[int, int], ...]:
        shift = number - self._position(number)
        return tuple((s + shift, weight) for s, weight in encoder_row(self.coefficients, self._position(number)))


#: Kept, because a plan is often made again to be explained, and long horizons take a quarter of a second.
_profile = lru_cache(maxsize=64)(toeplitz_profile)


@lru_cache(maxsize=8)
def _answer_series(coefficients: tuple[int, ...]) -> np.ndarray:
    return answer_weights(coefficients, None, len(coefficients))
