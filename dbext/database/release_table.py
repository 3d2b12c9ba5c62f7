"""The table in which a release lands, and its companion view with rounded figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbext.database.effects import GroupColumn, keys_sql
from dbext.database.identifiers import qualified, quote_ident, quote_literal
from dbext.database.session import DatabaseError, Session
from dbext.database.statements import statements
from dbext.errors import NotSupported
from dbext.privacy.measure import Measure

SQL = statements("release_table")
SCHEMA = "dp_release"
LOCK_TIMEOUT = "2s"
READERS = "dbext_reader, dbext_analyst, dbext_admin"
ADMINISTRATORS = "dbext_admin"

MEANINGS = {
    Measure.STATE: "Noisy number of entries that satisfy the predicate at window_end",
    Measure.NET: "Noisy change, over the window, of the number of entries that satisfy the predicate",
    Measure.ENTERED: "Noisy number of times that an entry came to satisfy the predicate in the window",
    Measure.LEFT: "Noisy number of times that an entry ceased to satisfy the predicate in the window",
}


@dataclass(frozen=True)
class ReleaseTable:
    """Names and columns of a release table: one row per window and group key, each window complete, never updated."""

    name: str
    measure: Measure
    groups: tuple[GroupColumn, ...]
    description: str
    whole_numbers: bool = True
    band: str = "pointwise"

    @property
    def value_type(self) -> str:
        """The type of the noisy values: whole numbers plus whole noise stay whole, weighted sums of encoder rows do not."""
        return "pg_catalog.int8" if self.whole_numbers else "pg_catalog.float8"

    @property
    def table(self) -> str:
        """The table's quoted name."""
        return qualified(SCHEMA, self.name)

    @property
    def view(self) -> str:
        """The companion view's quoted name."""
        return qualified(SCHEMA, f"{self.name}_rounded")

    def columns(self) -> list[tuple[str, str, str]]:
        """Return (quoted name, type, comment) of every column."""
        groups = [(quote_ident(one.label), one.column.literal_type + one.collate, f"Group key: {one.column.name}") for one in self.groups]
        return [
            ("window_end", "pg_catalog.timestamptz", "End of the window, inclusive"),
            ("window_start", "pg_catalog.timestamptz", "Start of the window, exclusive; of a state: when the table's history begins"),
            *groups,
            (self.value, self.value_type, MEANINGS[self.measure] + "; may be negative"),
            ("std_error", "pg_catalog.float8", "Standard error of the noise"),
            ("lower_95", "pg_catalog.float8", f"Lower end of the {self.interval} for the noise"),
            ("upper_95", "pg_catalog.float8", f"Upper end of the {self.interval} for the noise"),
            ("release_no", "pg_catalog.int8", "Number of the period, from 1"),
            ("status", "pg_catalog.text", "ok, or capture_gap: schema changes kept mutations of this window from being captured"),
        ]

    @property
    def interval(self) -> str:
        """What the bounds are."""
        return "95% interval" if self.band == "pointwise" else "simultaneous 95% band, over all windows and groups of a horizon,"

    @property
    def value(self) -> str:
        """The quoted column of the noisy values: named for the measure, one of which (left) is a keyword."""
        return quote_ident(self.measure.value)

    @property
    def group_list(self) -> str:
        """The quoted group columns, each followed by a comma."""
        return "".join(f"{quote_ident(one.label)}, " for one in self.groups)


def labels(columns: Sequence[str], measure: Measure) -> list[str]:
    """Return the names of group columns in the release table: their own, or group_<name> where that name is taken already."""
    taken = {"window_end", "window_start", measure.value, "std_error", "lower_95", "upper_95", "release_no", "status"}
    given: list[str] = []
    for column in columns:
        name = column
        while name in taken or name in given or (name != column and name in columns):
            name = f"group_{name}"
        given.append(name)
    return given


def create(session: Session, made: ReleaseTable) -> None:
    """Create table and view with their comments, readable column by column: a table grant would show xmin."""
    for statement in _creation(made):
        session.execute(statement)


def _creation(made: ReleaseTable) -> Iterator[str]:
    columns = made.columns()
    defined = ", ".join(f"{name} {kind} NOT NULL" for name, kind, _ in columns)
    keys = "".join(f", {quote_ident(one.label)}" for one in made.groups)
    rounded = {made.value: "rounded", "lower_95": "rounded down", "upper_95": "rounded up"}
    yield f"CREATE TABLE {made.table} ({defined}, PRIMARY KEY (window_end{keys}))"
    yield f"CREATE VIEW {made.view} AS {_rounded(made)}"
    yield f"COMMENT ON TABLE {made.table} IS {quote_literal(made.description)}"
    yield f"COMMENT ON VIEW {made.view} IS {quote_literal('Rounded figures of ' + made.name + _clipped(made.measure))}"
    for name, _, comment in columns:
        yield f"COMMENT ON COLUMN {made.table}.{name} IS {quote_literal(comment)}"
        if name != "std_error":
            said = f"{comment}; {rounded[name]}" if name in rounded else comment
            yield f"COMMENT ON COLUMN {made.view}.{name} IS {quote_literal(said)}"
    yield f"GRANT SELECT ({', '.join(name for name, _, _ in columns)}) ON {made.table} TO {READERS}"
    yield f"GRANT SELECT ON {made.view} TO {READERS}"


