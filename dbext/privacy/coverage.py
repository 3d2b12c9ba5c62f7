"""The worst entry against a set of priced filters: weighted coverage of intervals by points on a line.

An entry that mutates at ticks p_1 < p_2 < ... touches the filters that hold one of them and pays for each once. A filter that holds
p_j but no earlier point cannot hold p_(j-1) (filters are intervals), which makes the sum a path length and its maximum a recurrence:

    F_1(p) = sum of opening(i) over filters i that hold p
    F_j(p) = max over p' < p of F_(j-1)(p') + sum of cost_j(i) over filters i = (a, b] with p' <= a < p <= b

cost_j is `later`, except at the last slot k >= 2, where the entry departs and `opening` holds again (one cell, not two).
Points matter only through the cell they lie in: the gaps between neighbouring filter boundaries.
Everything is exact in whole picos; the wide form (`coverage_wide`, numpy) gives the same answers as the plain form here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: From this many steps of the plain recurrence on, loading numpy (some 70 ms in a new session) pays.
WIDE_FROM = 500_000
#: Additions that an exact joint figure may take (about a second); beyond, the smaller of the two single bounds is used.
_JOINT_LIMIT = 1_500_000_000
#: Sums from here on are left to Python's own integers.
LARGEST_SUM = 2**61
#: Below every sum that can occur.
NEVER = -(2**61)


class PricedFilter(NamedTuple):
    """A filter (start, end] with what an entry pays for touching it; None is minus or plus infinity."""

    start: int | None
    end: int | None
    opening: int
    later: int


@dataclass(frozen=True)
class Cells:
    """Cells in order, and for every filter the first and last cell it holds; a last cell of None is never closed."""

    lefts: list[int]
    rights: list[int]
    first: list[int]
    last: list[int | None]

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.rights)

    def closings(self) -> list[list[int]]:
        """Return for every cell the filters that end with it."""
        closes: list[list[int]] = [[] for _ in range(self.count)]
        for index, last in enumerate(self.last):
            if last is not None:
                closes[last].append(index)
        return closes


def heaviest_points(filters: Sequence[PricedFilter], points: int, beyond: tuple[int, int] = (0, 0)) -> int:
    """Return the largest total that `points` mutations can touch.

    `beyond` prices one more mutation after every finite end, far from all others, as (opening, later): what releases that never end
    cost there. Filters without an end reach into that region and are paid for once.
    """
    cells = cells_of(filters)
    layers = min(points, cells.count)
    if use_wide(filters, layers * (2 * cells.count + _total_length(cells))):
        from dbext.privacy.coverage_wide import point_layers
    else:
        from dbext.privacy.coverage_plain import point_layers
    inside, onward = point_layers(filters, cells, layers, points)
    far_only = sum(f.opening for f in filters if f.end is None) + _far_points(points, 1, points, beyond)
    mixed = (onward[j] + _far_points(points - j - 1, j + 2, points, beyond) for j in range(layers) if j + 1 < points)
    return max([far_only, *inside, *mixed])


def deepest_window(filters: Sequence[PricedFilter], within: int) -> int:
    """Return the largest total that mutations at every tick of [f, f + within] can touch, over all f: a sweep over the boundaries.

    The first tick f pays `opening` for the filters that hold it; those that begin at f or later, before f + within, pay `later`.
    """
    steps: dict[int, int] = {}
    depth = 0
    for start, end, opening, later in filters:
        if start is None:
            depth += opening
        else:
            steps[start - within + 1] = steps.get(start - within + 1, 0) + later
            steps[start + 1] = steps.get(start + 1, 0) + opening - later
        if end is not None:
            steps[end + 1] = steps.get(end + 1, 0) - opening
    deepest = depth
    for tick in sorted(steps):
        depth += steps[tick]
        deepest = max(deepest, depth)
    return deepest


def heaviest_points_within(filters: Sequence[PricedFilter], points: int, within: int) -> int:
    """Return the largest total that `points` mutations inside [f, f + within] can touch, over all f.

    Without loss the first mutation is at the right end r of its cell, so that windows [r, r + within] are enough. Small problems solve
    each different window by itself; large ones run the recurrence for all first cells at once. Past a limit of work the smaller of
    `heaviest_points` and `deepest_window` is returned: either drops one of the two constraints, so both are upper bounds.
    """
    cells = cells_of(filters, every=True)
    reach = [bisect_left(cells.lefts, right + within) - 1 for right in cells.rights]
    longest = max((last - first for first, last in enumerate(reach)), default=0)
    layers = min(points, longest + 1)
    if cells.count * min(len(filters), longest + 1) * layers < WIDE_FROM // 8:
        from dbext.privacy.coverage_plain import windows_within

        return windows_within(filters, cells.rights, points, within)
    if cells.count * longest**2 * (layers - 1) // 2 <= _JOINT_LIMIT and use_wide(filters, WIDE_FROM):
        from dbext.privacy.coverage_wide import layers_within

        return layers_within(filters, cells, layers, points, reach)
    return min(heaviest_points(filters, points), deepest_window(filters, within))


def touched_by_all(filters: Sequence[PricedFilter]) -> int:
    """Return what an entry without any limit can touch: every filter, the ones from the beginning at their opening price."""
    return sum(f.opening if f.start is None else f.later for f in filters)


def cells_of(filters: Sequence[PricedFilter], *, every: bool = False) -> Cells:
    """Cut the line at every finite boundary, and one tick before the first: there filters from minus infinity begin, and there an
    entry can begin that meets no filter yet.

    With one price per filter a cell matters only if a filter opens at its left and one closes at its right: every other cell's filters
    are a subset of a neighbour's. Where the distance between points matters too, `every` cell is needed, and one after the last boundary.
    """
    ends = {f.end for f in filters if f.end is not None}
    starts = {f.start for f in filters if f.start is not None}
    bounds = sorted(ends | starts) or [0]
    bounds = [bounds[0] - 1, *bounds, *([bounds[-1] + 1] if every else [])]
    cells = list(zip(bounds, bounds[1:], strict=False))
    if not every and all(f.opening == f.later or f.start is None for f in filters):
        starts.add(bounds[0])
        cells = [(left, right) for left, right in cells if left in starts and right in ends]
    lefts, rights = [left for left, _ in cells], [right for _, right in cells]
    first = [0 if f.start is None else bisect_left(lefts, f.start) for f in filters]
    last = [None if f.end is None else bisect_right(rights, f.end) - 1 for f in filters]
    return Cells(lefts, rights, first, last)


def opening_depths(filters: Sequence[PricedFilter], cells: Cells) -> list[int]:
    """Return F_1: the opening cost of every cell."""
    steps = [0] * (cells.count + 1)
    for filter_, first, last in zip(filters, cells.first, cells.last, strict=True):
        steps[first] += filter_.opening
        if last is not None:
            steps[last + 1] -= filter_.opening
    depths, depth = [], 0
    for step in steps[: cells.count]:
        depth += step
        depths.append(depth)
    return depths


def use_wide(filters: Sequence[PricedFilter], steps: int) -> bool:
    """Whether numpy pays and 64-bit sums are safe."""
    return steps >= WIDE_FROM and sum(max(f.opening, f.later) for f in filters) < LARGEST_SUM


def _total_length(cells: Cells) -> int:
    return sum(last - first + 1 for first, last in zip(cells.first, cells.last, strict=True) if first and last is not None)


def _far_points(count: int, number: int, points: int, beyond: tuple[int, int]) -> int:
    """Return what `count` far points pay, the first of them being mutation `number` and the last of them mutation `points`."""
    if count == 0:
        return 0
    opening, later = beyond
    openings = min(count, (number == 1) + (points > 1))
    return openings * opening + (count - openings) * later
