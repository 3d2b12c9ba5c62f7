"""Bins: group keys that are public by construction, numbered as PostgreSQL's width_bucket numbers its buckets.

Bucket 0 lies before the first edge, the last one from the last edge on; every bucket is published in every window. What an entry's bucket
is must never change while a release lives, or its moves would not telescope. The rounding of width_bucket over equal bins of doubles has
differed between versions of PostgreSQL. So the server is asked once, when a release is declared, at which values its buckets change
(`cuts`), and values are compared with those for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dbext.query.column import Column
from dbext.query.exact import exact_decimal
from dbext.query.predicate import ColumnRef
from dbext.query.predicate_json import from_json, to_json
from dbext.query.refusal import refused

#: Most edges of one width_bucket.
MAX_EDGES = 1000
#: Whole numbers up to here are doubles; edges lie within.
LARGEST_EDGE = 2**53
#: Digits after the point of an edge.
MAX_SCALE = 30


@dataclass(frozen=True)
class Bins:
    """`width_bucket(column, low, high, count)`, whose bins are `equal`, or `width_bucket(column, ARRAY[...])`.

    `written` holds the numbers as they stand in the text: low and high, or the array. Equal bins may run from high to low; then each holds
    its upper edge. `cuts` ascend, in what `unit` says: bucket n holds the values from the n-th cut on, or of what runs downwards the
    negated ones. They are empty for equal bins of whole numbers and doubles until the server has told them.
    """

    column: ColumnRef
    written: tuple[str, ...]
    count: int = 0
    label: str = "width_bucket"
    cuts: tuple[str, ...] = ()
    offset: int | None = field(default=None, compare=False)

    @property
    def equal(self) -> bool:
        """Whether the bins are of one width, between two bounds."""
        return self.count > 0

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """Where one bucket ends and the next begins, in order of buckets."""
        numbers = [Fraction(Decimal(text)) for text in self.written]
        if not self.equal:
            return tuple(numbers)
        low, high = numbers
        return tuple(low + (high - low) * Fraction(place, self.count) for place in range(self.count + 1))

    @property
    def buckets(self) -> int:
        """How many buckets there are, those beyond the edges included; they are numbered from 0."""
        return (self.count if self.equal else len(self.written) - 1) + 2

    @property
    def descending(self) -> bool:
        """Whether the bins run from high to low."""
        return self.equal and Decimal(self.written[0]) > Decimal(self.written[1])

    @property
    def unit(self) -> int:
        """What values are multiplied by before they are compared: edges of numerics need not be decimals, so many of them together are."""
        return self.count if self.equal and self.column.column.base == "numeric" else 1

    @property
    def from_server(self) -> bool:
        """Whether the server must tell the cuts: what it works out with doubles is rounded in its own way."""
        return self.equal and self.column.column.base != "numeric"

    @property
    def shown(self) -> tuple[Fraction, ...]:
        """The edges as they are published, ascending: of whole numbers the first one in each bin."""
        if self.from_server and self.cuts and self.column.column.base == "integer":
            return tuple(sorted(-Fraction(cut) if self.descending else Fraction(cut) for cut in self.cuts))
        return tuple(sorted(self.edges))

    def limits(self, bucket: int) -> tuple[Fraction | None, Fraction | None]:
        """The lower and the upper end of a bucket; None is open."""
        ends = (None, *self.shown, None)
        place = self.buckets - 1 - bucket if self.descending else bucket
        return ends[place], ends[place + 1]

    def bound(self, column: ColumnRef) -> Bins:
        """The bins of a column that is known now; with their cuts, unless the server must tell them."""
        made = replace(self, column=column)
        if made.from_server:
            return made
        sign = -1 if made.descending else 1
        return replace(made, cuts=tuple(exact_decimal(sign * made.unit * edge) for edge in made.edges))

    def to_json(self) -> dict[str, Any]:
        """The form that `bins_from_json` reads."""
        return {
            "column": to_json(self.column),
            "written": list(self.written),
            "count": self.count,
            "label": self.label,
            "cuts": list(self.cuts),
        }


def bins_from_json(data: dict[str, Any], columns: Sequence[Column]) -> Bins:
    """The bins that `to_json` wrote."""
    return Bins(from_json(data["column"], columns), tuple(data["written"]), data["count"], data["label"], tuple(data["cuts"]))


def checked(bins: Bins) -> Bins:
    """The bins, if PostgreSQL would take them and they can be published."""
    if bins.equal and Decimal(bins.written[0]) == Decimal(bins.written[1]):
        raise refused("the lower bound of width_bucket() equals its upper bound", bins.offset)
    if bins.buckets > MAX_EDGES + 1:
        raise refused(f"width_bucket() has more than {MAX_EDGES} edges", bins.offset, "Every bin is noised by itself: fewer tell more.")
    if not bins.equal and any(a >= b for a, b in zip(bins.edges, bins.edges[1:], strict=False)):
        raise refused("the thresholds of width_bucket() must ascend", bins.offset, "Write them in order, each once.")
    return bins


def edge(text: str, offset: int | None) -> str:
    """A number that can be an edge, as it was written."""
    number = Decimal(text)
    _, _, exponent = number.as_tuple()
    if abs(number) > LARGEST_EDGE or exponent < -MAX_SCALE:
        raise refused(
            f"an edge of bins lies between -{LARGEST_EDGE} and {LARGEST_EDGE} and has at most {MAX_SCALE} digits after the point", offset
        )
    return text