def _clipped(measure: Measure) -> str:
    return "" if measure is Measure.NET else ", negative ones shown as 0"


def _rounded(made: ReleaseTable) -> str:
    figures = ((made.value, "round", "int8"), ("lower_95", "floor", "int8"), ("upper_95", "ceil", "int8"))
    shown = [f"{_shown(made.measure, f'pg_catalog.{function}(r.{name})')}::pg_catalog.{kind} AS {name}" for name, function, kind in figures]
    keys = "".join(f"r.{quote_ident(one.label)}, " for one in made.groups)
    return f"SELECT r.window_end, r.window_start, {keys}{', '.join(shown)}, r.release_no, r.status FROM {made.table} AS r"


def _shown(measure: Measure, expression: str) -> str:
    return expression if measure is Measure.NET else f"GREATEST({expression}, 0)"


def drop(session: Session, name: str, *, reports: bool = False) -> bool:
    """Drop view and table (and the table of `reports`), whichever still exist; False, with all left, if other objects depend on them.

    Gives up after LOCK_TIMEOUT: a reader who keeps the table open must not keep others from what the caller has locked.
    """
    found = session.fetch(SQL["existing"], f"{name}_rounded", name, f"{name}_reports" if reports else name)
    drops = " ".join(f"DROP {row['kind']} {qualified(SCHEMA, row['name'])};" for row in found)
    before = session.fetch(SQL["lock_timeout"])[0]["wait"]
    session.fetch(SQL["set_lock_timeout"], LOCK_TIMEOUT)
    try:
        session.execute(f"DO {quote_literal(f'BEGIN {drops} END')}")
    except DatabaseError as fault:
        if fault.sqlstate == "2BP01":
            return False
        if fault.sqlstate == "55P03":
            raise NotSupported(
                f"someone is reading {SCHEMA}.{name}", hint="Try again when the readers' transactions have ended."
            ) from fault
        raise
    finally:
        session.fetch(SQL["set_lock_timeout"], before)
    return True


def rows_sql(made: ReleaseTable) -> str:
    """Return the statement that adds the rows of several periods at once.

    Parameters: release, table number, period numbers, first and last tick of their windows (NULL: from the beginning), values (cells of the
    first period, then of the second, ...), number of cells, standard errors, half widths.
    """
    keys = "".join(f"k.g{place}, " for place in range(1, len(made.groups) + 1))
    return (
        f"INSERT INTO {made.table} (window_end, window_start, {made.group_list}{made.value}, "
        "std_error, lower_95, upper_95, release_no, status) "
        f"SELECT w.window_end, w.window_start, {keys}v.value, "
        "w.std_error, v.value - w.half_width, v.value + w.half_width, w.period, w.status "
        "FROM (SELECT p.*, dbext_private.table_tick_end($2::integer, p.last) AS window_end, "
        "dbext_private.table_tick_end($2::integer, coalesce(p.first, t.first_tick - 1)) AS window_start, "
        "CASE WHEN EXISTS (SELECT FROM dbext_private.schema_event AS e WHERE e.table_id = $2::integer AND e.from_tick <= p.last "
        "AND (e.through_tick IS NULL OR e.through_tick > coalesce(p.first, p.last - 1))) THEN 'capture_gap' ELSE 'ok' END AS status "
        "FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $8::double precision[], $9::double precision[]) WITH ORDINALITY "
        "AS p(period, first, last, std_error, half_width, place), dbext_private.tracked_table AS t WHERE t.table_id = $2::integer "
        "OFFSET 0) AS w "  # fences the dates in: worked out once a period, not once a cell
        f"CROSS JOIN ({keys_sql(made.groups)}) AS k "
        f"JOIN unnest($6::{made.value_type}[]) WITH ORDINALITY AS v(value, n) ON v.n = (w.place - 1) * $7::bigint + k.cell "
        "ORDER BY v.n"
    )


def transcript_sql(made: ReleaseTable) -> str:
    """Return the query for what was published, one row a period.

    Its values in order of cell, the number of rows and of known keys, the ticks of its window, and the extremes of all that must be equal.
    Parameters: release, table number.
    """
    equal = (f"k.g{place} {one.column.operators['=']} r.{quote_ident(one.label)}{one.collate}" for place, one in enumerate(made.groups, 1))
    joined = " AND ".join(equal) or "true"
    extremes = {
        "std_error": "r.std_error",
        "below": f"r.{made.value} - r.lower_95",
        "above": f"r.upper_95 - r.{made.value}",
    }
    shown = ", ".join(f"min({text})::float8 AS least_{name}, max({text})::float8 AS most_{name}" for name, text in extremes.items())
    return (
        f"SELECT r.release_no AS period, string_agg(r.{made.value}::text, ',' ORDER BY k.cell) AS values, count(*) AS rows, "
        f"count(DISTINCT k.cell) AS cells, {shown}, count(DISTINCT (r.window_end, r.window_start)) AS windows, "
        "dbext_private.table_tick_of($2::integer, min(r.window_end)) AS last, "
        "dbext_private.table_tick_of($2::integer, min(r.window_start)) AS first "
        f"FROM {made.table} AS r LEFT JOIN ({keys_sql(made.groups)}) AS k ON {joined} GROUP BY r.release_no ORDER BY r.release_no"
    )
