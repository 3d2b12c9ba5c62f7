"""PostgreSQL is the judge: a compiled predicate selects exactly the rows that its text selects, NULLs and precedence included."""

from __future__ import annotations

import random

from dbext.query.compiler import compile_predicate
from dbext.query.render import render
from dbext.query.text import text
from tests.unit.query.tables import COLUMNS

ROWS, PREDICATES = 300, 1500
TYPES = {
    "status": "text",
    "county": "varchar(5)",
    "age": "int",
    "imported": "bool",
    "vaccinated": "bool",
    "onset": "date",
    "amount": "numeric",
    "Kreis": 'text COLLATE "C"',
    "score": "float8",
}
TEXTS = ("status", "county", "Kreis")
VALUES = {
    **dict.fromkeys(TEXTS, ("a", "b", "B", "A%")),
    "age": ["1", "2", "-1"],
    "amount": ["1", "1.5", "2"],
    "score": ["0.5", "1", "NaN"],
    "onset": ["2015-01-01", "2015-01-02"],
    "imported": ["true", "false"],
    "vaccinated": ["true", "false"],
}
LITERALS = {
    **dict.fromkeys(TEXTS, ("'a'", "'b'", "'B'", "'A%'", "'A\\'")),
    "age": ["1", "2", "-1", "- 1", "'1'"],
    "amount": ["1", "1.5", "2.0", "1e0", "'1.50'", ".5"],
    "score": ["0.5", "5e-1", "1", "2"],
    "onset": ["'2015-01-01'", "DATE '2015-01-02'"],
    "imported": ["true", "false", "'t'"],
    "vaccinated": ["true", "FALSE"],
}
PATTERNS = ["'a%'", "'_'", "'A\\%'", "'%'", "'b'"]
WHOLE = [
    "imported = vaccinated",
    "imported <> vaccinated",
    'status = "Kreis"',
    'status <> "Kreis"',
    "lower(status) = lower(county)",
    "imported is unknown",
    "imported is not unknown",
]


class Writer:
    """Random predicates in the language of the compiler, with as few parentheses as SQL allows."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_of(self, choices):
        return self.random.choice(choices)

    def name(self, column):
        return '"Kreis"' if column == "Kreis" else self.one_of([column, column.upper(), f'"{column}"'])

    def comparison(self):
        column = self.one_of(list(TYPES))
        sides = [self.name(column), self.one_of(LITERALS[column])]
        self.random.shuffle(sides)
        return f" {self.one_of(['=', '<>', '!=', '<', '<=', '>', '>='])} ".join(sides)

    def atom(self):
        column, negation = self.one_of(list(TYPES)), self.one_of(["", "not "])
        some = [self.one_of(LITERALS[column]) for _ in range(self.random.randrange(1, 4))]
        return self.one_of(
            [
                self.comparison(),
                f"{self.name(column)} {negation}in ({', '.join(some)})",
                f"{self.name(column)} {negation}between {some[0]} and {some[-1]}",
                f"{self.name(column)} is {negation}null",
                self.name(self.one_of(["imported", "vaccinated"])),
                f"{self.name(self.one_of(TEXTS))} {negation}like {self.one_of(PATTERNS)}",
                f"{self.one_of(['lower', 'UPPER'])}({self.name(self.one_of(TEXTS))}) {self.one_of(['=', 'like'])} {self.one_of(PATTERNS)}",
                f"{self.one_of(['imported', 'age = 1', 'not vaccinated'])} is {negation}{self.one_of(['true', 'false'])}",
                self.one_of(WHOLE),
            ]
        )

    def predicate(self, depth):
        shape = self.random.random()
        if depth == 0 or shape < 0.3:
            return self.atom()
        if shape < 0.45:
            return "not " + self.predicate(depth - 1)
        if shape < 0.6:
            return f"({self.predicate(depth - 1)}){self.one_of(['', ' is true', ' is not true', ' is false', ' is not false'])}"
        return f"{self.predicate(depth - 1)}{self.one_of([' and ', ' or '])}{self.predicate(depth - 1)}"


def fill(database, writer):
    """Table `entry` under the columns' own names, view `image` under those of a settled image."""
    columns = [column for column in COLUMNS if column.name in TYPES]
    database.execute(f"CREATE TABLE entry (id serial, {', '.join(f'{writer.name(name)} {kind}' for name, kind in TYPES.items())})")
    names = ", ".join(f'"{name}"' for name in TYPES)
    with database.superuser.cursor() as cursor:
        rows = [[writer.one_of([None, *VALUES[name]]) for name in TYPES] for _ in range(ROWS)]
        cursor.executemany(f"INSERT INTO entry ({names}) VALUES ({', '.join(['%s'] * len(TYPES))})", rows)
    images = ", ".join(f'"{column.name}" AS new_{column.position}' for column in columns)
    database.execute(f"CREATE VIEW image AS SELECT id, {images} FROM entry")
    return columns


def test_compiled_predicates_select_what_their_text_selects(empty_database):
    writer = Writer("predicates")
    columns = fill(empty_database, writer)
    for _ in range(PREDICATES):
        sql = writer.predicate(writer.random.randrange(5))
        predicate = compile_predicate(sql, columns)
        selected = empty_database.value(f"SELECT array_agg(id ORDER BY id) FROM entry WHERE {sql}")
        counted = empty_database.value(f"SELECT array_agg(id ORDER BY id) FROM image AS n WHERE ({render(predicate, 'new', 'n')}) IS TRUE")
        assert counted == selected, f"{sql} became {text(predicate)}"


def test_a_text_that_lower_would_fail_on_counts_as_null(empty_database):
    """A failure that one entry causes would tell of it: exactly, and for nothing."""
    (column,) = (one for one in COLUMNS if one.name == "status")
    condition = render(compile_predicate("lower(status) = 'x' OR upper(status) = 'X'", COLUMNS), "new", "n")
    image = f"(SELECT repeat('x', 268435456) AS new_{column.position} OFFSET 0) AS n"
    assert empty_database.value(f"SELECT {condition} FROM {image}") is None
