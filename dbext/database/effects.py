"""SQL for exact effects: what the changes of settled images add to each cell of a statistic.

Every statistic is computed from change_N alone: one row for each entry and sealed tick whose settled image changed. All SQL is composed
of our own tree (query.render), numbers, and types and operators that the catalog named; no text of a caller gets here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbext.database.bins import bucket
from dbext.database.identifiers import private, quote_literal
from dbext.errors import InternalError
from dbext.privacy.measure import Measure
from dbext.query.column import Column
from dbext.query.exact import exact_decimal

if TYPE_CHECKING:
    from dbext.query.bins import Bins
    from dbext.query.bounds import Bounds
    from dbext.query.predicate import Predicate
    from dbext.query.spread import Spread
    from dbext.query.statistic import Term


#: Bytes of a key that is taken from the data, all its columns together.
LONGEST_KEY = 2000


@dataclass(frozen=True)
class GroupColumn:
    """A column that a release groups by, or the number of the bin its values lie in. `label`: its name in the release table.

    `collation`: the one its changes are stored with, None for a type that has none. Keys are distinct under it, and compared under it.
    """

    column: Column
    label: str
    collation: str | None = None
    bins: Bins | None = None

    @property
    def type_name(self) -> str:
        """The type of the keys."""
        return self.column.literal_type if self.bins is None else "pg_catalog.int4"

    @property
    def equality(self) -> str:
        """The operator that keys are equal by."""
        return self.column.operators["="] if self.bins is None else "OPERATOR(pg_catalog.=)"

    @property
    def collate(self) -> str:
        """The COLLATE clause, or nothing."""
        return f" COLLATE {self.collation}" if self.collation else ""

    def image(self, image: str) -> str:
        """The key in a change row `c`; NULL, which is none, for a text of absurd length."""
        value = f"c.{'key' if self.column.is_unit else image}_{self.column.position}"
        return self.column.short(value) if self.bins is None else bucket(self.bins, value)

    def matches(self, place: int) -> str:
        """The join condition of a counted value v<place> of `e` with the frozen key `k`; equality is the type's own."""
        return f"e.v{place} {self.equality} k.g{place}{self.collate}"

    def defined(self, place: int) -> str:
        """The key as a column g<place> of a column definition list."""
        return f"g{place} {self.type_name}{self.collate}"


def keys_sql(groups: Sequence[GroupColumn]) -> str:
    """Return the query for the frozen keys of release $1: cell, first period shown, g1, g2, ... in the columns' own types.

    Texts become values through JSON, which calls the types' input functions. A cast could call a function that a type's owner wrote, with
    the rights of dbext_owner.
    """
    if not groups:
        return "SELECT f.cell, f.shown_from FROM dbext_private.release_key AS f WHERE f.release_id = $1::integer"
    places = range(1, len(groups) + 1)
    fields = ", ".join(f"'g{place}', f.key_values[{place}]" for place in places)
    defined = ", ".join(group.defined(place) for place, group in zip(places, groups, strict=True))
    return (
        "SELECT f.cell, f.shown_from, r.* FROM dbext_private.release_key AS f "
        f"CROSS JOIN LATERAL jsonb_to_record(jsonb_build_object({fields})) AS r({defined}) WHERE f.release_id = $1::integer"
    )


def satisfies(predicate: Predicate | None, image: str) -> str:
    """SQL that is true when an entry is present in an image and satisfies the predicate there; false or NULL otherwise.

    A unit of several rows satisfies it if one of them does.
    """
    present = f"c.{image}_present"
    if predicate is None:
        return present
    from dbext.query.render import holds  # a question without a predicate does not pay for it

    return f"({present} AND {holds(predicate, image, 'c')})"


def _row_satisfies(predicate: Predicate | None, image: str) -> str:
    """The same of a single row of a unit (see `_source`)."""
    if predicate is None:
        return "true"
    from dbext.query.render import render

    return render(predicate, image, "c")


