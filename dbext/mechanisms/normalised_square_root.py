"""Running totals from the square root with columns of equal norm: within 1.3% of the best factorisation, for a fixed horizon.

In the square-root encoder a count of period j is seen by T - j rows only, so that late periods pay for privacy they do not use. Here
R = M^(1/2) D with D = diag(d_j), d_j = 1 / sqrt(S_(T-j)), and L = M D^(-1) M^(-1/2) (the column-normalised square root of Henzinger,
Kalinin and Upadhyay 2025, as read from its constants). In whole numbers R(t, j) = c_(t-j) d_j, both factors rounded.

Sensitivity. Let G be the Gram matrix of the columns. All inner products are >= 0. One change: the largest column norm^2, exact. Two changes
of opposite sign: the largest |R(e_i - e_j)|^2 over all pairs within the span. k changes: if G(i, j) never rises in j > i, every row of the
alternating cross sum is at most 0, so that the norm^2 is at most k max G(i, i). If a step of j can raise it by e > 0, a row is at most
T e and the norm^2 at most k (max G(i, i) + 2 T e); e is computed from the encoder, and is 0 unless rounding is coarse. Entries may come
and go late, where each change costs a full norm: for k >= 2 `SquareRoot` is often better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

from dbext.mechanisms.gram import margin, round_up
from dbext.mechanisms.same_sign import pairwise_norms
from dbext.mechanisms.square_root import SquareRoot, root_coefficients
from dbext.mechanisms.toeplitz import inverse_series, scaled
from dbext.privacy.measure import Measure
from dbext.privacy.pico import ceil_divide
from dbext.privacy.profile import Profile, Reach

if TYPE_CHECKING:
    import numpy as np

_MOST_EVENTS = 32
_COARSEST = 16


class Encoder(NamedTuple):
    """R(t, j) = column[t - j] * factors[j]."""

    column: Sequence[int]
    factors: Sequence[int]


@lru_cache(maxsize=16)
def normalised_encoder(positions: int) -> Encoder:
    """Return the whole-number encoder; factors[0] = 2^b, and factors[j] is the largest with a column norm not above the first one."""
    column = root_coefficients(positions, max(_COARSEST, positions.bit_length() + 10))
    norms = list(accumulate(value * value for value in column))[::-1]
    scale = norms[0] << 2 * (positions.bit_length() + 8)
    return Encoder(column, tuple(isqrt(scale // norm) for norm in norms))


@dataclass(frozen=True)
class NormalisedSquareRoot(SquareRoot):
    """Running totals of periods 1 ... horizon; the accuracy is that of the declared horizon at every time."""

    name = "normalised_square_root"

    @property
    def encoder(self) -> Encoder:
        """The whole-number encoder."""
        return normalised_encoder(self.positions)

    def answer(self, period: int) -> tuple[tuple[int, float], ...]:
        """Return the weights of all rows so far: a row of M D^(-1) c(z)^(-1)."""
        position = self._position(self.window(period) and period)
        weights = answer_row(self.positions, position)
        return tuple(zip(range(period - position, period + 1), weights.tolist(), strict=True))

    def profile(self, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 a property of the release
        """Return the joint sensitivity of all rows (see above)."""
        return normalised_profile(self.encoder, measure, grouped, limits)

    def _weights(self, number: int) -> tuple[tuple[int, int], ...]:
        column, factors = self.encoder
        position = self._position(number)
        return tuple((number - position + s, column[position - s] * factors[s]) for s in range(position + 1))


def answer_row(positions: int, position: int) -> np.ndarray:
    """Return the weights of y_0 ... y_position in the total at a position. Cost: O(position^2)."""
    import numpy as np

    inverse, shares = _inverse(positions)
    return np.correlate(np.append(shares[: position + 1], np.zeros(position)), inverse[: position + 1], "valid")


def error_variances(positions: int) -> np.ndarray:
    """Return the variance of every total for sigma = 1 in encoder units. Cost: O(T^2)."""
    import numpy as np

    inverse, shares = _inverse(positions)
    weights, variances = np.zeros(positions), np.empty(positions)
    for t in range(positions):
        weights[: t + 1] += inverse[t::-1] * shares[t]
        variances[t] = weights[: t + 1] @ weights[: t + 1]
    return variances


def normalised_profile(encoder: Encoder, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 of the release
    """Return the profile of R(t, j) = column[t - j] factors[j]. Cost: O(T span), for counts of events O(T^2)."""
    column, factors = encoder
    norms = list(accumulate(value * value for value in column))[::-1]
    largest = max(factor * factor * norm for factor, norm in zip(factors, norms, strict=True))
    if measure.counts_events:
        return _events(encoder, limits)
    products = _scan(encoder, min(limits.span or len(column), len(column)))
    unit = column[0] * factors[0]
    two = min(round_up(products.two, unit), 2 * largest)
    each = largest + round_up(2 * len(column) * products.rise, unit)
    if grouped:
        stay, leave, rate = [largest, largest + two, 5 * each], [0, two, 4 * each], 2 * each
    else:
        stay, leave, rate = [largest, two, 3 * each], [0, two, two], each
    return Profile(tuple(accumulate(stay, max)), tuple(accumulate(leave, max)), rate, None, limits.span)


class _Products(NamedTuple):
    """The largest |R(e_i - e_j)|^2, and the largest rise of G(i, j) with j > i; floats, rounding allowed for."""

    two: float
    rise: float


@lru_cache(maxsize=16)
def _scan(encoder: Encoder, span: int) -> _Products:
    import numpy as np

    two, rise, before, own = 0.0, -np.inf, None, np.empty(0)
    for distance, diagonal in _diagonals(encoder, span):
        if distance == 0:
            own = diagonal
        else:
            two = max(two, float((own[distance:] + own[:-distance] - 2 * diagonal).max()))
            if before is not None:
                rise = max(rise, float((diagonal - before[:-1]).max()))
            before = diagonal
    allowance = margin(1, len(encoder.column), float(own.max()))
    return _Products(two + allowance, max(0.0, rise + allowance))


def _diagonals(encoder: Encoder, span: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (d, [G(0, d), G(1, 1 + d), ...]) for d < span, in units of the first weight squared."""
    import numpy as np

    c, factors = scaled(encoder.column), scaled(encoder.factors)
    for d in range(span):
        sums = np.cumsum(c[: len(c) - d] * c[d:])[::-1]
        yield d, factors[: len(c) - d] * factors[d:] * sums


def _events(encoder: Encoder, limits: Reach) -> Profile:
    """Bound events pair by pair: each pair by the largest product of two columns at its distance, or further apart."""
    import numpy as np

    number = min(limits.events or _MOST_EVENTS, _MOST_EVENTS)
    products = np.array([float(diagonal.max()) for _, diagonal in _diagonals(encoder, len(encoder.column))])
    unit = encoder.column[0] * encoder.factors[0]
    allowance = margin(number * number, len(encoder.column), float(products[0]))
    table = tuple(round_up(value + allowance, unit) for value in pairwise_norms(products, number, limits.longest))
    whole = (sum(encoder.column) * max(encoder.factors)) ** 2
    return Profile(table, table, whole * ceil_divide(limits.longest, 2), None, limits.span)


@lru_cache(maxsize=8)
def _inverse(positions: int) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    column, factors = normalised_encoder(positions)
    inverse = inverse_series(scaled(column), positions) / column[0]
    return inverse, np.array([1 / factor for factor in factors])
