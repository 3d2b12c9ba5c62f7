"""Declaration -> publication: the streams of noise behind one or several figures, and how the budget is split over them.

All streams of a publication are priced in epsilon, or all in rho (`choose` compares the two).

Each stream is planned by itself, with the whole budget. The split then makes the sum of all squared errors least, each in units of the
largest value that one entry can add: with errors v_i at the whole budget, shares are proportional to v_i^(1/2) where variance falls with
rho, and to v_i^(1/3) where it falls with epsilon squared. At last all noise together is made as small as the accountant allows.

Backwards, from errors to a price, there is nothing to split: each stream gets as much noise as its own limit allows, by the way that costs
least, and all of them together cost what the accountant says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache

from dbext.errors import BadArgument, InternalError
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.calibrate import factor_for, stretched
from dbext.privacy.constraint import EntryType
from dbext.privacy.conversion import budget_picos, epsilon_of
from dbext.privacy.measure import Measure, Values
from dbext.privacy.noise import Noise, RoundedGaussian, scaled
from dbext.query.bounds import Bounds
from dbext.query.calendar import Tick
from dbext.query.declaration import Declaration, TimeRange
from dbext.query.labels import labels_of
from dbext.query.levels import with_period
from dbext.query.limits import limits_of, require_affordable
from dbext.query.plan import Plan
from dbext.query.planner import MAX_EPSILON, Candidate, candidates, priced_at
from dbext.query.predicate import ColumnRef
from dbext.query.publication import Publication, Reading, Stream
from dbext.query.ranks import rank_notes
from dbext.query.refusal import refused
from dbext.query.shape import Request, shape_of
from dbext.query.shared import Shared, shared_candidates
from dbext.query.statistic import Formula, Statistic, scale_of, statistics_of

#: The candidates of a statistic, for what is asked of its stream.
Made = Callable[[Statistic, Request], tuple[Candidate, ...]]


@dataclass(frozen=True)
class Option:
    """One way to noise one stream, as explained: errors are in units of the column, `share` is the part of the budget."""

    stream: str
    share: float
    candidate: Candidate
    by_value: bool = False


@dataclass(frozen=True)
class Planned:
    """A publication, and what its streams were chosen from.

    `error` compares publications of the same figures: the mean standard error of one stream; of several, at their shares, the root of the
    sum of squared errors, each in units of the largest value. `backwards`: every option is at its own price, for the errors asked for.
    """

    publication: Publication
    options: tuple[Option, ...]
    error: float
    backwards: bool = False


@dataclass(frozen=True)
class Choice:
    """What will noise one stream, planned with the whole budget (or for its error): its error in squared units of its largest value."""

    statistic: Statistic
    places: tuple[int, ...]
    windows: tuple[int, ...]
    made: tuple[Candidate, ...]
    variance: float
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """The chosen plan; what its notes say of errors holds for the whole budget only."""
        return replace(next(one.plan for one in self.made if one.chosen), notes=self.notes)


def publication_at(
    declaration: Declaration,
    request: Request,
    tick: Tick,
    types: Sequence[EntryType],
    delta: Decimal,
    bounds: Mapping[int, Bounds] | None = None,
) -> Planned:
    """The best publication, priced in what the request's `noise` says; `bounds` by position of column. Reads no data, spends nothing."""
    request, priced = with_period(request, declaration), priced_at(request.noise, delta)
    shape = shape_of(_windowed(declaration, declaration.figures[0].range), request, tick)
    measure = shape.measure
    _require_states(declaration, measure)
    _require_unit_figures(declaration, measure)
    _require_no_rank(declaration, request)
    statistics, formulas = statistics_of(declaration, bounds or {}, labels_of(declaration, measure), pure=priced == 0)

    @cache
    def candidates_of(window: TimeRange | None, cells: ColumnRef | None, values: Values, asked: Request) -> tuple[Candidate, ...]:
        return candidates(_by_value(_windowed(declaration, window), cells), asked, tick, types, delta, values)

    def made(statistic: Statistic, asked: Request) -> tuple[Candidate, ...]:
        spread = statistic.spread
        if spread is None:
            return candidates_of(statistic.range, None, statistic.values, asked)
        return candidates_of(statistic.range, spread.column, statistic.values, replace(asked, cells=asked.cells * spread.cells))

    limits = limits_of(request, statistics, formulas)
    wishes = [_wish(request, limit) for limit in limits or [None] * len(statistics)]
    if len(statistics) == 1:
        planned = _alone(statistics[0], formulas, made(statistics[0], wishes[0]), backwards=limits is not None)
    else:
        shared = Shared(declaration, request, tick, types, priced)
        choices = [choice for group in _groups(statistics) for choice in _choices(group, statistics, made, shared, limits)]
        planned = _together([replace(choice, notes=shape.notes) for choice in choices], formulas, request, types, priced)
    if limits is not None:
        require_affordable(planned.publication.epsilon, request)
    return _with_ranks(planned)


