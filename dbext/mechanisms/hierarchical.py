"""Long sliding windows from blocks of several lengths: fewer nodes per window than disjoint blocks, but a mutation touches one of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dbext.errors import BadArgument
from dbext.mechanisms.protocol import Node, check_period
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Filter, Pattern, Several, Windows

_LARGEST_RADIX, _MOST_LEVELS = 64, 4


@dataclass(frozen=True)
class HierarchicalSums:
    """The window of a period is its last `steps` periods, covered by the fewest blocks.

    Level l cuts the periods into blocks of radix^l, aligned to the beginning of period 1 and reaching back before it. A block is drawn
    with the period that closes it. A mutation touches one block of each level; a window needs at most 2 (radix - 1) blocks of every level
    but the highest. Windows move back by `age` ticks.
    """

    grid: RegularGrid | MonthGrid
    steps: int
    radix: int
    levels: int
    age: int = 0
    count: int | None = None

    name = "hierarchical_sums"

    def __post_init__(self):
        if self.radix < 2 or self.levels < 1 or self.radix ** (self.levels - 1) > self.steps:  # noqa: PLR2004 blocks must grow
            raise BadArgument("blocks need a radix of at least 2, and the longest must fit into the window")

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""
        return self.count

    def window(self, period: int) -> Filter:
        """Return the last `steps` periods."""
        check_period(period, self.count)
        return self.grid.end(period - self.steps) - self.age, self.grid.end(period) - self.age

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the blocks that end with the period; at the first one also the older blocks that its window has room for."""
        check_period(period, self.count)
        first = 2 - self.steps if period == 1 else period
        return tuple(
            self._node(level, end // length)
            for end in range(first, period + 1)
            for level, length in enumerate(self._lengths())
            if end % length == 0 and (end == period or end - length >= 1 - self.steps)
        )

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return the blocks that cover the window, each once."""
        check_period(period, self.count)
        return tuple((self._number(level, index), 1) for level, index in cover(period - self.steps, period, self.radix, self.levels))

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the blocks of all levels, older ones included."""
        levels = (self._level(length) for length in self._lengths())
        return (Several(tuple(level for level in levels if level is not None)),)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        fields = {name: getattr(self, name) for name in ("steps", "radix", "levels", "age", "count")}
        return {"kind": self.name, "grid": self.grid.to_json(), **fields}

    def _lengths(self) -> list[int]:
        return [self.radix**level for level in range(self.levels)]

    def _level(self, length: int) -> Windows | None:
        """Return the blocks of one length; None if the horizon closes none."""
        count = None if self.count is None else self.count // length
        lead = (self.steps - 1) // length
        if count == 0 and lead == 0:
            return None
        return Windows(self.grid.coarser(length), None, 1, self.age, count, lead, length)

    def _number(self, level: int, index: int) -> int:
        return index * self.levels + level

    def _node(self, level: int, index: int) -> Node:
        length = self.radix**level
        start, end = self.grid.end((index - 1) * length), self.grid.end(index * length)
        return Node(self._number(level, index), start - self.age, end - self.age)


def cover(start: int, end: int, radix: int, levels: int) -> list[tuple[int, int]]:
    """Return the fewest aligned blocks that make up periods start + 1 to end, as (level, index); one ends at index * radix^level.

    From the left, the longest block that begins here and does not reach past the end: lengths are nested, so that greed is optimal.
    """
    blocks = []
    while start < end:
        level = next(one for one in reversed(range(levels)) if start % radix**one == 0 and start + radix**one <= end)
        blocks.append((level, start // radix**level + 1))
        start += radix**level
    return blocks


@lru_cache(maxsize=64)
def best_levels(steps: int, power: int) -> tuple[int, int]:
    """Return the radix and number of levels that minimise levels^power times the mean number of blocks of a window of `steps` periods.

    power = 2 for Laplace noise in epsilon (a scale for every level, squared), 1 for noise whose loss adds in squares.
    """
    shapes = [(2, 1)]
    shapes += [
        (radix, levels) for levels in range(2, _MOST_LEVELS + 1) for radix in range(2, _LARGEST_RADIX + 1) if radix ** (levels - 1) <= steps
    ]
    return min(shapes, key=lambda shape: shape[1] ** power * mean_blocks(steps, *shape))


def mean_blocks(steps: int, radix: int, levels: int) -> float:
    """Return the mean number of blocks of a window over every position in the longest block."""
    longest = radix ** (levels - 1)
    return sum(_blocks(position, position + steps, radix, levels) for position in range(longest)) / longest


def _blocks(start: int, end: int, radix: int, levels: int) -> int:
    """Return how many blocks `cover` returns: those up to the next longer block's beginning and from its end, level by level."""
    count = 0
    for _ in range(levels - 1):
        above, below = -(-start // radix), end // radix
        if above > below:
            return count + end - start
        count += above * radix - start + end - below * radix
        start, end = above, below
    return count + end - start


def block_counts(mechanism: HierarchicalSums) -> list[int]:
    """Return the number of blocks of every window, over one turn of the longest block or up to the horizon."""
    steps, radix, levels = mechanism.steps, mechanism.radix, mechanism.levels
    turn = radix ** (levels - 1)
    periods = range(1, min(turn, mechanism.count or turn) + 1)
    return [_blocks((period - steps) % turn, (period - steps) % turn + steps, radix, levels) for period in periods]


def hierarchical_sums(windows: Windows, power: int) -> HierarchicalSums | None:
    """Return windows counted in whole periods, assembled from the best levels; None if one level (disjoint blocks) is best."""
    steps = windows.width_steps
    if steps is None and isinstance(windows.grid, RegularGrid) and windows.width_ticks % windows.grid.step == 0:
        steps = windows.width_ticks // windows.grid.step
    if steps is None:
        return None
    radix, levels = best_levels(steps, power)
    return None if levels == 1 else HierarchicalSums(windows.grid, steps, radix, levels, windows.age, windows.count)
