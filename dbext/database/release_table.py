"""The table in which a release lands, and its companion view with rounded figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbext.database.effects import GroupColumn, keys_sql
from dbext.database.identifiers import qualified, quote_ident, quote_literal
from dbext.database.session import DatabaseError, Session
from dbext.database.statements import statements
from dbext.errors import BadArgument, NotSupported, UnknownObject
from dbext.privacy.measure import Measure
from dbext.query.labels import RESERVED, columns_of_bins, columns_of_labels

SQL = statements("release_table")
SCHEMA = "dp_release"
LOCK_TIMEOUT = "2s"
#: No such table, no such column.
_NOT_THERE = ("42P01", "42703")
READERS = "dbext_reader, dbext_analyst, dbext_admin"
ADMINISTRATORS = "dbext_admin"

MEANINGS = {
    Measure.STATE: "of entries that satisfy the predicate at window_end",
    Measure.NET: "of entries that satisfy the predicate: its change over the window",
    Measure.ENTERED: "of entries that came to satisfy the predicate in the window",
    Measure.LEFT: "of entries that ceased to satisfy the predicate in the window",
}


@dataclass(frozen=True)
class FigureColumns:
    """The columns of one figure. `said` is what its comment says; `prefix` stands before std_error and so on where there are several.

    `error` is the column of its error, of which `error_said` is the comment.
    `linear`: its errors are alike in all cells of a window. `clipped`: it has no negative true value. `whole`: it is a whole number.
    """

    label: str
    said: str
    prefix: str = ""
    linear: bool = True
    clipped: bool = True
    whole: bool = True
    rounds: bool = True
    band: str = "pointwise"
    error: str = "std_error"
    error_said: str = "Standard error of the noise"

    @property
    def value(self) -> str:
        """The quoted column of the noisy values; one of the measures it may be named for (left) is a keyword."""
        return quote_ident(self.label)

    @property
    def value_type(self) -> str:
        """The type of the noisy values: whole numbers plus whole noise stay whole, weighted sums of encoder rows do not."""
        return "pg_catalog.int8" if self.whole else "pg_catalog.float8"

    @property
    def interval(self) -> str:
        """What the bounds are."""
        return "95% interval" if self.band == "pointwise" else "simultaneous 95% band, over all windows and groups of a horizon,"

    def named(self, suffix: str) -> str:
        """The quoted name of a further column: std_error, lower_95 or upper_95."""
        return quote_ident(f"{self.prefix}{suffix}")

    def columns(self) -> list[tuple[str, str, str]]:
        """Return (quoted name, type, comment) of each column."""
        of = f" of {self.label}" if self.prefix else ""
        return [
            (self.value, self.value_type, self.said),
            (self.named(self.error), "pg_catalog.float8", f"{self.error_said}{of}"),
            (self.named("lower_95"), "pg_catalog.float8", f"Lower end of the {self.interval} for the noise{of}"),
            (self.named("upper_95"), "pg_catalog.float8", f"Upper end of the {self.interval} for the noise{of}"),
        ]


@dataclass(frozen=True)
class ReleaseTable:
    """Names and columns of a release table: one row per window and group key, each window complete, never updated.

    `selected`: keys are taken from the data, and have rows from the first window on in which enough entries are seen to have them.
    """

    name: str
    figures: tuple[FigureColumns, ...]
    groups: tuple[GroupColumn, ...]
    description: str
    selected: bool = False

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
        groups = [column for one in self.groups for column in key_columns(one)]
        return [
            ("window_end", "pg_catalog.timestamptz", "End of the window, inclusive"),
            ("window_start", "pg_catalog.timestamptz", "Start of the window, exclusive; of a state: when the table's history begins"),
            *((name, kind, said) for name, kind, said, _ in groups),
            *(column for figure in self.figures for column in figure.columns()),
            ("release_no", "pg_catalog.int8", "Number of the period, from 1"),
            ("status", "pg_catalog.text", "ok, or capture_gap: schema changes kept mutations of this window from being captured"),
        ]

    @property
    def group_list(self) -> str:
        """The quoted group columns, with the ends of bins, each followed by a comma."""
        return "".join(f"{name}, " for one in self.groups for name, *_ in key_columns(one))


def key_columns(group: GroupColumn, place: int = 0) -> list[tuple[str, str, str, str]]:
    """Return (quoted name, type, comment, what it is filled with from the key g<place>) of the columns of a group key.

    A bin is a number and its two ends: infinite ones are open.
    """
    key, name = f"k.g{place}", group.column.name
    if group.bins is None:
        return [(quote_ident(group.label), group.type_name + group.collate, f"Group key: {name}", key)]
    held, other = ("excluded", "included") if group.bins.descending else ("included", "excluded")
    said = f"Group key: number of the bin of {name}, from 0 (beyond the first edge) to {group.bins.buckets - 1}; no bin holds NULL"
    ends = [(f"{group.label}_low", f"Lower end of the bin, {held}", 0), (f"{group.label}_high", f"Upper end of the bin, {other}", 1)]
    return [
        (quote_ident(group.label), group.type_name, said, key),
        *((quote_ident(label), "pg_catalog.float8", text, f"({_ends(group, side)})[{key} + 1]") for label, text, side in ends),
    ]


def _ends(group: GroupColumn, side: int) -> str:
    """The array of the lower (0) or upper (1) ends of all bins, in order of their numbers."""
    limits = [group.bins.limits(number)[side] for number in range(group.bins.buckets)]
    texts = ("-Infinity" if side == 0 else "Infinity" if end is None else "" for end in limits)
    listed = ",".join(text if end is None else repr(float(end)) for end, text in zip(limits, texts, strict=True))
    return f"'{{{listed}}}'::pg_catalog.float8[]"


def labels(columns: Sequence[str], figures: Sequence[str], bins: Sequence[str] = ()) -> list[str]:
    """Return the names of group columns in the release table: their own, or group_<name> where that name is taken already.

    Names of bins are the caller's own, and stay.
    """
    taken = {*RESERVED, *columns_of_labels(figures)}
    for name in columns_of_bins(bins):
        if name in taken:
            hint = "Give the bins another name: width_bucket(...) AS bin."
            raise BadArgument(f"a release table has a column {name} of its own", hint=hint)
        taken.add(name)
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
    errors = {figure.named(figure.error) for figure in made.figures}
    rounded = {name: said for figure in made.figures for name, _, said in _shown(figure)}
    yield f"CREATE TABLE {made.table} ({defined}, PRIMARY KEY (window_end{keys}))"
    yield f"CREATE VIEW {made.view} AS {_rounded(made)}"
    yield f"COMMENT ON TABLE {made.table} IS {quote_literal(made.description)}"
    yield f"COMMENT ON VIEW {made.view} IS {quote_literal('Rounded figures of ' + made.name + _clipped(made.figures))}"
    for name, _, comment in columns:
        yield f"COMMENT ON COLUMN {made.table}.{name} IS {quote_literal(comment)}"
        if name not in errors:
            said = f"{comment}; {rounded[name]}" if rounded.get(name) else comment
            yield f"COMMENT ON COLUMN {made.view}.{name} IS {quote_literal(said)}"
    yield f"GRANT SELECT ({', '.join(name for name, _, _ in columns)}) ON {made.table} TO {READERS}"
    yield f"GRANT SELECT ON {made.view} TO {READERS}"


def _clipped(figures: Sequence[FigureColumns]) -> str:
    return ", negative ones shown as 0" if any(figure.clipped for figure in figures) else ""


def _rounded(made: ReleaseTable) -> str:
    shown = [f"{expression} AS {name}" for figure in made.figures for name, expression, _ in _shown(figure)]
    keys = "".join(f"r.{name}, " for one in made.groups for name, *_ in key_columns(one))
    return f"SELECT r.window_end, r.window_start, {keys}{', '.join(shown)}, r.release_no, r.status FROM {made.table} AS r"


def _shown(figure: FigureColumns) -> Iterator[tuple[str, str, str]]:
    """Yield (quoted name, expression, how it is rounded) of a figure's columns in the view."""
    names = figure.value, figure.named("lower_95"), figure.named("upper_95")
    for name, function, said in zip(names, ("round", "floor", "ceil"), ("rounded", "rounded down", "rounded up"), strict=True):
        expression = f"pg_catalog.{function}(r.{name})" if figure.rounds else f"r.{name}"
        clipped = f"GREATEST({expression}, 0)" if figure.clipped else expression
        yield name, f"{clipped}::pg_catalog.{'int8' if figure.rounds else 'float8'}", said if figure.rounds else ""


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


