"""What a count or a sum means, and how far one entry can move it inside one time-range filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from dbext.errors import BadArgument
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
class Values:
    """What one entry adds to a sum while it is there: a whole number in [low, high]; an absent entry adds 0, whatever the bounds say.

    `magnitude` is the largest effect of an entry that comes or goes; `swing` that of any change, range(f) with 0 in it. For values of
    18 to 90 both are 90, not 72: whoever appears may add 90.
    """

    low: int = 0
    high: int = 1

    def __post_init__(self):
        if self.low > self.high or self.magnitude < 1:
            raise BadArgument("an entry's values need a lower and an upper bound, not both 0")

    @property
    def magnitude(self) -> int:
        """Largest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def swing(self) -> int:
        """Largest distance between two values, absence (0) included."""
        return max(self.high, 0) - min(self.low, 0)

    @property
    def two_sided(self) -> bool:
        """Whether values can have either sign."""
        return self.low < 0 < self.high

    def to_json(self) -> list[int]:
        """Return the form that `values_from_json` reads."""
        return [self.low, self.high]


#: What an entry adds to a count.
COUNT = Values()


def values_from_json(data: Sequence[int] | None) -> Values:
    """Rebuild values; None is a count."""
    return COUNT if data is None else Values(*data)


@dataclass(frozen=True)
class Sensitivity:
    """Largest effect of one entry on the cells of one filter: L1 norm and squared L2 norm."""

    l1: int
    l2_squared: int


def appearance(values: Values) -> Sensitivity:
    """Return the effect of an entry that is absent at one end of a filter: its value, in one cell."""
    return Sensitivity(values.magnitude, values.magnitude**2)


def sensitivity(
    measure: Measure,
    grouped: bool,  # noqa: FBT001 a property of the release
    ticks: int | None,
    constraint: Constraint,
    values: Values = COUNT,
) -> Sensitivity | None:
    """Return the sensitivity of one filter of `ticks` ticks (None: it reaches back to the beginning); None if nothing bounds it.

    `state` and `net` telescope: all mutations inside (a, b] together change the sum by f(state at b) - f(state at a), at most the swing
    of the values (1 for a count), however many they are. Grouped, a move takes one value from a cell and gives another to another: up to
    twice the magnitude, unless a change of sign within one cell is more. A first (or only) mutation finds the entry absent and cannot move
    it, so that a filter from the beginning, k = 1 and w = 0 see one value in one cell.
    `entered` and `left` sum events that alternate, see `most_events`. All s of them may fall into one cell: L2^2 = (s magnitude)^2.
    """
    if measure.counts_events:
        events = most_events(ticks, constraint)
        return None if events is None else Sensitivity(events * values.magnitude, (events * values.magnitude) ** 2)
    if ticks is None or constraint.max_mutations == 1 or constraint.active_within == 0:
        return appearance(values)
    if grouped:
        return Sensitivity(2 * values.magnitude, max(values.swing**2, 2 * values.magnitude**2))
    return Sensitivity(values.swing, values.swing**2)


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
