"""What every mechanism offers: nodes that are noised once, ever, and answers put together from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from dbext.errors import BadArgument, HorizonReached
from dbext.privacy.pattern import Filter, Pattern


@dataclass(frozen=True)
class Node:
    """One noised sum: the effect of the ticks in (start, end]; a start of None reaches back to the beginning."""

    number: int
    start: int | None
    end: int


class Mechanism(Protocol):
    """Periods are numbered from 1. Every answer is post-processing of nodes drawn at its period or before."""

    name: str

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""

    def window(self, period: int) -> Filter:
        """Return the range of ticks that the answer of a period is about."""

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the nodes that are summed and noised when the period closes, and never again."""

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return (node number, coefficient) pairs whose weighted sum is the answer of the period."""

    def patterns(self) -> tuple[Pattern, ...]:
        """Return every filter that will ever be noised, each exactly once. Each pattern becomes one charge, best a single one."""

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""


def check_period(period: int, horizon: int | None) -> None:
    """Refuse a period that is not between 1 and the horizon."""
    if period < 1:
        raise BadArgument(f"periods are numbered from 1, not {period}")
    if horizon is not None and period > horizon:
        raise HorizonReached(
            f"period {period} lies beyond the horizon of {horizon}",
            hint="Declare a new release: its periods are charged anew.",
        )
