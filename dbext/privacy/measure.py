"""What a count means, and how far one entry can move it inside one time-range filter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dbext.privacy.constraint import Constraint
from dbext.privacy.pico import ceil_divide


class Measure(str, Enum):
    """`state`: entries that satisfy the predicate now; `net`: the change over the window; `entered`, `left`: who came or ceased to."""

    STATE = "state"
    NET = "net"
    ENTERED = "entered"
    LEFT = "left"

    @property
    def counts_events(self) -> bool:
        """Whether an entry counts once per event, rather than by the difference of two states."""
        return self in (Measure.ENTERED, Measure.LEFT)


@dataclass(frozen=True)
class Sensitivity:
    """Largest effect of one entry on the cells of one filter: L1 norm and squared L2 norm."""

    l1: int
    l2_squared: int


ONE_CELL = Sensitivity(1, 1)
TWO_CELLS = Sensitivity(2, 2)


def sensitivity(measure: Measure, grouped: bool, ticks: int | None, constraint: Constraint) -> Sensitivity | None:  # noqa: FBT001 a property of the release
    """Return the sensitivity of one filter of `ticks` ticks (None: it reaches back to the beginning); None if nothing bounds it.

    `state` and `net` telescope: all mutations inside (a, b] together change the count by f(state at b) - f(state at a), in [-1, 1]
    however many they are. Grouped, a move takes one from a cell and gives one to another. A first (or only) mutation finds the entry
    absent and cannot move it, so that a filter from the beginning, k = 1 and w = 0 see one cell.
    `entered` and `left` count events that alternate, see `most_events`. All s of them may fall into one cell: L2^2 = s^2.
    """
    if measure.counts_events:
        events = most_events(ticks, constraint)
        return None if events is None else Sensitivity(events, events * events)
    moves = grouped and ticks is not None and constraint.max_mutations != 1 and constraint.active_within != 0
    return TWO_CELLS if moves else ONE_CELL


def most_events(ticks: int | None, constraint: Constraint) -> int | None:
    """Return how often one entry can enter (or leave) in `ticks` ticks, None if nothing bounds it.

    Between two entries there is a departure, each in its own tick: s events need 2s - 1 ticks of the filter, and of the entry's life.
    They also need 2s mutations if k >= 2: an entry that uses all k slots departs with the last, so that only k - 1 of them can enter,
    and a departure follows an entry. A single slot can enter.
    """
    within = constraint.active_within
    limits = [ceil_divide(most, 2) for most in (ticks, None if within is None else within + 1) if most is not None]
    if constraint.max_mutations is not None:
        limits.append(max(1, constraint.max_mutations // 2))
    return min(limits, default=None)
