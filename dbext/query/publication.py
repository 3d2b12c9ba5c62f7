"""What a release publishes: streams of noisy statistics, and figures worked out from them. Frozen, and the same after JSON.

Most releases publish one figure from one stream. Several figures share streams where they need the same statistic, and windows of several
lengths share one where that costs less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dbext.mechanisms.shared_windows import AnyWindow
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import EntryType
from dbext.query.column import Column
from dbext.query.plan import Plan, plan_from_json
from dbext.query.predicate import Predicate
from dbext.query.predicate_json import from_json, to_json
from dbext.query.spread import Spread, spread_from_json
from dbext.query.statistic import Formula, Statistic, Term, formula_from_json, term_from_json


@dataclass(frozen=True)
class Stream:
    """One statistic noised by one plan, `spread` over counts by value if that is set.

    `windows` are the numbers of periods it answers for, if several; `share` of the budget.
    """

    predicate: Predicate | None
    term: Term | None
    plan: Plan
    windows: tuple[int, ...] = ()
    share: float = 1.0
    spread: Spread | None = None

    @property
    def width(self) -> int:
        """How many cells a group key has."""
        return 1 if self.spread is None else self.spread.cells

    def to_json(self) -> dict[str, Any]:
        """The form that `_stream_from_json` reads; the plan is kept apart."""
        return {
            "predicate": None if self.predicate is None else to_json(self.predicate),
            "term": None if self.term is None else self.term.to_json(),
            "windows": list(self.windows),
            "share": self.share,
        } | ({} if self.spread is None else {"spread": self.spread.to_json()})


@dataclass(frozen=True)
class Reading:
    """Where a noisy statistic is read: the place of its stream, and the number of periods if that answers for several windows."""

    stream: int
    window: int | None = None


@dataclass(frozen=True)
class Publication:
    """Streams, what is read from them, and the figures.

    `epsilon` is what the release promises never to exceed, `lifetime` the exact loss of all charges together, by type, in picos.
    """

    streams: tuple[Stream, ...]
    readings: tuple[Reading, ...]
    formulas: tuple[Formula, ...]
    epsilon: Fraction
    lifetime: Mapping[int, int]
    notes: tuple[str, ...] = ()

    @property
    def main(self) -> Plan:
        """The plan of the first stream; all agree on periods, measure and kind of budget."""
        return self.streams[0].plan

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the figures."""
        return tuple(formula.label for formula in self.formulas)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What is charged, for all streams."""
        return tuple(charge for stream in self.streams for charge in stream.plan.charges)

    @property
    def horizon(self) -> int | None:
        """Number of periods that noise is calibrated for: those of an epoch, if there are epochs; None is endless."""
        return self.main.horizon

    @property
    def renews(self) -> bool:
        """Whether a new epoch of every stream begins at the horizon."""
        return self.main.renews

    def charges_of_epoch(self, number: int, types: Sequence[EntryType]) -> tuple[Charge, ...]:
        """What an epoch of all streams costs beside those before it."""
        return tuple(charge for stream in self.streams for charge in stream.plan.charges_of_epoch(number, types))

    def of_stream(self, charges: Sequence[Charge], place: int) -> list[Charge]:
        """Those of the release's charges, an epoch at a time or several, that are for one stream."""
        counts = [len(stream.plan.charges) for stream in self.streams]
        first, total = sum(counts[:place]), sum(counts)
        return [charge for n, charge in enumerate(charges) if first <= n % total < first + counts[place]]

    def statistic(self, place: int) -> Statistic:
        """What is read at a place."""
        stream = self.streams[self.readings[place].stream]
        return Statistic(stream.predicate, stream.term, spread=stream.spread)

    def width(self, place: int) -> int:
        """How many cells of a group key are read at a place."""
        return self.streams[self.readings[place].stream].width

    def mechanism(self, place: int) -> Any:
        """What answers for a reading: its stream's mechanism, turned to the reading's window if it knows several."""
        reading = self.readings[place]
        mechanism = self.streams[reading.stream].plan.mechanism
        return mechanism if reading.window is None else AnyWindow(mechanism, reading.window)

    def window(self, period: int) -> tuple[int | None, int]:
        """The ticks that period n is about: those of its longest window."""
        windows = [self.mechanism(place).window(period) for place in range(len(self.readings))]
        starts = [start for start, _ in windows if start is not None]
        return min(starts) if len(starts) == len(windows) else None, max(end for _, end in windows)

    def to_json(self) -> dict[str, Any]:
        """The form that `publication_from_json` reads, without the plan of the first stream."""
        return {
            "streams": [stream.to_json() for stream in self.streams],
            "further_plans": [stream.plan.to_json() for stream in self.streams[1:]],
            "readings": [[reading.stream, reading.window] for reading in self.readings],
            "formulas": [formula.to_json() for formula in self.formulas],
            "epsilon": str(self.epsilon),
            "lifetime": {str(number): picos for number, picos in self.lifetime.items()},
            "notes": list(self.notes),
        }


def publication_from_json(plan: dict[str, Any], data: dict[str, Any], columns: Sequence[Column]) -> Publication:
    """The publication that `to_json` wrote, from the plan of its first stream and the rest."""
    plans = [plan_from_json(one) for one in (plan, *data["further_plans"])]
    return Publication(
        tuple(_stream_from_json(one, made, columns) for one, made in zip(data["streams"], plans, strict=True)),
        tuple(Reading(*reading) for reading in data["readings"]),
        tuple(formula_from_json(one) for one in data["formulas"]),
        Fraction(data["epsilon"]),
        {int(number): picos for number, picos in data["lifetime"].items()},
        tuple(data["notes"]),
    )


def _stream_from_json(data: dict[str, Any], plan: Plan, columns: Sequence[Column]) -> Stream:
    predicate = None if data["predicate"] is None else from_json(data["predicate"], columns)
    spread = spread_from_json(data.get("spread"), columns)
    return Stream(predicate, term_from_json(data["term"], columns), plan, tuple(data["windows"]), data["share"], spread)
