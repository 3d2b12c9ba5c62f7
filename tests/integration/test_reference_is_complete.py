"""The SQL reference against the catalog: whatever a user can call, read or meet as an error is there, and nothing else is."""

from __future__ import annotations

import ast
import re

import pytest

from dbext import errors
from tests.documents import ROOT, SQL_REFERENCE, code, fenced, sections, tables

PAGE = SQL_REFERENCE.read_text(encoding="utf-8")
READERS = ("dbext_reader", "dbext_analyst", "dbext_admin")
#: Words of the form dp_... that are no functions: the time of a mutation, and the schema of release tables.
OTHER_NAMES = {"dp_time", "dp_release"}

FUNCTIONS = """
    SELECT p.oid, p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), coalesce(p.proargnames, '{}') AS names
    FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'dbext'
    WHERE p.pronamespace = e.extnamespace ORDER BY p.proname, p.oid
"""
COLUMNS = """
    SELECT a.attname::text, format_type(a.atttypid, NULL) FROM pg_attribute a
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


def table(text, heading):
    """Return the rows of the only table of a text whose first column has a heading."""
    (found,) = [rows for rows in tables(text) if heading in rows[0] and next(iter(rows[0])) == heading]
    return found


def short(type_or_arguments):
    """Return types as the page writes them: defaults without casts."""
    text = re.sub(r"::[a-z ]+(\[\])?(?=,|$)", "", type_or_arguments)
    return text.replace("timestamp with time zone", "timestamptz")


def documented_functions():
    return {name: text for name, text in sections(PAGE, 3).items() if name.startswith("dp_")}


def test_every_function_has_its_signature(database):
    actual: dict[str, list[str]] = {}
    for _, name, arguments, result, _ in database.fetch(FUNCTIONS):
        assert name.startswith("dp_")
        shown = f"{name}({short(arguments)}) RETURNS {result}" if result else f"PROCEDURE {name}({short(arguments)})"
        actual.setdefault(name, []).append(shown)
    documented = {}
    for name, text in documented_functions().items():
        (block,) = [content for kind, content in fenced(text) if kind == "text"]
        documented[name] = [" ".join(one.split()) for one in re.split(r"\n(?=dp_)", block)]
    assert documented == actual


def test_every_argument_is_explained(database):
    actual = {name: names for _, name, _, _, names in database.fetch(FUNCTIONS) if names}
    with_arguments = {name: text for name, text in documented_functions().items() if "| argument |" in text}
    assert {name: [code(row["argument"]) for row in table(text, "argument")] for name, text in with_arguments.items()} == actual


def test_rights_are_as_stated(database):
    rows = table(PAGE, "function")
    names = [re.match(r"\[`(\w+)`\]\(#\1\)$", row["function"])[1] for row in rows]
    assert names == list(documented_functions())
    for oid, name, *_ in database.fetch(FUNCTIONS):
        granted = {role: database.value("SELECT has_function_privilege(%s, %s::oid, 'EXECUTE')", (role, oid)) for role in READERS}
        assert {role: rows[names.index(name)][role] == "yes" for role in READERS} == granted, name
        assert not database.value("SELECT has_function_privilege('public', %s::oid, 'EXECUTE')", (oid,))


def described(text):
    return [(code(row["column"]), row["type"]) for row in table(text, "column")]


def test_every_view_and_its_columns(database):
    views = [name for (name,) in database.fetch("SELECT format('%I.%I', schemaname, viewname) FROM pg_views WHERE schemaname = 'dbext'")]
    documented = {name: text for name, text in sections(PAGE, 3).items() if name.startswith("dbext.")}
    assert sorted(documented) == sorted(views)
    for name, text in documented.items():
        assert described(text) == [(column, short(kind)) for column, kind in database.fetch(COLUMNS, (name,))], name
        readers = {role for role in READERS if database.value("SELECT has_table_privilege(%s, %s, 'SELECT')", (role, name))}
        assert readers == ({"dbext_admin"} if "For `dbext_admin` only" in text else set(READERS)), name


def test_every_result_type_and_its_columns(database):
    types = database.fetch(
        "SELECT format('%I.%I', relnamespace::regnamespace, relname) FROM pg_class WHERE relkind = 'c' AND relnamespace = 'dbext'::regnamespace"
    )
    documented = {}
    for text in documented_functions().values():
        for name in re.findall(r"of type `(dbext\.\w+)`", text):
            documented[name] = described(text)
    assert documented == {name: [(column, short(kind)) for column, kind in database.fetch(COLUMNS, (name,))] for (name,) in types}


@pytest.mark.parametrize("measure", ["net", "left"])
def test_release_table_and_view_have_the_columns_described(ready, measure):
    ready.declare(
        "shown", "SELECT county, status, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county, status",
        every="1 day", measure=measure, epsilon=1, groups="VALUES ('A', 'open')",
    )  # fmt: skip
    described_tables = [rows for rows in tables(sections(PAGE, 2)["Release tables"]) if "column" in rows[0]]
    for name, rows in zip(("dp_release.shown", "dp_release.shown_rounded"), described_tables, strict=True):
        expected = []
        for row in rows:
            if row["column"] == "(group columns)":
                expected += [("county", "text"), ("status_or_label", "text")]
            else:
                expected.append((measure if row["column"] == "(figure)" else code(row["column"]), row["type"]))
        actual = [(column, short(kind)) for column, kind in ready.database.fetch(COLUMNS, (name,))]
        assert actual == [("group_status" if column == "status_or_label" else column, kind) for column, kind in expected]


def error_classes():
    return [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.DbextError)]


def test_every_sqlstate_is_explained():
    (rows,) = [rows for rows in tables(PAGE) if list(rows[0])[:2] == ["SQLSTATE", "name"]]
    names: dict[str, list[str]] = {}
    for one in error_classes():
        names.setdefault(one.sqlstate, []).append(one.__name__)
    del names[errors.DbextError.sqlstate]
    assert {row["SQLSTATE"]: row["name"].split(", ") for row in rows} == names
    assert set(re.findall(r"\bDP\d\d\d\b", PAGE)) == {one.sqlstate for one in error_classes()}


def test_every_error_of_postgresql_that_comes_through_is_listed():
    tree = ast.parse((ROOT / "dbext" / "server.py").read_text(encoding="utf-8"))
    (passed_on,) = [
        ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "PASSED_ON"
    ]
    (rows,) = [rows for rows in tables(PAGE) if list(rows[0])[:2] == ["SQLSTATE", "meaning"]]
    assert [row["SQLSTATE"] for row in rows] == sorted(passed_on)


def test_roles_and_settings_are_those_there_are(database):
    roles = database.fetch("SELECT rolname::text FROM pg_roles WHERE rolname ~ '^dbext_[a-z]+$' AND NOT rolcanlogin")
    assert sorted(code(row["role"]) for row in table(PAGE, "role")) == sorted(name for (name,) in roles)
    used = {
        name
        for part in (ROOT / "sql" / "parts").glob("*.sql")
        for name in re.findall(r"current_setting\('+(dbext\.\w+)", part.read_text(encoding="utf-8"))
    }
    assert {code(row["setting"]) for row in table(PAGE, "setting")} == used


def test_nothing_is_mentioned_that_does_not_exist(database):
    functions = {name for _, name, *_ in database.fetch(FUNCTIONS)}
    assert set(re.findall(r"\bdp_\w+", PAGE)) <= functions | OTHER_NAMES
    relations = {f"dbext.{name}" for (name,) in database.fetch("SELECT relname FROM pg_class WHERE relnamespace = 'dbext'::regnamespace")}
    assert set(re.findall(r"\bdbext\.\w+", PAGE)) <= relations | {"dbext.now"}
