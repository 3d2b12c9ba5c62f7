"""The worst entry against periods side by side, all of one price: no search is needed, however many there are.

Of k >= 2 mutations the first and the last pay `opening`, those between `later`, which is no less. An entry can begin outside all periods
(so that its first one there is its second) unless the periods follow on everything before them, whose filter then is the first one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from dbext.privacy.cells import PricedFilter


def tiled_points(filters: Sequence[PricedFilter], points: int) -> int | None:
    """Return the largest total that `points` mutations can touch; None if the filters are not such periods."""
    found = _tiles(filters)
    if found is None:
        return None
    baseline, periods = found
    _, _, opening, later = periods[0]
    if opening > later:
        return None
    if baseline is None:
        return _touched(len(periods), 1 + (points > 1), points - 2, opening, later)
    last = int(points > 1)
    return max(
        baseline.opening + _touched(len(periods), last, points - 2, opening, later),
        opening + _touched(len(periods) - 1, last, points - 2, opening, later),
    )


def tiled_within(filters: Sequence[PricedFilter], points: int, within: int) -> int | None:
    """Return the same for mutations within so many ticks; None if the filters are not such periods, or an opening price differs.

    From the last tick of one period, what lies `within` behind it touches those that begin before that.
    """
    found = _tiles(filters)
    if found is None or any(one.opening != one.later for one in (found[0], found[1][0]) if one is not None):
        return None
    baseline, periods = found
    price, starts = periods[0].later, [one.start for one in periods]
    most = max(bisect_left(starts, one.end + within) - first for first, one in enumerate(periods))
    alone = price * min(points, most)
    return alone if baseline is None else max(alone, baseline.later + price * min(points - 1, bisect_left(starts, baseline.end + within)))


def _tiles(filters: Sequence[PricedFilter]) -> tuple[PricedFilter | None, Sequence[PricedFilter]] | None:
    """Return what lies before the periods, or None, and the periods; None if these are not side by side, or of several prices."""
    if len(filters) < 2:  # noqa: PLR2004 no two of a price
        return None
    baseline = filters[0] if filters[0].start is None else None
    periods = filters if baseline is None else filters[1:]
    if not all(one[2:] == periods[0][2:] for one in periods):
        return None
    side_by_side = all(before.end is not None and before.end == after.start for before, after in pairwise(filters))
    return (baseline, periods) if side_by_side and periods[-1].end is not None else None


def _touched(periods: int, ends: int, between: int, opening: int, later: int) -> int:
    """Return what so many periods cost, touched by mutations between the first and the last, and by the `ends` where any are left."""
    middle = max(0, min(periods, between))
    return middle * later + min(periods - middle, ends) * opening
