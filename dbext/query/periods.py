"""When a release publishes: grids of periods, aligned by default, and how wide its windows are on them."""

from __future__ import annotations

from dataclasses import dataclass

from dbext.errors import BadArgument
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.query.calendar import Span, Tick, whole_ticks

Grid = RegularGrid | MonthGrid

SHORTEST_MONTH_DAYS = 28

#: More overlapping windows than this are refused: planning and the first publication take time in proportion.
MAX_PERIODS_IN_WINDOW = 4096


def grid_for(every: Span, tick: Tick, start_tick: int, *, aligned: bool = True, first_tick: int | None = None) -> Grid:
    """Periods of length `every`. By default they are aligned to boundary 0: days and weeks to Monday 2000-01-03, months to 2000-01.

    Period 1 is the aligned period that holds boundary `start_tick` (or begins there), but never one that begins before the end of
    `first_tick`, the tick that holds the baseline. With `aligned` False, period 1 begins exactly at `start_tick`.
    Months over ticks of one day follow the calendar; every other period is a whole number of ticks. Raises BadArgument.
    """
    base = _base_grid(every, tick)
    if not aligned:
        return _shifted(base, start_tick)
    number = base.last_end(start_tick)
    if first_tick is not None and base.end(number) < first_tick:
        number = base.last_end(first_tick - 1) + 1
    return _shifted(base, base.end(number))


def is_calendar_month(span: Span, tick: Tick) -> bool:
    """Whether a span is counted in calendar months over ticks of one day."""
    return tick == Tick("day", 1) and span.months > 0 and not span.days and not span.microseconds


def _base_grid(every: Span, tick: Tick) -> Grid:
    if is_calendar_month(every, tick):
        return MonthGrid(0, every.months)
    return RegularGrid(0, whole_ticks(every, tick, "the period"))


def _shifted(base: Grid, boundary: int) -> Grid:
    """The same periods with period 1 beginning at a boundary."""
    if isinstance(base, RegularGrid):
        return RegularGrid(boundary, base.step)
    months = MonthGrid(0, 1)
    month = months.last_end(boundary)
    if months.end(month) != boundary:
        raise BadArgument("a release by months starts on the first of a month", hint="Move the start, or publish every so many days.")
    return MonthGrid(month, base.months)


@dataclass(frozen=True)
class Width:
    """Width of a window: whole ticks, or whole periods of a grid of months; exactly one is set."""

    ticks: int | None = None
    steps: int | None = None

    def periods(self, grid: Grid) -> int:
        """In how many periods a window lies, rounded up."""
        if self.steps is not None:
            return self.steps
        return -(-self.ticks // (grid.step if isinstance(grid, RegularGrid) else grid.months * SHORTEST_MONTH_DAYS))

    def within_period(self, grid: Grid) -> bool:
        """Whether windows of this width never overlap."""
        return self.periods(grid) == 1


def width_of(span: Span, grid: Grid, tick: Tick, age: int) -> Width:
    """The width of windows that start `span` before now() and end `age` ticks before it."""
    if isinstance(grid, MonthGrid) and is_calendar_month(span, tick):
        steps, rest = divmod(span.months, grid.months)
        if rest:
            raise BadArgument(
                f"a window of {span.text} is not a whole number of periods",
                hint=f"Periods last {grid.months} months: use a multiple, or days.",
            )
        if age:
            raise BadArgument(
                "a window of calendar months cannot be aged", hint="Write its bounds in days, or track the table with tick => '1 month'."
            )
        return Width(steps=steps)
    ticks = whole_ticks(span, tick, "the window") - age
    if ticks < 1:
        raise BadArgument("the range of dp_time is empty", hint="The start must lie further back than the end.")
    return Width(ticks=ticks)
