"""Running totals without end: when the horizon of a mechanism is reached, it is built anew, and its totals go on from the last one.

Epoch 1 is the mechanism as declared. Every later epoch is the same mechanism over the periods that follow, without a baseline: the total
of one of its periods is the last total of every epoch before it plus its own. Each mutation lies in one epoch, so that what it costs is
what it costs there; the noise of finished epochs stays in every later total, and stored numbers are never drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dbext.mechanisms.encoded import Row, is_encoded
from dbext.mechanisms.error import Norms
from dbext.mechanisms.protocol import Node, check_period
from dbext.mechanisms.totals import Totals
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.pattern import Filter, Pattern
from dbext.privacy.profile import Profile, Reach

Weights = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Epochs:
    """The totals of `first` and of all epochs after it. Numbers of nodes go on from epoch to epoch without a gap."""

    first: Totals

    horizon = None

    @property
    def name(self) -> str:
        """The name of the mechanism that every epoch uses."""
        return self.first.name

    @property
    def noise_only(self) -> bool:
        """Whether nodes store their noise alone."""
        return getattr(self.first, "noise_only", False)

    @property
    def whole_answers(self) -> bool:
        """Whether nodes are only added and subtracted."""
        return getattr(self.first, "whole_answers", True)

    @property
    def grid(self) -> RegularGrid | MonthGrid:
        """The grid of all periods."""
        return self.first.grid

    @property
    def length(self) -> int:
        """Periods of an epoch."""
        return self.first.horizon

    def epoch_of(self, period: int) -> int:
        """Return the epoch that a period lies in, from 1."""
        check_period(period, None)
        return (period - 1) // self.length + 1

    def epoch(self, number: int) -> Totals:
        """Return the mechanism of one epoch; its periods are numbered from 1 again."""
        return self.first if number == 1 else replace(self.first, grid=self.grid.after((number - 1) * self.length), baseline=False)

    def window(self, period: int) -> Filter:
        """Return the range of a total: it goes on from epoch to epoch."""
        return self.first.window(1)[0], self.grid.end(self.length * (self.epoch_of(period) - 1) + self._local(period))

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the nodes that the period's epoch draws when it closes."""
        return self._numbered(period, self.epoch(self.epoch_of(period)).nodes(self._local(period)))

    def leaves(self, period: int) -> tuple[Node, ...]:
        """Return the time ranges whose exact sums are needed first when the period closes."""
        return self._numbered(period, self.epoch(self.epoch_of(period)).leaves(self._local(period)))

    def answer(self, period: int) -> Weights:
        """Return the weights of the epoch's own total and of the last total of every epoch before it."""
        epoch = self.epoch_of(period)
        return (*_carried(self, epoch - 1), *self.own(epoch, self._local(period)))

    def factor(self, number: int) -> Fraction:
        """Return how wide the noise of a node is, as a multiple of the plan's: the same in every epoch."""
        return self.first.factor((number - 1) % self.first.numbers + 1 if number else 0) if hasattr(self.first, "factor") else Fraction(1)

    def pattern_factors(self) -> tuple[Fraction, ...]:
        """Return the factor of each pattern."""
        return self.first.pattern_factors() if hasattr(self.first, "factor") else (Fraction(1),) * len(self.patterns())

    def patterns(self) -> tuple[Pattern, ...]:
        """Return what the first epoch noises: later ones are charged when they are reserved."""
        return self.first.patterns()

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        return {"kind": "epochs", "first": self.first.to_json()}

    def own(self, epoch: int, local: int) -> Weights:
        """Return the weights of the total of an epoch's period, counted from the epoch's beginning."""
        offset = (epoch - 1) * self.first.numbers
        return tuple((number + offset, weight) for number, weight in self.epoch(epoch).answer(local))

    def _local(self, period: int) -> int:
        return (period - 1) % self.length + 1

    def _numbered(self, period: int, nodes: Sequence[Node]) -> tuple[Node, ...]:
        offset = (self.epoch_of(period) - 1) * self.first.numbers
        return tuple(replace(node, number=node.number + offset) for node in nodes)


@dataclass(frozen=True)
class EncodedEpochs(Epochs):
    """Epochs of a mechanism that noises encoder rows."""

    def rows(self, period: int) -> tuple[Row, ...]:
        """Return the rows that are noised when the period closes."""
        epoch = self.epoch_of(period)
        offset = (epoch - 1) * self.first.numbers
        rows = self.epoch(epoch).rows(self._local(period))
        return tuple(Row(row.number + offset, tuple((leaf + offset, weight) for leaf, weight in row.weights)) for row in rows)

    def norms(self, period: int) -> Norms:
        """Return what the weights of an answer come to, for a mechanism that knows it: those of finished epochs and its own."""
        epoch = self.epoch_of(period)
        parts = [*(self.epoch(one).norms(self.length) for one in range(1, epoch)), self.epoch(epoch).norms(self._local(period))]
        squares, sizes, largest, numbers = zip(*parts, strict=True)
        return Norms(sum(squares), sum(sizes), max(largest), sum(numbers))

    def profile(self, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 a property of the release
        """Return the joint sensitivity of the first epoch."""
        return self.first.profile(measure, grouped, limits)


def continuing(first: Totals) -> Epochs:
    """Return a mechanism that goes on when its horizon is reached."""
    return EncodedEpochs(first) if is_encoded(first) else Epochs(first)


@lru_cache(maxsize=16)
def _carried(epochs: Epochs, finished: int) -> Weights:
    """Return the weights of the last totals of so many epochs."""
    return tuple(pair for epoch in range(1, finished + 1) for pair in epochs.own(epoch, epochs.length))
