"""A plan: what a release will compute, with which noise, and what that costs. Frozen, and the same after a round trip through JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dbext.mechanisms.buffered import Buffered
from dbext.mechanisms.encoded import EncodedMechanism, is_encoded
from dbext.mechanisms.epochs import Epochs
from dbext.mechanisms.error import TAIL, gaussian_half_width, half_width, variance_of
from dbext.mechanisms.joint_bounds import joint_bounds
from dbext.mechanisms.mixed_error import ErrorLaw, NormsLaw
from dbext.mechanisms.protocol import Mechanism, Node
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.simultaneous import union_tail
from dbext.mechanisms.square_root import SquareRoot
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.constraint import EntryType
from dbext.privacy.grid import grid_from_json
from dbext.privacy.joint import JointBound
from dbext.privacy.measure import COUNT, Measure, Values, values_from_json
from dbext.privacy.noise import Noise, noise_from_json, scaled
from dbext.query.periods import Grid

KINDS = ("disjoint", "sliding", "running_total", "once")
BANDS = ("pointwise", "simultaneous")


@dataclass(frozen=True)
class Plan:
    """What every period publishes.

    `epsilon` is what the release promises never to exceed; `lifetime` the exact loss by type number, in picos (of epsilon if `pure`,
    of rho otherwise, as its charges add up). `grid` says when periods end; period n is published once the ticks up to `due_tick(n)` are
    sealed.
    """

    kind: str
    measure: Measure
    grouped: bool
    mechanism: Mechanism | EncodedMechanism
    noise: Noise
    charges: tuple[Charge, ...]
    pure: bool
    epsilon: Fraction
    lifetime: Mapping[int, int]
    grid: Grid
    notes: tuple[str, ...] = ()
    values: Values = COUNT
    band: str = "pointwise"

    @property
    def horizon(self) -> int | None:
        """Number of periods that the noise is calibrated for: those of an epoch, if there are epochs; None is endless."""
        return self.mechanism.length if self.renews else self.mechanism.horizon

    @property
    def last_period(self) -> int | None:
        """The last period that is published; None is endless."""
        return self.mechanism.horizon

    @property
    def renews(self) -> bool:
        """Whether a new epoch begins at the horizon."""
        return isinstance(self.mechanism, Epochs)

    def horizon_end(self, period: int) -> int | None:
        """The tick that closes the horizon, or the epoch that a period lies in; None if there is none."""
        if self.horizon is None:
            return None
        return self.due_tick(self.mechanism.epoch_of(period) * self.horizon if self.renews else self.horizon)

    def charges_of_epoch(self, number: int, types: Sequence[EntryType]) -> tuple[Charge, ...]:
        """What an epoch costs beside those before it: its own nodes with the same noise, priced for these types."""
        if number == 1:
            return self.charges
        mechanism, measure = self.mechanism.epoch(number), Measure.NET if self.measure is Measure.STATE else self.measure
        joint = self._bounds_of_epoch(mechanism, measure, types) if is_encoded(mechanism) else None
        noised = zip(mechanism.patterns(), factors_of(mechanism), strict=True)
        rest = (measure, self.grouped, None, joint, self.values, self.pure)
        return tuple(Charge(pattern, scaled(self.noise, factor), *rest) for pattern, factor in noised)

    def _bounds_of_epoch(self, mechanism: EncodedMechanism, measure: Measure, types: Sequence[EntryType]) -> tuple[JointBound, ...]:
        """The proven bounds of a later epoch: those of the first where its encoder begins with this one's, or worked out anew."""
        first, constraints = self.mechanism.first, [one.constraint for one in types]
        begins_alike = isinstance(first, Buffered) or type(first) is SquareRoot
        if begins_alike and first.coefficients[: mechanism.positions] == mechanism.coefficients:
            return joint_bounds(mechanism, self.measure, self.grouped, constraints, within=first)
        return joint_bounds(mechanism, measure, self.grouped, constraints)

    @property
    def buffered(self) -> Buffered | None:
        """The mechanism of an epoch if its noise is made from buffers, so that no draws are stored but what they made."""
        mechanism = self.mechanism.first if self.renews else self.mechanism
        return mechanism if isinstance(mechanism, Buffered) else None

    @property
    def whole_numbers(self) -> bool:
        """Whether nodes are noisy sums of time ranges; encoded mechanisms noise combinations of them."""
        return not is_encoded(self.mechanism)

    @property
    def whole_answers(self) -> bool:
        """Whether answers are whole numbers: nodes are only added and subtracted."""
        return self.whole_numbers and getattr(self.mechanism, "whole_answers", True)

    def leaves(self, period: int) -> tuple[Node, ...]:
        """The time ranges whose exact sums are needed first when a period closes; they overlap where a mechanism noises sums of its own."""
        mechanism = self.mechanism
        return mechanism.leaves(period) if hasattr(mechanism, "leaves") else mechanism.nodes(period)

    def window(self, period: int) -> tuple[int | None, int]:
        """The ticks that period n is about, as boundaries (a, b]; None reaches back to the beginning."""
        return self.mechanism.window(period)

    def due_tick(self, period: int) -> int:
        """The boundary at which period n ends: later than its window if that is aged."""
        return self.grid.end(period)

    def coefficients(self, period: int) -> tuple[float, ...]:
        """With what weights the nodes (or encoder rows) of a period's answer are summed."""
        return tuple(weight for _, weight in self.mechanism.answer(period))

    @property
    def pattern_factors(self) -> tuple[Fraction, ...]:
        """How wide the noise of each of the mechanism's patterns is, as a multiple of `noise`."""
        return factors_of(self.mechanism)

    def node_noise(self, number: int) -> Noise:
        """The noise of one node or row."""
        return scaled(self.noise, self.factor(number))

    def factor(self, number: int) -> Fraction:
        """How wide the noise of a node is, as a multiple of the plan's."""
        return self.mechanism.factor(number) if hasattr(self.mechanism, "factor") else Fraction(1)

    def node_variance(self, number: int) -> float:
        """Variance of the noise of one node or row."""
        return self.node_noise(number).variance

    def draws(self, weights: Sequence[tuple[int, float]]) -> list[tuple[Noise, float]]:
        """The noises, with their weights, that a weighted sum of nodes or rows holds."""
        if hasattr(self.mechanism, "factor"):
            return [(self.node_noise(number), weight) for number, weight in weights]
        return [(self.noise, weight) for _, weight in weights]

    def std_error(self, period: int) -> float:
        """Standard deviation of the noise in one cell of period n."""
        if self.buffered is not None:
            return math.sqrt(self.noise.variance * self.mechanism.norms(period).squares)
        return math.sqrt(variance_of(self.draws(self.mechanism.answer(period))))

    def law(self, period: int) -> ErrorLaw | NormsLaw:
        """The law of the noise in one cell of period n, to be mixed with others."""
        if self.buffered is not None:
            return NormsLaw(self.noise, self.mechanism.norms(period))
        return ErrorLaw(tuple(self.draws(self.mechanism.answer(period))))

    def half_width_95(self, period: int) -> float:
        """Half width of the two-sided 95% interval of one cell of period n, by itself."""
        return self.half_width_at(period, TAIL)

    def half_width(self, period: int, cells: int) -> float:
        """Half width of the interval that is published for each of so many cells of period n: by itself, or as part of a band."""
        return self.half_width_at(period, self.tail(cells))

    def half_width_at(self, period: int, tail: float) -> float:
        """Half width that the noise in one cell of period n passes with such a chance at most."""
        if self.buffered is not None:
            return gaussian_half_width(self.noise, self.mechanism.norms(period), tail)
        return half_width(self.draws(self.mechanism.answer(period)), tail)

    def tail(self, cells: int) -> float:
        """How often an interval may miss: 5%, or such a part of it that all intervals of the horizon and of all cells hold together."""
        return TAIL if self.band == "pointwise" else union_tail(self.horizon * cells)

    def to_json(self) -> dict[str, Any]:
        """The form that `plan_from_json` reads."""
        return {
            "kind": self.kind,
            "measure": self.measure.value,
            "grouped": self.grouped,
            "mechanism": self.mechanism.to_json(),
            "noise": self.noise.to_json(),
            "charges": [charge.to_json() for charge in self.charges],
            "pure": self.pure,
            "epsilon": str(self.epsilon),
            "lifetime": {str(number): picos for number, picos in self.lifetime.items()},
            "grid": self.grid.to_json(),
            "notes": list(self.notes),
            "values": self.values.to_json(),
            "band": self.band,
        }


def factors_of(mechanism: Mechanism | EncodedMechanism) -> tuple[Fraction, ...]:
    """How wide the noise of each of a mechanism's patterns is, as a multiple of the plan's noise."""
    return mechanism.pattern_factors() if hasattr(mechanism, "pattern_factors") else (Fraction(1),) * len(mechanism.patterns())


def plan_from_json(data: dict[str, Any]) -> Plan:
    """The plan that `to_json` wrote."""
    return Plan(
        kind=data["kind"],
        measure=Measure(data["measure"]),
        grouped=data["grouped"],
        mechanism=mechanism_from_json(data["mechanism"]),
        noise=noise_from_json(data["noise"]),
        charges=tuple(charge_from_json(charge) for charge in data["charges"]),
        pure=data["pure"],
        epsilon=Fraction(data["epsilon"]),
        lifetime={int(number): picos for number, picos in data["lifetime"].items()},
        grid=grid_from_json(data["grid"]),
        notes=tuple(data["notes"]),
        values=values_from_json(data.get("values")),
        band=data.get("band", "pointwise"),
    )
