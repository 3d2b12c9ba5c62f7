"""Plans of the local model: every entry of a fixed roster reports about every range by itself, through randomised response.

Two things can be asked. How the count of a predicate changes over windows: reports of a net change, -1, 0 or +1, about disjoint ranges,
hierarchies of them or sliding windows. And who is in which of a list of categories at the end of each of finitely many periods. What
an entry loses is what replacing it by another can change: whatever either of them touches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dbext.errors import BadArgument, UnboundedLoss
from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.disjoint import disjoint_sums
from dbext.mechanisms.hierarchical import hierarchical_sums
from dbext.mechanisms.independent import IndependentWindows, OneWindow
from dbext.mechanisms.levelled import LevelledSums, ranges_that_matter
from dbext.mechanisms.plain_sums import PlainSums
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.randomised_response import RandomisedResponse
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.snapshots import Snapshots
from dbext.mechanisms.spread import spread
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.calibrate import noise_for
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.constraint import EntryType
from dbext.privacy.conversion import budget_picos
from dbext.privacy.grid import RegularGrid, grid_from_json
from dbext.privacy.measure import Measure
from dbext.privacy.noise import LARGEST_RESPONSE, Response, noise_from_json, scaled
from dbext.privacy.pattern import Pattern, Several, Windows
from dbext.query.admissible import LONGEST_PLAIN
from dbext.query.calendar import Tick
from dbext.query.declaration import Declaration
from dbext.query.levels import ending, levelled, with_levels, with_period
from dbext.query.periods import Grid
from dbext.query.shape import Request, Shape, shape_of

#: Categories beyond this say nothing at any epsilon that anybody would pay.
MOST_CATEGORIES = 1_000
#: Net changes: none, up, down.
STILL, UP, DOWN = 0, 1, 2
QUANTILE_95 = 1.959963984540054


@dataclass(frozen=True)
class LocalPlan:
    """What every period publishes. `response` is the report about a node (of factor 1); `members` of them report about every node.

    Losses are those of replacing one entry of the roster by another, by type number and in picos, as the ledger charges them.
    """

    kind: str
    measure: Measure
    mechanism: Mechanism
    response: Response
    charges: tuple[Charge, ...]
    pure: bool
    epsilon: Fraction
    lifetime: Mapping[int, int]
    grid: Grid
    members: int
    notes: tuple[str, ...] = ()

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""
        return self.mechanism.horizon

    @property
    def horizon_end(self) -> int | None:
        """The boundary at which the last period ends; None if there is none."""
        return None if self.horizon is None else self.grid.end(self.horizon)

    def needed_since(self, drawn: int) -> int:
        """The last tick whose changes no report is about that is drawn after period `drawn`; a state needs none but the present one."""
        last = self.mechanism.window(drawn)[1]
        ahead = [start for charge in self.charges for start, _ in charge.pattern.filters(last, last + 1) if start is not None]
        return min([last, *ahead])

    def due_tick(self, period: int) -> int:
        """The boundary at which period n ends."""
        return self.grid.end(period)

    def response_of(self, number: int) -> RandomisedResponse:
        """How the members report about a node."""
        factor = self.mechanism.factor(number) if hasattr(self.mechanism, "factor") else 1
        return RandomisedResponse(self.response.categories, self.response.epsilon / factor)

    def estimate(self, number: int, counts: Sequence[int]) -> tuple[list[float], list[float]]:
        """Estimates of a node, one per cell, and of their variances, from the numbers of reports of category 1, 2, ...

        Both are unbiased but for the variance's bounds: nobody changed, or all did.
        """
        response, whole = self.response_of(number), self.members
        p, q = float(response.keep), float(response.other)
        numbers = [(count - whole * q) / (p - q) for count in counts]
        if self.measure is Measure.NET:
            changed = min(max(sum(numbers), 0.0), whole)
            return [numbers[0] - numbers[1]], [(whole * 2 * q + changed * (p - q) * (1 - p + q)) / (p - q) ** 2]
        inside = [min(max(one, 0.0), whole) for one in numbers]
        return numbers, [(one * p * (1 - p) + (whole - one) * q * (1 - q)) / (p - q) ** 2 for one in inside]

    def node_variance(self, number: int) -> float:
        """The variance of an estimate of nothing: nobody changed, or nobody is in the category."""
        response = self.response_of(number)
        p, q = float(response.keep), float(response.other)
        return self.members * (2 * q if self.measure is Measure.NET else q * (1 - q)) / (p - q) ** 2

    def half_width_95(self, variance: float, steps: float) -> float:
        """Half width of a 95% interval: reports are many and alike, so that their sum is nearly normal; half a step for its steps."""
        return QUANTILE_95 * math.sqrt(variance) + steps / 2

    def step(self, number: int) -> float:
        """By how much one report moves the estimate of a node."""
        response = self.response_of(number)
        return 1 / float(response.keep - response.other)

    def to_json(self) -> dict[str, Any]:
        """The form that `local_plan_from_json` reads."""
        return {
            "kind": self.kind,
            "measure": self.measure.value,
            "mechanism": self.mechanism.to_json(),
            "response": self.response.to_json(),
            "charges": [charge.to_json() for charge in self.charges],
            "pure": self.pure,
            "epsilon": str(self.epsilon),
            "lifetime": {str(number): picos for number, picos in self.lifetime.items()},
            "grid": self.grid.to_json(),
            "members": self.members,
            "notes": list(self.notes),
        }


def local_plan_from_json(data: dict[str, Any]) -> LocalPlan:
    """The plan that `to_json` wrote."""
    return LocalPlan(
        kind=data["kind"],
        measure=Measure(data["measure"]),
        mechanism=mechanism_from_json(data["mechanism"]),
        response=noise_from_json(data["response"]),
        charges=tuple(charge_from_json(charge) for charge in data["charges"]),
        pure=data["pure"],
        epsilon=Fraction(data["epsilon"]),
        lifetime={int(number): picos for number, picos in data["lifetime"].items()},
        grid=grid_from_json(data["grid"]),
        members=data["members"],
        notes=tuple(data["notes"]),
    )


def local_plans(
    declaration: Declaration, request: Request, tick: Tick, types: Sequence[EntryType], delta: Decimal, *, members: int, cells: int
) -> list[tuple[LocalPlan, float]]:
    """Every way to publish in the local model with its mean standard error if nothing changes; the best first."""
    request = ending(with_period(request, declaration), declaration, "a release of the local model")
    shape = with_levels(shape_of(declaration, request, tick), request, tick)
    _refuse(shape, request, types, declaration, cells)
    categories = 3 if shape.measure is Measure.NET else cells + 1
    plans = [
        _calibrated(shape, mechanism, categories, request, types, delta, members)
        for mechanism in _mechanisms(shape, types, pure=delta == 0)
    ]
    return sorted(((plan, _mean_error(plan)) for plan in plans), key=lambda one: one[1])


def _refuse(shape: Shape, request: Request, types: Sequence[EntryType], declaration: Declaration, cells: int) -> None:
    """Refuse what the local model cannot publish, or cannot bound."""
    if request.asks_error or request.band is not None:
        raise BadArgument("max_error and band are not for the local model", hint="Give epsilon; dp_plan_release shows the errors.")
    if shape.measure.counts_events:
        raise BadArgument("in the local model an entry reports its net change or its state", hint="Use measure => 'net' or 'state'.")
    if declaration.grouped and shape.measure is Measure.NET:
        raise BadArgument(
            "in the local model groups are the categories of a state",
            hint="Use measure => 'state', or leave GROUP BY out and count one category.",
        )
    if shape.measure is Measure.STATE and shape.kind != "once" and request.horizon is None:
        raise BadArgument(
            "reports about a state touch every period and need a horizon", hint="Say horizon => 12, for instance; net changes need none."
        )
    if shape.levels and shape.measure is Measure.STATE:
        raise BadArgument("levels are for net changes: a state is not put together from blocks")
    if cells > MOST_CATEGORIES:
        raise BadArgument(f"in the local model a state has at most {MOST_CATEGORIES} categories")
    for one in types:
        if shape.horizon is None and not one.constraint.is_bounded:
            raise UnboundedLoss(
                f'nothing bounds the loss of entries of type "{one.name}": they may mutate in every period for ever',
                hint="Add a constraint with dp_add_constraint (max_mutations, active_within or both), or give the release a horizon.",
            )


def _mechanisms(shape: Shape, types: Sequence[EntryType], *, pure: bool) -> Iterator[Mechanism]:
    """Yield what can publish a shape: everything that noises time ranges one by one."""
    if shape.levels:
        yield from levelled(shape, types, pure=pure)
    elif shape.kind == "once":
        yield OneWindow(shape.start, shape.end)
    elif shape.kind == "running_total":
        grid = replace(shape.grid, origin=shape.grid.origin - shape.age) if isinstance(shape.grid, RegularGrid) else shape.grid
        if shape.measure is Measure.STATE:
            yield Snapshots(grid, shape.horizon)
            return
        if shape.horizon <= LONGEST_PLAIN:
            yield PlainSums(grid, shape.horizon)
        yield BinaryTree(grid, shape.horizon)
    else:
        windows = Windows(shape.grid, shape.width.ticks, shape.width.steps, shape.age, shape.horizon)
        yield IndependentWindows(windows)
        if shape.kind == "sliding":
            yield from (made for made in (disjoint_sums(windows), hierarchical_sums(windows, 2)) if made is not None)


def _parts(mechanism: Mechanism) -> list[tuple[Pattern, Fraction]]:
    """Return the patterns of a mechanism, level by level, each with its factor: each is charged at most once for every report."""
    factors = mechanism.pattern_factors() if hasattr(mechanism, "pattern_factors") else (Fraction(1),) * len(mechanism.patterns())
    return [
        (part, factor)
        for pattern, factor in zip(mechanism.patterns(), factors, strict=True)
        for part in (pattern.parts if isinstance(pattern, Several) else (pattern,))
    ]


def _calibrated(
    shape: Shape, mechanism: Mechanism, categories: int, request: Request, types: Sequence[EntryType], delta: Decimal, members: int
) -> LocalPlan:
    """The most telling reports whose loss stays within the epsilon asked for."""
    target = budget_picos(request.epsilon, delta)
    patterns, factors = zip(*_parts(mechanism), strict=True)

    def response(parameter: Fraction) -> Response:
        return Response(categories, min(1 / parameter, Fraction(LARGEST_RESPONSE)))

    pure = delta == 0
    found = noise_for(patterns, shape.measure, False, types, target, pure, response, factors=factors)  # noqa: FBT003 moves cost no more
    noises = [scaled(found, factor) for factor in factors]
    charges = tuple(Charge(pattern, noise, shape.measure, pure=pure) for pattern, noise in zip(patterns, noises, strict=True))
    lifetime = worst_case_loss(charges, types, pure)
    return LocalPlan(
        shape.kind, shape.measure, mechanism, found, charges, pure, request.epsilon, lifetime, shape.grid, members, shape.notes
    )


def _mean_error(plan: LocalPlan) -> float:
    """Root mean square error over the periods (or the ranges that matter) if nothing changes."""
    mechanism = plan.mechanism
    if isinstance(mechanism, LevelledSums):
        covers = [mechanism.cover(*one) for one in ranges_that_matter(mechanism)]
        by_level = [plan.node_variance(len(mechanism.levels) + level) for level in range(len(mechanism.levels))]
        return math.sqrt(sum(by_level[level] for cover in covers for level, _ in cover) / len(covers))
    return math.sqrt(plan.node_variance(1) * spread(mechanism).mean)
