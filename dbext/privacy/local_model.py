"""The local model: every entry's report is randomised by itself, and only randomised reports are ever stored.

Neighbours are two arbitrary entries in the same place of a fixed roster (replacement): everything differs that either of them touches. A
report that is epsilon-private for every pair of inputs, the empty one included, therefore costs an entry whenever it or its
replacement mutates inside the report's range, and the loss is that of the union of what both touch: twice that of one entry when
there is room on the time axis, at most that otherwise. Everybody reports for every range, changed or not: who reports reveals nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dbext.errors import UnboundedLoss
from dbext.privacy.cells import PricedFilter
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.coverage import heaviest_points, touched_by_all
from dbext.privacy.coverage_joint import heaviest_points_within
from dbext.privacy.pico import picos_up


@dataclass(frozen=True)
class Report:
    """One report per entry about the ticks in (start, end], private at `epsilon` for every pair of inputs."""

    start: int | None
    end: int
    epsilon: Fraction


def local_loss(reports: Sequence[Report], types: Sequence[EntryType]) -> int:
    """Return the largest loss of replacing one entry by another, of any types, in picos of epsilon.

    Of one type with k mutations each: 2 k points, exactly. With a time bound w: two windows, which are two points once every range is
    extended to the left by w ticks (a window [f, f + w] meets (a, b] iff f lies in (a - w, b]), exactly. With both: twice the
    joint figure of one entry, an upper bound. Two different types: the sum of their own figures, an upper bound.
    """
    alone = sorted((_one_entry(reports, one) for one in types), reverse=True)
    same = max((_two_entries(reports, one) for one in types), default=0)
    return max(same, sum(alone[:2]) if len(alone) > 1 else 0)


def _two_entries(reports: Sequence[Report], entry_type: EntryType) -> int:
    constraint = entry_type.constraint
    k, w = constraint.max_mutations, constraint.active_within
    priced = _priced(reports, 0)
    everything = touched_by_all(priced)
    if k is not None and w is not None:
        return min(everything, 2 * _one_entry(reports, entry_type))
    if w is not None:
        return heaviest_points(_priced(reports, w), 2)
    return everything if k is None else heaviest_points(priced, 2 * k)


def _one_entry(reports: Sequence[Report], entry_type: EntryType) -> int:
    k, w = entry_type.constraint.max_mutations, entry_type.constraint.active_within
    if k is None:
        return touched_by_all(_priced(reports, 0)) if w is None else heaviest_points(_priced(reports, w), 1)
    return heaviest_points(_priced(reports, 0), k) if w is None else heaviest_points_within(_priced(reports, 0), k, w)


def _priced(reports: Sequence[Report], extension: int) -> list[PricedFilter]:
    costs = ((report, picos_up(report.epsilon)) for report in reports)
    return [PricedFilter(None if r.start is None else r.start - extension, r.end, cost, cost) for r, cost in costs]


def local_touches(one_entry: int | None, ranges: int | None) -> int:
    """Return the number of equal ranges that an entry and its replacement touch together, if one alone touches up to `one_entry`.

    One entry touches min(k, n) disjoint ranges, or ceil(w / step) + 1 of them, and k ceil(W / P) or ceil((W + w) / P) sliding windows:
    together twice that, and never more than there are. UnboundedLoss if nothing limits it.
    """
    if one_entry is None and ranges is None:
        raise UnboundedLoss("entries may report changes without end, and the release never ends")
    known = [limit for limit in (None if one_entry is None else 2 * one_entry, ranges) if limit is not None]
    return min(known)


def bounded_touches(constraint: Constraint, step: int, width: int | None = None) -> int | None:
    """Return the most ranges that one entry touches in a regular release: disjoint ones of `step` ticks, or windows of `width` ticks."""
    k, w = constraint.max_mutations, constraint.active_within
    counts = []
    if k is not None:
        counts.append(k if width is None else k * -(-width // step))
    if w is not None:
        counts.append(-(-w // step) + 1 if width is None else -(-(width + w) // step))
    return min(counts, default=None)
