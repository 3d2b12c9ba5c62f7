"""A charge: which filters a release (or a question) draws noise for, with which noise, and what one of them costs an entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dbext.privacy.constraint import Constraint
from dbext.privacy.joint import JointBound, check_bounds, joint_bound_from_json, lifetime_for, per_touch_for
from dbext.privacy.measure import COUNT, Measure, Values, appearance, sensitivity, values_from_json
from dbext.privacy.noise import Noise, Response, cost, noise_from_json, response_cost, rho_of_norm
from dbext.privacy.pattern import Pattern, Several, SignedBlocks, pattern_from_json


@dataclass(frozen=True)
class Charge:
    """Every filter of `pattern` is released once with fresh `noise`.

    With a `Response` as noise every entry reports about every filter by itself. Two entries that are put in each other's place pay for
    the filters that either of them touches: a touched filter costs two reports, which is more than an entry that comes or goes can lose.

    `types` holds the numbers of the entry types that the release is restricted to by their stored type; None is every type. Predicates
    never restrict a charge: an entry's columns change, its type does not.
    With `joint`, what is noised are overlapping combinations of the pattern's filters, all with Gaussian noise of one sigma; the bounds say
    what an entry that adds 0 or 1 does to them. `values` is what an entry adds instead: paths between their extremes are the worst, one
    of 0s and highs less one of 0s and lows, so that norms grow with their swing.
    A `pure` charge adds in epsilon, whatever its budget is; others do so if delta = 0, and in rho otherwise.
    """

    pattern: Pattern
    noise: Noise
    measure: Measure
    grouped: bool = False
    types: tuple[int, ...] | None = None
    joint: tuple[JointBound, ...] | None = None
    values: Values = COUNT
    pure: bool = False

    def __post_init__(self):
        if self.joint is not None:
            check_bounds(self.joint)

    def concerns(self, type_number: int) -> bool:
        """Whether entries of this type can touch the charge."""
        return self.types is None or type_number in self.types

    @property
    def stepwise(self) -> bool:
        """Whether what an entry loses to a draw is settled when it is drawn: blocks of signed trees are used before they are over."""
        parts = self.pattern.parts if isinstance(self.pattern, Several) else (self.pattern,)
        return not any(isinstance(part, SignedBlocks) for part in parts)

    def through(self, period: int) -> Charge:
        """Return the part of the charge that has been spent when a release has published its periods up to this one."""
        return replace(self, pattern=self.pattern.through(period))

    def cost_per_filter(self, constraint: Constraint, ticks: int | None, pure: bool) -> int | None:  # noqa: FBT001 the kind of budget
        """Return the picos that an entry spends on one filter of `ticks` ticks that it touches; None if nothing bounds it."""
        if isinstance(self.noise, Response):
            return 2 * response_cost(self.noise, pure)
        if self.joint is not None:
            return rho_of_norm(self.noise, per_touch_for(self.joint, constraint) * self.values.swing**2, pure)
        effect = sensitivity(self.measure, self.grouped, ticks, constraint, self.values)
        return None if effect is None else cost(self.noise, effect, pure)

    def opening_cost(self, constraint: Constraint, ticks: int | None, pure: bool) -> int | None:  # noqa: FBT001 the kind of budget
        """Return the picos spent on a filter that holds the entry's first mutation, or its departure at the last slot.

        The entry is absent at one end of such a filter, so that `state` and `net` change one cell only, grouped or not.
        """
        if self.measure.counts_events or self.joint is not None or isinstance(self.noise, Response):
            return self.cost_per_filter(constraint, ticks, pure)
        return cost(self.noise, appearance(self.values), pure)

    def lifetime_cost(self, constraint: Constraint, pure: bool) -> int | None:  # noqa: FBT001 the kind of budget
        """Return the picos of a whole life that the bounds of a joint mechanism prove; None without such a bound.

        Randomised responses: however many ranges two entries touch between them, each of their reports is paid for once.
        """
        if isinstance(self.noise, Response):
            return sum(1 for _ in self.pattern.filters()) * response_cost(self.noise, pure) if self.pattern.is_finite else None
        lifetime = None if self.joint is None else lifetime_for(self.joint, constraint)
        return None if lifetime is None else rho_of_norm(self.noise, lifetime * self.values.swing**2, pure)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `charge_from_json` reads."""
        return {
            "pattern": self.pattern.to_json(),
            "noise": self.noise.to_json(),
            "measure": self.measure.value,
            "grouped": self.grouped,
            "types": None if self.types is None else list(self.types),
            "joint": None if self.joint is None else [bound.to_json() for bound in self.joint],
            "values": self.values.to_json(),
            "pure": self.pure,
        }


def charge_from_json(data: dict[str, Any]) -> Charge:
    """Rebuild a charge."""
    types, joint = data.get("types"), data.get("joint")
    return Charge(
        pattern_from_json(data["pattern"]),
        noise_from_json(data["noise"]),
        Measure(data["measure"]),
        bool(data["grouped"]),
        None if types is None else tuple(types),
        None if joint is None else tuple(joint_bound_from_json(bound) for bound in joint),
        values_from_json(data.get("values")),
        bool(data.get("pure", False)),
    )
