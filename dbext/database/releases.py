"""Declared releases, their frozen group keys and the columns that keys may be read from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dbext.database import catalog
from dbext.database.effects import GroupColumn
from dbext.database.identifiers import qualified, quote_ident, shown
from dbext.database.session import DatabaseError, Session
from dbext.database.statements import statements
from dbext.errors import BadArgument, NotPermitted, NotSupported, UnknownObject

SQL = statements("releases")

#: Most cells of one release: a node is one array of this many numbers.
MAX_CELLS = 100_000


@dataclass(frozen=True)
class Release:
    """A declared release as the catalog keeps it; `content` holds plan, declaration and request as JSON."""

    release_id: int
    name: str
    table_id: int
    content: dict[str, Any]
    state: str
    next_period: int
    created_by: str
    declaration: str = ""
    next_answer: int = 1
    next_end: int | None = None
    summed_through: int = 0


def from_row(session: Session, row: dict[str, Any]) -> Release:
    """Return a release from a row of its columns. Keys taken from the data have more cells by and by than when it was declared.

    They are counted in a statement of their own, which sees what whoever held the lock before has committed.
    """
    content = json.loads(row["plan"])
    if content.get("key_checks"):
        content["cells"] = session.fetch(SQL["cells"], row["release_id"])[0]["cells"]
    content["columns"] = named_as_now(session, row["table_id"], content.get("columns", []))
    return Release(content=content, **{key: value for key, value in row.items() if key != "plan"})


def named_as_now(session: Session, table_id: int, kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return kept columns with the names that their types and operators have now, if they are not PostgreSQL's own.

    Whoever owns a schema can rename it, and put another one in its place whose types and operators would run code with our rights.
    """
    if all(one["literal_type"].startswith("pg_catalog.") for one in kept):
        return kept
    present = {column.position: column for column in catalog.columns(session, table_id, gone=True)}
    return [
        {**one, "literal_type": now.literal_type, "operators": dict(now.operators)} if (now := present.get(one["position"])) else one
        for one in kept
    ]


def by_name(session: Session, name: str | None) -> Release:
    """Return a release that was not dropped; UnknownObject if there is none."""
    if not name:
        raise BadArgument("the release's name is missing")
    rows = session.fetch(SQL["by_name"], name)
    if not rows:
        raise UnknownObject(f"there is no release {shown(name)}", hint="TABLE dbext.release_status lists the releases.")
    return from_row(session, rows[0])


def lock(session: Session, release_id: int) -> Release:
    """Take a release's row until the transaction ends, and return it as it is now."""
    rows = session.fetch(SQL["lock"], release_id)
    if not rows:
        raise UnknownObject(f"there is no release number {release_id}")
    return from_row(session, rows[0])


def try_lock(session: Session, release_id: int) -> Release | None:
    """Take a release's row until the transaction ends; None if someone else has it."""
    rows = session.fetch(SQL["try_lock"], release_id)
    return from_row(session, rows[0]) if rows else None


def require_labels(session: Session, release: Release) -> None:
    """Refuse a release of a table whose enum labels were renamed: its predicate, kept as text, would count something else than before.

    Counts of two meanings do not telescope, so that one entry could move a node by more than is charged.
    """
    if session.fetch(SQL["relabelled"], release.release_id)[0]["relabelled"]:
        raise NotSupported(
            f'labels of an enum type were renamed since release "{release.name}" was declared, which changes what it counts',
            hint="Drop it with dp_drop_release and declare it anew, or give the labels their old names back.",
        )


def require_readable(session: Session, release: Release, column: str) -> None:
    """Refuse a caller who may not read the values of a release table: whoever may is shown nothing new by sums of its nodes."""
    readable = session.fetch(SQL["readable"], release.name, column)[0]["readable"]
    if readable is None:
        raise UnknownObject(
            f"column {shown(column)} of dp_release.{release.name} was dropped or renamed by hand",
            hint=f"Give it its name back, or end the release: SELECT dp_drop_release('{release.name}');",
        )
    if not readable:
        raise NotPermitted(
            f"you may not read column {shown(column)} of dp_release.{release.name}",
            hint="Members of dbext_reader may, once a superuser has admitted them: GRANT USAGE ON SCHEMA dbext, dp_release TO role;",
        )


def keys(session: Session, release: Release) -> list[list[str]]:
    """Return the frozen group keys in order of cell; one empty key without groups."""
    return [row["key_values"] for row in session.fetch(SQL["keys"], release.release_id)]


def is_gapped(session: Session, table_id: int, start: int | None, end: int) -> bool:
    """Whether schema changes kept mutations of a range from being captured."""
    return session.fetch(SQL["is_gapped"], table_id, start, end)[0]["gapped"]


def is_taken(session: Session, name: str) -> bool:
    """Whether a release or another relation in schema dp_release has the name."""
    return session.fetch(SQL["taken"], name)[0]["taken"]


class Begins(NamedTuple):
    """The tick that the first period ends at, the last tick that is summed as a whole, and the tick that closes the horizon, if any."""

    next_end: int
    summed_through: int
    horizon_end: int | None


def next_number(session: Session) -> int:
    """Return a number for a release that is about to be declared."""
    return session.fetch(SQL["next_number"])[0]["number"]


def add(session: Session, number: int, name: str, table_id: int, declaration: str, content: dict, begins: Begins, by: str) -> None:
    """Record a release under its number."""
    ticks = (begins.next_end, begins.summed_through)
    session.execute(SQL["add"], name, table_id, declaration, content, *ticks, by, number, begins.horizon_end)


def advance(
    session: Session, release: Release, next_period: int, next_end: int | None, summed_through: int, horizon_end: int | None
) -> None:
    """Note what was drawn; a release without a next period is finished."""
    state = "active" if next_end is not None else "finished"
    session.execute(SQL["advance"], release.release_id, next_period, next_end, summed_through, state, horizon_end)


