"""Mutation constraints: how much an entry may ever change, by entry type."""

from __future__ import annotations

from dataclasses import dataclass

from dbext.errors import BadArgument


@dataclass(frozen=True)
class Constraint:
    """At most `max_mutations` ticks change an entry, all of them within `active_within` ticks of the first. None is no limit.

    `active_within` is a closed span of tick numbers: w = 0 means one single tick. Admission enforces both for every database, and keeps
    the last of k >= 2 slots for a departure: the k-th mutation of an entry, if it comes, leaves it absent.
    """

    max_mutations: int | None = None
    active_within: int | None = None

    def __post_init__(self):
        if self.max_mutations is not None and self.max_mutations < 1:
            raise BadArgument(f"max_mutations must be at least 1, not {self.max_mutations}")
        if self.active_within is not None and self.active_within < 0:
            raise BadArgument(f"active_within must not be negative, but is {self.active_within} ticks")

    @property
    def is_bounded(self) -> bool:
        """Whether an entry's life has any limit at all."""
        return self.max_mutations is not None or self.active_within is not None

    def allows(self, other: Constraint) -> bool:
        """Whether every entry that obeys `other` obeys this one."""
        return self.loosest(other) == self

    def loosest(self, other: Constraint) -> Constraint:
        """Return a constraint that everything allowed by either obeys."""
        return Constraint(
            _larger(self.max_mutations, other.max_mutations),
            _larger(self.active_within, other.active_within),
        )


@dataclass(frozen=True)
class EntryType:
    """A class of entries with one constraint; an entry's type is fixed by its first image."""

    number: int
    name: str
    constraint: Constraint


def _larger(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)
