"""Sets of time-range filters that a release draws noise for: plain data, so that the accountant needs to know no mechanism.

A filter (a, b] holds the ticks a + 1 to b; a = None reaches back to the beginning. A pattern's meaning never changes once a charge with
it can be in a ledger: a new kind of set is a new pattern.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dbext.errors import BadArgument
from dbext.privacy.grid import MonthGrid, RegularGrid, grid_from_json
from dbext.privacy.prefixes import Filter, Prefixes
from dbext.privacy.signed_blocks import SignedBlocks, between

__all__ = ["Blocks", "Filter", "Pattern", "Prefixes", "Several", "SignedBlocks", "Single", "Tree", "Windows", "pattern_from_json"]


class Pattern(Protocol):
    """A finite or endless set of filters."""

    @property
    def is_finite(self) -> bool:
        """Whether there is a last filter."""

    @property
    def cycle(self) -> tuple[int, int] | None:
        """Ticks and filters after which an endless pattern repeats; None for a finite one."""

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[Filter]:
        """Yield the filters that hold a tick in (since, until], in order; an endless pattern needs `until`."""

    def span(self) -> tuple[int | None, int | None]:
        """Return the range of ticks that the filters cover; an end of None is never."""

    def through(self, period: int) -> Pattern:
        """Return the filters that are noised by the end of a period >= 1: the finite part that has left."""

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `pattern_from_json` reads."""


@dataclass(frozen=True)
class Single:
    """One filter."""

    start: int | None
    end: int

    def __post_init__(self):
        if self.start is not None and self.start >= self.end:
            raise BadArgument(f"a window must end after it starts, not ({self.start}, {self.end}]")

    is_finite = True
    cycle = None

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[Filter]:
        """Yield the filter, if it holds a tick in (since, until]."""
        return between(iter([(self.start, self.end)]), since, until)

    def span(self) -> tuple[int | None, int | None]:
        """Return the filter."""
        return self.start, self.end

    def through(self, period: int) -> Single:  # noqa: ARG002 every period has it
        """Return the filter, which is noised with the first period."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `pattern_from_json` reads."""
        return {"kind": "single", "start": self.start, "end": self.end}


@dataclass(frozen=True)
class Windows:
    """One filter per period n = 1 - lead ... count: (end(n) - width, end(n)] moved back by `age` ticks.

    The width is `width_ticks` ticks, or `width_steps` periods of the grid. A `count` of None is endless. The `lead` filters before the
    first period are the older blocks that the first windows are assembled from. `every` is the number of a release's periods that one
    period of this grid takes.
    """

    grid: RegularGrid | MonthGrid
    width_ticks: int | None = None
    width_steps: int | None = None
    age: int = 0
    count: int | None = None
    lead: int = 0
    every: int = 1

    def __post_init__(self):
        widths = [width for width in (self.width_ticks, self.width_steps) if width is not None]
        if len(widths) != 1 or widths[0] < 1:
            raise BadArgument("a window needs one width of at least 1, in ticks or in periods")
        if self.age < 0 or self.lead < 0 or self.every < 1 or (self.count is not None and self.count < 0):
            raise BadArgument("age, lead and count must not be negative, every must be at least 1")

    @property
    def is_finite(self) -> bool:
        """Whether there is a last period."""
        return self.count is not None

    @property
    def cycle(self) -> tuple[int, int] | None:
        """The grid's, if the pattern is endless."""
        return self.grid.cycle if self.count is None else None

    @property
    def longest(self) -> int:
        """Ticks of the longest filter, or more."""
        return self.width_ticks if self.width_ticks is not None else self.width_steps * self.grid.longest_step

    @property
    def first_end(self) -> int:
        """Return the end of the first filter."""
        return self.filter(1 - self.lead)[1]

    def filter(self, period: int) -> tuple[int, int]:
        """Return the filter of one period."""
        end = self.grid.end(period)
        start = end - self.width_ticks if self.width_ticks is not None else self.grid.end(period - self.width_steps)
        return start - self.age, end - self.age

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[Filter]:
        """Yield the filters that hold a tick in (since, until], in order; an endless pattern needs `until`."""
        if self.count is None and until is None:
            raise BadArgument("an endless pattern has no last filter")
        first = 1 - self.lead if since is None else max(1 - self.lead, self.grid.last_end(since + self.age) + 1)
        return self._from(first, until)

    def _from(self, period: int, until: int | None) -> Iterator[Filter]:
        while self.count is None or period <= self.count:
            start, end = self.filter(period)
            if until is not None and start >= until:
                return
            yield start, end
            period += 1

    def span(self) -> tuple[int | None, int | None]:
        """Return the first filter's start and the last one's end."""
        return self.filter(1 - self.lead)[0], None if self.count is None else self.filter(self.count)[1]

    def through(self, period: int) -> Windows:
        """Return the windows up to a period, older blocks included."""
        closed = period // self.every
        return replace(self, count=closed if self.count is None else min(closed, self.count))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `pattern_from_json` reads."""
        return {
            "kind": "windows",
            "grid": self.grid.to_json(),
            "width_ticks": self.width_ticks,
            "width_steps": self.width_steps,
            "age": self.age,
            "count": self.count,
            "lead": self.lead,
            "every": self.every,
        }


@dataclass(frozen=True)
class Tree:
    """The nodes of a binary indexed tree over periods 1 ... count: node n holds periods n - lowbit(n) + 1 to n."""

    grid: RegularGrid | MonthGrid
    count: int

    def __post_init__(self):
        if self.count < 1:
            raise BadArgument(f"a tree must have at least one period, not {self.count}")

    is_finite = True
    cycle = None

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[Filter]:
        """Yield the filters that hold a tick in (since, until], in order of node number."""
        nodes = ((self.grid.end(n - (n & -n)), self.grid.end(n)) for n in range(1, self.count + 1))
        return between(nodes, since, until)

    def span(self) -> tuple[int | None, int | None]:
        """Return the range of all periods."""
        return self.grid.end(0), self.grid.end(self.count)

    def through(self, period: int) -> Tree:
        """Return the nodes up to a period: a node is closed by the period of its number."""
        return Tree(self.grid, min(period, self.count))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `pattern_from_json` reads."""
        return {"kind": "tree", "grid": self.grid.to_json(), "count": self.count}