def _wish(request: Request, limit: Fraction | None) -> Request:
    """What is asked of one stream: the whole budget, or its error at any price."""
    return request if limit is None else replace(request, max_error=limit, max_errors=(), epsilon=None)


def _alone(statistic: Statistic, formulas: tuple[Formula, ...], options: Sequence[Candidate], *, backwards: bool) -> Planned:
    chosen = next(one.plan for one in options if one.chosen)
    stream = Stream(statistic.predicate, statistic.term, chosen, spread=statistic.spread)
    publication = Publication((stream,), (Reading(0),), formulas, chosen.epsilon, chosen.lifetime, chosen.notes)
    shown = _options(statistic.name, 1.0, options, statistic)
    return Planned(publication, shown, next(one.candidate.mean_std_error for one in shown if one.candidate.chosen), backwards)


def _windowed(declaration: Declaration, window: TimeRange | None) -> Declaration:
    return declaration if window is None else replace(declaration, range=window)


def _by_value(declaration: Declaration, column: ColumnRef | None) -> Declaration:
    """Counts by value are counts by group: an entry whose value changes moves from one cell to another."""
    return declaration if column is None else replace(declaration, group_by=(*declaration.group_by, column))


def _with_ranks(planned: Planned) -> Planned:
    """Say of quantiles how far their ranks are off."""
    notes = tuple(rank_notes(planned.publication))
    if not notes:
        return planned
    publication = replace(planned.publication, notes=(*planned.publication.notes, *notes))
    options = tuple(
        replace(one, candidate=replace(one.candidate, plan=replace(one.candidate.plan, notes=(*one.candidate.plan.notes, *notes))))
        if one.candidate.chosen and one.by_value
        else one
        for one in planned.options
    )
    return replace(planned, publication=publication, options=options)


def _require_no_rank(declaration: Declaration, request: Request) -> None:
    """A quantile's error is one of rank, which many counts share."""
    quantile = next((figure for figure in declaration.figures if figure.fraction is not None), None)
    if quantile is not None and request.asks_error:
        raise BadArgument(
            "max_error is not for quantiles: what they err in is rank, which depends on many counts",
            hint="Give epsilon; the notes of dp_plan_release show the rank error.",
        )


def _require_states(declaration: Declaration, measure: Measure) -> None:
    """Changes of a sum over changes of a count are no mean."""
    for figure in declaration.figures:
        if measure is Measure.NET and figure.function not in ("count", "sum", "sum_squares"):
            raise refused(
                f"{figure.shown}() of changes means nothing: measure net sums what came less what went",
                figure.offset,
                "Use measure => 'entered' for those who came in the window, 'left' for those who went, or 'state' without a window.",
            )


def _require_unit_figures(declaration: Declaration, measure: Measure) -> None:
    """Of units of several rows: what is proven, and nothing else.

    What a unit adds to a sum over rows, grouped or not, is a sum of at most n rows' values, each in a cell of its own choice: a mean of
    what n times one row's value in one of the cells (or nothing) would add. Norms of changes are convex, so that whatever bounds an
    entry that adds n times a row's value, and moves between cells, bounds the unit. That holds for `state` and `net`, which telescope.
    Units in groups of their rows add 1 in each group that a row is in, no more than the rows do, and are priced like these.
    Events are counted of units alone, and not in such groups: one that comes to have a row that satisfies the predicate enters.
    """
    if declaration.row is None or not measure.counts_events:
        return
    several = next(iter(declaration.groups_of_rows), None)
    for figure in declaration.figures:
        if several is not None or not figure.distinct:
            about = "" if several is None else f", with rows in several groups of {several.name}"
            raise refused(
                f"measure {measure.value} is of entries, and an entry is a unit of several rows here{about}",
                figure.offset,
                "Count units, with count(DISTINCT unit), without groups in which their rows differ, or use measure net or state.",
            )


