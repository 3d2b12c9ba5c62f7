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

from collections.abc import Sequence
from operator import itemgetter

from dbext.privacy.cells import NEVER, Cells, PricedFilter, cells_of
from dbext.privacy.coverage_nested import nested_points
from dbext.privacy.coverage_tiled import tiled_points

#: From this many steps of the plain recurrence on, loading numpy (some 70 ms in a new session) pays.
WIDE_FROM = 500_000


def heaviest_points(filters: Sequence[PricedFilter], points: int, beyond: tuple[int, int] = (0, 0)) -> int:
    """Return the largest total that `points` mutations can touch.

    `beyond` prices one more mutation after every finite end, far from all others, as (opening, later): what releases that never end
    cost there. Filters without an end reach into that region and are paid for once.
    """
    if beyond == (0, 0):
        for known in (tiled_points, nested_points):
            if (found := known(filters, points)) is not None:
                return found
    cells = cells_of(filters)
    layers = min(points, cells.count, _stabbing_number(filters) + 1)
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


def touched_by_all(filters: Sequence[PricedFilter]) -> int:
    """Return what an entry without any limit can touch: every filter, the ones from the beginning at their opening price."""
    return sum(f.opening if f.start is None else f.later for f in filters)


def use_wide(filters: Sequence[PricedFilter], steps: int) -> bool:
    """Whether numpy pays and 64-bit sums are safe."""
    return steps >= WIDE_FROM and sum(max(f.opening, f.later) for f in filters) < -NEVER


def _stabbing_number(filters: Sequence[PricedFilter]) -> int:
    """Return the least number of points that touch every filter with an end; one more, before all others, touches them at later prices."""
    count, last = 0, None
    for start, end in sorted(((f.start, f.end) for f in filters if f.end is not None), key=itemgetter(1)):
        if last is None or (start is not None and start >= last):
            count, last = count + 1, end
    return count


def _total_length(cells: Cells) -> int:
    return sum(last - first + 1 for first, last in zip(cells.first, cells.last, strict=True) if first and last is not None)


def _far_points(count: int, number: int, points: int, beyond: tuple[int, int]) -> int:
    """Return what `count` far points pay, the first of them being mutation `number` and the last of them mutation `points`."""
    if count == 0:
        return 0
    opening, later = beyond
    openings = min(count, (number == 1) + (points > 1))
    return openings * opening + (count - openings) * later
