"""Where periods end, as tick indices. Period n is (end(n - 1), end(n)]; boundary end(0) is the left end of period 1.

Tick i lies between boundaries i - 1 and i. Negative n reach back before the first period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from dbext.errors import BadArgument

#: The Gregorian calendar repeats after 400 years: 146097 days, which is a whole number of weeks.
_CYCLE_MONTHS, _CYCLE_DAYS = 4800, 146097
#: Day boundary 0 is midnight of 2000-01-03 (a Monday); months count from 2000-01.
_DAYS_BEFORE_ORIGIN = 2


class Grid(Protocol):
    """Boundaries of periods, in ticks."""

    @property
    def cycle(self) -> tuple[int, int]:
        """Ticks and steps after which the pattern of period lengths repeats."""

    @property
    def longest_step(self) -> int:
        """Ticks of the longest period, or more."""

    def end(self, period: int) -> int:
        """Return the boundary that closes a period."""

    def last_end(self, tick: int) -> int:
        """Return the last period whose end is not after boundary `tick`."""

    def coarser(self, periods: int) -> Grid:
        """Return the grid of every so many periods, with the same beginning."""

    def after(self, periods: int) -> Grid:
        """Return the grid that goes on after so many periods: its period 1 is the next one."""

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `grid_from_json` reads."""


@dataclass(frozen=True)
class RegularGrid:
    """Periods of `step` ticks, the first one after boundary `origin`."""

    origin: int
    step: int

    def __post_init__(self):
        if self.step < 1:
            raise BadArgument(f"a period must have at least one tick, not {self.step}")

    @property
    def cycle(self) -> tuple[int, int]:
        """One step."""
        return self.step, 1

    @property
    def longest_step(self) -> int:
        """Every period has `step` ticks."""
        return self.step

    def end(self, period: int) -> int:
        """Return origin + period * step."""
        return self.origin + period * self.step

    def last_end(self, tick: int) -> int:
        """Return the last period whose end is not after boundary `tick`."""
        return (tick - self.origin) // self.step

    def coarser(self, periods: int) -> RegularGrid:
        """Return the grid of every so many periods, with the same beginning."""
        return RegularGrid(self.origin, self.step * periods)

    def after(self, periods: int) -> RegularGrid:
        """Return the grid that goes on after so many periods: its period 1 is the next one."""
        return RegularGrid(self.end(periods), self.step)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `grid_from_json` reads."""
        return {"kind": "regular", "origin": self.origin, "step": self.step}


@dataclass(frozen=True)
class MonthGrid:
    """Periods of `months` calendar months over ticks of one day; end(0) is the first of month `first_month` (2000-01 is month 0)."""

    first_month: int
    months: int

    def __post_init__(self):
        if self.months < 1:
            raise BadArgument(f"a period must have at least one month, not {self.months}")

    @property
    def cycle(self) -> tuple[int, int]:
        """Return the days and steps of the shortest whole number of 400-year cycles that is a whole number of periods."""
        months = math.lcm(_CYCLE_MONTHS, self.months)
        return months // _CYCLE_MONTHS * _CYCLE_DAYS, months // self.months

    @property
    def longest_step(self) -> int:
        """A month has at most 31 days."""
        return 31 * self.months

    def end(self, period: int) -> int:
        """Return the day boundary at the first of the month that closes the period."""
        return first_of_month(self.first_month + period * self.months)

    def last_end(self, tick: int) -> int:
        """Return the last period whose end is not after boundary `tick`."""
        month = _month_of(tick)
        return (month - self.first_month) // self.months

    def coarser(self, periods: int) -> MonthGrid:
        """Return the grid of every so many periods, with the same beginning."""
        return MonthGrid(self.first_month, self.months * periods)

    def after(self, periods: int) -> MonthGrid:
        """Return the grid that goes on after so many periods: its period 1 is the next one."""
        return MonthGrid(self.first_month + periods * self.months, self.months)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `grid_from_json` reads."""
        return {"kind": "month", "first_month": self.first_month, "months": self.months}


def grid_from_json(data: dict[str, Any]) -> RegularGrid | MonthGrid:
    """Rebuild a grid from its tagged form."""
    if data.get("kind") == "regular":
        return RegularGrid(int(data["origin"]), int(data["step"]))
    if data.get("kind") == "month":
        return MonthGrid(int(data["first_month"]), int(data["months"]))
    raise BadArgument(f"unknown grid {data.get('kind')!r}")


def first_of_month(month: int) -> int:
    """Return the day boundary at the start of a month counted from 2000-01, for any year (proleptic Gregorian calendar)."""
    year, month_of_year = divmod(month, 12)
    # Years are counted from March, so that the leap day ends one; 2000-03-01 is day 60 after 2000-01-01.
    shifted_year, shifted_month = (year, month_of_year - 2) if month_of_year >= 2 else (year - 1, month_of_year + 10)  # noqa: PLR2004 March
    days = 365 * shifted_year + shifted_year // 4 - shifted_year // 100 + shifted_year // 400 + (153 * shifted_month + 2) // 5
    return days + 60 - _DAYS_BEFORE_ORIGIN


def _month_of(tick: int) -> int:
    """Return the last month that starts at or before day boundary `tick`."""
    month = (tick + _DAYS_BEFORE_ORIGIN) * _CYCLE_MONTHS // _CYCLE_DAYS
    while first_of_month(month) > tick:
        month -= 1
    while first_of_month(month + 1) <= tick:
        month += 1
    return month
