"""Counts by value: what quantiles are read from. The grid between the bounds of a column is cut into blocks of one or several lengths.

A quantile needs the counts below each value of the grid. With one count for each value these are sums of up to all of them; with blocks
of several lengths, each noised by itself, they are sums of a few. The budget is split over the lengths, so that few values are better off
without blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dbext.query.bounds import Bounds, bounds_from_json
from dbext.query.column import Column
from dbext.query.predicate import ColumnRef
from dbext.query.predicate_json import from_json, to_json
from dbext.query.refusal import refused

#: Most values of a grid that quantiles are read from.
MAX_VALUES = 4096
_MOST_LENGTHS = 4


@dataclass(frozen=True)
class Spread:
    """The number of entries in each block of `block` successive values of the grid; `parent` is the next longer block, 0 for none."""

    column: ColumnRef
    bounds: Bounds
    block: int = 1
    parent: int = 0

    @property
    def values(self) -> int:
        """How many values the grid has."""
        low, high = self.bounds.units
        return high - low + 1

    @property
    def cells(self) -> int:
        """How many blocks there are."""
        return -(-self.values // self.block)

    @property
    def weight(self) -> float:
        """How many noises of one block a median holds, about, as a variance: a quarter of the blocks beside the one it lies in."""
        beside = (self.parent // self.block if self.parent else self.cells) - (self.block > 1)
        return max(beside, 1) / 4

    def to_json(self) -> dict[str, Any]:
        """The form that `spread_from_json` reads."""
        return {"column": to_json(self.column), "bounds": self.bounds.to_json(), "block": self.block, "parent": self.parent}


def spread_from_json(data: dict[str, Any] | None, columns: Sequence[Column]) -> Spread | None:
    """The spread that `to_json` wrote; None is a count or a sum."""
    if data is None:
        return None
    return Spread(from_json(data["column"], columns), bounds_from_json(data["bounds"]), data["block"], data["parent"])


def spreads_of(column: ColumnRef, bounds: Bounds, *, pure: bool) -> tuple[Spread, ...]:
    """The counts that quantiles of a column need, longest blocks first: of one length or several, whichever errs least in rank.

    With errors v of each length at the whole budget, their sum at the best split is (sum of v^(1/3))^3 where variance falls with epsilon
    squared, and (sum of v^(1/2))^2 where it falls with rho.
    """
    power = 3 if pure else 2
    choices = [_cut(column, bounds, lengths) for lengths in range(1, _MOST_LENGTHS + 1)]
    return min(choices, key=lambda made: sum(one.weight ** (1 / power) for one in made) ** power)


def _cut(column: ColumnRef, bounds: Bounds, lengths: int) -> tuple[Spread, ...]:
    """Blocks of so many lengths, each as many times longer than the next."""
    values = Spread(column, bounds).values
    times = next(n for n in range(1, values + 1) if n**lengths >= values)
    blocks = dict.fromkeys(times**power for power in reversed(range(lengths)))
    parents = [0, *blocks]
    return tuple(Spread(column, bounds, block, parent) for block, parent in zip(blocks, parents, strict=False))


def margin(spread: Spread) -> Fraction:
    """How far a value may lie from the one it is rounded to."""
    half = spread.bounds.grid / 2
    whole = spread.column.column.base == "integer" and spread.bounds.grid.denominator == 1
    return Fraction(half.__floor__()) if whole else half


def require_few(bounds: Bounds, offset: int | None) -> None:
    """Refuse a grid of more values than quantiles are read from."""
    low, high = bounds.units
    if high - low >= MAX_VALUES:
        raise refused(
            f"the grid has more than {MAX_VALUES} values between the bounds",
            offset,
            "Give quantiles a coarser one: ORDER BY dp_bounds(age, 0, 100, 5).",
        )
