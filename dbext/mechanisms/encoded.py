"""What a mechanism offers that noises encoder rows instead of time ranges.

An interval mechanism noises the exact sum of each time range once. An encoded one keeps the exact counts of disjoint **leaves** (periods;
private, never published) and noises whole-number combinations of them, one **row** per period. Its rows overlap, so that its loss
is not a sum over filters but comes from the joint sensitivity `profile`; the ledger counts touched leaves and charges the profile's
cost per touch, or the certified lifetime loss of the release, whichever is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from dbext.mechanisms.protocol import Node
from dbext.privacy.measure import Measure
from dbext.privacy.pattern import Filter, Pattern
from dbext.privacy.profile import Profile, Reach


@dataclass(frozen=True)
class Row:
    """One noised number: the sum of weight times exact count over leaves, plus noise. It is drawn once, when its period closes."""

    number: int
    weights: tuple[tuple[int, int], ...]


class EncodedMechanism(Protocol):
    """Periods are numbered from 1. Every answer is post-processing of the noisy rows of its period and before."""

    name: str

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""

    def window(self, period: int) -> Filter:
        """Return the range of ticks that the answer of a period is about."""

    def leaves(self, period: int) -> tuple[Node, ...]:
        """Return the disjoint time ranges whose exact counts become known when the period closes; private."""

    def rows(self, period: int) -> tuple[Row, ...]:
        """Return the rows that are noised when the period closes, and never again."""

    def answer(self, period: int) -> tuple[tuple[int, float], ...]:
        """Return (row number, weight) pairs: the weighted sum of the noisy rows is the unbiased answer of the period."""

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the leaves: a mutation touches exactly one of them."""

    def profile(self, measure: Measure, grouped: bool, limits: Reach) -> Profile:  # noqa: FBT001 a property of the release
        """Return proven bounds on what an entry within the limits does to all rows together, in squared units of the encoder."""

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""


def is_encoded(mechanism: object) -> bool:
    """Whether a mechanism noises encoder rows, so that its answers are no whole numbers."""
    return hasattr(mechanism, "rows")
