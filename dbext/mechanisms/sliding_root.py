"""Sliding windows for ever from one stream of noise: the best shift-invariant mechanism, whose loss per mutation stays finite.

The sum of the last W periods is the series A(z) = (1 - z^W) / (1 - z). For a shift-invariant mechanism with |R|^2 = phi on the unit circle
the product of error^2 and sensitivity^2 is (mean of |A|^2 / phi) (mean of phi) >= (mean of |A|)^2 (Cauchy and Schwarz), attained by
R = L = A^(1/2): root mean square error E_W = mean of |sin(W t / 2) / sin(t / 2)|, about (4 / pi^2) ln W + 0.99, at sensitivity 1 and
sigma 1, independent of time.

The encoder is A^(1/2) cut off after 8 W coefficients and rounded to whole numbers: a finite sum, so that the squared sensitivity is an
exact integer although the release is endless. Cutting changes the encoder, not the answer: answers are weighted by A(z) / c(z), which
undoes the encoder actually used, so that they stay unbiased. The cut polynomial has no zero on or inside the unit circle, so that
1 / c(z) does not blow up and the variance converges; the loss in error against E_W is about 0.03%.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from dbext.errors import BadArgument
from dbext.mechanisms.dense_paths import dense_bound
from dbext.mechanisms.encoded import Row
from dbext.mechanisms.gram import margin, round_up
from dbext.mechanisms.protocol import Node, check_period
from dbext.mechanisms.same_sign import pairwise_norms
from dbext.mechanisms.stationary import certified_supremum, price_per_change, worst_three, worst_two
from dbext.mechanisms.toeplitz import answer_weights, encoder_row
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.pattern import Filter, Pattern, Windows
from dbext.privacy.pico import ceil_divide
from dbext.privacy.profile import Profile, Reach

if TYPE_CHECKING:
    import numpy as np

BITS, BAND = 16, 8
_GUARD_BITS = 64
_MOST_EVENTS = 32


@lru_cache(maxsize=32)
def window_root(steps: int) -> tuple[int, ...]:
    """Return the first 8 W coefficients of ((1 - z^W) / (1 - z))^(1/2), times 2^16, rounded; the same on every machine.

    It is the product of (1 - z)^(-1/2) = sum of f_k z^k and (1 - z^W)^(1/2) = sum of -f_j / (2j - 1) z^(j W), in fixed point.
    """
    length, half = BAND * steps, 1 << (_GUARD_BITS - 1)
    root = [1 << (BITS + _GUARD_BITS)]
    for k in range(1, length):
        root.append(root[-1] * (2 * k - 1) // (2 * k))
    total = list(root)
    for j in range(1, BAND):
        for k in range(j * steps, length):
            total[k] -= root[j] * root[k - j * steps] // ((2 * j - 1) << (BITS + _GUARD_BITS))
    return tuple((value + half) >> _GUARD_BITS for value in total)


def best_error(steps: int) -> float:
    """Return E_W, the mean of |sin(W t / 2) / sin(t / 2)| over a turn, by exact integration between the zeros.

    |A| is (sign) * A e^(-i t (W - 1) / 2), a sum of cosines of half-integer or whole frequencies; between two zeros 2 pi j / W it is
    integrated term by term.
    """
    import numpy as np

    zeros = 2 * np.pi * np.arange(steps // 2 + 1) / steps
    ends = np.append(zeros, np.pi) if zeros[-1] < np.pi else zeros
    frequency = np.arange(steps) - (steps - 1) / 2
    positive = frequency[frequency > 0]
    antiderivative = 2 * (np.sin(np.outer(ends, positive)) / positive).sum(axis=1) + ends * (steps % 2)
    return float(np.abs(np.diff(antiderivative)).sum() / np.pi)


@dataclass(frozen=True)
class SlidingRoot:
    """Windows of `steps` periods, one per period, moved back by `age` ticks; `count` periods, None is endless."""

    grid: RegularGrid | MonthGrid
    steps: int
    age: int = 0
    count: int | None = None

    name = "sliding_root"

    def __post_init__(self):
        if self.steps < 1 or self.age < 0:
            raise BadArgument("a window holds at least one period, and its age is not negative")

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""
        return self.count

    @property
    def coefficients(self) -> Sequence[int]:
        """The whole-number encoder."""
        return window_root(self.steps)

    def window(self, period: int) -> Filter:
        """Return the last `steps` periods."""
        check_period(period, self.count)
        return self.grid.end(period - self.steps) - self.age, self.grid.end(period) - self.age

    def leaves(self, period: int) -> tuple[Node, ...]:
        """Return the period; at the first one also the older ones of its window."""
        check_period(period, self.count)
        first = 2 - self.steps if period == 1 else period
        return tuple(Node(n, self.grid.end(n - 1) - self.age, self.grid.end(n) - self.age) for n in range(first, period + 1))

    def rows(self, period: int) -> tuple[Row, ...]:
        """Return the row of each new leaf: it reaches back 8 W periods, and never before the first leaf."""
        return tuple(Row(leaf.number, self._weights(leaf.number)) for leaf in self.leaves(period))

    def answer(self, period: int) -> tuple[tuple[int, float], ...]:
        """Return the weights of all rows so far: the coefficients of A(z) / c(z). Far ones are tiny, but leaving them out is a bias."""
        check_period(period, self.count)
        position = period + self.steps - 2
        weights = self.answer_series(position + 1)[::-1]
        return tuple(zip(range(period - position, period + 1), weights.tolist(), strict=True))

    def answer_series(self, length: int) -> np.ndarray:
        """Return l_0 ... l_(length-1): the window's sum at position t is the sum of l_j y_(t-j)."""
        return _answer_series(self.steps, 1 << max(length - 1, 1).bit_length())[:length]

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the leaves."""
        return (Windows(self.grid, None, 1, self.age, self.count, self.steps - 1),)

    def profile(self, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 a property of the release
        """Return the joint sensitivity of all rows; one change costs the sum of squares of the whole numbers, exactly."""
        return stationary_profile(self.coefficients, self.steps, measure, grouped, limits)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        return {"kind": self.name, "grid": self.grid.to_json(), "steps": self.steps, "age": self.age, "count": self.count}

    def _weights(self, number: int) -> tuple[tuple[int, int], ...]:
        first = 2 - self.steps
        return tuple((s + first, weight) for s, weight in encoder_row(self.coefficients, number - first))


def stationary_profile(coefficients: Sequence[int], corner: int, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 of the release
    """Return the profile of an endless Toeplitz encoder with finitely many coefficients of any sign.

    One, two and three changes are exact, k > 3 cost at most k times the certified price per change; so do moves, which are 2k - 1
    changes (2k - 2 if the entry leaves) in cells whose sequences alternate. Events: pair by pair, and never above s sup |R|^2.
    """
    products = column_products(coefficients)
    norm, unit = sum(value * value for value in coefficients), coefficients[0]
    farthest = 2 * len(products) + 2  # beyond, changes know nothing of each other
    width = min(limits.span or farthest, farthest)
    if measure.counts_events:
        return _events(products, norm, unit, limits)
    two = round_up(worst_two(products, width), unit) if width > 1 else norm
    price = max(norm, round_up(_price(coefficients, corner, min(width, len(products))), unit))
    if grouped:
        stay, leave, rate = [norm, norm + two, 5 * price], [0, two, 4 * price], 2 * price
    else:
        three = round_up(worst_three(products, width), unit) if width > 2 else two  # noqa: PLR2004 three changes
        stay, leave, rate = [norm, two, min(three, 3 * price)], [0, two, two], price
    ceiling = None if grouped or limits.span is None or limits.span > len(products) else round_up(_dense(products, limits.span), unit)
    return Profile(tuple(accumulate(stay, max)), tuple(accumulate(leave, max)), rate, ceiling, limits.span)


def column_products(coefficients: Sequence[int]) -> np.ndarray:
    """Return g_d = sum of c_u c_(u+d) over c_0^2 for all d: exact sums of machine words (2^16 coefficients), then one division."""
    import numpy as np

    whole = np.array(coefficients, dtype=np.int64)
    return np.correlate(whole, whole, "full")[len(whole) - 1 :] / coefficients[0] ** 2


def _dense(products: np.ndarray, width: int) -> float:
    bound = dense_bound(((i, products[: width - i]) for i in range(width - 1, -1, -1)), width)
    return bound + margin(20 * width, len(products), float(products[0]))


@lru_cache(maxsize=64)
def _price(coefficients: Sequence[int], corner: int, width: int) -> float:
    return price_per_change(column_products(coefficients)[:width], corner)


def _events(products: np.ndarray, norm: int, unit: int, limits: Reach) -> Profile:
    number = min(limits.events or _MOST_EVENTS, _MOST_EVENTS)
    rate = round_up(certified_supremum(products), unit) * ceil_divide(limits.longest, 2)
    bounds = (round_up(value, unit) + 1 for value in pairwise_norms(products, number, limits.longest))
    table = [norm, *(min(bound, s * rate) for s, bound in enumerate(bounds, 1) if s > 1)]
    return Profile(tuple(table), tuple(table), rate, None, limits.span)


@lru_cache(maxsize=8)
def _answer_series(steps: int, length: int) -> np.ndarray:
    return answer_weights(window_root(steps), steps, length)
