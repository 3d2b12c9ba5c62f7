"""A tracked column as the compiler sees it: its name, its place in the image tables, and what may be done with its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbext.errors import InternalError

BASES = frozenset({"text", "bool", "integer", "numeric", "float", "date", "timestamp", "timestamptz", "uuid", "enum", "other"})

# Categories of pg_type whose input functions depend on nothing but the text: strings and network addresses. Other types of
# base 'other' may read the clock or a setting (ranges of dates read 'today'), so that a literal's meaning could change by itself.
_STABLE_CATEGORIES = frozenset("SI")


@dataclass(frozen=True)
class Column:
    """`position` numbers the columns key_<position>, new_<position>, ... of the image tables.

    `operators` maps '=' and '<' (others are optional) to schema-qualified operators of the type's own class. `literal_type` is the
    schema-qualified type that literals are cast to, without a modifier: a cast to varchar(3) would cut the literal short. `not_null`
    says that the table allows no NULL in it at the moment.
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

    def __post_init__(self):
        if self.base not in BASES:
            raise InternalError(f"column {self.position} has an unknown base type {self.base}")

    @property
    def takes_literals(self) -> bool:
        return self.base != "other" or self.category in _STABLE_CATEGORIES


def by_name(columns: Sequence[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns}
