"""The proven bounds of an encoded mechanism, in the form that a charge keeps."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dbext.errors import UnboundedLoss
from dbext.mechanisms.encoded import EncodedMechanism
from dbext.mechanisms.limits import reach_on
from dbext.privacy.constraint import Constraint
from dbext.privacy.joint import JointBound
from dbext.privacy.measure import Measure
from dbext.privacy.profile import Profile, Reach, cost_per_touch, lifetime


def joint_bounds(
    mechanism: EncodedMechanism,
    measure: Measure,
    grouped: bool,  # noqa: FBT001 a property of the release
    constraints: Iterable[Constraint],
    within: EncodedMechanism | None = None,
) -> tuple[JointBound, ...]:
    """Return a bound for each constraint, and one for entries without any limit, which prices types that come later.

    `within` is a mechanism whose encoder begins with this one's, if one was worked out already: fewer rows and leaves move less.
    """
    wide = within or mechanism
    leaves = _leaves(wide)
    reaches = {one: reach_on(wide.grid, leaves, one) for one in (*constraints, Constraint())}
    return tuple(_bound(mechanism, wide, measure, grouped, *one) for one in reaches.items())


def _bound(
    mechanism: EncodedMechanism,
    within: EncodedMechanism,
    measure: Measure,
    grouped: bool,  # noqa: FBT001 as above
    constraint: Constraint,
    limits: Reach,
) -> JointBound:
    profile = within.profile(measure, grouped, limits)
    per_touch, whole = cost_per_touch(profile, measure, limits), _lifetime(profile, measure, limits)
    if grouped and not measure.counts_events and all(pattern.span()[0] is not None for pattern in mechanism.patterns()):
        per_touch = max(per_touch, Fraction(profile.rate))
        whole = None if whole is None else max(whole, _moved_from_before(profile, limits))
    return JointBound(constraint, per_touch, None if whole is None else Fraction(whole))


def _lifetime(profile: Profile, measure: Measure, limits: Reach) -> int | None:
    try:
        return lifetime(profile, measure, limits)
    except UnboundedLoss:
        return None


def _moved_from_before(profile: Profile, limits: Reach) -> int:
    """Return the squared norm of an entry that was there before the first leaf, in some cell, and moves from it inside.

    Profiles are about entries that are absent at first, whose first change is one +1. This one begins with a move, -1 in the old cell and
    +1 in the new one, but has spent a slot before: j mutations inside change at most 2j cells, one less if the last of all k slots is
    used (a departure). Cell by cell the signs alternate, so that each change costs at most rate / 2.
    Where runs repel (the rate is two column norms, no more), the -1 in the old cell and the rest of the life, which is that of an
    entry that appears with the move, have an inner product of at most 0: their squared norms add.
    """
    norm = profile.after(1)
    if limits.slots is None:
        changes, rest = 2 * limits.touches, profile.after(limits.touches)
    else:
        inside = min(limits.touches, limits.slots - 1)
        departs = inside == limits.slots - 1
        changes = max(2 * inside - departs, 0)
        rest = max(profile.after(inside - departs), profile.after(inside, leaves=True))
    by_changes = -(-changes * profile.rate // 2)
    return min(by_changes, norm + rest) if profile.rate == 2 * norm else by_changes


def _leaves(mechanism: EncodedMechanism) -> int | None:
    """Return the number of leaves, a baseline included; None if they never end."""
    if mechanism.horizon is None:
        return None
    return sum(1 for pattern in mechanism.patterns() for _ in pattern.filters())
