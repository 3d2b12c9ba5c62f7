"""The state at the end of every period, reported anew each time: what the local model publishes of states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbext.mechanisms.protocol import Node, check_period
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Filter, Pattern
from dbext.privacy.prefixes import Prefixes


@dataclass(frozen=True)
class Snapshots:
    """Node n is everything up to the end of period n. An entry touches all of them from its first mutation on: there must be a horizon."""

    grid: RegularGrid | MonthGrid
    horizon: int

    name = "snapshots"

    def window(self, period: int) -> Filter:
        """Return everything up to the end of a period."""
        check_period(period, self.horizon)
        return None, self.grid.end(period)

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the one node of the period."""
        return (Node(period, *self.window(period)),)

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return the one node of the period."""
        check_period(period, self.horizon)
        return ((period, 1),)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return all of them."""
        return (Prefixes(self.grid, self.horizon),)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        return {"kind": self.name, "grid": self.grid.to_json(), "horizon": self.horizon}
