"""The worst entry against filters any two of which are nested or apart, at one price each: the blocks of trees.

They form a forest, and a point in an innermost filter pays for the path that leads to it. The dearest path is worth the first point, and
what is left of the others, each cut where it leaves a dearer one, is worth the next: k points pay for the k dearest pieces. (Taking the
dearest piece first is best: whatever k points touch is made of pieces, and those of two paths are exchanged without loss.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import nlargest

from dbext.privacy.cells import PricedFilter


def nested_points(filters: Sequence[PricedFilter], points: int) -> int | None:
    """Return the largest total that `points` mutations can touch; None if filters overlap, or have an opening price of their own."""
    if any(opening != later for _, _, opening, later in filters):
        return None
    bounds = ((-math.inf if f.start is None else f.start, -math.inf if f.end is None else -f.end, f.opening) for f in filters)
    pieces: list[int] = []
    path: list[list] = []

    def leave(start: float) -> None:
        """Close the filters that end before the next one begins: of two pieces in one filter the dearer goes on, the other is done."""
        while path[-1][0] <= start:
            _, price, inside = path.pop()
            smaller, dearer = sorted((price + inside, path[-1][2]))
            path[-1][2] = dearer
            if smaller:
                pieces.append(smaller)

    path.append([math.inf, 0, 0])
    for start, negative, price in sorted(bounds):
        if path[-1][0] <= start:
            leave(start)
        if -negative > path[-1][0]:
            return None
        path.append([-negative, price, 0])
    path[0][0] = math.nan  # is never left, whatever it is compared with
    leave(math.inf)
    return sum(nlargest(points, [*pieces, path[0][2]]))
