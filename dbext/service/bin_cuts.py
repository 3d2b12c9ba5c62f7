"""The cuts of equal bins, found by asking PostgreSQL: the first whole numbers, or doubles, that its width_bucket puts into each bucket.

Both rise with their argument, so that each cut is found by bisection, all of them at once: some sixty statements that read no data.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

from dbext.database.bins import buckets
from dbext.database.session import Session
from dbext.errors import InternalError
from dbext.query.bins import Bins


def with_cuts(session: Session, bins: Bins) -> Bins:
    """Return the bins with the values at which their buckets change."""
    if not bins.from_server:
        return bins
    integer = bins.column.column.base == "integer"
    low, high = min(bins.edges), max(bins.edges)
    sign = -1 if bins.descending else 1
    numbers = range(1, bins.buckets)

    def reached(values: Sequence[float]) -> list[bool]:
        """Whether the signed values lie in the buckets that their cuts begin."""
        found = buckets(session, bins, [sign * value for value in values])
        return [bucket >= number for bucket, number in zip(found, numbers, strict=True)]

    wide = high - low + 1
    first, last = sorted((sign * (low - wide), sign * (high + wide)))
    if integer:
        cuts = _first(reached, math.floor(first), math.ceil(last), len(numbers), value_of=int)
        return replace(bins, cuts=tuple(map(str, cuts)))
    places = _first(reached, _place(float(first)), _place(float(last)), len(numbers), value_of=_double)
    return replace(bins, cuts=tuple(repr(_double(place)) for place in places))


def _first(
    reached: Callable[[Sequence[float]], list[bool]], low: int, high: int, count: int, value_of: Callable[[int], float]
) -> list[int]:
    """Return for each bucket the first place whose value has reached it; none has at `low`, all have at `high`."""
    if any(reached([value_of(low)] * count)) or not all(reached([value_of(high)] * count)):
        raise InternalError("bins do not lie where they should")
    before, after = [low] * count, [high] * count
    while any(b - a > 1 for a, b in zip(before, after, strict=True)):
        middle = [(a + b) // 2 for a, b in zip(before, after, strict=True)]
        there = reached([value_of(place) for place in middle])
        after = [place if yes else old for place, old, yes in zip(middle, after, there, strict=True)]
        before = [old if yes else place for place, old, yes in zip(middle, before, there, strict=True)]
    return after


def _place(value: float) -> int:
    """Return the place of a double among all, in order."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return bits if bits >= 0 else -(bits & (2**63 - 1))


def _double(place: int) -> float:
    """Return the double at a place."""
    return struct.unpack("<d", struct.pack("<q", place))[0] if place >= 0 else -struct.unpack("<d", struct.pack("<q", -place))[0]
