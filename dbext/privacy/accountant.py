"""The accountant: the largest loss that the charges of a budget can cause to any one entry that obeys its constraint.

The loss of an entry is the sum of the costs of the filters that it touches; nothing is drawn from an entry in filters it does not touch
(parallel composition), and touched costs add (epsilon when delta = 0, rho otherwise). The figure is the maximum over everything an entry
of a type may do, computed on tick indices, and never from the lengths of intervals: 30 days can touch three months.

It is exact for what touched filters cost, with these refinements over "every touched filter costs its full price":

- A filter that holds an entry's first mutation, or the departure that the last slot is kept for, changes one cell, even where groups move.
- A charge may instead be counted once, by its certified lifetime loss, over its whole span. Events (`entered`, `left`) alternate with their
  opposite: k >= 2 mutations hold at most k / 2 of them, and each costs its share of the filters that hold its tick. A count without
  groups changes up and down in turn, an even number of times if all k slots are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from dbext.errors import UnboundedLoss
from dbext.privacy.cells import PricedFilter
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.coverage import deepest_window, heaviest_points, touched_by_all
from dbext.privacy.coverage_joint import heaviest_points_within
from dbext.privacy.measure import most_events
from dbext.privacy.noise import Response
from dbext.privacy.pattern import Single
from dbext.privacy.priced import Priced, filters_of, merged
from dbext.privacy.steady import overlapping, steady_point, steady_points_within, steady_window

#: Filters of endless releases that are still looked at one by one up to the last finite end; beyond, worst cases are added.
_LARGEST_OVERLAP = 200_000
#: What can be touched at one tick.
_ONE_TICK = Constraint(active_within=0)


def worst_case_loss(charges: Sequence[Charge], types: Sequence[EntryType], pure: bool) -> dict[int, int]:  # noqa: FBT001 the kind of budget
    """Return for every type number the largest loss of one entry, in picos of epsilon (`pure`) or rho. The budget's figure is the largest.

    Raises UnboundedLoss, naming the type, when nothing bounds it. The figure is never above the sum of the charges' own losses, and never
    falls when a charge is added.
    """
    return {one.number: _loss_of_type(tuple(charges), one, pure) for one in types}


@lru_cache(maxsize=64)
def _loss_of_type(charges: tuple[Charge, ...], entry_type: EntryType, pure: bool) -> int:  # noqa: FBT001 the kind of budget
    """Return the least of several upper bounds: charges that can be priced in two ways are so all, none, or where they never end."""
    touching = [charge for charge in charges if charge.concerns(entry_type.number)]
    for charge in touching:
        _refuse_unbounded(charge, entry_type)
    each = tuple(Priced(charge, entry_type.constraint, pure) for charge in touching)
    once = [_certified(priced) for priced in each]
    if not any(once):
        return _worst(each, entry_type.constraint)
    ways = {
        tuple(by_life or by_filter for by_filter, by_life in zip(each, once, strict=True)),
        each,
        tuple(by_life if by_life and by_filter.is_endless else by_filter for by_filter, by_life in zip(each, once, strict=True)),
    }
    return min(_worst(way, entry_type.constraint) for way in ways)


def _refuse_unbounded(charge: Charge, entry_type: EntryType) -> None:
    """Refuse a charge that an entry without limit touches for ever, or whose filter it touches without bound."""
    if entry_type.constraint.is_bounded or (charge.joint and charge.pattern.is_finite):
        return
    reaches_back = charge.measure.counts_events and charge.pattern.span()[0] is None
    if charge.pattern.is_finite and not reaches_back:
        return
    why = f"a count of {charge.measure.value} entries since the beginning" if reaches_back else "a release that never ends"
    raise UnboundedLoss(
        f'entries of type "{entry_type.name}" may mutate for ever, and nothing bounds their loss from {why}',
        hint="Limit them with dp_add_constraint (max_mutations or active_within)"
        + ("." if reaches_back else ", or give the release a horizon."),
    )


@lru_cache(maxsize=1024)
def _certified(each: Priced) -> Priced | None:
    """Price a charge once for an entry's whole life, if that is less than what the entry can touch filter by filter.

    Joint mechanisms and randomised responses bring a proven bound. Events: their largest number times the price of one at the deepest
    tick. A count without groups changes by 0 and 1 in turn: an entry that uses all k slots begins and ends absent, so that it changes the
    count an even number of times, and for odd k >= 3 at most k - 1 times in any case.
    """
    charge, k = each.charge, each.constraint.max_mutations
    if charge.joint is not None or isinstance(charge.noise, Response):
        lifetime = charge.lifetime_cost(each.constraint, each.pure)
    elif not each.constraint.is_bounded or isinstance(each.pattern, Single):
        lifetime = None
    elif charge.measure.counts_events:
        lifetime = _all_events(replace(each, per_event=True))
    elif _returns_in_pairs(each) and k is not None and k > 1 and k % 2 == 1:
        lifetime = _worst((each,), replace(each.constraint, max_mutations=k - 1))
    else:
        lifetime = None
    if lifetime is None or lifetime >= _worst((each,), each.constraint):
        return None
    return replace(each, lifetime=lifetime)


def _returns_in_pairs(each: Priced) -> bool:
    """Whether lives that begin and end in absence cost no more than those that go from 0 to an extreme and back, again and again.

    Counts without groups are nothing else. So are sums of one sign, for what a life costs is convex in its values, whose extremes then are
    the worst. Values of both signs can change three times and be absent at both ends.
    """
    return not each.charge.grouped and not each.charge.values.two_sided


def _all_events(events: Priced) -> int:
    start, end = events.pattern.span()
    number = most_events(None if start is None or end is None else end - start, events.constraint)
    return number * (steady_point([events])[0] if events.is_endless else _worst((events,), _ONE_TICK))


@lru_cache(maxsize=64)
def _worst(priced: tuple[Priced, ...], constraint: Constraint) -> int:
    """Return the largest loss of one entry: near the finite filters, or far beyond them where only endless releases run."""
    endless = [one for one in priced if one.is_endless]
    unit, parts = merged(one for one in priced if not one.is_endless)
    if not endless:
        return unit * _worst_of_finite(parts, constraint)
    finite = filters_of(parts, unit)
    near = overlapping(endless, finite, constraint.active_within or 0, _LARGEST_OVERLAP)
    apart = near is None
    together = finite if apart else [*finite, *near]
    if constraint.active_within is None:
        beyond = steady_point(endless)
        if apart:
            return heaviest_points(finite, constraint.max_mutations) + heaviest_points([], constraint.max_mutations, beyond)
        return heaviest_points(together, constraint.max_mutations, beyond)
    close = _in_one_window(together, constraint)
    far = _steady_in_one_window(endless, constraint)
    return close + far if apart else max(close, far + sum(f.opening for f in finite if f.end is None))


@lru_cache(maxsize=64)
def _worst_of_finite(parts: tuple, constraint: Constraint) -> int:
    """Return the largest loss of one entry, in the unit of the prices of the parts."""
    filters = filters_of(parts, 1)
    if not constraint.is_bounded:
        return touched_by_all(filters)
    if constraint.active_within is None:
        return heaviest_points(filters, constraint.max_mutations)
    return _in_one_window(filters, constraint)


def _in_one_window(filters: Sequence[PricedFilter], constraint: Constraint) -> int:
    if constraint.max_mutations is None:
        return deepest_window(filters, constraint.active_within)
    return heaviest_points_within(filters, constraint.max_mutations, constraint.active_within)


def _steady_in_one_window(endless: Sequence[Priced], constraint: Constraint) -> int:
    if constraint.max_mutations is None:
        return steady_window(endless, constraint.active_within)
    return steady_points_within(endless, constraint.max_mutations, constraint.active_within)
