from __future__ import annotations

import pytest

from dbext.errors import DeclarationRefused
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.declaration import TableName
from dbext.query.groups import EnumLabels, PublicColumn, Values, compile_groups, group_source
from tests.unit.query.tables import COLUMNS


def grouped(*columns):
    listed = ", ".join(columns)
    return resolve(compile_declaration(f"SELECT {listed}, count(*) FROM cases GROUP BY {listed}"), COLUMNS)


@pytest.mark.parametrize(
    ("sql", "width", "source"),
    [
        ("VALUES ('a'), ('b'), ('a')", 1, Values((("a",), ("b",)))),
        ("values ('it''s', 1), ('', -2.50), (true, FALSE);", 2, Values((("it's", "1"), ("", "-2.50"), ("true", "false")))),
        ("SELECT name FROM county", 1, PublicColumn(TableName(None, "county"), "name")),
        ('select "Name"\nFROM Public."County" ;', 1, PublicColumn(TableName("public", "County"), "Name")),
        ("VALUES ('台南市')", 1, Values((("台南市",),))),
    ],
)
def test_lists_of_keys(sql, width, source):
    assert compile_groups(sql, width) == source


@pytest.mark.parametrize(
    ("sql", "width", "position"),
    [
        ("", 1, 1),
        ("VALUES", 1, 7),
        ("VALUES ()", 1, 9),
        ("VALUES ('a', 'b')", 1, 14),
        ("VALUES ('a')", 2, 9),
        ("VALUES ('a') ('b')", 1, 14),
        ("VALUES ('a'::text)", 1, 12),
        ("VALUES (NULL)", 1, 9),
        ("VALUES (DEFAULT)", 1, 9),
        ("VALUES ('a'), ('b'); SELECT 1", 1, 22),
        ("SELECT a, b FROM county", 1, 9),
        ("SELECT * FROM county", 1, 8),
        ("SELECT name FROM county, other", 1, 24),
        ("SELECT name FROM county WHERE true", 1, 25),
        ("SELECT name FROM a.b.c", 1, 21),
        ("SELECT name FROM pg_read_file('x')", 1, 30),
        ("SELECT name FROM (SELECT 1)", 1, 18),
        ("SELECT name FROM county -- x", 1, 25),
        ("SELECT name FROM county", 2, 1),
        ("WITH a AS (SELECT 1) SELECT name FROM county", 1, 1),
        ("VALUES ('a\0')", 1, 11),
    ],
)
def test_anything_else_is_refused_with_a_position(sql, width, position):
    with pytest.raises(DeclarationRefused) as caught:
        compile_groups(sql, width)
    assert caught.value.position == position, caught.value.message


def test_enum_columns_bring_their_keys():
    assert group_source(grouped("serotype"), None) == EnumLabels((("DENV-1",), ("DENV-2",), ("unknown",)))
    with pytest.raises(DeclarationRefused, match="needs a public list of keys") as caught:
        group_source(grouped("county"), None)
    assert caught.value.position == 45
    with pytest.raises(DeclarationRefused, match="no GROUP BY"):
        group_source(resolve(compile_declaration("SELECT count(*) FROM cases"), COLUMNS), "VALUES ('a')")
    assert group_source(grouped("county", "serotype"), "VALUES ('a', 'DENV-1')") == Values((("a", "DENV-1"),))


def test_combinations_of_enums_have_a_limit():
    wide = [
        column if column.name != "serotype" else type(column)(**{**column.__dict__, "enum_labels": tuple(map(str, range(100_001)))})
        for column in COLUMNS
    ]
    declaration = resolve(compile_declaration("SELECT serotype, count(*) FROM cases GROUP BY serotype"), wide)
    with pytest.raises(DeclarationRefused, match="combinations"):
        group_source(declaration, None)
