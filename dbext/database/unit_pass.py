"""The SQL of a seal pass over a table of which a unit has several rows: rows move on, and with them the images of their units.

The settled image of a unit holds its first rows by primary key, each column as an array in that order. It is a function of the unit's
own rows: adding or removing another unit changes nothing in it. From there on a unit is an entry like any other, admitted and frozen by
the same rules, so that whatever bounds what one entry adds to a statistic bounds what one unit adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbext.database.catalog import StoredType
from dbext.database.identifiers import private
from dbext.database.seal_pass import ImageColumn, PassSql
from dbext.database.statements import fill, statements

SQL = statements("unit_pass")

#: Bytes of the longest text or number in an image of several rows; longer ones are NULL there. With at most 5000 values in an image
#: (see refuse_unfit_rows) nothing comes near what a row of PostgreSQL can hold, so that no unit can make a seal fail.
LONGEST_VALUE = 10_000


class RowSql(PassSql):
    """Statements over single rows, identified by unit and row key: what they are is kept in row_N, and nothing limits their changes."""

    held, known_as = "true", "false AS recorded, true AS present"

    def __init__(self, table_id: int, columns: Sequence[ImageColumn]):
        super().__init__(table_id, [replace(one, is_unit=one.is_unit or one.is_row_key) for one in columns], "row")
        self.units = [one for one in columns if one.is_unit]
        self.row_keys = [one for one in columns if one.is_row_key]

    def followed(self, *, several: bool, truncated: bool) -> dict[str, str]:
        """Return what a pass takes to let the rows follow their records, and to lay their versions side by side."""
        names = self._pass_lists() | self._tick_lists(several=several)
        names |= {"walk": self._walk(names, truncated=truncated), "rows": private("row", self.table_id)}
        images = ", ".join(f"image_{one.position} = k.new_{one.position}" for one in self.values)
        return names | {
            "ends": "lead(s.tick) OVER (PARTITION BY s.entry ORDER BY s.tick) IS NULL" if several else "true",
            "next_moment": "lead(t.moment) OVER (PARTITION BY t.entry ORDER BY t.moment)" if several else "NULL::bigint",
            "row_columns": self._bare("key_{p}", self.keys) + self._list(", image_{p}", self.values),
            "keys_k": self._bare("k.key_{p}", self.keys),
            "moved": fill(SQL["moved"], set_rows=images, **names) if images else "",
            "was_f": self._list(", f.was_{p}", self.values),
            "was_t": self._list(", t.was_{p} AS new_{p}", self.values),
            "null_rows": ", NULL" * (len(self.row_keys) + 2 * len(self.values)),
            **{f"news_{alias}": self._list(f", {alias}.new_{{p}}", self.values) for alias in "kftvl"},
            **{f"unit_{alias}": self._bare(f"{alias}.key_{{p}}", self.units) for alias in "ftu"},
            **{f"row_{alias}": self._list(f", {alias}.key_{{p}}", self.row_keys) for alias in "ftavl"},
            **{f"row_order_{alias}": self._bare(f"{alias}.key_{{p}}", self.row_keys) for alias in "asr"},
        }


class UnitSql(PassSql):
    """The pass over units, whose images are arrays of at most `most` rows."""

    steps, worth, is_baseline = "unit_steps", "WHERE a.place IS NOT NULL OR s.tick >= s.began", "k.first_op = 'B'"

    def __init__(self, table_id: int, columns: Sequence[ImageColumn], most: int):
        # Arrays of bounded values can be compared whole, whatever their collation.
        super().__init__(table_id, [replace(one, folds=False) for one in columns])
        self.most = most
        self.rows = RowSql(table_id, columns)

    def left_behind(self) -> str:
        """Return the query for what must stay behind: the order that counts is that of the records of each row."""
        return self.rows.left_behind()

    def defer(self) -> str:
        """Return the statement that sets rows aside."""
        return self.rows.defer()

    def take_deferred(self) -> str:
        """Return the statement that takes rows set aside before."""
        return self.rows.take_deferred()

    def seal(self, types: Sequence[StoredType], classify: str, *, ticks: int, truncated: bool) -> str:
        """Return the statement of one pass over `ticks` ticks; `classify` is SQL for the type of a first image s.image_*."""
        several = ticks > 1
        admit = self._admit(types, classify, self._pass_lists() | self._tick_lists(several=several), ticks=ticks)
        names = self.rows.followed(several=several, truncated=truncated) | self._image_lists(several=several)
        names["shown"] = fill(SQL["many_moments" if several else "one_moment"], **names)
        names["emptied"] = fill(SQL["emptied"], admission=private("admission", self.table_id), **names) if truncated else ""
        return fill(SQL["pass"], admit=admit, images=fill(SQL["images"], **names), **names)

    def _leads(self, *, several: bool) -> str:
        """Which step is the first of its unit."""
        return "k.tick = min(k.tick) OVER (PARTITION BY k.entry)" if several else "true"

    def _image_lists(self, *, several: bool) -> dict[str, str]:
        """Return what the images of units are made of."""
        first = "first_value({}) OVER firsts" if several else "{}"
        began = f", {first.format('CASE WHEN s.present THEN s.tick END')} AS began"
        return {
            "most": str(self.most),
            "same_key_au": self._same_key("a", "u"),
            "keys_a": self._bare("a.key_{p}", self.keys),
            "images_a": self._list(", a.image_{p}", self.rows.values),
            "arrays": "".join(f", array_agg({_value(one)} ORDER BY r.place) AS new_{one.position}" for one in self.values),
            "news_r": self._list(", r.new_{p}", self.values),
            "firsts_s": began + self._list(f", {first.format('s.new_{p}')} AS image_{{p}}", self.values),
            "firsts": "WINDOW firsts AS (PARTITION BY s.entry ORDER BY s.present DESC, s.tick)" if several else "",
        }


def _value(column: ImageColumn) -> str:
    """A value of a row as an image holds it."""
    name = f"r.{'key' if column.is_row_key else 'new'}_{column.position}"
    if not column.cut:
        return name
    # As they are stored: a cast would strip the blanks that char(n) is padded with, and not count them.
    length = f"octet_length({name})" if column.is_string else f"octet_length({name}::text)"
    return f"CASE WHEN {length} <= {LONGEST_VALUE} THEN {name} END"