def _groups(statistics: Sequence[Statistic]) -> list[list[int]]:
    """The places of statistics that differ in their windows alone."""
    groups: dict[Statistic, list[int]] = {}
    for place, statistic in enumerate(statistics):
        groups.setdefault(replace(statistic, range=None), []).append(place)
    return list(groups.values())


def _choices(
    group: Sequence[int], statistics: Sequence[Statistic], made: Made, shared: Shared, limits: Sequence[Fraction] | None
) -> list[Choice]:
    """Windows of one statistic: a stream each, or one for all of them, whichever errs (or, with limits, costs) less."""
    separate = []
    for place in group:
        options = made(statistics[place], _wish(shared.request, limits and limits[place]))
        best = next(one for one in options if one.chosen)
        separate.append(Choice(statistics[place], (place,), (), options, _relative(best, best.mean_std_error, statistics[place])))
    if len(group) == 1 or shared.request.levels:
        return separate
    together = shared_candidates(shared, [statistics[place] for place in group], limits and [limits[place] for place in group])
    if together is None:
        return separate
    statistic = statistics[group[0]]
    best = next(one for one in together.made if one.chosen)
    one = Choice(statistic, tuple(group), together.windows, together.made, _relative(best, together.error, statistic))
    if limits is not None:
        return min([one], separate, key=lambda choices: _price([choice.plan for choice in choices], shared.types))
    return [one] if one.variance <= _split_variance(separate, pure=one.plan.pure) else separate


def _price(plans: Sequence[Plan], types: Sequence[EntryType]) -> int:
    """What the worst entry loses to all plans together, in picos."""
    return max(_lifetime(plans, types).values(), default=0)


def _lifetime(plans: Sequence[Plan], types: Sequence[EntryType]) -> Mapping[int, int]:
    return worst_case_loss([charge for plan in plans for charge in plan.charges], types, plans[0].pure)


def _relative(one: Candidate, error: float, statistic: Statistic) -> float:
    """The squared error in units of the largest value, of the continuous law: that of whole numbers vanishes where noise is tiny."""
    draws = error**2 / one.noise.variance if one.noise.variance else 1.0
    weight = 1.0 if statistic.spread is None else statistic.spread.weight
    return weight * draws * _continuous(one.noise) / statistic.values.magnitude**2


def _continuous(noise: Noise) -> float:
    return float(noise.sigma_squared if isinstance(noise, RoundedGaussian) else 2 * noise.scale**2)


def _split_variance(choices: Sequence[Choice], *, pure: bool) -> float:
    """The least sum of variances over all splits of one budget."""
    power = 3 if pure else 2
    return sum(choice.variance ** (1 / power) for choice in choices) ** power


def _together(
    choices: list[Choice], formulas: tuple[Formula, ...], request: Request, types: Sequence[EntryType], delta: Decimal
) -> Planned:
    """The publication of several streams: their budget split, or each as exact as it was asked to be."""
    plans, shares = _as_exact(choices, types, delta) if request.asks_error else _split(choices, request, types, delta)
    lifetime = _lifetime(plans, types)
    epsilon = Fraction(epsilon_of(max(lifetime.values()), delta)) if request.asks_error else request.epsilon
    streams = tuple(
        Stream(choice.statistic.predicate, choice.statistic.term, plan, choice.windows, share, choice.statistic.spread)
        for choice, plan, share in zip(choices, plans, shares, strict=True)
    )
    publication = Publication(streams, _readings(choices), formulas, epsilon, lifetime, choices[0].notes)
    if publication.renews:
        both = worst_case_loss((*publication.charges, *publication.charges_of_epoch(2, types)), types, plans[0].pure)
        note = f"an entry that lives through two epochs loses up to epsilon {float(epsilon_of(max(both.values()), delta)):.4g}"
        publication = replace(publication, notes=(*publication.notes, note))
    options = tuple(
        option
        for choice, name, plan, share in zip(choices, _names(choices), plans, shares, strict=True)
        for option in _options(name, share, _rescaled(choice, plan), choice.statistic)
    )
    wider = [_continuous(plan.noise) / _continuous(choice.plan.noise) for choice, plan in zip(choices, plans, strict=True)]
    error = math.sqrt(sum(one.variance * by for one, by in zip(choices, wider, strict=True)))
    return Planned(publication, options, error, request.asks_error)