def _source(
    table_id: int, image: str, predicate: Predicate | None, groups: Sequence[GroupColumn], term: Term | None, spread: Spread | None = None
) -> str:
    """What is summed for an image, as `c`: the changes, or the rows of their units if every row counts.

    A unit's rows are those of its settled image, so that no unit has more than its `rows_per_unit`, absent ones none.
    """
    change = private("change", table_id)
    if term is None or term.rows is None:
        return f"{change} AS c"
    from dbext.query.predicate import columns_used
    from dbext.query.render import rows_of

    grouped = [group.column for group in groups] + ([] if spread is None else [spread.column.column])
    used = {one.position: one for one in (*columns_used(predicate), term.column.column, *grouped)}
    keys = "".join(f", c.key_{position}" for position, one in sorted(used.items()) if one.per_unit is None)
    rows = rows_of([position for position, one in used.items() if one.per_unit is not None], image, "c")
    # place: the change that a row is of. A unit has one for each tick that changed it, so that this tells units apart and sums telescope.
    return f"(SELECT c.tick, c.ctid AS place{keys}, r.* FROM {change} AS c CROSS JOIN LATERAL {rows} WHERE c.{image}_present) AS c"


def _counted(measure: Measure, predicate: Predicate | None, term: Term | None = None) -> list[tuple[str, str, str]]:
    """Return (image whose cell is meant, condition, sign) of each kind of change row that counts."""
    if term is not None and term.rows is not None:
        if measure.counts_events:
            raise InternalError("rows of a unit neither enter nor leave")
        return [(image, f"({_row_satisfies(predicate, image)}) IS TRUE", sign) for image, sign in (("new", ""), ("old", "-"))]
    new, old = satisfies(predicate, "new"), satisfies(predicate, "old")
    if measure is Measure.ENTERED:
        return [("new", f"{new} IS TRUE AND {old} IS NOT TRUE AND NOT c.baseline", "")]
    if measure is Measure.LEFT:
        return [("old", f"{old} IS TRUE AND {new} IS NOT TRUE", "")]
    return [("new", f"{new} IS TRUE", ""), ("old", f"{old} IS TRUE", "-")]


def added(term: Term | None, image: str) -> str:
    """SQL for what the entry of a change row `c` adds in an image: an aggregate over rows that satisfy the predicate there.

    The value is clamped and rounded in each image, and only then differenced: differences that are rounded do not telescope. The last
    clamp is in whole numbers, so that no rounding of PostgreSQL's can leave the range that is charged for. Nothing here can fail.
    """
    if term is None or term.is_count:
        return "count(DISTINCT c.place)" if term is not None and term.distinct else "count(*)"
    distance = f"({_unit(term.column.column, term.bounds, image)} - {term.centre}::bigint)"
    return f"sum({distance} * {distance})" if term.power == 2 else f"sum({distance})"  # noqa: PLR2004 squares


def _unit(column: Column, bounds: Bounds, image: str) -> str:
    """A column in an image, clamped and rounded, in units of the grid."""
    low, high = bounds.units
    name = f"c.{'key' if column.is_unit else image}_{column.position}"
    return f"least(greatest({_rounded(name, column.base, bounds)}, {low}::bigint), {high}::bigint)"


def _rounded(name: str, base: str, bounds: Bounds) -> str:
    """A column in units of the grid, as bigint.

    Clamped before it is divided or cast, so that infinities and wide numbers stay harmless; also in a column of whole numbers, which may
    have been given a wider type since the release was declared.
    """
    if base == "integer" and bounds.grid == 1:
        low, high = bounds.units
        return f"least(greatest({name}, {low}), {high})::bigint"
    kind = "float8" if base == "float" else "numeric"
    low, high, grid = (exact_decimal(value) for value in (bounds.low, bounds.high, bounds.grid))
    return f"round(least(greatest({name}::{kind}, '{low}'::{kind}), '{high}'::{kind})::numeric / '{grid}'::numeric)::bigint"


