"""What running totals share, however they are noised: periods 1 ... horizon, what they sum, and the baseline before them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from dbext.errors import BadArgument
from dbext.mechanisms.protocol import Node, check_period
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Filter, Pattern, Several, Single

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


class Totals:
    """Totals of periods 1 ... horizon of a grid. With `baseline`, everything up to end(0) joins every total (`state`).

    Subclasses are frozen dataclasses with these fields and their own. Nodes (or rows) are numbered from 1 to `numbers`; 0 is the baseline.
    """

    name: str
    grid: RegularGrid | MonthGrid
    horizon: int
    baseline: bool

    def __post_init__(self):
        if self.horizon < 1:
            raise BadArgument(f"the horizon must be at least 1 period, not {self.horizon}")

    @property
    def numbers(self) -> int:
        """The largest number of a node."""
        return self.horizon

    def window(self, period: int) -> Filter:
        """Return the range of a total: from the beginning (`baseline`) or from the first period on."""
        check_period(period, self.horizon)
        return None if self.baseline else self.grid.end(0), self.grid.end(period)

    def leaves(self, period: int) -> tuple[Node, ...]:
        """Return the time ranges whose exact sums are needed first when a period closes: the period, at first the baseline too."""
        return self._with_baseline(period, Node(period, self.grid.end(period - 1), self.grid.end(period)))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "grid"}
        return {"kind": self.name, "grid": self.grid.to_json(), **own}

    def _with_baseline(self, period: int, *nodes: Node) -> tuple[Node, ...]:
        check_period(period, self.horizon)
        return (Node(0, None, self.grid.end(0)), *nodes) if self.baseline and period == 1 else nodes

    def _and_baseline(self, *patterns: Pattern) -> tuple[Pattern, ...]:
        """Return patterns as one, with the baseline's filter."""
        parts = (Single(None, self.grid.end(0)), *patterns) if self.baseline else patterns
        return (Several(parts) if len(parts) > 1 else parts[0],)


class SeriesTotals(Totals):
    """Totals of which every one weighs all that was drawn so far by one series, latest first.

    Subclasses say what l_0, l_1, ... is: the total at position t is made of the sum of l_j times draw t - j. Position 0 is the first draw.
    """

    answer_series: Callable[[], np.ndarray]

    @property
    def positions(self) -> int:
        """Number of draws, and of leaves."""
        return self.horizon + self.baseline

    def answer(self, period: int) -> tuple[tuple[int, float], ...]:
        """Return the weights of all draws so far in the total of a period."""
        check_period(period, self.horizon)
        position = self._position(period)
        weights = self.answer_series()[: position + 1][::-1]
        return tuple(zip(range(period - position, period + 1), weights.tolist(), strict=True))

    def _position(self, number: int) -> int:
        return number if self.baseline else number - 1
