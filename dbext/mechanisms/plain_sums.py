"""Running totals of noisy periods: the fewest nodes that an entry touches, and the most that a total adds. Best for short horizons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbext.errors import BadArgument
from dbext.mechanisms.protocol import Node, check_period
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Filter, Pattern, Several, Single, Windows


@dataclass(frozen=True)
class PlainSums:
    """Node n is period n; the total of period n sums nodes 1 to n. With `baseline`, node 0 = (-infinity, end(0)] joins every total."""

    grid: RegularGrid | MonthGrid
    horizon: int
    baseline: bool = False

    name = "plain_sums"

    def __post_init__(self):
        if self.horizon < 1:
            raise BadArgument(f"the horizon must be at least 1 period, not {self.horizon}")

    def window(self, period: int) -> Filter:
        """Return the range of a total: from the beginning (`baseline`) or from the first period on."""
        check_period(period, self.horizon)
        return None if self.baseline else self.grid.end(0), self.grid.end(period)

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the period; at the first one also the baseline."""
        check_period(period, self.horizon)
        node = Node(period, self.grid.end(period - 1), self.grid.end(period))
        return (Node(0, None, self.grid.end(0)), node) if self.baseline and period == 1 else (node,)

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return all nodes so far, each once."""
        check_period(period, self.horizon)
        return tuple((number, 1) for number in range(0 if self.baseline else 1, period + 1))

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the periods, and the baseline."""
        periods = Windows(self.grid, None, 1, 0, self.horizon)
        return (Several((Single(None, self.grid.end(0)), periods)) if self.baseline else periods,)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        return {"kind": self.name, "grid": self.grid.to_json(), "horizon": self.horizon, "baseline": self.baseline}