def add_rows(session: Session, name: str, statement: str, *parameters: object) -> None:
    """Add rows to a release's table; say so if somebody has dropped, renamed or altered it."""
    try:
        session.execute(statement, *parameters)
    except DatabaseError as fault:
        if fault.sqlstate in _NOT_THERE:
            raise UnknownObject(
                f"table {SCHEMA}.{name}, or a column of it, was dropped or renamed by hand",
                hint=f"Give it its name back, or end the release: SELECT dp_drop_release('{name}');",
            ) from fault
        raise


def rows_sql(made: ReleaseTable) -> str:
    """Return the statement that adds the rows of several periods at once.

    Parameters: release, table number, period numbers, first and last tick of their windows (NULL: from the beginning), number of cells;
    then for each figure its values (cells of the first period, then of the second, ...) and, by period, standard errors and half widths;
    or, of a figure that is not linear, standard errors, lower and upper ends in the order of the values.
    """
    keys = "".join(f"{value}, " for place, one in enumerate(made.groups, 1) for *_, value in key_columns(one, place))
    by_period, by_cell, named, shown = _figure_arrays(made.figures)
    periods = ", ".join(f"${place}::double precision[]" for _, place in by_period)
    periods_named = "".join(f", {name}" for name, _ in by_period)
    return (
        f"INSERT INTO {made.table} (window_end, window_start, {made.group_list}{', '.join(named)}, release_no, status) "
        f"SELECT w.window_end, w.window_start, {keys}{', '.join(shown)}, w.period, w.status "
        "FROM (SELECT p.*, dbext_private.table_tick_end($2::integer, p.last) AS window_end, "
        "dbext_private.table_tick_end($2::integer, coalesce(p.first, t.first_tick - 1)) AS window_start, "
        "CASE WHEN EXISTS (SELECT FROM dbext_private.schema_event AS e WHERE e.table_id = $2::integer AND e.from_tick <= p.last "
        "AND (e.through_tick IS NULL OR e.through_tick > coalesce(p.first, p.last - 1))) THEN 'capture_gap' ELSE 'ok' END AS status "
        f"FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]{', ' if periods else ''}{periods}) WITH ORDINALITY "
        f"AS p(period, first, last{periods_named}, place), dbext_private.tracked_table AS t "
        "WHERE t.table_id = $2::integer OFFSET 0) AS w "  # fences the dates in: worked out once a period, not once a cell
        f"CROSS JOIN ({keys_sql(made.groups)}) AS k "
        f"JOIN unnest({', '.join(f'${place}::{kind}[]' for _, kind, place in by_cell)}) WITH ORDINALITY "
        f"AS v({', '.join(name for name, _, _ in by_cell)}, n) ON v.n = (w.place - 1) * $6::bigint + k.cell "
        f"WHERE k.shown_from <= w.period ORDER BY {_order(made)}"
    )


