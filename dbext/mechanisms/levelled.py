"""Hierarchical releases over declared levels: blocks of several lengths, each noised once, from which any range is put together.

A level cuts time into blocks that do not overlap: days, weeks, months; each level is a disjoint continual release of its own. Blocks of a
longer level are whole periods, and may or may not be whole blocks of the level below (weeks and months are not). A mutation touches one
block of each level, so that an entry with k mutations pays for at most k blocks of each, and one that is active within w ticks for those
that w + 1 ticks can meet: loss is the sum over the levels.

Levels may share the budget unequally: `factors` says how wide the noise of a level is beside that of the plan.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from dbext.errors import BadArgument
from dbext.mechanisms.protocol import Node, check_period
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Blocks, Filter, Pattern, Several, Single

Grid = RegularGrid | MonthGrid
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class LevelledSums:
    """The window of a period is its last `steps` periods, or with None everything since end(0) (`baseline`: since the beginning).

    Period 1 of each level is its first block; the first level's blocks are the periods, from the first that a window needs. `ranges` are
    the lengths, in periods, that the factors were chosen for; without any, those of the windows.
    """

    grid: Grid
    levels: tuple[Grid, ...]
    steps: int | None
    factors: tuple[Fraction, ...]
    baseline: bool = False
    age: int = 0
    count: int | None = None
    ranges: tuple[int, ...] = ()

    name = "levelled_sums"

    def __post_init__(self):
        if not self.levels or len(self.factors) != len(self.levels) + self.baseline or min(self.factors) <= 0:
            raise BadArgument("a hierarchy needs a level, and a factor above 0 for each (and for the baseline)")

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""
        return self.count

    @property
    def beginning(self) -> int:
        """The boundary at which the first block of the first level begins, before it is aged."""
        return self.levels[0].end(0)

    def window(self, period: int) -> Filter:
        """Return the range of a period's answer."""
        check_period(period, self.count)
        start = self.grid.end(0 if self.steps is None else period - self.steps) - self.age
        return None if self.baseline else start, self.grid.end(period) - self.age

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the blocks of all levels that are over with the period; at the first one also the older ones, and the baseline."""
        check_period(period, self.count)
        since, until = self.beginning if period == 1 else self.grid.end(period - 1), self.grid.end(period)
        blocks = tuple(
            self._node(level, index)
            for level, grid in enumerate(self.levels)
            for index in range(max(1, grid.last_end(since) + 1), grid.last_end(until) + 1)
        )
        return (Node(0, None, self.grid.end(0) - self.age), *blocks) if self.baseline and period == 1 else blocks

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return the blocks that make up the window with the least noise, each once; and the baseline."""
        check_period(period, self.count)
        start = 0 if self.steps is None else period - self.steps
        blocks = tuple((self._number(*block), 1) for block in self.cover(start, period))
        return ((0, 1), *blocks) if self.baseline else blocks

    def cover(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (level, index) of the blocks with the least sum of squared factors that make up periods start + 1 to end."""
        back = _from_the_start(self, self.count) if start == 0 and self.count is not None else _ways(self, start, end)
        blocks = []
        while end > start:
            level, index, before = back[end]
            blocks.append((level, index))
            end = before
        return blocks[::-1]

    def factor(self, number: int) -> Fraction:
        """Return how wide the noise of a node is, as a multiple of the plan's."""
        return self.factors[number % len(self.levels)] if number else self.factors[-1 if self.baseline else 0]

    @property
    def is_one_pattern(self) -> bool:
        """Whether all levels are charged together: where their noise is alike, and what they have in common is not 400 years long."""
        calendar = {type(grid) for grid in self.levels}
        return len(set(self.factors)) == 1 and (self.count is not None or len(calendar) == 1)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the blocks of each level, and the baseline: as one pattern, or one by one."""
        parts: list[Pattern] = [Blocks(grid, self.grid, self.count, self.age) for grid in self.levels]
        if self.baseline:
            parts.append(Single(None, self.grid.end(0) - self.age))
        return (Several(tuple(parts)),) if self.is_one_pattern else tuple(parts)

    def pattern_factors(self) -> tuple[Fraction, ...]:
        """Return the factor of each pattern."""
        return self.factors[:1] if self.is_one_pattern else self.factors

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        return {
            "kind": self.name,
            "grid": self.grid.to_json(),
            "levels": [grid.to_json() for grid in self.levels],
            "steps": self.steps,
            "factors": [str(factor) for factor in self.factors],
            "baseline": self.baseline,
            "age": self.age,
            "count": self.count,
            "ranges": list(self.ranges),
        }

    def _number(self, level: int, index: int) -> int:
        return index * len(self.levels) + level

    def _node(self, level: int, index: int) -> Node:
        grid = self.levels[level]
        return Node(self._number(level, index), grid.end(index - 1) - self.age, grid.end(index) - self.age)


def ranges_that_matter(mechanism: LevelledSums, positions: int = 48) -> list[tuple[int, int]]:
    """Return (first, last) periods, the first exclusive, of windows or declared ranges at positions spread over what is published."""
    longest = mechanism.levels[-1]
    until = mechanism.count or 3 * max(mechanism.grid.last_end(longest.end(2)), *mechanism.ranges, 1)
    if not mechanism.ranges:
        return [(0 if mechanism.steps is None else end - mechanism.steps, end) for end in _spread_evenly(1, until, positions)]
    return [(end - length, end) for length in mechanism.ranges for end in _spread_evenly(length, until, positions)]


def _spread_evenly(first: int, last: int, number: int) -> list[int]:
    """Return about `number` whole numbers from first to last, in steps that keep no time with weeks or months."""
    if last - first < number:
        return list(range(first, last + 1))
    return [first + int(i * _GOLDEN % 1 * (last - first + 1)) for i in range(number)]


def squared_widths(mechanism: LevelledSums, blocks: Sequence[tuple[int, int]]) -> float:
    """Return the variance of a sum of blocks in units of that of the plan's noise; only Laplace noise of tiny scale is a little below."""
    return math.fsum(float(mechanism.factors[level]) ** 2 for level, _ in blocks)


def base_square(mechanism: LevelledSums) -> float:
    """Return what the baseline adds to the variance of every answer."""
    return float(mechanism.factors[-1]) ** 2 if mechanism.baseline else 0.0


Ways = dict[int, tuple[int, int, int]]


@lru_cache(maxsize=16)
def _from_the_start(mechanism: LevelledSums, count: int) -> Ways:
    return _ways(mechanism, 0, count)


def _ways(mechanism: LevelledSums, start: int, end: int) -> Ways:
    """Return, for each period, the block that ends the lightest cover of the periods from start + 1 to it, and the period before it."""
    weights = [float(factor) ** 2 for factor in mechanism.factors]
    first = mechanism.grid.end(start)
    lightest, back = {first: 0.0}, {}
    places = {first: start}
    following = [grid.last_end(first) + 1 for grid in mechanism.levels]
    for period in range(start + 1, end + 1):
        boundary = mechanism.grid.end(period)
        places[boundary] = period
        for level, grid in enumerate(mechanism.levels):
            index = following[level]
            if grid.end(index) != boundary:
                continue
            following[level] = index + 1
            before = grid.end(index - 1)
            if index >= 1 and before in lightest and lightest[before] + weights[level] < lightest.get(boundary, float("inf")):
                lightest[boundary] = lightest[before] + weights[level]
                back[period] = (level, index, places[before])
    return back


class Course(NamedTuple):
    """What periods after `start` can be covered by, whatever the widths: to find the lightest covers for many widths.

    `stops` lists the periods with which a block of a longer level ends, and (level, period before it) for all blocks that end with them.
    All other periods are covered by their own block, of the first level.
    """

    start: int
    stops: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]

    def uses(self, weights: Sequence[float], ends: Sequence[int]) -> list[int]:
        """Return how many blocks of each level the lightest covers of the periods up to each of `ends` take together."""
        lightest, back = {self.start: 0.0}, {}
        period, weight = self.start, 0.0
        for stop, blocks in self.stops:
            for _ in range(stop - period - 1):
                weight += weights[0]
            lightest.setdefault(stop - 1, weight)
            least = float("inf")
            for level, before in blocks:
                if before in lightest and lightest[before] + weights[level] < least:
                    least, back[stop] = lightest[before] + weights[level], (level, before)
            period, weight = stop, least
            lightest[stop] = weight
        return self._counted(back, ends, len(weights))

    def _counted(self, back: dict[int, tuple[int, int]], ends: Sequence[int], levels: int) -> list[int]:
        """Follow the covers back from their ends."""
        counts, stops = [0] * levels, [self.start, *back]
        for end in ends:
            place = end
            while place > self.start:
                level, before = back.get(place) or (0, stops[bisect_right(stops, place) - 1])
                counts[level] += 1 if level else place - before
                place = before
        return counts


def course(mechanism: LevelledSums, start: int, end: int) -> Course:
    """Return the course of the periods start + 1 to end."""
    first, last = mechanism.grid.end(start), mechanism.grid.end(end)
    blocks: dict[int, list[tuple[int, int]]] = {}
    for level, grid in enumerate(mechanism.levels[1:], 1):
        for index in range(grid.last_end(first) + 1, grid.last_end(last) + 1):
            ending = blocks.setdefault(mechanism.grid.last_end(grid.end(index)), [])
            if index >= 1:
                ending.append((level, mechanism.grid.last_end(grid.end(index - 1))))
    return Course(start, tuple((stop, ((0, stop - 1), *blocks[stop])) for stop in sorted(blocks)))
