"""The SQL of a seal pass, composed for one table: what it reads and writes is named by position, so no name of a user gets in here.

Everything is set-based. One pass reads the records that are new since the last seal and the admission rows of their entries; nothing
depends on how long the history is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbext.database.catalog import StoredType
from dbext.database.identifiers import private
from dbext.database.statements import fill, statements

SQL = statements("seal_pass")

#: Bytes, as stored, of the largest value that is compared in a row of its own or by a collation: unpacked it is a quarter of a gigabyte
#: at most, and PostgreSQL fails from one gigabyte on.
LARGEST_COMPARED = 1_000_000


@dataclass(frozen=True)
class ImageColumn:
    """A column of the run-time tables. `equals`: the unit's equality; `by_value`: whether IS DISTINCT FROM works for the type.

    `is_string`: whether it holds texts; `folds`: whether texts that are written in different ways may be equal.
    Where a unit has several rows, `is_row_key` says that the column tells them apart, and `cut` that its values may be of any length.
    """

    position: int
    is_unit: bool
    equals: str | None
    by_value: bool
    is_string: bool = False
    folds: bool = False
    is_row_key: bool = False
    cut: bool = False


def _differs(column: ImageColumn, one: str, other: str) -> str:
    """Return SQL that says whether two values differ; values too large to be compared whole do."""
    if column.by_value and not column.folds:
        return f"{one} IS DISTINCT FROM {other}"
    compared = f"{one} IS DISTINCT FROM {other}" if column.by_value else f"ROW({one})::record *<> ROW({other})::record"
    small = f"coalesce(greatest(pg_column_size({one}), pg_column_size({other})), 0) <= {LARGEST_COMPARED}"
    return f"CASE WHEN {small} THEN {compared} ELSE true END"


def _sorted(column: ImageColumn, value: str) -> str:
    if column.by_value and not column.is_string:
        return value
    return f"CASE WHEN pg_column_size({value}) <= {LARGEST_COMPARED} THEN ROW({value})::record END USING OPERATOR(pg_catalog.*<)"


class PassSql:
    """Statements of a seal pass for a table with these columns.

    They run in dbext_private.execute_pass, which gives all of them the same parameters: $1 previous snapshot, $2 snapshot, $3 previous
    boundary, $4 boundary, $5 boundaries that end the ticks, $6 previous tick, $7 last tick, $8 number of this seal, $9 first tick of the
    table, $10 its number, $11 and $12 what `left_behind` found.
    """

    #: Which of the known entries are there, and whether what one was before is as it was recorded and not as it is settled.
    held, known_as = "a.present", "a.frozen OR a.type_no IS NULL AS recorded"
    #: The steps that are admitted, which of them are worth a look, and which come from the baseline.
    steps, worth, is_baseline = "steps", "", "k.leads AND k.first_op = 'B'"

    def __init__(self, table_id: int, columns: Sequence[ImageColumn], entries: str = "admission"):
        self.table_id = table_id
        self.keys = [column for column in columns if column.is_unit]
        self.values = [column for column in columns if not column.is_unit]
        self._tables = {kind: private(kind, table_id) for kind in ("log", "deferred", "change")} | {"admission": private(entries, table_id)}
        self._names = self._tables | self._record_lists()
        self._names |= {name: self._fill(name) for name in ("new_rows", "earlier_left")}

    def left_behind(self) -> str:
        """Return the query for what must stay behind: `floor` and `truncation`, and whether a truncation is to be taken."""
        return self._fill("left_behind")

    def defer(self) -> str:
        """Return the statement that sets rows aside."""
        return self._fill("defer")

    def take_deferred(self) -> str:
        """Return the statement that takes rows set aside before."""
        return self._fill("take_deferred")

    def seal(self, types: Sequence[StoredType], classify: str, *, ticks: int, truncated: bool) -> str:
        """Return the statement of one pass over `ticks` ticks; `classify` is SQL for the type of a first image s.image_*."""
        names = self._pass_lists() | self._tick_lists(several=ticks > 1)
        walk, admit = self._walk(names, truncated=truncated), self._admit(types, classify, names, ticks=ticks)
        return self._fill("pass", {"walk": walk, "admit": admit})

    def _admit(self, types: Sequence[StoredType], classify: str, names: dict[str, str], *, ticks: int) -> str:
        """From `steps` to settled changes."""
        names = names | {"classify": classify, "leads": self._leads(several=ticks > 1)}
        names |= {"steps": self.steps, "worth": self.worth, "is_baseline": self.is_baseline}
        leaving = [one for one in types if one.at_limit == "leave"]
        silent = "\n".join(self._silent(one, place, len(leaving), names) for place, one in enumerate(leaving))
        names["departures"] = self._fill("leave", names | {"silent_departures": silent}) if leaving else SQL["stay"]
        names["decide"] = self._fill("many_ticks" if ticks > 1 else "one_tick", names)
        return self._fill("admit", names)

    def _leads(self, *, several: bool) -> str:  # noqa: ARG002 steps of units need it
        """Which step is the first of its entry."""
        return "k.leads"

    def _walk(self, names: dict[str, str], *, truncated: bool) -> str:
        """From the log to `steps`."""
        names = names | {"held": self.held, "known_as": self.known_as}
        names |= {name: self._fill(name, names) if truncated else "" for name in ("truncated", "truncations")}
        # The records that a truncation stands for share its number, so that the first number of an entry does not tell entries apart.
        names["entry"] = f"dense_rank() OVER (ORDER BY {names['keys_t']})" if truncated else "first_value(t.number) OVER records"
        return self._fill("walk", names)

    def _fill(self, name: str, names: dict[str, str] | None = None) -> str:
        """Return a named block with its ${places} filled."""
        return fill(SQL[name], **(self._names | (names or {})))

    def _silent(self, one: StoredType, place: int, types: int, names: dict[str, str]) -> str:
        loosest = one.loosest.active_within
        return self._fill(
            "silent",
            names
            | {
                "types": str(types),
                "place": str(place),
                "within": str(one.constraint.active_within),
                "not_too_late": "" if loosest is None else f" AND a.first_tick > $6 - {loosest}",
                "mutations": "NULL::integer" if one.constraint.max_mutations is None else str(one.constraint.max_mutations),
                "type_no": str(one.number),
                "null_news": self._list(", CASE WHEN false THEN a.image_{p} END", self.values),
            },
        )

    def _list(self, pattern: str, columns: Sequence[ImageColumn]) -> str:
        """Return one piece of SQL per column, {p} being its position; the pattern brings its own comma."""
        return "".join(pattern.format(p=column.position) for column in columns)

    def _bare(self, pattern: str, columns: Sequence[ImageColumn]) -> str:
        return ", ".join(pattern.format(p=column.position) for column in columns)

    def _same_key(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.key_{key.position} {key.equals} {right}.key_{key.position}" for key in self.keys)

    def _differ(self, before: str, after: str) -> str:
        """Return SQL that compares two images; `before` and `after` are patterns for a column. It fails on no value of any length."""
        pairs = [(column, before.format(p=column.position), after.format(p=column.position)) for column in self.values]
        return " OR ".join(_differs(column, one, other) for column, one, other in pairs) or "false"

    def _order(self, image: str) -> str:
        """Return SQL that sorts images so that equal ones are peers, to the byte where a type has no order of its own."""
        return "".join(f", {_sorted(column, image.format(p=column.position))}" for column in self.values)

    def _record_lists(self) -> dict[str, str]:
        """Return the columns of a log record under each alias, in one fixed order."""
        record = ["number", "op", *(f"key_{key.position}" for key in self.keys)]
        record += [f"{image}_{column.position}" for image in ("old", "new") for column in self.values] + ["mutated_at"]
        lists = {f"record_{alias}": ", ".join(f"{alias}.{name}" for name in record) for alias in "lcdt"}
        return lists | {"record": ", ".join(record), "same_key_ec": self._same_key("e", "c")}

    def _pass_lists(self) -> dict[str, str]:
        keys, values = self.keys, self.values
        first = ", CASE WHEN {a}.op IN ('U', 'D') THEN {a}.old_{{p}} ELSE {a}.new_{{p}} END AS image_{{p}}"
        lists = {f"keys_{alias}": self._bare(alias + ".key_{p}", keys) for alias in "ratofp"}
        lists |= {f"news_{alias}": self._list(f", {alias}.new_{{p}}", values) for alias in "okd"}
        lists |= {f"kept_{alias}": self._list(f", {alias}.kept_{{p}}", keys) for alias in "kldo"}
        lists |= {f"was_{alias}": self._list(f", {alias}.was_{{p}}", values) for alias in "kl"}
        lists |= {f"first_images_{alias}": self._list(first.format(a=alias), values) for alias in "of"}
        return lists | {
            "first_known": self._list(", CASE WHEN a.recorded THEN c.old_{p} ELSE a.image_{p} END AS image_{p}", values),
            "olds_and_expected": self._list(
                ", c.old_{p}, CASE WHEN c.begins THEN s.image_{p} ELSE lag(c.new_{p}) OVER records END AS expected_{p}", values
            ),
            "unexpected": self._differ("w.expected_{p}", "w.old_{p}"),
            "news_c_as_images": self._list(", c.new_{p} AS image_{p}", values),
            "olds_c_as_images": self._list(", c.old_{p}", values),
            "images_s": self._list(", s.image_{p}", values),
            "image_order": self._order("i.image_{p}"),
            "more_news_c": self._list(", c.new_{p}", values),
            "nulls": ", NULL" * (2 * len(values)),
            "null_news": self._list(", CASE WHEN false THEN l.new_{p} END AS new_{p}", values),
            "same_key_ac": self._same_key("a", "c"),
            "same_key_as": self._same_key("a", "s"),
            "kept": self._list(", CASE WHEN a.place IS NULL THEN s.key_{p} ELSE a.key_{p} END AS kept_{p}", keys),
            "kept_a": self._list(", a.key_{p}", keys),
            "was": self._list(", a.image_{p} AS was_{p}", values),
            "was_a": self._list(", a.image_{p}", values),
            "first_differs": self._differ("k.was_{p}", "k.image_{p}"),
            "change_columns": self._list(", key_{p}", keys) + self._list(", old_{p}", values) + self._list(", new_{p}", values),
            "admission_columns": self._list(", key_{p}", keys) + self._list(", image_{p}", values),
            "settled_now": self._list(", CASE WHEN o.used > 0 THEN o.new_{p} ELSE o.was_{p} END", values),
            "set_images": self._list(", image_{p} = CASE WHEN o.used > 0 THEN o.new_{p} ELSE o.was_{p} END", values),
            "moving": "o.used > 0 OR o.ignored AND NOT o.frozen",
        }

    def _tick_lists(self, *, several: bool) -> dict[str, str]:
        """Return what differs between a pass over one tick and one over several: where a record falls, and what was settled before."""
        if not several:
            return {
                "own_tick": "$7",
                "tick": "t.own_tick",
                "settled_present": "d.was_present",
                "settled_images": self._list(", d.was_{p}", self.values),
                "changed_since_settled": self._differ("w.was_{p}", "w.new_{p}"),
            }
        over = " OVER (PARTITION BY d.entry ORDER BY d.tick)"
        return {
            "own_tick": SQL["own_tick"],
            "tick": "max(t.own_tick) OVER records",
            "settled_present": f"lag(d.present, 1, d.was_present){over}",
            "settled_images": self._list(f", lag(d.new_{{p}}, 1, d.was_{{p}}){over}", self.values),
            "before_images": self._list(", lag(w.new_{p}, 1, w.was_{p}) OVER steps AS before_{p}", self.values),
            "changed_since_before": self._differ("c.before_{p}", "c.new_{p}"),
        }
