"""The worst entry that obeys both constraints: at most k mutations, all within w ticks of the first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import gcd
from operator import itemgetter

from dbext.privacy import coverage
from dbext.privacy.cells import PricedFilter, cells_of
from dbext.privacy.coverage import deepest_window, heaviest_points, touched_by_all
from dbext.privacy.coverage_tiled import tiled_within

#: Additions that an exact joint figure may take (about a second); beyond, the smaller of the two single bounds is used.
_JOINT_LIMIT = 1_500_000_000


def heaviest_points_within(filters: Sequence[PricedFilter], points: int, within: int) -> int:
    """Return the largest total that `points` mutations inside [f, f + within] can touch, over all f.

    Without loss the first mutation is at the right end r of its cell, so that windows [r, r + within] are enough. Small problems solve
    each different window by itself; large ones run the recurrence for all first cells at once. Past a limit of work the smaller of
    `heaviest_points` and `deepest_window` is returned: either drops one of the two constraints, so both are upper bounds.
    Prices are taken in units of their common divisor, so that filters of one price are looked at once, whatever that is.
    """
    if (tiled := tiled_within(filters, points, within)) is not None:
        return tiled
    unit = gcd(*(price for f in filters for price in f[2:])) or 1
    return unit * _within(tuple(PricedFilter(f.start, f.end, f.opening // unit, f.later // unit) for f in filters), points, within)


@lru_cache(maxsize=16)
def _within(filters: tuple[PricedFilter, ...], points: int, within: int) -> int:
    cells = cells_of(filters, every=True)
    reach = [bisect_left(cells.lefts, right + within) - 1 for right in cells.rights]
    longest = max((last - first for first, last in enumerate(reach)), default=0)
    layers = min(points, longest + 1)
    if cells.count * min(len(filters), longest + 1) * layers < coverage.WIDE_FROM // 8:
        return _windows_within(filters, cells.rights, points, within)
    if cells.count * longest**2 * (layers - 1) // 2 <= _JOINT_LIMIT and coverage.use_wide(filters, coverage.WIDE_FROM):
        from dbext.privacy.coverage_within import layers_within

        return layers_within(filters, cells, layers, points, reach)
    return min(heaviest_points(filters, points), deepest_window(filters, within))


def _windows_within(filters: Sequence[PricedFilter], firsts: Sequence[int], points: int, within: int) -> int:
    """Return the best total of `points` mutations inside [r, r + within] over all r in `firsts`; equal windows are solved once."""
    windows = {_clip(held, right, right + within) for right, held in _sweep(filters, firsts, within)}
    best = 0
    for bound, window in sorted(((touched_by_all(window), window) for window in windows), key=itemgetter(0), reverse=True):
        if bound <= best:
            break
        best = max(best, heaviest_points(window, points))
    return best


def _sweep(filters: Sequence[PricedFilter], firsts: Sequence[int], within: int) -> Iterator[tuple[int, list[PricedFilter]]]:
    """Yield every first tick r, in order, with the filters that hold a tick of [r, r + within]."""
    held = [f for f in filters if f.start is None]
    waiting = sorted((f for f in filters if f.start is not None), key=itemgetter(0), reverse=True)
    for right in sorted(firsts):
        while waiting and waiting[-1].start < right + within:
            held.append(waiting.pop())
        held = [f for f in held if f.end is None or f.end >= right]
        yield right, held


def _clip(held: Sequence[PricedFilter], first: int, last: int) -> tuple[PricedFilter, ...]:
    """Return what filters hold of the ticks first ... last, with ticks counted from `first`.

    One that holds the first tick is as good as one from the beginning: a mutation of the window is its first, or comes after its end.
    """
    clipped = (
        PricedFilter(
            None if start is None or start < first else start - first,
            last - first if end is None else min(end, last) - first,
            opening,
            later,
        )
        for start, end, opening, later in held
    )
    return tuple(sorted(clipped, key=lambda f: (-1 if f.start is None else f.start, f[1:])))