def tick_sums_sql(
    source: tuple[int, int], measure: Measure, predicate: Predicate | None, groups: Sequence[GroupColumn], term: Term | None = None,
    spread: Spread | None = None,
) -> str:
    """Return the statement that stores the exact effect of each tick on every cell. Parameters as of `tick_effects_sql`."""
    effects = tick_effects_sql(source, measure, predicate, groups, term, spread)
    return f"INSERT INTO dbext_private.tick_sum (release_id, stream_no, tick, sums) {effects}"


def wrong_sums_sql(
    source: tuple[int, int], measure: Measure, predicate: Predicate | None, groups: Sequence[GroupColumn], term: Term | None = None,
    spread: Spread | None = None,
) -> str:
    """Return the query for `wrong`: how many stored rows of tick_sum are not what they should be, or are missing. Parameters likewise."""
    effects = tick_effects_sql(source, measure, predicate, groups, term, spread)
    stored = (
        "SELECT s.release_id, s.stream_no, s.tick, s.sums FROM dbext_private.tick_sum AS s "
        f"WHERE s.release_id = $1::integer AND s.stream_no = {source[1]}::integer AND s.tick > $2::bigint"
    )
    return (
        f"WITH computed AS MATERIALIZED ({effects}), stored AS MATERIALIZED ({stored}) "
        "SELECT count(*) AS wrong FROM ((TABLE computed EXCEPT ALL TABLE stored) UNION ALL (TABLE stored EXCEPT ALL TABLE computed)) AS d"
    )


def tick_effects_sql(
    source: tuple[int, int], measure: Measure, predicate: Predicate | None, groups: Sequence[GroupColumn], term: Term | None = None,
    spread: Spread | None = None,
) -> str:
    """Return the query for the exact effect of each tick on every cell: release, stream, tick, sums; `source` is table and stream number.

    Parameters: release, last tick that is summed already, last tick to sum, and the tick that stands for all before it (so that a
    statistic since the beginning has one row for its whole past). One row per tick that has an effect, cells in order. Cells without an
    effect are added as zeros and not by a join, which the planner, who knows nothing of these numbers, may make one by one: quadratic.
    """
    table_id, stream_no = source
    counted = " UNION ALL ".join(
        f"SELECT e.tick, k.cell, {sign}e.total AS total "
        f"FROM ({_per_value(_source(table_id, image, predicate, groups, term, spread), (term, spread), condition, image, groups)}) AS e "
        f"JOIN keys AS k ON {_joined(groups, spread)}"
        for image, condition, sign in _counted(measure, predicate, term)
    )
    return (
        f"WITH keys AS MATERIALIZED ({_cells(groups, spread)}), "
        f"effect AS ({counted}), "
        "ticks AS (SELECT DISTINCT e.tick FROM effect AS e), "
        "every AS (TABLE effect UNION ALL SELECT t.tick, k.cell, 0 FROM ticks AS t CROSS JOIN keys AS k), "
        "total AS (SELECT e.tick, e.cell, sum(e.total)::bigint AS total FROM every AS e GROUP BY e.tick, e.cell) "
        f"SELECT $1::integer, {stream_no}::integer, t.tick, array_agg(t.total ORDER BY t.cell) FROM total AS t GROUP BY t.tick"
    )


def new_keys_sql(table_id: int, measure: Measure, predicate: Predicate | None, groups: Sequence[GroupColumn]) -> str:
    """Return the statement that adds, hidden, the keys of counted changes that have no cell yet.

    Parameters: release, last tick that is looked through already, last tick to look through. A value becomes a text through its type's
    output function, never through a cast (see `keys_sql`).
    What could not be read again as a key is none, or one entry could stop the release: NULL, a long text, and any value once the column
    has been given another type than when the release was declared.
    """
    places = range(1, len(groups) + 1)
    found = " UNION ".join(
        f"SELECT DISTINCT {_values(groups, image)} FROM {private('change', table_id)} AS c "
        f"WHERE c.tick > $2::bigint AND c.tick <= $3::bigint AND {condition} AND {_readable(groups, image)}"
        for image, condition, _ in _counted(measure, predicate)
    )
    texts = ", ".join(f"format('%s', e.v{place})" for place in places)
    return (
        f"WITH keys AS MATERIALIZED ({keys_sql(groups)}) "
        "INSERT INTO dbext_private.release_key (release_id, cell, key_values, shown_from) "
        "SELECT $1::integer, (SELECT max(k.cell) FROM keys AS k) + (row_number() OVER ())::integer, "
        f"ARRAY[{texts}], NULL FROM ({found}) AS e "
        f"WHERE NOT EXISTS (SELECT FROM keys AS k WHERE {_joined(groups)})"
    )


