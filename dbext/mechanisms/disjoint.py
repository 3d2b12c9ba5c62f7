"""Sliding windows put together from disjoint noisy blocks: a mutation touches one block, however many windows hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbext.errors import BadArgument
from dbext.mechanisms.protocol import Node, check_period
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Filter, Pattern, Several, Windows


@dataclass(frozen=True)
class DisjointSums:
    """The window of a period is its last `steps` periods and the last `remainder` ticks of the one before them.

    With no remainder a block is a period, and the window of period n sums blocks n - steps + 1 to n. With a remainder r every period is
    split r ticks before its end (boundaries {t_n} and {t_n - W}): block 2n - 1 is its early part, block 2n its late part of r ticks,
    and the window sums blocks 2 (n - steps) to 2n. All windows move back by `age` ticks.
    """

    grid: RegularGrid | MonthGrid
    steps: int
    remainder: int = 0
    age: int = 0
    count: int | None = None

    name = "disjoint_sums"

    def __post_init__(self):
        if self.steps < 1 or self.age < 0:
            raise BadArgument("a window assembled from blocks holds at least one period, and its age is not negative")
        if self.remainder and not (isinstance(self.grid, RegularGrid) and 0 < self.remainder < self.grid.step):
            raise BadArgument("a remainder must be shorter than a period of regular length")

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""
        return self.count

    def window(self, period: int) -> Filter:
        """Return the range of the blocks that the period sums."""
        check_period(period, self.count)
        return self.grid.end(period - self.steps) - self.remainder - self.age, self.grid.end(period) - self.age

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the blocks of the period; at the first one also the older blocks of its window."""
        check_period(period, self.count)
        if period == 1:
            return tuple(self._block(number) for number, _ in self.answer(1))
        return tuple(self._block(number) for number in self._blocks_of(period))

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return the blocks of the window, each once."""
        check_period(period, self.count)
        if self.remainder:
            return tuple((number, 1) for number in range(2 * (period - self.steps), 2 * period + 1))
        return tuple((number, 1) for number in range(period - self.steps + 1, period + 1))

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the blocks of all periods, older ones included."""
        if not self.remainder:
            return (Windows(self.grid, None, 1, self.age, self.count, self.steps - 1),)
        early = Windows(self.grid, self.grid.step - self.remainder, None, self.age + self.remainder, self.count, self.steps - 1)
        late = Windows(self.grid, self.remainder, None, self.age, self.count, self.steps)
        return (Several((early, late)),)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        return {
            "kind": self.name,
            "grid": self.grid.to_json(),
            "steps": self.steps,
            "remainder": self.remainder,
            "age": self.age,
            "count": self.count,
        }

    def _blocks_of(self, period: int) -> tuple[int, ...]:
        return (2 * period - 1, 2 * period) if self.remainder else (period,)

    def _block(self, number: int) -> Node:
        if not self.remainder:
            return Node(number, self.grid.end(number - 1) - self.age, self.grid.end(number) - self.age)
        period, late = (number + 1) // 2, number % 2 == 0
        cut, end = self.grid.end(period) - self.remainder - self.age, self.grid.end(period) - self.age
        return Node(number, cut, end) if late else Node(number, self.grid.end(period - 1) - self.age, cut)


def disjoint_sums(windows: Windows) -> DisjointSums | None:
    """Return the assembled form of windows, or None if they cannot be put together from blocks.

    Windows counted in periods always can; windows counted in ticks only on a grid of regular steps, and if they hold one whole period.
    """
    if windows.width_steps is not None:
        return DisjointSums(windows.grid, windows.width_steps, 0, windows.age, windows.count)
    if not isinstance(windows.grid, RegularGrid) or windows.width_ticks < windows.grid.step:
        return None
    steps, remainder = divmod(windows.width_ticks, windows.grid.step)
    return DisjointSums(windows.grid, steps, remainder, windows.age, windows.count)
