"""What a demo is made of: a table, the promises about its entries, the statistics, and a year of mutations.

A `Scenario` says everything twice, on purpose: in SQL for the database, and as plain Python predicates for the independent
computation of the exact series, which must not lean on any code that the releases themselves went through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

#: One state of an entry: column name -> value, the key column left out.
Image = Mapping[str, Any]


@dataclass(frozen=True)
class Mutation:
    """One change of one entry on one local day. `image` None deletes; a key not present before is an insert."""

    day: date
    key: int
    image: Image | None


@dataclass(frozen=True)
class Column:
    """A column of the tracked table. `updated`: updates set it (the others are written by the insert only)."""

    name: str
    type_name: str
    updated: bool = False
    constraint: str = ""


@dataclass(frozen=True)
class Rule:
    """A mutation constraint of one entry type. `applies_to` (SQL) and `matches` (Python) say the same; None is the default type."""

    name: str
    reason: str
    applies_to: str | None = None
    matches: Callable[[Image], bool] | None = None
    max_mutations: int | None = None
    active_within_days: int | None = None
    leaves_at_limit: bool = False


@dataclass(frozen=True)
class Statistic:
    """One release. `declaration` (SQL) and `satisfies`, `group_column`, `window_days` (Python) say the same.

    `window_days` None counts from the beginning; `measure` is 'state' or 'entered'; `horizon` is in periods of one day.
    """

    name: str
    title: str
    meaning: str
    declaration: str
    measure: str
    epsilon: str
    satisfies: Callable[[Image], bool]
    window_days: int | None
    group_column: str | None = None
    groups: str | None = None
    horizon: int | None = None


@dataclass(frozen=True)
class Question:
    """What an analyst asks in the demo (days of the window: start included, end not), and the epsilon that must be refused.

    `predicate` (SQL) and `satisfies` (Python) say the same.
    """

    words: str
    window_start: date
    window_end: date
    predicate: str
    satisfies: Callable[[Image], bool]
    measure: str
    epsilon: str
    refused_epsilon: str


@dataclass(frozen=True)
class Scenario:
    """A demo from table definition to last mutation. Mutations are in order of time; days run from `first_day` to `last_day`."""

    title: str
    source: str
    entry_word: str
    table: str
    key: str
    columns: tuple[Column, ...]
    key_table: str
    group_keys: tuple[str, ...]
    shown_groups: tuple[str, ...]
    time_zone: str
    rules: tuple[Rule, ...]
    epsilon: str
    delta: str
    statistics: tuple[Statistic, ...]
    question: Question
    mutations: tuple[Mutation, ...]
    first_day: date
    last_day: date
    sample_day: date

    @property
    def entries(self) -> int:
        """Number of entries that appear in the mutations."""
        return len({mutation.key for mutation in self.mutations})

    def columns_sql(self) -> str:
        """Return the column definitions of the tracked table."""
        lines = [f"{self.key} bigint PRIMARY KEY"]
        lines += [f"{c.name} {c.type_name} {c.constraint}".rstrip() for c in self.columns]
        return ",\n    ".join(lines)
