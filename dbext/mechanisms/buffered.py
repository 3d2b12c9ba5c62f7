"""Running totals whose noise is made from a few buffers: its memory does not grow with the horizon, and no row of the past is read.

What is published is the exact total plus n_t / 2^scale, where n_t comes from rounded Gaussian draws z_t by the whole-number recurrence of
`buffers`. The encoder is R(z) = 1 + sum w_j z / (1 - theta_j z), whose weights and decays are chosen for the horizon (`buffered_table`):
with five buffers the error is that of the best Toeplitz encoder to within 0.2%, and less than the square root's.

Privacy. Totals are published on the lattice of 1 / 2^scale, and given them and the counts the draws follow exactly. For a neighbour whose
counts differ by dx (whole numbers, one cell) they differ by e_t, where, e being read by the same recurrence,

    |e_t - 2^scale (R dx)_t| < eta = 1 + 2^-guard sum over j of w_j min(T, 1 / (1 - theta_j)):

the two floors of a buffer differ by less than 1 at each step, which decays by theta_j, and the two roundings of the sum by less than 1.
That holds on every path of draws, so that also counts that depend on what was published lose at most max |e|^2 / (2 sigma^2): total t is
a rounded Gaussian number shifted by a whole number that the past determines, and rho adds up as a filter. The first number of R dx is
that of dx, at least 1, so |R dx| >= 1 and in each cell that an entry touches

    |e| <= 2^scale |R dx| + eta sqrt(T) <= 2^scale |R dx| (1 + eta sqrt(T) / 2^scale).

|R dx| is bounded by the profile of whole-number coefficients c_k within 1 of 2^bits r_k. Because r is log-convex, r_1^2 <= r_0 r_2
included, its inverse is 1 minus non-negative numbers of sum at most 1 (Kaluza 1928), so that |dx| <= 2 |R dx|, and by Young's inequality
|R dx - c dx / 2^bits| <= T 2^-bits |dx|: |R dx| <= 2^-bits |c dx| / (1 - 2 T / 2^bits). All of this multiplies every bound of the profile
by one factor, `inflation`, worked out in fractions: less than 1.0001.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import TYPE_CHECKING

from dbext.errors import BadArgument
from dbext.mechanisms.buffered_table import parameters
from dbext.mechanisms.buffers import BITS, Circuit
from dbext.mechanisms.encoded import Row
from dbext.mechanisms.error import Norms
from dbext.mechanisms.profiles import toeplitz_profile
from dbext.mechanisms.protocol import check_period
from dbext.mechanisms.toeplitz import encoder_row, inverse_series, scaled
from dbext.mechanisms.totals import SeriesTotals
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.pattern import Pattern, Windows
from dbext.privacy.profile import Profile, Reach

if TYPE_CHECKING:
    import numpy as np

_ONE = 1 << BITS
_SPARE, _SPARE_OF_POWERS = 16, 32
#: What the floors of the buffers add to the rounding of a step: of each at most T, of 2^-guard < 2^-8 / T, weighed by w_1 + w_2 + ... <= 1.
_FLOORS = 2.0**-8


@dataclass(frozen=True)
class Buffered(SeriesTotals):
    """Running totals of periods 1 ... horizon. `weights` and `decays` are w_j and theta_j in units of 2^-24, one of each per buffer."""

    grid: RegularGrid | MonthGrid
    horizon: int
    baseline: bool
    weights: tuple[int, ...]
    decays: tuple[int, ...]
    scale: int
    guard: int

    name = "buffered"

    def __post_init__(self):
        super().__post_init__()
        whole = sum(self.weights)
        convex = whole * whole <= sum(weight * decay for weight, decay in zip(self.weights, self.decays, strict=True))
        if not (min(self.weights) > 0 and whole <= _ONE and all(0 < decay < _ONE for decay in self.decays) and convex):
            raise BadArgument("buffers need weights and decays between 0 and 1 whose coefficients are log-convex")

    @property
    def circuit(self) -> Circuit:
        """The recurrence that makes the noise."""
        return Circuit(self.weights, self.decays, self.guard)

    @property
    def bits(self) -> int:
        """The precision of the coefficients that bounds are worked out with."""
        return 2 * (self.horizon + 1).bit_length() + self.scale + _SPARE

    @property
    def coefficients(self) -> tuple[int, ...]:
        """c_k, within 1 of 2^bits r_k."""
        return buffered_coefficients(self.weights, self.decays, self.positions, self.bits)

    @property
    def inflation(self) -> Fraction:
        """What rounding multiplies squared norms by, at most."""
        steps = self.horizon + 1
        decay = sum(Fraction(weight, _ONE) * min(Fraction(steps), Fraction(_ONE, _ONE - kept)) for weight, kept in self._buffers)
        floors = (1 + decay / (1 << self.guard)) * (isqrt(steps - 1) + 1) / (1 << self.scale)
        return ((1 + floors) / (1 - Fraction(2 * steps, 1 << self.bits))) ** 2

    def rows(self, period: int) -> tuple[Row, ...]:
        """Return what the draws of the period hide, to a step of the lattice: the encoder's row, at first that of the baseline too."""
        coefficients = [value >> (self.bits - self.scale) for value in self.coefficients[: self._position(period) + 1]]
        shift = 0 if self.baseline else 1
        return tuple(
            Row(leaf.number, tuple((place + shift, weight) for place, weight in encoder_row(coefficients, self._position(leaf.number))))
            for leaf in self.leaves(period)
        )

    def answer_series(self) -> np.ndarray:
        """Return l_0, l_1, ...: the noise of the total at position t is the sum of l_j z_(t-j)."""
        return _answer_series(self.weights, self.decays, self.positions, self.bits) / (1 << self.scale)

    def norms(self, period: int) -> Norms:
        """Return what the weights of `answer` come to. Each step is rounded by as much as a draw is, and the floors: sizes count twice."""
        check_period(period, self.horizon)
        squares, sizes = _sums(self.weights, self.decays, self.positions, self.bits)
        place, unit = self._position(period), 1 << self.scale
        return Norms(squares[place] / unit**2, 2 * (1 + _FLOORS) * sizes[place] / unit, 1 / unit, place + 1)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the leaves."""
        return self._and_baseline(Windows(self.grid, None, 1, 0, self.horizon))

    def profile(self, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 a property of the release
        """Return the joint sensitivity of all draws on the lattice of the noise, rounding allowed for."""
        return _profile(self, measure, grouped, limits)

    @property
    def _buffers(self) -> list[tuple[int, int]]:
        return list(zip(self.weights, self.decays, strict=True))


def buffered(grid: RegularGrid | MonthGrid, horizon: int, *, baseline: bool, again: bool = False) -> Buffered:
    """Return the mechanism for a horizon: its buffers from the table, its lattice so fine that rounding costs nothing that shows.

    `again` says whether entries change more than once; what any of them costs is proven for either.
    """
    length, circuit = (horizon + 1).bit_length(), parameters(horizon, again=again)
    return Buffered(grid, horizon, baseline, *circuit, scale=_SPARE + (length + 1) // 2, guard=length + _SPARE // 2)


@lru_cache(maxsize=8)
def buffered_coefficients(weights: tuple[int, ...], decays: tuple[int, ...], length: int, bits: int) -> tuple[int, ...]:
    """Return c_0 = 2^bits and c_k = round(2^bits sum of w_j theta_j^(k-1)), never rising, each less than 1 from the exact value.

    Powers are kept with 32 bits to spare and rounded down: off by at most 1 / (1 - theta) <= 2^24 of those units.
    """
    spare = BITS + _SPARE_OF_POWERS
    powers, half = [weight << (bits - BITS + spare) for weight in weights], 1 << (spare - 1)
    coefficients = [1 << bits]
    for _ in range(length - 1):
        coefficients.append((sum(powers) + half) >> spare)
        powers = [power * decay >> BITS for power, decay in zip(powers, decays, strict=True)]
    return tuple(coefficients)


@lru_cache(maxsize=64)
def _profile(mechanism: Buffered, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 of the release
    found = toeplitz_profile(mechanism.coefficients, measure, grouped, limits)
    norm = sum(value * value for value in mechanism.coefficients)
    raised = ceil(norm * mechanism.inflation * Fraction(1 << 2 * mechanism.scale, 1 << 2 * mechanism.bits))

    def on_the_lattice(bound: int) -> int:
        """The bound times raised / norm, rounded up: a rate of two norms stays one."""
        return -(-bound * raised // norm)

    stay, leave = (tuple(on_the_lattice(bound) for bound in table) for table in (found.stay, found.leave))
    ceiling = None if found.ceiling is None else on_the_lattice(found.ceiling)
    return Profile(stay, leave, on_the_lattice(found.rate), ceiling, found.span)


@lru_cache(maxsize=8)
def _answer_series(weights: tuple[int, ...], decays: tuple[int, ...], length: int, bits: int) -> np.ndarray:
    import numpy as np

    return np.cumsum(inverse_series(scaled(buffered_coefficients(weights, decays, length, bits)), length))


@lru_cache(maxsize=8)
def _sums(weights: tuple[int, ...], decays: tuple[int, ...], length: int, bits: int) -> tuple[list[float], list[float]]:
    """Return the running sums of l_j^2 and of l_j, which are never negative."""
    series = _answer_series(weights, decays, length, bits)
    return (series * series).cumsum().tolist(), series.cumsum().tolist()