def _order(made: ReleaseTable) -> str:
    """In which order rows are written. Cells of keys taken from the data are numbered as entries brought them, which must not show."""
    return "v.n" if not made.selected else "w.place" + "".join(f", k.g{place}" for place in range(1, len(made.groups) + 1))


def _figure_arrays(figures: Sequence[FigureColumns]) -> tuple[list, list, list[str], list[str]]:
    """Return the arrays by period (name, parameter) and by cell (name, type, parameter), the columns and what each is filled with."""
    by_period, by_cell, named, shown, place = [], [], [], [], 7
    for number, figure in enumerate(figures):
        value, error, width, lower, upper = (f"{name}_{number}" for name in ("value", "error", "width", "lower", "upper"))
        by_cell.append((value, figure.value_type, place))
        named += [figure.value, figure.named(figure.error), figure.named("lower_95"), figure.named("upper_95")]
        if figure.linear:
            by_period += [(error, place + 1), (width, place + 2)]
            shown += [f"v.{value}", f"w.{error}", f"v.{value} - w.{width}", f"v.{value} + w.{width}"]
        else:
            by_cell += [(name, "pg_catalog.float8", place + n) for n, name in enumerate((error, lower, upper), 1)]
            shown += [f"v.{value}", f"v.{error}", f"v.{lower}", f"v.{upper}"]
        place += 3 if figure.linear else 4
    return by_period, by_cell, named, shown


def transcript_sql(made: ReleaseTable, figure: FigureColumns) -> str:
    """Return the query for what was published of a figure, one row a period.

    Its values in order of cell, the number of rows and of known keys, the ticks of its window, and the extremes of all that must be equal,
    or, where they differ from cell to cell, its errors and bounds in order of cell. Parameters: release, table number.
    """
    equal = (f"k.g{place} {one.equality} r.{quote_ident(one.label)}{one.collate}" for place, one in enumerate(made.groups, 1))
    joined = " AND ".join(equal) or "true"
    error, lower, upper = (f"r.{figure.named(suffix)}" for suffix in (figure.error, "lower_95", "upper_95"))
    extremes = {"std_error": error, "below": f"r.{figure.value} - {lower}", "above": f"{upper} - r.{figure.value}"}
    shown = ", ".join(f"min({text})::float8 AS least_{name}, max({text})::float8 AS most_{name}" for name, text in extremes.items())
    if not figure.linear:
        listed = {"errors": error, "lowers": lower, "uppers": upper}
        shown = ", ".join(f"string_agg({text}::text, ',' ORDER BY k.cell) AS {name}" for name, text in listed.items())
    return (
        f"SELECT r.release_no AS period, string_agg(r.{figure.value}::text, ',' ORDER BY k.cell) AS values, count(*) AS rows, "
        f"count(DISTINCT k.cell) AS cells, {shown}, count(DISTINCT (r.window_end, r.window_start)) AS windows, "
        "dbext_private.table_tick_of($2::integer, min(r.window_end)) AS last, "
        "dbext_private.table_tick_of($2::integer, min(r.window_start)) AS first "
        f"FROM {made.table} AS r LEFT JOIN ({keys_sql(made.groups)}) AS k ON {joined} GROUP BY r.release_no ORDER BY r.release_no"
    )
