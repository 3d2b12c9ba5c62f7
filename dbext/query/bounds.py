"""Bounds that the DBA declares for a column: values beyond are counted as the nearer one, and all are rounded to a grid.

Rounding is half away from zero, as PostgreSQL rounds numeric. All figures are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

#: Without a grid a column of fractions gets the coarsest power of ten that still leaves this many steps between its bounds.
DEFAULT_STEPS = 10_000


@dataclass(frozen=True)
class Bounds:
    """Values lie in [low, high], on multiples of `grid`."""

    low: Fraction
    high: Fraction
    grid: Fraction = Fraction(1)

    @property
    def units(self) -> tuple[int, int]:
        """The bounds in units of the grid."""
        return rounded(self.low / self.grid), rounded(self.high / self.grid)

    def to_json(self) -> list[str]:
        """The form that `bounds_from_json` reads."""
        return [str(self.low), str(self.high), str(self.grid)]


def bounds_from_json(data: list[str]) -> Bounds:
    """The bounds that `to_json` wrote."""
    return Bounds(*(Fraction(text) for text in data))


def rounded(value: Fraction) -> int:
    """The nearest whole number; halves go away from zero."""
    whole = (abs(value) + Fraction(1, 2)).__floor__()
    return whole if value >= 0 else -whole


def default_grid(base: str, low: Fraction, high: Fraction) -> Fraction:
    """The grid of a column for which none is given: 1 for whole numbers."""
    if base == "integer":
        return Fraction(1)
    grid = Fraction(1)
    while grid * DEFAULT_STEPS * 10 <= high - low:
        grid *= 10
    while grid * DEFAULT_STEPS > high - low:
        grid /= 10
    return grid
