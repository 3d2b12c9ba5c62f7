"""What is tracked and promised: tracked tables, their columns as the compiler sees them, and their entry types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dbext.database.identifiers import shown
from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.errors import BadArgument, UnknownObject
from dbext.privacy.constraint import Constraint, EntryType
from dbext.query.calendar import Tick
from dbext.query.column import Column

SQL = statements("catalog")

#: Built-in types by what a predicate may do with them; all others are 'other'.
BASES = {
    "text": "text",
    "character varying": "text",
    "boolean": "bool",
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "numeric": "numeric",
    "real": "float",
    "double precision": "float",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "uuid": "uuid",
}

#: Entries admitted before any constraint existed.
UNCONSTRAINED = EntryType(0, "unconstrained", Constraint())


@dataclass(frozen=True)
class TrackedTable:
    """A tracked table. `sealed_tick` is its last closed tick; `tracked` is false while nothing is captured (untracked or dropped).

    `rows_per_unit` is how many rows of an entry count at most; None: an entry is one row.
    """

    table_id: int
    schema_name: str
    table_name: str
    relation: int
    budget_id: int | None
    tick: Tick
    time_zone: str
    first_tick: int
    tracked: bool
    sealed_unconstrained: bool
    sealed_tick: int
    forgotten_through: int | None = None
    rows_per_unit: int | None = None

    @property
    def history_begins(self) -> int:
        """The first boundary at which a window may begin."""
        return max(self.first_tick - 1, self.first_tick - 1 if self.forgotten_through is None else self.forgotten_through)

    @property
    def shown_name(self) -> str:
        """The name with its schema, as messages show it."""
        return f"{shown(self.schema_name)}.{shown(self.table_name)}"


@dataclass(frozen=True)
class StoredType:
    """An entry type. `applies_to`: its stored predicate, None for the default type; `loosest`: what the accountant counts with."""

    number: int
    name: str
    applies_to: Any | None
    applies_to_text: str | None
    constraint: Constraint
    at_limit: str
    loosest: Constraint


def tracked_table(session: Session, table_id: int) -> TrackedTable:
    """Return a tracked table by its number; UnknownObject if there is none."""
    rows = session.fetch(SQL["table"], table_id)
    if not rows:
        raise UnknownObject(f"there is no tracked table number {table_id}")
    row = dict(rows[0])
    return TrackedTable(tick=Tick(row.pop("tick_kind"), row.pop("tick_size")), **row)


def tracked_by_regclass(session: Session, tbl: str) -> TrackedTable:
    """Return the tracked table behind the text of an OID or of a regclass, tracked now or before."""
    rows = session.fetch(SQL["by_relation"], tbl)
    if not rows:
        raise UnknownObject("there is no such table")
    if rows[0]["table_id"] is None:
        raise UnknownObject(f"table {rows[0]['name']} is not tracked", hint="Its owner tracks it with dp_track.")
    return tracked_table(session, rows[0]["table_id"])


def tracked_by_name(session: Session, schema: str | None, name: str) -> TrackedTable:
    """Return the one tracked table of a name that the caller may read."""
    rows = session.fetch(SQL["by_name"], schema, name)
    wanted = name if schema is None else f"{schema}.{name}"
    if not rows:
        raise UnknownObject(
            f'no tracked table "{wanted}" that you may read or ask about',
            hint="Check its name and schema. Its owner tracks it with dp_track, and lets others ask about it with dp_grant.",
        )
    if len(rows) > 1:
        raise BadArgument(f'several tracked tables are called "{wanted}"', hint="Write its schema before the name.")
    return tracked_table(session, rows[0]["table_id"])


def columns(session: Session, table_id: int, *, gone: bool = False) -> tuple[Column, ...]:
    """Return the tracked columns in order of position; what was dropped or given another type since is left out unless `gone`.

    Releases that were declared before go on with such a column: it is captured as NULL from then on.
    """
    return tuple(_column(row) for row in _column_rows(session, table_id) if gone or not row["gone"])


def stored_columns(session: Session, table_id: int) -> tuple[tuple[Column, bool], ...]:
    """Return the columns of the run-time tables in order of position, those included whose source column is gone (NULL since).

    Each comes with whether IS DISTINCT FROM works for its type.
    """
    return tuple((_column(row), row["by_value"]) for row in _column_rows(session, table_id))


def _column_rows(session: Session, table_id: int) -> list[dict[str, Any]]:
    """Read what statements name, once nobody can give another type or operator its name before this transaction ends."""
    session.fetch(SQL["hold_types"], table_id)
    return session.fetch(SQL["columns"], table_id)


def _column(row: dict[str, Any]) -> Column:
    base = "enum" if row["is_enum"] else BASES.get(row["type_name"], "other")
    # LIKE does not work under every nondeterministic collation, and a predicate must never fail.
    if base == "text" and not row["deterministic"]:
        base = "other"
    per_unit = None if row["is_unit"] else row["rows_per_unit"]
    operators = {sign: row[name] for sign, name in (("=", "equal"), ("<", "less")) if row[name] is not None}
    return Column(
        name=row["column_name"],
        position=row["position"],
        type_name=row["type_name"],
        category=row["category"],
        base=base,
        is_unit=row["is_unit"],
        enum_labels=tuple(row["labels"]),
        operators=operators,
        literal_type=row["literal_type"],
        # Long texts and numbers of units of several rows are NULL.
        not_null=row["not_null"] and (per_unit is None or not is_cut(row["category"], base)),
        per_unit=per_unit,
        is_key=row["is_key"],
    )


def is_cut(category: str, base: str) -> bool:
    """Whether values of a type may be of any length, so that images of several rows hold the shorter ones alone."""
    return category == "S" or base == "numeric"


def entry_types(session: Session, table_id: int) -> tuple[StoredType, ...]:
    """Return the declared entry types, in the order in which they are tried."""
    return tuple(
        StoredType(
            number=row["type_no"],
            name=row["name"],
            applies_to=None if row["applies_to"] is None else json.loads(row["applies_to"]),
            applies_to_text=row["applies_to_text"],
            constraint=Constraint(row["max_mutations"], row["active_within"]),
            at_limit=row["at_limit"],
            loosest=Constraint(row["loosest_max_mutations"], row["loosest_active_within"]),
        )
        for row in session.fetch(SQL["entry_types"], table_id)
    )


def accounted_types(session: Session, table: TrackedTable) -> tuple[EntryType, ...]:
    """Return the entry types as the accountant counts them: under the loosest constraint ever in force.

    Entries that were admitted while no type existed obey no constraint; so do all entries of a table without types.
    """
    types = tuple(EntryType(t.number, t.name, t.loosest) for t in entry_types(session, table.table_id))
    return (UNCONSTRAINED, *types) if table.sealed_unconstrained or not types else types


def protected_subject(session: Session, table_id: int) -> str:
    """Return what is protected, in words."""
    return session.fetch(SQL["protected_subject"], table_id)[0]["subject"]
