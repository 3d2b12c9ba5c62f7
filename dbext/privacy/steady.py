"""Releases that never end: what they cost once every one of them runs, found over one full cycle of their calendars.

Far from every finite filter the endless patterns repeat after the least common multiple of their cycles, so that one cycle shows every
position that a point or a window can have, for ever. Early periods hold fewer filters, never more.
Where the common cycle would hold too many filters, patterns are split into groups and the groups' worst cases are added: the largest sum
is at most the sum of the largest, so this is an upper bound (and exact wherever the patterns of one group cost the same at every tick).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dbext.privacy.cells import PricedFilter
from dbext.privacy.coverage import deepest_window
from dbext.privacy.coverage_joint import heaviest_points_within
from dbext.privacy.priced import Priced

#: Filters in one common cycle that are still looked at together.
_LARGEST_CYCLE = 20_000


def steady_point(endless: Sequence[Priced]) -> tuple[int, int]:
    """Return the most that one mutation far from all others costs: as an opening one, and as a later one."""
    opening = _worst(endless, 0, lambda filters: deepest_window(filters, 0))
    later = _worst(endless, 0, lambda filters: deepest_window([f._replace(opening=f.later) for f in filters], 0))
    return opening, later


def steady_window(endless: Sequence[Priced], within: int) -> int:
    """Return the most that mutations at every tick of one window cost."""
    return _worst(endless, within, lambda filters: deepest_window(filters, within))


def steady_points_within(endless: Sequence[Priced], points: int, within: int) -> int:
    """Return the most that `points` mutations inside one window cost."""
    return _worst(endless, within, lambda filters: heaviest_points_within(filters, points, within))


def overlapping(endless: Sequence[Priced], finite: Sequence[PricedFilter], within: int, largest: int) -> list[PricedFilter] | None:
    """Return the endless releases' filters that can share an entry with finite ones; None if they would be more than `largest`.

    After the last finite end an entry meets endless filters only: that is the steady state. Before the first finite boundary only one
    mutation matters (more of them can as well come after the last end), and one cycle before that boundary, clear of every filter that
    reaches over it, shows all that it can meet.
    """
    bounds = [bound for f in finite for bound in (f.start, f.end) if bound is not None]
    last = max((f.end for f in finite if f.end is not None), default=None)
    if last is None or not endless:
        return []
    since = min(bounds) - within - max(_cycle([one]) + one.pattern.longest for one in endless) - _cycle(endless)
    filters: list[PricedFilter] = []
    for one in endless:
        for f in one.filters(since, last + within):
            filters.append(f)
            if len(filters) > largest:
                return None
    return filters


def _worst(endless: Sequence[Priced], within: int, figure: Callable[[list[PricedFilter]], int]) -> int:
    return sum(figure(_one_cycle(group, within)) for group in _groups(endless))


def _groups(endless: Sequence[Priced]) -> list[list[Priced]]:
    """Put patterns together as long as their common cycle stays small; short cycles first."""
    groups: list[list[Priced]] = []
    for priced in sorted(endless, key=lambda one: one.pattern.cycle[0]):
        if groups and _filters_in_cycle([*groups[-1], priced]) <= _LARGEST_CYCLE:
            groups[-1].append(priced)
        else:
            groups.append([priced])
    return groups


def _filters_in_cycle(group: Sequence[Priced]) -> int:
    cycle = _cycle(group)
    return sum(cycle // ticks * filters for ticks, filters in (one.pattern.cycle for one in group))


def _cycle(group: Sequence[Priced]) -> int:
    return math.lcm(*(one.pattern.cycle[0] for one in group))


def _one_cycle(group: Sequence[Priced], within: int) -> list[PricedFilter]:
    """Return the filters that hold a tick of [f, f + within] for some f of one cycle, after every pattern of the group has begun.

    A filter before a pattern's first one would end before the first one does: no later tick misses a filter.
    """
    begun = max(one.pattern.first_end for one in group)
    return [f for one in group for f in one.filters(begun, begun + _cycle(group) + within)]
