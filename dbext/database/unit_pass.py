"""The SQL of a seal pass over a table of which a unit has several rows: rows move on first, then the images of their units.

The settled image of a unit holds its first rows by primary key, each column as an array in that order. It is a function of the unit's
own rows: adding or removing another unit changes nothing in it. From there on a unit is an entry like any other, admitted and frozen by
the same rules, so that whatever bounds what one entry adds to a statistic bounds what one unit adds. A pass closes one tick, because
images are needed at the end of each.
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

    def rows(self, *, truncated: bool) -> str:
        """Return the statement that lets the rows follow the records of one tick."""
        names = self._pass_lists() | self._tick_lists(several=False)
        images = ", ".join(f"image_{one.position} = k.new_{one.position}" for one in self.values)
        names |= {
            "walk": self._walk(names, truncated=truncated),
            "row_columns": self._bare("key_{p}", self.keys) + self._list(", image_{p}", self.values),
            "keys_k": self._bare("k.key_{p}", self.keys),
            "moved": self._filled("moved", {"images": images}) if images else "",
        }
        return self._filled("rows", names)

    def _filled(self, name: str, names: dict[str, str]) -> str:
        return fill(SQL[name], **(self._names | names))


class UnitSql(PassSql):
    """The statement over units, whose images are arrays of at most `most` rows."""

    worth = "WHERE a.place IS NOT NULL OR s.present"

    def __init__(self, table_id: int, columns: Sequence[ImageColumn], most: int):
        # Arrays of bounded values can be compared whole, whatever their collation.
        super().__init__(table_id, [replace(one, folds=False) for one in columns])
        self.most = most

    def units(self, types: Sequence[StoredType], classify: str, *, truncated: bool) -> str:
        """Return the statement that admits the images of units with records in one tick; `classify` is over s.image_*."""
        names = self._names | self._pass_lists() | self._tick_lists(several=False)
        order = ", ".join(f"m.key_{one.position}" for one in self.values if one.is_row_key)
        return fill(
            SQL["units"],
            **names
            | {f"keys_{alias}": self._bare(alias + ".key_{p}", self.keys) for alias in "ldg"}
            | {
                "emptied": fill(SQL["emptied"], **names) if truncated else "",
                "news_i": self._list(", i.new_{p}", self.values),
                "firsts_i": self._list(", i.new_{p} AS image_{p}", self.values),
                "arrays": self._list(", array_agg(x.new_{p} ORDER BY x.place) AS new_{p}", self.values),
                "values": "".join(f", {_value(one)} AS new_{one.position}" for one in self.values),
                "row_order": order,
                "rows": private("row", self.table_id),
                "same_key_mg": self._same_key("m", "g"),
                "most": str(self.most),
                "admit": self._admit(types, classify, names, ticks=1),
            },
        )


def _value(column: ImageColumn) -> str:
    """A value of a row as an image holds it."""
    name = f"m.{'key' if column.is_row_key else 'image'}_{column.position}"
    if not column.cut:
        return name
    # As they are stored: a cast would strip the blanks that char(n) is padded with, and not count them.
    length = f"octet_length({name})" if column.is_string else f"octet_length({name}::text)"
    return f"CASE WHEN {length} <= {LONGEST_VALUE} THEN {name} END"
