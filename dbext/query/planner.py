"""Declaration -> plan: every mechanism and noise that could publish it, calibrated to the same lifetime loss, and the best of them.

Candidates are compared by the root of their mean squared error over the periods, at equal lifetime epsilon of the worst entry. None
always wins. Fresh noise per window touches an entry's every window but adds one noise, sums of disjoint blocks touch few blocks but add
many; a square root with equal columns is best for entries that change once, the plain one where they change again (late changes then
cost as much as early ones). So all are calibrated and measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from dbext.errors import BadArgument, InternalError, UnboundedLoss
from dbext.mechanisms.encoded import is_encoded
from dbext.mechanisms.epochs import continuing
from dbext.mechanisms.joint_bounds import joint_bounds
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.spread import deviations, spread
from dbext.mechanisms.storage import numbers_kept
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.calibrate import noise_for
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import EntryType
from dbext.privacy.conversion import budget_picos, epsilon_of
from dbext.privacy.grid import RegularGrid
from dbext.privacy.joint import JointBound
from dbext.privacy.measure import COUNT, Measure, Values
from dbext.privacy.noise import Noise, law_of, scaled
from dbext.query.admissible import MOST_STORED, options
from dbext.query.calendar import Tick
from dbext.query.declaration import Declaration
from dbext.query.exact_error import largest_noise, largest_noise_within
from dbext.query.levels import levelled, with_levels, with_period
from dbext.query.limits import require_affordable
from dbext.query.plan import Plan
from dbext.query.shape import Request, Shape, shape_of

MAX_EPSILON = 1000
#: A default horizon is compared with one that is so many times shorter, to show what it costs.
_SHORTER = 10
NOISES = (None, "laplace", "gaussian")

__all__ = ["Candidate", "Plan", "Request", "candidates", "exact_epsilon", "plan", "plan_question", "priced_at"]


@dataclass(frozen=True)
class Candidate:
    """One way to publish a release. Errors are those of the noise in one cell, over the periods; `lifetime` is in picos by type number.

    `stored` is how many noisy numbers it keeps when its horizon is reached, for all groups; None: without end.
    """

    plan: Plan
    mean_std_error: float
    worst_std_error: float
    worst_half_width_95: float
    stored: int | None = None
    chosen: bool = False
    reason: str = ""

    @property
    def mechanism(self) -> str:
        return self.plan.mechanism.name

    @property
    def noise(self) -> Noise:
        return self.plan.noise

    @property
    def lifetime(self) -> dict[int, int]:
        return dict(self.plan.lifetime)


def exact_epsilon(value: str | int | Decimal | Fraction) -> Fraction:
    """An epsilon as an exact number: positive, finite, at most MAX_EPSILON. Floats are refused: they are not what was written."""
    try:
        epsilon = Fraction(value) if not isinstance(value, float) else None
    except (ValueError, OverflowError, TypeError, ZeroDivisionError):
        epsilon = None
    if epsilon is None:
        raise BadArgument("epsilon must be a finite exact number", hint="Write it in decimals, like 0.5.")
    if not 0 < epsilon <= MAX_EPSILON:
        raise BadArgument(f"epsilon must be greater than 0 and at most {MAX_EPSILON}")
    return epsilon


def priced_at(noise: str | None, delta: Decimal) -> Decimal:
    """The delta that charges are priced at: 0 for those that add in epsilon."""
    if noise not in NOISES:
        raise BadArgument("noise must be laplace or gaussian", hint="Leave it out for whatever errs least.")
    if noise == "gaussian" and delta == 0:
        raise BadArgument(
            "Gaussian noise has no finite epsilon in a budget with delta = 0", hint="Leave noise out, or give the budget a delta above 0."
        )
    return Decimal(0) if noise == "laplace" else delta


def plan(declaration: Declaration, request: Request, tick: Tick, types: Sequence[EntryType], delta: Decimal) -> Plan:
    """The best plan for a resolved declaration. Raises BadArgument, DeclarationRefused or UnboundedLoss."""
    return next(candidate.plan for candidate in candidates(declaration, request, tick, types, delta) if candidate.chosen)


def candidates(
    declaration: Declaration, request: Request, tick: Tick, types: Sequence[EntryType], delta: Decimal, values: Values = COUNT
) -> tuple[Candidate, ...]:
    """Every way to publish one statistic at prices in epsilon or in rho, calibrated; exactly one is chosen. An entry adds such `values`."""
    request, delta = with_period(request, declaration), priced_at(request.noise, delta)
    shape = with_levels(replace(shape_of(declaration, request, tick), values=values, cells=request.cells), request, tick)
    ranked = _ranked(_calibrated(shape, request, types, delta, grouped=declaration.grouped), request)
    chosen = next(one for one in ranked if one.chosen)

    notes = []
    if shape.renews and request.horizon is None and request.max_error is None and shape.horizon > _SHORTER:
        shorter = replace(shape, horizon=shape.horizon // _SHORTER, renews=False)
        made = _calibrated(shorter, request, types, delta, grouped=declaration.grouped)
        error = min(_measured(one, request.cells).mean_std_error for one in made)
        notes.append(f"mean standard error {chosen.mean_std_error:.4g}; with horizon => {shorter.horizon} it would be {error:.4g}")
    if shape.renews:
        notes.append(_cost_of_renewal(chosen.plan, types, delta))
    if not notes:
        return ranked
    announced = replace(chosen, plan=replace(chosen.plan, notes=(*chosen.plan.notes, *notes)))
    return tuple(announced if one is chosen else one for one in ranked)


def _cost_of_renewal(made: Plan, types: Sequence[EntryType], delta: Decimal) -> str:
    """Say what an entry loses that lives through two epochs: what the renewal will have to find in the budget."""
    both = worst_case_loss((*made.charges, *made.charges_of_epoch(2, types)), types, made.pure)
    return f"an entry that lives through two epochs loses up to epsilon {float(epsilon_of(max(both.values()), delta)):.4g}"


def plan_question(
    start: int | None,
    end: int,
    *,
    measure: Measure,
    epsilon: Fraction,
    types: Sequence[EntryType],
    delta: Decimal,
    values: Values = COUNT,
    noise: str | None = None,
    whole: bool = False,
) -> Plan:
    """The plan of one answer about the window (start, end], ungrouped; a start of None reaches back to the beginning.

    `noise` and `whole` as in a request.
    """
    if start is not None and start >= end:
        raise BadArgument("the window is empty", hint="It must end after it starts.")
    if measure is Measure.STATE and start is not None:
        raise BadArgument("state has no lower bound", hint="Leave the start of the window out, or ask for net.")
    request = Request(start_tick=end, epsilon=epsilon, noise=noise)
    shape = Shape(
        "once", measure, RegularGrid(end - 1 if start is None else start, 1 if start is None else end - start), 1, start=start, end=end
    )
    deltas = [priced_at(noise, delta)] + ([Decimal(0)] if whole and noise is None else [])
    plans = [one for at in deltas for one in _calibrated(replace(shape, values=values), request, types, at, grouped=False)]
    return next(candidate.plan for candidate in _ranked(plans, request) if candidate.chosen)


def _calibrated(shape: Shape, request: Request, types: Sequence[EntryType], delta: Decimal, *, grouped: bool) -> list[Plan]:
    """One plan for each mechanism."""
    if request.epsilon is None and request.max_error is None:
        raise BadArgument(
            "epsilon is missing", hint="Say what the release may cost: epsilon => 0.5, or how exact it must be: max_error => 10."
        )
    if request.epsilon is not None:
        exact_epsilon(request.epsilon)
    _refuse_unbounded(shape, types)
    pure = delta == 0
    calibrate = for_epsilon if request.max_error is None else _for_error
    plans = (
        calibrate(blank_plan(shape, mechanism, grouped=grouped, pure=pure), request, types, delta)
        for mechanism in (levelled if shape.levels else options)(shape, types, pure=pure)
    )
    return [_continuing(found) if shape.renews else found for found in plans if found is not None]


def _continuing(found: Plan) -> Plan:
    """The plan of a running total that goes on when its horizon is reached; priced as it is, for its first epoch."""
    return replace(found, mechanism=continuing(found.mechanism))


def blank_plan(shape: Shape, mechanism: Mechanism, *, grouped: bool, pure: bool) -> Plan:
    """A plan without noise yet."""
    fixed = (shape.kind, shape.measure, grouped, mechanism, None, (), pure, Fraction(0), {}, shape.grid, shape.notes)
    return Plan(*fixed, values=shape.values, band=shape.band)


def for_epsilon(blank: Plan, request: Request, types: Sequence[EntryType], delta: Decimal) -> Plan:
    """The least noise whose exact lifetime loss stays within the epsilon asked for; recomputed here, so that a mistake cannot pass."""
    target = budget_picos(request.epsilon, delta)
    if target < 1:
        raise BadArgument("epsilon is too small to be counted", hint="Ask for more than 0.000001.")
    joint = _joint(blank, types)
    what = (blank.mechanism.patterns(), blank.measure, blank.grouped, types, target, blank.pure, law_of(pure=blank.pure))
    noise = noise_for(*what, joint=joint, values=blank.values, factors=blank.pattern_factors)
    finished = _with_noise(blank, noise, types, joint)
    if max(finished.lifetime.values(), default=0) > target:
        raise InternalError("a calibrated plan costs more than it was allowed")
    return replace(finished, epsilon=request.epsilon)


def _for_error(blank: Plan, request: Request, types: Sequence[EntryType], delta: Decimal) -> Plan | None:
    """The most noise whose widest interval stays within max_error, and what it costs; None if that is out of all proportion."""
    if request.max_error <= 0:
        raise BadArgument("max_error must be greater than 0")
    if request.levels:
        raise BadArgument("max_error is not for releases with levels", hint="Give epsilon; dp_plan_release shows the errors.")
    noise = _largest_noise(blank, request.max_error)
    return None if noise is None else at_noise(blank, noise, types, delta)


def at_noise(blank: Plan, noise: Noise, types: Sequence[EntryType], delta: Decimal) -> Plan | None:
    """A plan with noise that is given, at the least epsilon that covers what it costs; None if nobody may ask for as much."""
    finished = _with_noise(blank, noise, types, _joint(blank, types))
    epsilon = Fraction(epsilon_of(max(finished.lifetime.values(), default=0), delta))
    return replace(finished, epsilon=epsilon) if epsilon <= MAX_EPSILON else None


def _largest_noise(blank: Plan, max_error: Fraction) -> Noise | None:
    squares, tail, law = spread(blank.mechanism), blank.tail(1), law_of(pure=blank.pure)
    if blank.buffered is not None:
        return largest_noise(
            max_error, law, lambda noise: replace(blank, noise=noise).half_width_at(squares.period, tail), math.sqrt(squares.worst)
        )
    widest = [(blank.factor(number), weight) for number, weight in blank.mechanism.answer(squares.period)]
    return largest_noise_within(max_error, law, widest, tail)


def _joint(blank: Plan, types: Sequence[EntryType]) -> tuple[JointBound, ...] | None:
    """The proven bounds of a mechanism that noises overlapping sums; None for one that noises time ranges."""
    if not is_encoded(blank.mechanism):
        return None
    return joint_bounds(blank.mechanism, blank.measure, blank.grouped, [one.constraint for one in types])


def _with_noise(blank: Plan, noise: Noise, types: Sequence[EntryType], joint: tuple[JointBound, ...] | None) -> Plan:
    charges = tuple(
        Charge(pattern, scaled(noise, factor), blank.measure, blank.grouped, None, joint, blank.values, blank.pure)
        for pattern, factor in zip(blank.mechanism.patterns(), blank.pattern_factors, strict=True)
    )
    return replace(blank, noise=noise, charges=charges, lifetime=worst_case_loss(charges, types, blank.pure))


def _refuse_unbounded(shape: Shape, types: Sequence[EntryType]) -> None:
    """Without a limit on an entry's mutations only a finite number of periods bounds its loss; say which constraint is missing."""
    for entry_type in types:
        if shape.horizon is None and not entry_type.constraint.is_bounded:
            raise UnboundedLoss(
                f'nothing bounds the loss of entries of type "{entry_type.name}": they may mutate in every period for ever',
                hint="Add a constraint with dp_add_constraint (max_mutations, active_within or both), or give the release a horizon.",
            )