@dataclass(frozen=True)
class Blocks:
    """The whole blocks of `grid`, from its period 1 on, that are over when period `count` of the release's grid `base` ends; None: endless.

    One level of a hierarchy: any lengths, regular or not. All blocks are moved back by `age` ticks.
    """

    grid: RegularGrid | MonthGrid
    base: RegularGrid | MonthGrid
    count: int | None = None
    age: int = 0

    @property
    def windows(self) -> Windows:
        """The same blocks, by their number."""
        closed = None if self.count is None else max(0, self.grid.last_end(self.base.end(self.count)))
        return Windows(self.grid, None, 1, self.age, closed)

    @property
    def is_finite(self) -> bool:
        """Whether there is a last block."""
        return self.count is not None

    @property
    def cycle(self) -> tuple[int, int] | None:
        """The grid's, if the pattern is endless."""
        return self.windows.cycle

    @property
    def longest(self) -> int:
        """Ticks of the longest block, or more."""
        return self.grid.longest_step

    @property
    def first_end(self) -> int:
        """End of the first block."""
        return self.windows.first_end

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[Filter]:
        """Yield the blocks that hold a tick in (since, until], in order; an endless pattern needs `until`."""
        return self.windows.filters(since, until)

    def span(self) -> tuple[int | None, int | None]:
        """Return the first block's start and the last one's end."""
        return self.windows.span()

    def through(self, period: int) -> Blocks:
        """Return the blocks that are over when a period of the release ends."""
        return replace(self, count=period if self.count is None else min(period, self.count))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `pattern_from_json` reads."""
        return {"kind": "blocks", "grid": self.grid.to_json(), "base": self.base.to_json(), "count": self.count, "age": self.age}


@dataclass(frozen=True)
class Several:
    """The filters of several patterns of one release: all of them finite, or all endless.

    Charged as one, because one predicate is behind them: an entry's events, or its ups and downs, are shared by all parts.
    """

    parts: tuple[Single | Windows | Tree | SignedBlocks | Blocks, ...]

    def __post_init__(self):
        if len({part.is_finite for part in self.parts}) != 1:
            raise BadArgument("the parts of a pattern must all be finite, or all endless")

    @property
    def is_finite(self) -> bool:
        """Whether every part has a last filter."""
        return self.parts[0].is_finite

    @property
    def cycle(self) -> tuple[int, int] | None:
        """The parts' common one, if they are endless."""
        if self.is_finite:
            return None
        ticks = math.lcm(*(part.cycle[0] for part in self.parts))
        return ticks, sum(ticks // part.cycle[0] * part.cycle[1] for part in self.parts)

    @property
    def longest(self) -> int:
        """Ticks of the longest filter, or more, if the parts are endless."""
        return max(part.longest for part in self.parts)

    @property
    def first_end(self) -> int:
        """End of the last part's first filter, if the parts are endless."""
        return max(part.first_end for part in self.parts)

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[Filter]:
        """Yield the filters that hold a tick in (since, until], part by part."""
        for part in self.parts:
            yield from part.filters(since, until)

    def span(self) -> tuple[int | None, int | None]:
        """Return the range of ticks that the parts cover together."""
        starts, ends = zip(*(part.span() for part in self.parts), strict=True)
        return None if None in starts else min(starts), None if None in ends else max(ends)

    def through(self, period: int) -> Several:
        """Return what has left of every part."""
        return Several(tuple(part.through(period) for part in self.parts))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `pattern_from_json` reads."""
        return {"kind": "several", "parts": [part.to_json() for part in self.parts]}


def pattern_from_json(data: dict[str, Any]) -> Single | Windows | Tree | SignedBlocks | Blocks | Prefixes | Several:
    """Rebuild a pattern from its tagged form."""
    kind = data.get("kind")
    if kind == "single":
        return Single(data["start"], data["end"])
    if kind == "several":
        return Several(tuple(pattern_from_json(part) for part in data["parts"]))
    if kind == "prefixes":
        return Prefixes(grid_from_json(data["grid"]), data["count"])
    if kind == "blocks":
        return Blocks(grid_from_json(data["grid"]), grid_from_json(data["base"]), data["count"], data["age"])
    kinds = {"windows": Windows, "tree": Tree, "signed_blocks": SignedBlocks}
    if kind not in kinds:
        raise BadArgument(f"unknown pattern {kind!r}")
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name not in ("kind", "grid")}
    return kinds[kind](grid_from_json(data["grid"]), **fields)