def answered(session: Session, release: Release, next_answer: int, last_end: int) -> None:
    """Note what was written into the release table."""
    session.execute(SQL["answered"], release.release_id, next_answer, last_end)


def mark_dropped(session: Session, release_id: int) -> None:
    """End a release for good."""
    session.execute(SQL["drop"], release_id)


def collations(session: Session, table_id: int) -> dict[int, str]:
    """Return the collations that the changes of a table are compared under, by column position; columns without one are left out."""
    return {row["position"]: row["collation"] for row in session.fetch(SQL["collations"], table_id)}


def freeze_keys(session: Session, release_id: int, keys: Sequence[Sequence[str | None]], *, hidden: bool = False) -> None:
    """Store the group keys of a release; the place in the sequence is the cell. Hidden ones have no rows until they are shown."""
    flat = [value for key in keys for value in key]
    width = len(keys[0]) if keys else 0
    session.execute(SQL["add_keys"], release_id, flat, width, len(keys), None if hidden else 1)


def hidden_cells(session: Session, release_id: int) -> list[int]:
    """Return the cells whose keys have no rows yet."""
    return [row["cell"] for row in session.fetch(SQL["hidden_cells"], release_id)]


def shown_cells(session: Session, release_id: int) -> dict[int, int]:
    """Return the first period that each cell with rows has one in."""
    return {row["cell"]: row["shown_from"] for row in session.fetch(SQL["shown_cells"], release_id)}


def show_keys(session: Session, release_id: int, first: dict[int, int]) -> None:
    """Let cells have rows from a period on, each from its own."""
    session.execute(SQL["show_keys"], release_id, list(first), list(first.values()))


def distinct_keys(
    session: Session, groups: Sequence[GroupColumn], rows: Sequence[Sequence[str | None]], *, ordered: bool = False
) -> list[list[str]]:
    """Return keys as their columns' types write them, each once under the types' own equality: in order of appearance, or of value.

    Texts become values and texts again through the types' input and output functions, never through a cast (see `keys_sql`).
    Raises BadArgument if a key is NULL, is not a value of its column's type, or if there are none or too many.
    """
    if any(value is None for row in rows for value in row):
        raise BadArgument("a group key is NULL: NULL is equal to nothing, so that its group could hold no entry")
    places = range(1, len(groups) + 1)
    names = ", ".join(f"t.g{place}" for place in places)
    texts = ", ".join(f"format('%s', d.g{place})" for place in places)
    defined = ", ".join(group.defined(place) for place, group in zip(places, groups, strict=True))
    sql = (
        f"SELECT ARRAY[{texts}] AS key FROM (SELECT DISTINCT ON ({names}) t.* "
        f"FROM jsonb_to_recordset($1::jsonb) AS t(n integer, {defined}) ORDER BY {names}, t.n) AS d "
        f"ORDER BY {names.replace('t.', 'd.') if ordered else 'd.n'}"
    )
    values = [{"n": n, **{f"g{place}": value for place, value in zip(places, row, strict=True)}} for n, row in enumerate(rows)]
    try:
        found = session.fetch(sql, json.dumps(values))
    except DatabaseError as fault:
        if fault.sqlstate.startswith("22"):
            raise BadArgument("a group key is not a value of its column's type") from fault
        raise
    return _checked([row["key"] for row in found])


def public_keys(session: Session, group: GroupColumn, schema: str | None, table: str, column: str) -> list[list[str]]:
    """Return the distinct values of a column that was marked public, as the group column's type writes them, in its order.

    A view in place of the table would run its code as dbext_owner. So the name is looked up once, by a view of our own that lives as
    long as this takes; what that view is bound to, and keeps locked, is checked to be an ordinary table; and only then is it read.
    """
    mark = _mark(session, schema, table, column)
    bound = f"keys_{os.urandom(8).hex()}"
    reader = qualified("dbext_private", bound)
    source, value = qualified(mark["schema_name"], mark["table_name"]), f"s.{quote_ident(mark['column_name'])}"
    session.execute(f"CREATE VIEW {reader} AS SELECT {value} AS value FROM ONLY {source} AS s")
    if [row["kind"] for row in session.fetch(SQL["bound_to"], bound)] != ["r"]:
        raise NotSupported(f"keys are read from ordinary tables only, and {shown(table)} is none")
    sql = f"SELECT DISTINCT format('%s', b.value) AS value FROM {reader} AS b WHERE b.value IS NOT NULL LIMIT {MAX_CELLS + 1}"
    rows = session.fetch(sql)
    session.execute(f"DROP VIEW {reader}")
    return distinct_keys(session, [group], [[row["value"]] for row in rows], ordered=True)


def _mark(session: Session, schema: str | None, table: str, column: str) -> dict[str, str]:
    marks = session.fetch(SQL["public_column"], table, column, schema)
    if not marks:
        named = shown(table) if schema is None else f"{shown(schema)}.{shown(table)}"
        raise UnknownObject(
            f"column {shown(column)} of table {named} is not marked public, so that no keys are read from it",
            hint=f"If its values are public: SELECT dp_mark_public('{named}', '{shown(column)}');",
        )
    if len(marks) > 1:
        raise UnknownObject(f"several tables {shown(table)} have a public column {shown(column)}: name the schema")
    return marks[0]


def _checked(keys: list[list[str]]) -> list[list[str]]:
    if not keys:
        raise BadArgument("there is no group key", hint="Every window publishes every key: give at least one.")
    if len(keys) > MAX_CELLS:
        raise BadArgument(f"a release has at most {MAX_CELLS} group keys")
    return keys