def _split(choices: Sequence[Choice], request: Request, types: Sequence[EntryType], delta: Decimal) -> tuple[list[Plan], list[float]]:
    """Split the budget, and calibrate all streams together; returns plans and shares."""
    pure = choices[0].plan.pure
    roots = [choice.variance ** (1 / (3 if pure else 2)) for choice in choices]
    shares = [root / sum(roots) for root in roots]
    target = budget_picos(request.epsilon, delta)
    plans = [_scaled(choice.plan, 1 / Fraction(share).limit_denominator(10**6)) for choice, share in zip(choices, shares, strict=True)]
    factor = factor_for(lambda factor: _price([_scaled(plan, factor) for plan in plans], types), target)
    plans = [_priced(_scaled(plan, factor), types, delta) for plan in plans]
    if _price(plans, types) > target:
        raise InternalError("a calibrated release costs more than it was allowed")
    return plans, shares


def _as_exact(choices: Sequence[Choice], types: Sequence[EntryType], delta: Decimal) -> tuple[list[Plan], list[float]]:
    """Leave all streams as they are: none may have more noise. Shares are those of their prices."""
    plans = [choice.plan for choice in choices]
    if epsilon_of(_price(plans, types), delta) > MAX_EPSILON:
        raise BadArgument("no noise is that small at any allowed epsilon", hint="Allow larger errors, longer windows or a shorter horizon.")
    prices = [_price([plan], types) for plan in plans]
    return plans, [price / (sum(prices) or 1) for price in prices]


def _scaled(plan: Plan, factor: Fraction) -> Plan:
    """The plan with another parameter of its noise; nodes and charges of a mechanism with noise of several widths follow."""
    noise = stretched(plan.noise, factor)
    widths = zip(plan.charges, plan.pattern_factors, strict=True)
    return replace(plan, noise=noise, charges=tuple(replace(charge, noise=scaled(noise, width)) for charge, width in widths))


def _priced(plan: Plan, types: Sequence[EntryType], delta: Decimal) -> Plan:
    lifetime = worst_case_loss(plan.charges, types, plan.pure)
    return replace(plan, lifetime=lifetime, epsilon=Fraction(epsilon_of(max(lifetime.values(), default=0), delta)))


def _readings(choices: Sequence[Choice]) -> tuple[Reading, ...]:
    found = {}
    for number, choice in enumerate(choices):
        for place, window in zip(choice.places, choice.windows or [None], strict=True):
            found[place] = Reading(number, window)
    return tuple(found[place] for place in sorted(found))


def _names(choices: Sequence[Choice]) -> list[str]:
    """What streams are called: what is summed; with its condition, and at last its number, where two would be called alike."""
    names = [_over(choice.statistic.name, choice.windows) for choice in choices]
    full = [_over(choice.statistic.full_name, choice.windows) for choice in choices]
    names = [whole if names.count(name) > 1 else name for name, whole in zip(names, full, strict=True)]
    return [f"{name}, stream {number}" if names.count(name) > 1 else name for number, name in enumerate(names, 1)]


def _over(name: str, windows: Sequence[int]) -> str:
    return f"{name} over {', '.join(map(str, windows))} periods" if windows else name


def _rescaled(choice: Choice, plan: Plan) -> tuple[Candidate, ...]:
    """The candidates of a stream as they are at its share: the chosen one exactly, the others by the same factor of error."""
    factor = math.sqrt(plan.noise.variance / choice.plan.noise.variance)
    return tuple(
        replace(
            one,
            plan=plan if one.chosen else one.plan,
            mean_std_error=one.mean_std_error * factor,
            worst_std_error=one.worst_std_error * factor,
            worst_half_width_95=one.worst_half_width_95 * factor,
        )
        for one in choice.made
    )


def _options(name: str, share: float, made: Sequence[Candidate], statistic: Statistic) -> tuple[Option, ...]:
    """Candidates with their errors in units of the column; of counts by value, what a median's rank holds of them."""
    unit = float(scale_of(statistic)) if statistic.spread is None else math.sqrt(statistic.spread.weight)
    return tuple(
        Option(
            name,
            share,
            replace(
                one,
                mean_std_error=one.mean_std_error * unit,
                worst_std_error=one.worst_std_error * unit,
                worst_half_width_95=one.worst_half_width_95 * unit,
            ),
            statistic.spread is not None,
        )
        for one in made
    )