def _ranked(plans: list[Plan], request: Request) -> tuple[Candidate, ...]:
    if not plans:
        raise BadArgument(
            "no noise is that small at any allowed epsilon", hint="Allow a larger max_error, longer windows or a shorter horizon."
        )
    measured = [_measured(found, request.cells) for found in plans]
    small = [one for one in measured if not _is_large(one)] or measured
    if request.max_error is None:
        best = min(small, key=lambda candidate: candidate.mean_std_error)
    else:
        best = min(small, key=lambda candidate: candidate.plan.epsilon)
        require_affordable(best.plan.epsilon, request)
    return tuple(replace(one, chosen=one is best, reason=_reason(one, best, request)) for one in measured)


def _measured(found: Plan, cells: int) -> Candidate:
    widest, kept = found.half_width_95(spread(found.mechanism).period), numbers_kept(found.mechanism)
    stored = None if kept is None else kept * cells
    return Candidate(found, *deviations(found.mechanism, found.noise), widest, stored)


def _is_large(one: Candidate) -> bool:
    """Whether a running total would keep more noise than is reasonable where a few buffers do as well."""
    return one.plan.kind == "running_total" and one.stored > MOST_STORED


def _reason(one: Candidate, best: Candidate, request: Request) -> str:
    if one is best:
        return _why(one, request)
    if request.max_error is None:
        return _times(one.mean_std_error / best.mean_std_error if best.mean_std_error else math.nan, "error")
    return _times(float(one.plan.epsilon / best.plan.epsilon) if best.plan.epsilon else math.nan, "epsilon")


def _why(best: Candidate, request: Request) -> str:
    said = "smallest error at this epsilon" if request.max_error is None else "smallest epsilon for this error"
    if best.plan.buffered is None or best.plan.horizon * request.cells <= MOST_STORED:
        return said
    return f"{said} of those that do not keep more than {MOST_STORED:,} noisy numbers"


def _times(ratio: float, what: str) -> str:
    shown = f"{ratio:.2f}" if math.isfinite(ratio) else "1.00"
    return "as good as the best" if shown == "1.00" else f"{shown} times the {what} of the best"
