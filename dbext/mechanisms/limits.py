"""What a mutation constraint leaves possible on the periods of a grid."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.profile import Reach, reach


def reach_on(grid: RegularGrid | MonthGrid, leaves: int | None, constraint: Constraint) -> Reach:
    """Return the reach of an entry on this many periods of a grid (None: endless), a baseline counted as one of them.

    The baseline (-infinity, end(0)] is touched by the first mutation at most, and the w ticks after it meet ceil(w / shortest) periods
    more: no more leaves than without a baseline.
    """
    return reach(constraint, leaves, *period_lengths(grid))


@lru_cache(maxsize=64)
def period_lengths(grid: RegularGrid | MonthGrid) -> tuple[int, int]:
    """Return the shortest and the longest period in ticks, over the whole calendar cycle."""
    if isinstance(grid, RegularGrid):
        return grid.step, grid.step
    ends = [grid.end(n) for n in range(grid.cycle[1] + 1)]
    lengths = [after - before for before, after in pairwise(ends)]
    return min(lengths), max(lengths)
