"""Windows of several lengths (7, 14, 28 days) answered from one stream of noisy numbers, for ever.

For a shift-invariant encoder with |R|^2 = phi on the unit circle the variance of window i is (mean of |A_i|^2 / phi) (mean of phi) at
sensitivity 1 and sigma 1. The weighted sum of these variances over all windows is least for phi = (sum of weight_i |A_i|^2)^(1/2)
(Cauchy and Schwarz), and R is the factor of phi without zeros in the unit disc, found from the logarithm of phi (Kolmogorov's cepstral
method). By default each window has the weight 1 / E_i^2, with E_i the error it would have alone. Separate releases would pay for each
window; here a mutation is paid for once: 7, 14 and 28 days come out 5 to 9% above their own optimum.

The encoder in use is R cut off after 8 W coefficients of the longest window and rounded to whole numbers, as in `sliding_root`; answers are
weighted by A_i(z) / c(z), which undoes exactly that encoder. The whole numbers are part of the declaration (`to_json`), so that they never
depend on how a machine computes logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dbext.errors import BadArgument
from dbext.mechanisms.disjoint import DisjointSums
from dbext.mechanisms.encoded import Row
from dbext.mechanisms.protocol import Node, check_period
from dbext.mechanisms.sliding_root import BAND, BITS, best_error, stationary_profile
from dbext.mechanisms.toeplitz import answer_weights, encoder_row
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.pattern import Filter, Pattern, Windows
from dbext.privacy.profile import Profile, Reach

if TYPE_CHECKING:
    import numpy as np

_FINENESS = 512


def shared_root(windows: Sequence[int], weights: Sequence[float] | None = None) -> tuple[int, ...]:
    """Return the whole-number encoder for windows of these numbers of periods."""
    import numpy as np

    shares = weights or [best_error(steps) ** -2 for steps in windows]
    length = BAND * max(windows)
    points = 1 << (_FINENESS * max(windows) - 1).bit_length()
    # Half a step off the roots of unity, where windows with a common divisor vanish together.
    angles = (np.arange(points) + 0.5) * 2 * np.pi / points
    squares = sum(share * _kernel(np, steps, angles) ** 2 for steps, share in zip(windows, shares, strict=True))
    turned = np.fft.fft(np.log(squares)) / (4 * points)
    cepstrum = (turned[:length] * np.exp(-1j * np.pi * np.arange(length) / points)).real
    root = np.zeros(length)
    root[0] = 1.0
    steps = np.arange(length)
    for n in range(1, length):
        root[n] = 2 * (steps[1 : n + 1] * cepstrum[1 : n + 1]) @ root[n - 1 :: -1][:n] / n
    return tuple(int(value) for value in np.rint(root * 2**BITS))


@dataclass(frozen=True)
class SharedWindows:
    """Sliding windows of several lengths, all per period, from one encoder; `count` periods, None is endless."""

    grid: RegularGrid | MonthGrid
    windows: tuple[int, ...]
    coefficients: tuple[int, ...]
    age: int = 0
    count: int | None = None

    name = "shared_windows"

    def __post_init__(self):
        if not self.windows or min(self.windows) < 1 or len(set(self.windows)) < len(self.windows) or self.age < 0:
            raise BadArgument("shared windows are different, each of at least one period, and their age is not negative")

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""
        return self.count

    @property
    def longest(self) -> int:
        """Periods of the longest window."""
        return max(self.windows)

    def window(self, period: int, steps: int | None = None) -> Filter:
        """Return the last `steps` periods; those of the longest window if none are named."""
        check_period(period, self.count)
        steps = steps or self.longest
        return self.grid.end(period - steps) - self.age, self.grid.end(period) - self.age

    def leaves(self, period: int) -> tuple[Node, ...]:
        """Return the period; at the first one also the older ones of the longest window."""
        check_period(period, self.count)
        first = 2 - self.longest if period == 1 else period
        return tuple(Node(n, self.grid.end(n - 1) - self.age, self.grid.end(n) - self.age) for n in range(first, period + 1))

    def rows(self, period: int) -> tuple[Row, ...]:
        """Return the row of each new leaf."""
        first = 2 - self.longest
        return tuple(
            Row(leaf.number, tuple((s + first, weight) for s, weight in encoder_row(self.coefficients, leaf.number - first)))
            for leaf in self.leaves(period)
        )

    def answer(self, period: int, steps: int | None = None) -> tuple[tuple[int, float], ...]:
        """Return the weights of all rows so far in the answer about the last `steps` periods; of the longest window if none are named."""
        check_period(period, self.count)
        steps = steps or self.longest
        position = period + self.longest - 2
        weights = self.answer_series(steps, position + 1)[::-1]
        return tuple(zip(range(period - position, period + 1), weights.tolist(), strict=True))

    def answer_series(self, steps: int, length: int) -> np.ndarray:
        """Return l_0 ... l_(length-1) for one of the windows; its variance at position t is sigma^2 (l_0^2 + ... + l_t^2)."""
        if steps not in self.windows:
            raise BadArgument(f"no window of {steps} periods was declared")
        return _answer_series(self.coefficients, steps, 1 << max(length - 1, 1).bit_length())[:length]

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the leaves."""
        return (Windows(self.grid, None, 1, self.age, self.count, self.longest - 1),)

    def profile(self, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 a property of the release
        """Return the joint sensitivity of all rows."""
        return stationary_profile(self.coefficients, self.longest, measure, grouped, limits)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        whole = {"windows": list(self.windows), "coefficients": list(self.coefficients)}
        return {"kind": self.name, "grid": self.grid.to_json(), **whole, "age": self.age, "count": self.count}


@dataclass(frozen=True)
class AnyWindow:
    """A mechanism that answers for windows of several lengths, turned to one of them: shared windows, or sums of disjoint periods."""

    shared: SharedWindows | DisjointSums
    steps: int

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""
        return self.shared.horizon

    def window(self, period: int) -> Filter:
        """Return the last `steps` periods."""
        check_period(period, self.horizon)
        grid, age = self.shared.grid, self.shared.age
        return grid.end(period - self.steps) - age, grid.end(period) - age

    def answer(self, period: int) -> tuple[tuple[int, float], ...]:
        """Return (row or node number, weight) pairs that sum to the last `steps` periods."""
        if isinstance(self.shared, SharedWindows):
            return self.shared.answer(period, self.steps)
        return self.shared.answer(period)[-self.steps :]


def _kernel(np, steps: int, angles: np.ndarray) -> np.ndarray:  # noqa: ANN001 the module, imported late
    return np.abs(np.sin(steps * angles / 2) / np.sin(angles / 2))


@lru_cache(maxsize=16)
def _answer_series(coefficients: tuple[int, ...], steps: int, length: int) -> np.ndarray:
    return answer_weights(coefficients, steps, length)
