"""Group keys: where the public list of keys comes from. The text is parsed by a small grammar of its own and never executed.

| text                             | keys                                                      |
|----------------------------------|-----------------------------------------------------------|
| VALUES ('Tainan'), ('Kaohsiung') | those written out, for one or several columns             |
| SELECT name FROM county          | the values of one column of one table, if it is marked public |
| (none)                           | the labels of enum columns; with a delta of their own, those of the data |
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from fractions import Fraction

from dbext.query.characters import check_characters, fold
from dbext.query.declaration import Declaration, TableName
from dbext.query.refusal import refused

MAX_LENGTH = 1_000_000
MAX_KEYS = 100_000

_TOKEN = re.compile(
    r"(?P<blank>\s+)|(?P<string>'(?:[^']|'')*')|(?P<name>\"(?:[^\"]|\"\")+\")|(?P<number>-?[0-9]+(?:\.[0-9]+)?)|(?P<word>[^\W\d][\w$]*)|(?P<symbol>[(),.;])",
)
_FORMS = "Write VALUES ('a'), ('b') or SELECT column FROM table."


@dataclass(frozen=True)
class Values:
    """Keys written out: one tuple of texts per key, each as wide as GROUP BY. Their types are those of the columns."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class PublicColumn:
    """Keys are the values of a column that must be marked public."""

    table: TableName
    column: str


@dataclass(frozen=True)
class EnumLabels:
    """Keys are the labels of the grouped enum columns, in all combinations."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DataKeys:
    """Keys are those that enough entries turn out to have; showing them costs `delta`."""

    delta: Fraction


GroupSource = Values | PublicColumn | EnumLabels | DataKeys


def group_source(declaration: Declaration, sql: str | None) -> GroupSource:
    """Where the keys of a resolved declaration come from; refuses GROUP BY without keys and keys without GROUP BY.

    Bins bring their own: these are the keys of the columns beside them, one empty key where there are none.
    """
    if not declaration.group_by and sql is not None:
        said = "groups are given, but bins need none" if declaration.bins else "groups are given, but the declaration has no GROUP BY"
        raise refused(said, hint="Leave groups out, or group by the columns.")
    if not declaration.group_by:
        return Values(((),))
    if sql is not None:
        return compile_groups(sql, len(declaration.group_by))
    for reference in declaration.group_by:
        if reference.column.base != "enum":
            raise refused(
                f"GROUP BY {reference.name} needs a public list of keys",
                reference.offset,
                "Add groups => with VALUES ('a'), ('b') or SELECT column FROM table.",
            )
    labels = [reference.column.enum_labels for reference in declaration.group_by]
    if math.prod(map(len, labels)) > MAX_KEYS:
        raise refused(
            f"the enum columns have more than {MAX_KEYS} combinations", hint="Write out the keys that matter with groups => 'VALUES ...'."
        )
    return EnumLabels(tuple(itertools.product(*labels)))


def compile_groups(sql: str, width: int) -> Values | PublicColumn:
    """Read a list of keys of `width` columns. Raises DeclarationRefused with a position."""
    if len(sql) > MAX_LENGTH:
        raise refused(
            f"the list of groups is longer than {MAX_LENGTH} characters", hint="Keep the keys in a table and mark its column public."
        )
    check_characters(sql)
    reader = _Reader(_split(sql), len(sql))
    first = reader.word("VALUES or SELECT")
    if first == "values":
        return Values(_checked(_rows(reader, width)))
    if first != "select":
        raise refused("groups are VALUES or a SELECT", 0, _FORMS)
    if width != 1:
        raise refused("groups of several columns must be written out", 0, "Write VALUES ('a', 'x'), ('a', 'y'), one tuple for each key.")
    return _public_column(reader)


def _checked(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Keys without repetition, in their order; the service makes them distinct under the column's own equality too."""
    distinct = tuple(dict.fromkeys(rows))
    if len(distinct) > MAX_KEYS:
        raise refused(f"groups has more than {MAX_KEYS} keys")
    return distinct


class _Reader:
    """Tokens of a key list, taken one by one: (kind, text, offset)."""

    def __init__(self, tokens: list[tuple[str, str, int]], end: int):
        self.tokens, self.next, self.end = tokens, 0, end

    def take(self, *kinds: str, expected: str) -> str:
        kind, text, offset = self.tokens[self.next] if self.next < len(self.tokens) else ("end", "", self.end)
        if kind not in kinds:
            raise refused(f"in the list of groups, {expected} is expected here", offset, _FORMS)
        self.next += 1
        return text

    def word(self, expected: str) -> str:
        return self.take("word", expected=expected).lower()

    def symbol(self, symbol: str) -> None:
        self.take(symbol, expected=symbol)

    def sees(self, symbol: str) -> bool:
        return self.next < len(self.tokens) and self.tokens[self.next][0] == symbol

    def finish(self) -> None:
        if self.sees(";"):
            self.next += 1
        if self.next < len(self.tokens):
            raise refused("nothing may follow the list of groups", self.tokens[self.next][2], _FORMS)


def _split(sql: str) -> list[tuple[str, str, int]]:
    tokens, position = [], 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        if match is None:
            raise refused("a character in the list of groups is not understood", position, _FORMS)
        if match.lastgroup != "blank":
            tokens.append(_token(match))
        position = match.end()
    return tokens


def _token(match: re.Match) -> tuple[str, str, int]:
    kind, text = match.lastgroup, match[0]
    if kind in ("string", "name"):
        text = text[1:-1].replace(text[0] * 2, text[0])
    return (text if kind == "symbol" else kind), text, match.start()


def _rows(reader: _Reader, width: int) -> tuple[tuple[str, ...], ...]:
    rows = [_row(reader, width)]
    while reader.sees(","):
        reader.symbol(",")
        rows.append(_row(reader, width))
    reader.finish()
    return tuple(rows)


def _row(reader: _Reader, width: int) -> tuple[str, ...]:
    reader.symbol("(")
    values = [_value(reader)]
    while reader.sees(","):
        reader.symbol(",")
        values.append(_value(reader))
    if len(values) != width:
        raise refused(
            f"each key of groups has {width} value{'' if width == 1 else 's'}, as GROUP BY has columns", reader.tokens[reader.next - 1][2]
        )
    reader.symbol(")")
    return tuple(values)


def _value(reader: _Reader) -> str:
    if reader.sees("word"):
        word = reader.word("a literal")
        if word in ("true", "false"):
            return word
        hint = "Entries with NULL there belong to no published group." if word == "null" else "Write it in quotes."
        raise refused("a key of groups must be a literal", reader.tokens[reader.next - 1][2], hint)
    return reader.take("string", "number", expected="a literal")


def _public_column(reader: _Reader) -> PublicColumn:
    column = _name(reader)
    if reader.word("FROM") != "from":
        raise refused("in the list of groups, FROM is expected here", reader.tokens[reader.next - 1][2], _FORMS)
    schema, table = None, _name(reader)
    if reader.sees("."):
        reader.symbol(".")
        schema, table = table, _name(reader)
    reader.finish()
    return PublicColumn(TableName(schema, table), column)


def _name(reader: _Reader) -> str:
    if reader.sees("name"):
        return reader.take("name", expected="a name")
    return fold(reader.take("word", expected="a name"))
