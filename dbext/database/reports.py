"""The local model's private side: the roster, and every member's randomised reports. What is true is read, and never stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dbext.database.effects import GroupColumn, keys_sql, satisfies
from dbext.database.identifiers import private, qualified, quote_ident, quote_literal
from dbext.database.release_table import READERS, SCHEMA, ReleaseTable
from dbext.database.session import Session
from dbext.database.statements import statements

if TYPE_CHECKING:
    from dbext.query.predicate import Predicate

SQL = statements("reports")


def freeze_members(session: Session, release_id: int, keys: Sequence[Sequence[str]], *, named: bool) -> None:
    """Store the roster in order of place, with pseudonyms if its reports are to be published."""
    session.execute(SQL["add_members"], release_id, [value for key in keys for value in key], len(keys[0]), len(keys))
    if named:
        session.execute(SQL["name_members"], release_id)


def store(session: Session, release_id: int, number: int, reports: Sequence[int]) -> None:
    """Store the reports about a node."""
    session.execute(SQL["store"], release_id, number, list(reports))


def of_nodes(session: Session, release_id: int, numbers: Sequence[int]) -> dict[int, list[int]]:
    """Return the stored reports of nodes, in order of place."""
    return {row["node_no"]: row["reports"] for row in session.fetch(SQL["nodes"], release_id, list(numbers))}


def members_sql(unit: Sequence[GroupColumn]) -> str:
    """Return the query for the roster of release $1: place, g1, g2, ... in the key columns' own types (see `keys_sql`)."""
    places = range(1, len(unit) + 1)
    fields = ", ".join(f"'g{place}', f.key_values[{place}]" for place in places)
    defined = ", ".join(column.defined(place) for place, column in zip(places, unit, strict=True))
    return (
        f"SELECT r.* FROM jsonb_to_recordset((SELECT jsonb_agg(jsonb_build_object('place', f.place, {fields})) "
        f"FROM dbext_private.release_member AS f WHERE f.release_id = $1::integer)) AS r(place integer, {defined})"
    )


def states_sql(table_id: int, predicate: Predicate | None, unit: Sequence[GroupColumn], groups: Sequence[GroupColumn]) -> str:
    """Return the query for what became of the roster's entries, in order of tick: place, tick, cell before and after (0: in none).

    Parameters: release, last tick that does not matter any more, last tick. One row for each tick that changed an entry.
    """
    member = " AND ".join(_equal(column, "new", "m", place) for place, column in enumerate(unit, 1))

    def cell(image: str) -> str:
        keys = " AND ".join(_equal(group, image, "k", place) for place, group in enumerate(groups, 1)) or "true"
        return f"CASE WHEN {satisfies(predicate, image)} IS TRUE THEN coalesce((SELECT k.cell FROM keys AS k WHERE {keys}), 0) ELSE 0 END"

    return (
        f"WITH keys AS MATERIALIZED ({keys_sql(groups)}), member AS MATERIALIZED ({members_sql(unit)}) "
        f"SELECT m.place, c.tick, {cell('old')} AS before, {cell('new')} AS after FROM {private('change', table_id)} AS c "
        f"JOIN member AS m ON {member} WHERE c.tick > $2::bigint AND c.tick <= $3::bigint ORDER BY c.tick"
    )


def _equal(column: GroupColumn, image: str, key: str, place: int) -> str:
    return f"{column.image(image)} {column.column.operators['=']} {key}.g{place}{column.collate}"


