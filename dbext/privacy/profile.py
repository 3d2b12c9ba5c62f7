"""The sensitivity profile of a joint mechanism: how far one entry moves all of its noised numbers together, by number of changes.

A joint mechanism (a square-root factorisation) noises sums that overlap, so that its loss is not a sum over filters. What it costs is
the squared L2 norm of the entry's effect on the whole vector of noised integers: rho = norm^2 / (2 sigma^2), exactly as for one number
(rounding only post-processes Gaussian noise). The profile is data only, so that a ledger can hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dbext.errors import BadArgument, UnboundedLoss
from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import Measure
from dbext.privacy.pico import ceil_divide


@dataclass(frozen=True)
class Profile:
    """Bounds on the squared norm of one entry's effect, in squared units of the integer encoder. All proven, none estimated.

    An entry's count is 0 or 1 at all times; for sums, whose values lie between 0 and a bound, multiply by the bound squared.

    `stay[j-1]` bounds it for at most j changes, `leave[j-1]` for at most j changes of which the last finds the entry absent for good.
    A change is a period whose count the entry alters (`state`, `net`), or one event (`entered`, `left`). Beyond the table j changes
    are bounded by j * rate; any number of them by `ceiling`, if there is one. `span` is the number of successive periods that the changes
    lie within; None is any number.
    """

    stay: tuple[int, ...]
    leave: tuple[int, ...]
    rate: int
    ceiling: int | None = None
    span: int | None = None

    def __post_init__(self):
        if not self.stay or len(self.stay) != len(self.leave):
            raise BadArgument("a profile lists one bound each for entries that stay and that leave, from one change on")

    def after(self, changes: int, *, leaves: bool = False) -> int:
        """Return the bound for at most this many changes."""
        if changes < 1:
            return 0
        table = self.leave if leaves else self.stay
        bound = table[changes - 1] if changes <= len(table) else max(table[-1], changes * self.rate)
        return bound if self.ceiling is None else min(bound, self.ceiling)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `profile_from_json` reads; numbers as text, which JSON keeps exactly."""
        ceiling = None if self.ceiling is None else str(self.ceiling)
        tables = {"stay": [str(value) for value in self.stay], "leave": [str(value) for value in self.leave]}
        return {**tables, "rate": str(self.rate), "ceiling": ceiling, "span": self.span}


def profile_from_json(data: dict[str, Any]) -> Profile:
    """Rebuild a profile."""
    stay, leave = (tuple(int(value) for value in data[name]) for name in ("stay", "leave"))
    return Profile(stay, leave, int(data["rate"]), None if data["ceiling"] is None else int(data["ceiling"]), data["span"])


@dataclass(frozen=True)
class Reach:
    """How often an entry under a constraint can act on a mechanism with periods of `shortest` to `longest` ticks and a horizon.

    `touches`: periods in which it mutates, at most; `span`: successive periods from the first to the last of them; `events`: times it
    enters (or leaves); `slots`: its mutations, if limited. None is no limit.
    """

    touches: int | None
    span: int | None
    events: int | None
    slots: int | None
    longest: int

    def events_in(self, touches: int) -> int:
        """Return how many events fit into this many touched periods: they alternate with departures, each in its own tick."""
        fit = ceil_divide(touches * self.longest, 2)
        return fit if self.events is None else min(fit, self.events)


def reach(constraint: Constraint, horizon: int | None, shortest: int, longest: int) -> Reach:
    """Return what a constraint leaves possible.

    All mutations lie within w + 1 successive ticks, which meet at most ceil(w / shortest) + 1 periods. The k-th of k >= 2 slots is kept
    for a departure, so that at most floor(k / 2) mutations enter the predicate; a departure from it needs an entry before.
    """
    slots, within = constraint.max_mutations, constraint.active_within
    span = _least(horizon, None if within is None else ceil_divide(within, shortest) + 1)
    by_slots = None if slots is None else max(1, slots // 2)
    by_ticks = None if within is None else ceil_divide(within + 1, 2)
    by_horizon = None if horizon is None else ceil_divide(horizon * longest, 2)
    return Reach(_least(span, slots), span, _least(by_slots, by_ticks, by_horizon), slots, longest)


def lifetime(profile: Profile, measure: Measure, limits: Reach, *, two_sided: bool = False) -> int:
    """Return a bound on the squared norm of everything an entry does in its life.

    An entry that uses all k >= 2 slots leaves with the last one; any other uses at most k - 1. Sums whose bounds have both signs
    (`two_sided`) do not profit: a value can change sign, so that an odd number of changes can end in absence; norms are then multiplied by
    (high - low)^2. UnboundedLoss if nothing limits the entry.
    """
    if measure.counts_events:
        if limits.events is None:
            raise UnboundedLoss("an entry may enter without end")
        return profile.after(limits.events)
    if limits.touches is None:
        raise UnboundedLoss("an entry may change without end")
    if not two_sided and limits.slots is not None and limits.slots == limits.touches >= 2:  # noqa: PLR2004 a single slot has no reserve
        return max(profile.after(limits.slots - 1), profile.after(limits.slots, leaves=True))
    return profile.after(limits.touches)


def cost_per_touch(profile: Profile, measure: Measure, limits: Reach) -> Fraction:
    """Return the least c with: an entry that touches j periods has a squared norm of at most j c, for every j within its limits.

    This is what an additive ledger charges for a touched period. For counts of events it is the maximum over j of the norm of the
    events that fit into j periods, divided by j.
    """
    listed = len(profile.stay) if limits.touches is None else min(limits.touches, len(profile.stay))
    if measure.counts_events:
        most = _events_listed(profile, limits)
        shares = [Fraction(profile.after(limits.events_in(j)), j) for j in range(1, most + 1)]
        beyond = Fraction(profile.rate * ceil_divide(limits.longest, 2))
        all_listed = limits.events is not None and limits.events <= len(profile.stay)
        return max(shares) if all_listed else max(*shares, beyond)
    shares = [Fraction(profile.after(j), j) for j in range(1, listed + 1)]
    return max(shares) if limits.touches is not None and limits.touches <= listed else max(*shares, Fraction(profile.rate))


def _events_listed(profile: Profile, limits: Reach) -> int:
    """Return the number of touched periods after which further ones bring no listed number of events."""
    most = len(profile.stay) if limits.events is None else min(limits.events, len(profile.stay))
    needed = max(1, ceil_divide(2 * most - 1, limits.longest))
    return needed if limits.touches is None else max(1, min(needed, limits.touches))


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
