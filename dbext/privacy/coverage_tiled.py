"""The worst entry against periods side by side, all of one price: no search is needed, however many there are.

Of k >= 2 mutations the first and the last pay `opening`, those between `later`, which is no less. An entry can begin outside all periods
(so that its first one there is its second) unless the periods follow on everything before them, whose filter then is the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dbext.privacy.cells import PricedFilter


def tiled_points(filters: Sequence[PricedFilter], points: int) -> int | None:
    """Return the largest total that `points` mutations can touch; None if the filters are not such periods."""
    if len(filters) < 2:  # noqa: PLR2004 no two of a price
        return None
    baseline = filters[0] if filters[0].start is None else None
    periods = filters if baseline is None else filters[1:]
    _, _, opening, later = periods[0]
    if opening > later or not all(one.opening == opening and one.later == later for one in periods):
        return None
    side_by_side = all(before.end is not None and before.end == after.start for before, after in pairwise(filters))
    if not side_by_side or periods[-1].end is None:
        return None
    if baseline is None:
        return _touched(len(periods), 1 + (points > 1), points - 2, opening, later)
    last = int(points > 1)
    return max(
        baseline.opening + _touched(len(periods), last, points - 2, opening, later),
        opening + _touched(len(periods) - 1, last, points - 2, opening, later),
    )


def _touched(periods: int, ends: int, between: int, opening: int, later: int) -> int:
    """Return what so many periods cost, touched by mutations between the first and the last, and by the `ends` where any are left."""
    middle = max(0, min(periods, between))
    return middle * later + min(periods - middle, ends) * opening