def rows_sql(made: ReleaseTable) -> str:
    """Return the statement that adds the rows of several periods at once, each cell with an error of its own.

    Parameters: release, table number, period numbers, first and last tick of their windows (NULL: from the beginning), number of cells,
    and, cells of the first period first, values, standard errors and half widths.
    """
    keys = "".join(f"k.g{place}, " for place in range(1, len(made.groups) + 1))
    floats = "double precision[]"
    return (
        f"INSERT INTO {made.table} (window_end, window_start, {made.group_list}{made.figures[0].value}, "
        "std_error, lower_95, upper_95, release_no, status) "
        f"SELECT w.window_end, w.window_start, {keys}v.value, v.std_error, "
        "v.value - v.half_width, v.value + v.half_width, w.period, w.status "
        "FROM (SELECT p.*, dbext_private.table_tick_end($2::integer, p.last) AS window_end, "
        "dbext_private.table_tick_end($2::integer, coalesce(p.first, t.first_tick - 1)) AS window_start, "
        "CASE WHEN EXISTS (SELECT FROM dbext_private.schema_event AS e WHERE e.table_id = $2::integer AND e.from_tick <= p.last "
        "AND (e.through_tick IS NULL OR e.through_tick > coalesce(p.first, p.last - 1))) THEN 'capture_gap' ELSE 'ok' END AS status "
        "FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS p(period, first, last, place), "
        "dbext_private.tracked_table AS t WHERE t.table_id = $2::integer) AS w "
        f"CROSS JOIN ({keys_sql(made.groups)}) AS k "
        f"JOIN unnest($7::{floats}, $8::{floats}, $9::{floats}) WITH ORDINALITY AS v(value, std_error, half_width, n) "
        "ON v.n = (w.place - 1) * $6::bigint + k.cell ORDER BY v.n"
    )


def create_table(session: Session, name: str) -> None:
    """Create the table of published reports, readable like the release table."""
    for statement in _creation(qualified(SCHEMA, f"{name}_reports"), name):
        session.execute(statement)


def _creation(table: str, name: str) -> Iterator[str]:
    columns = {
        "window_end": ("pg_catalog.timestamptz", "End of the range that the report is about, inclusive"),
        "window_start": ("pg_catalog.timestamptz", "Start of the range, exclusive; of a state: when the history of the table begins"),
        "pseudonym": ("pg_catalog.uuid", "Who reports: the same in every range, and drawn at random"),
        "report": ("pg_catalog.text", "What is reported, true only by chance: a net change, or group key values; empty: none of them"),
        "release_no": ("pg_catalog.int8", "Number of the period with which it was drawn"),
    }
    defined = ", ".join(f"{quote_ident(column)} {kind} NOT NULL" for column, (kind, _) in columns.items())
    yield f"CREATE TABLE {table} ({defined}, PRIMARY KEY (window_end, window_start, pseudonym))"
    yield f"COMMENT ON TABLE {table} IS {quote_literal(f'Randomised reports of release {name}, one by one')}"
    for column, (_, comment) in columns.items():
        yield f"COMMENT ON COLUMN {table}.{column} IS {quote_literal(comment)}"
    yield f"GRANT SELECT ({', '.join(columns)}) ON {table} TO {READERS}"


def publish_sql(name: str) -> str:
    """Return the statement that publishes the reports of nodes under pseudonyms.

    Parameters: release, table number, node numbers, their first (NULL: from the beginning) and last ticks, their periods, and what the
    categories 0, 1, ... are called.
    """
    return (
        f"INSERT INTO {qualified(SCHEMA, f'{name}_reports')} (window_end, window_start, pseudonym, report, release_no) "
        "SELECT dbext_private.table_tick_end($2::integer, n.last), "
        "dbext_private.table_tick_end($2::integer, coalesce(n.first, t.first_tick - 1)), m.pseudonym, "
        "($7::text[])[r.reports[m.place] + 1], n.period "
        "FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) AS n(node_no, first, last, period) "
        "JOIN dbext_private.report AS r ON r.release_id = $1::integer AND r.node_no = n.node_no "
        "JOIN dbext_private.release_member AS m ON m.release_id = $1::integer, "
        "dbext_private.tracked_table AS t WHERE t.table_id = $2::integer ORDER BY n.last, m.pseudonym"
    )
