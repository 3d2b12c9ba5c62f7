"""Running totals of noisy periods: the fewest nodes that an entry touches, and the most that a total adds. Best for short horizons."""

from __future__ import annotations

from dataclasses import dataclass

from dbext.mechanisms.protocol import Node, check_period
from dbext.mechanisms.totals import Totals
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Pattern, Windows


@dataclass(frozen=True)
class PlainSums(Totals):
    """Node n is period n; the total of period n sums nodes 1 to n. With `baseline`, node 0 = (-infinity, end(0)] joins every total."""

    grid: RegularGrid | MonthGrid
    horizon: int
    baseline: bool = False

    name = "plain_sums"

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the period; at the first one also the baseline."""
        return self.leaves(period)

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return all nodes so far, each once."""
        check_period(period, self.horizon)
        return tuple((number, 1) for number in range(0 if self.baseline else 1, period + 1))

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the periods, and the baseline."""
        return self._and_baseline(Windows(self.grid, None, 1, 0, self.horizon))
