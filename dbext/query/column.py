"""A tracked column as the compiler sees it: its name, its place in the image tables, and what may be done with its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbext.errors import InternalError

#: Bytes of the longest text that counts; longer ones are nobody's name.
LONGEST_TEXT = 1_000_000

BASES = frozenset({"text", "bool", "integer", "numeric", "float", "date", "timestamp", "timestamptz", "uuid", "enum", "other"})

# Categories of pg_type whose input functions depend on nothing but the text: strings and network addresses. Other types of
# base 'other' may read the clock or a setting (ranges of dates read 'today'), so that a literal's meaning could change by itself.
_STABLE_CATEGORIES = frozenset("SI")


@dataclass(frozen=True)
class Column:
    """`position` numbers the columns key_<position>, new_<position>, ... of the image tables.

    `operators` maps '=' and '<' (others are optional) to schema-qualified operators of the type's own class. `literal_type` is the
    schema-qualified type that literals are cast to, without a modifier: a cast to varchar(3) would cut the literal short. `not_null`
    says that the table allows no NULL in it at the moment. Where a unit has several rows, `per_unit` is how many of them count at most:
    images hold an array of so many values. It is None of columns that are one value per entry; `is_key` says that it identifies rows.
    """

    name: str
    position: int
    type_name: str
    category: str
    base: str
    is_unit: bool = False
    enum_labels: tuple[str, ...] = ()
    operators: Mapping[str, str] = field(default_factory=dict, compare=False)
    literal_type: str = ""
    not_null: bool = field(default=False, compare=False)
    per_unit: int | None = None
    is_key: bool = False

    def __post_init__(self):
        if self.base not in BASES:
            raise InternalError(f"column {self.position} has an unknown base type {self.base}")

    @property
    def is_string(self) -> bool:
        """Whether values can be of any length. Long ones count as NULL wherever a function or an equality could fail on them."""
        return self.category == "S"

    def short(self, value: str) -> str:
        """SQL for a value of the column, or NULL if it is so long that what is done with it could fail: one entry must not do that.

        Equality of citext and of collations that ignore case fails somewhere from 256 MB on, and so do lower() and upper(). The length of
        a text is known without reading it. A cast to text of such a type can only be its maker's, a superuser's.
        """
        if not self.is_string:
            return value
        return f"CASE WHEN pg_catalog.octet_length({value}::pg_catalog.text) OPERATOR(pg_catalog.<=) {LONGEST_TEXT} THEN {value} END"

    @property
    def takes_literals(self) -> bool:
        return self.base != "other" or self.category in _STABLE_CATEGORIES


def by_name(columns: Sequence[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns}
