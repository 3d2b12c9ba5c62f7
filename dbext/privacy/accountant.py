"""The accountant: the largest loss that the charges of a budget can cause to any one entry that obeys its constraint.

The loss of an entry is the sum of the costs of the filters that it touches; nothing is drawn from an entry in filters it does not touch
(parallel composition), and touched costs add (epsilon when delta = 0, rho otherwise). The figure is the maximum over everything an entry
of a type may do, computed on tick indices, and never from the lengths of intervals: 30 days can touch three months.

It is exact for charges of `state` and `net`, with these refinements over "every touched filter costs its full price": a filter that holds
an entry's first mutation, or the departure that the last slot is kept for, changes one cell even when groups can change.
A charge that counts events (`entered`, `left`) is counted by its own certified lifetime loss where that is smaller: events alternate
with their opposite, so that k mutations hold at most ceil(k / 2) of them, and each costs its share of the filters that hold its tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbext.errors import UnboundedLoss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.coverage import PricedFilter, deepest_window, heaviest_points, heaviest_points_within, touched_by_all
from dbext.privacy.measure import most_events
from dbext.privacy.pattern import Single
from dbext.privacy.priced import Priced
from dbext.privacy.steady import overlapping, steady_point, steady_points_within, steady_window

#: Filters of endless releases that are still looked at one by one up to the last finite end; beyond, worst cases are added.
_LARGEST_OVERLAP = 200_000


def worst_case_loss(charges: Sequence[Charge], types: Sequence[EntryType], pure: bool) -> dict[int, int]:  # noqa: FBT001 the kind of budget
    """Return for every type number the largest loss of one entry, in picos of epsilon (`pure`) or rho. The budget's figure is the largest.

    Raises UnboundedLoss, naming the type, when nothing bounds it. The figure of a union is never above the sum of the figures of its parts.
    """
    return {one.number: _loss_of_type(charges, one, pure) for one in types}


def own_losses(charges: Sequence[Charge], types: Sequence[EntryType], pure: bool) -> list[dict[int, int]]:  # noqa: FBT001 the kind of budget
    """Return the worst-case loss of each charge by itself, for budget views; together they bound the joint figure from above."""
    return [worst_case_loss([charge], types, pure) for charge in charges]


def _loss_of_type(charges: Sequence[Charge], entry_type: EntryType, pure: bool) -> int:  # noqa: FBT001 the kind of budget
    touching = [charge for charge in charges if charge.concerns(entry_type.number)]
    for charge in touching:
        _refuse_unbounded(charge, entry_type)
    priced = [_price(charge, entry_type.constraint, pure) for charge in touching]
    return _worst(priced, entry_type.constraint)


def _refuse_unbounded(charge: Charge, entry_type: EntryType) -> None:
    """Refuse a charge that an entry without limit touches for ever, or whose filter it touches without bound."""
    if entry_type.constraint.is_bounded:
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


def _price(charge: Charge, constraint: Constraint, pure: bool) -> Priced:  # noqa: FBT001 the kind of budget
    """Price a charge filter by filter, or once by its certified lifetime loss if that is less."""
    each = Priced(charge, constraint, pure)
    if not charge.measure.counts_events or not constraint.is_bounded or isinstance(charge.pattern, Single):
        return each
    certified = _certified(replace(each, per_event=True))
    return replace(each, lifetime=certified) if certified < _worst([each], constraint) else each


def _certified(events: Priced) -> int:
    """Return the most that the events of one entry can cost: their largest number times the price of one at the deepest tick."""
    start, end = events.pattern.span()
    number = most_events(None if start is None or end is None else end - start, events.constraint)
    deepest = steady_point([events])[0] if events.is_endless else deepest_window(list(events.filters()), 0)
    return number * deepest


def _worst(priced: Sequence[Priced], constraint: Constraint) -> int:
    """Return the largest loss of one entry: near the finite filters, or far beyond them where only endless releases run."""
    endless = [one for one in priced if one.is_endless]
    finite = [f for one in priced if not one.is_endless for f in one.filters()]
    if not constraint.is_bounded:
        return touched_by_all(finite)
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


def _in_one_window(filters: Sequence[PricedFilter], constraint: Constraint) -> int:
    if constraint.max_mutations is None:
        return deepest_window(filters, constraint.active_within)
    return heaviest_points_within(filters, constraint.max_mutations, constraint.active_within)


def _steady_in_one_window(endless: Sequence[Priced], constraint: Constraint) -> int:
    if constraint.max_mutations is None:
        return steady_window(endless, constraint.active_within)
    return steady_points_within(endless, constraint.max_mutations, constraint.active_within)