def _values(groups: Sequence[GroupColumn], image: str) -> str:
    return ", ".join(f"{group.image(image)} AS v{place}" for place, group in enumerate(groups, 1))


def _readable(groups: Sequence[GroupColumn], image: str) -> str:
    """The condition that the values of an image can be keys; the texts of all columns together fit into an index of PostgreSQL."""
    longest = LONGEST_KEY // len(groups)
    conditions = []
    for group in groups:
        value = group.image(image)
        conditions.append(f"{value} IS NOT NULL AND pg_typeof({value}) = {quote_literal(group.column.literal_type)}::regtype")
        if group.column.base == "text":
            conditions.append(f"octet_length({value}) <= {longest}")
    return " AND ".join(conditions)


def _cells(groups: Sequence[GroupColumn], spread: Spread | None) -> str:
    """Return the query for the cells: one for each key, or of counts by value one for each block, with its number in `block`."""
    if spread is None:
        return keys_sql(groups)
    keys = "".join(f", f.g{place}" for place in range(1, len(groups) + 1))
    return (
        f"SELECT (f.cell - 1) * {spread.cells} + b.block + 1 AS cell, b.block{keys} "
        f"FROM ({keys_sql(groups)}) AS f CROSS JOIN generate_series(0, {spread.cells - 1}) AS b(block)"
    )


def _per_value(source: str, what: tuple[Term | None, Spread | None], condition: str, image: str, groups: Sequence[GroupColumn]) -> str:
    """Return the query that sums the changes of each tick by value, so that keys meet a few totals and not every change."""
    term, spread = what
    columns = [f"{group.image(image)} AS v{place}" for place, group in enumerate(groups, 1)]
    if spread is not None:
        unit = _unit(spread.column.column, spread.bounds, image)
        columns.append(f"({unit} - {spread.bounds.units[0]}::bigint) / {spread.block} AS block")
    values = "".join(f", {column}" for column in columns)
    places = ", ".join(str(place) for place in range(1, len(columns) + 2))
    return (
        f"SELECT greatest(c.tick, $4::bigint) AS tick{values}, {added(term, image)} AS total FROM {source} "
        f"WHERE c.tick > $2::bigint AND c.tick <= $3::bigint AND {condition} GROUP BY {places}"
    )


def _joined(groups: Sequence[GroupColumn], spread: Spread | None = None) -> str:
    matches = [group.matches(place) for place, group in enumerate(groups, 1)]
    return " AND ".join(matches + ([] if spread is None else ["e.block = k.block"])) or "true"


def window_total_sql(table_id: int, measure: Measure, predicate: Predicate | None, term: Term | None = None) -> str:
    """Return the query for the exact total of one window. Parameters: tick before the window (NULL: from the beginning), last tick."""
    within = "($1::bigint IS NULL OR c.tick > $1::bigint) AND c.tick <= $2::bigint"
    counted = _counted(measure, predicate, term)
    if term is not None and term.rows is not None:
        parts = [
            f"{sign or '+'} (SELECT coalesce({added(term, image)}, 0) FROM {_source(table_id, image, predicate, (), term)} "
            f"WHERE {within} AND {condition})"
            for image, condition, sign in counted
        ]
        return f"SELECT ({' '.join(parts).removeprefix('+ ')})::bigint AS total"
    parts = [f"{sign or '+'} coalesce({added(term, image)} FILTER (WHERE {condition}), 0)" for image, condition, sign in counted]
    total = " ".join(parts).removeprefix("+ ")
    return f"SELECT ({total})::bigint AS total FROM {private('change', table_id)} AS c WHERE {within}"
