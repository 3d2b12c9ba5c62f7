"""The filters of trees with signed digits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbext.errors import BadArgument
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.prefixes import Filter


@dataclass(frozen=True)
class SignedBlocks:
    """The blocks that totals of periods 1 ... count add and subtract: levels of radix^l periods each, all but the highest in full groups.

    A total that is rounded up takes away blocks which are not over yet; their noise is drawn with the first total that uses them. So the
    blocks of a level reach to the end of the longer block that holds the last total, and one beyond where rounding up carries on.
    With `within`, blocks end there: what lies beyond that period is in none of them, for it cancels in every total up to it. `used` says
    how many blocks of each level are used at all, where that is known to be fewer; `only` restricts the pattern to one level, `part` to
    what lies in the longest blocks from one number on (0 is the first) and before another, `inside` to the next longest blocks with
    these places in their longest block, and what lies in them.
    """

    grid: RegularGrid | MonthGrid
    count: int
    radix: int
    levels: int
    within: int | None = None
    used: tuple[int, ...] | None = None
    only: int | None = None
    part: tuple[int, int] | None = None
    inside: tuple[int, ...] | None = None

    def __post_init__(self):
        if self.count < 1 or self.radix < 2 or self.levels < 1:  # noqa: PLR2004 the smallest radix
            raise BadArgument("a signed tree needs a period, a radix of at least 2 and one level")

    is_finite = True
    cycle = None

    def blocks(self, level: int) -> int:
        """Return the number of blocks of a level that a total may use."""
        reach = self.count
        for _ in range(level):
            reach = reach // self.radix + 1
        bound = reach if level == self.levels - 1 else (reach // self.radix + 1) * self.radix
        return bound if self.used is None else min(bound, self.used[level])

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[Filter]:
        """Yield the filters that hold a tick in (since, until], level by level."""
        for level in self._listed():
            length = self.radix**level
            blocks = ((self.grid.end(n * length), self.grid.end(self._cut((n + 1) * length))) for n in self._numbers(level))
            yield from between((block for block in blocks if block[0] < block[1]), since, until)

    def span(self) -> tuple[int | None, int | None]:
        """Return the range that the blocks cover."""
        numbers = [(self.radix**level, one) for level in self._listed() if (one := self._numbers(level))]
        first = min((length * one[0] for length, one in numbers), default=0)
        last = max((length * (one[-1] + 1) for length, one in numbers), default=0)
        return self.grid.end(self._cut(first)), self.grid.end(self._cut(last))

    def _numbers(self, level: int) -> Sequence[int]:
        first, last = self.part or (0, self.blocks(level))
        size = 1 if self.part is None else self.radix ** (self.levels - 1 - level)
        numbers = range(first * size, min(last * size, self.blocks(level)))
        if self.inside is None:
            return numbers
        size = self.radix ** (self.levels - 2 - level)
        return [number for number in numbers if number // size % self.radix in self.inside]

    def _listed(self) -> Sequence[int]:
        return range(self.levels) if self.only is None else (self.only,)

    def _cut(self, period: int) -> int:
        return period if self.within is None else min(period, self.within)

    def through(self, period: int) -> SignedBlocks:
        """Return the blocks that totals up to a period may use."""
        return replace(self, count=min(period, self.count))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `pattern_from_json` reads."""
        shape = {"count": self.count, "radix": self.radix, "levels": self.levels, "within": self.within, "only": self.only}
        used = None if self.used is None else list(self.used)
        lists = {name: one and list(one) for name, one in (("part", self.part), ("inside", self.inside))}
        return {"kind": "signed_blocks", "grid": self.grid.to_json(), **shape, "used": used, **lists}


def between(filters: Iterator[Filter], since: int | None, until: int | None) -> Iterator[Filter]:
    """Return those filters that hold a tick in (since, until]."""
    if since is None and until is None:
        return filters
    return (one for one in filters if (since is None or one[1] > since) and (until is None or one[0] is None or one[0] < until))
