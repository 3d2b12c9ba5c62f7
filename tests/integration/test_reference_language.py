"""Every form that the SQL reference calls accepted is accepted and becomes the plan it names; every one it calls refused is refused."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.documents import SQL_REFERENCE, code, sections, tables

PAGE = SQL_REFERENCE.read_text(encoding="utf-8")
LANGUAGE = sections(PAGE, 3)
#: A table with a column of every kind that the page shows literals for.
COLUMNS = """
    id bigint PRIMARY KEY, county text NOT NULL, status text, imported boolean, age integer, amount numeric, onset date, noted timestamp,
    first_seen timestamptz, last_seen timestamptz, token uuid, severity severity, address inet, stay daterange
"""


@pytest.fixture
def declared(database):
    """Declare a release about the table and return what was said; every call takes another name."""
    database.execute("CREATE TYPE severity AS ENUM ('mild', 'severe')")
    database.execute(f"CREATE TABLE cases ({COLUMNS})")
    database.execute("CREATE TABLE county (name text PRIMARY KEY)")
    database.execute("INSERT INTO county VALUES ('Tainan')")
    database.execute("SET dbext.now = '2025-09-01 09:00+08'")
    database.execute("SELECT dp_track('cases', time_zone => 'Asia/Taipei')")
    database.execute("SELECT dp_add_constraint('cases', 'any', max_mutations => 3), dp_set_budget('cases', epsilon => 100)")
    database.execute("SELECT dp_mark_public('county', 'name')")
    names = iter(f"release_{number}" for number in range(1000))

    def declare(text, **options):
        named = "".join(f", {option} => %s" for option in options)
        return database.value(f"SELECT dp_create_release(%s, %s, epsilon => 0.1{named})", [next(names), text, *options.values()])

    return declare


def rows(section, heading):
    (found,) = [found for found in tables(LANGUAGE[section]) if next(iter(found[0])) == heading]
    return found


def test_every_time_range_becomes_the_plan_named(declared, database):
    for row in rows("Time range", "range"):
        text = "SELECT count(*) FROM cases"
        if row["range"] != "(none)":
            text += f"{' ' if 'GROUP BY' in row['range'] else ' WHERE '}{code(row['range'])}"
        options = {} if row["kind"] == "once" or "GROUP BY" in row["range"] else {"every": "1 day"}
        said = declared(text, **options)
        name = re.match(r"release dp_release\.(\w+):", said)[1]
        ((kind, mechanism),) = database.fetch("SELECT kind, mechanism FROM dp_explain_release(%s) WHERE chosen", [name])
        assert kind == row["kind"], (row, said)
        assert f"measure {row['measure']}, mechanism {mechanism};" in said, (row, said)
        assert f"`{mechanism}`" in PAGE


def examples(heading):
    return [code(row["example"]) for found in tables(LANGUAGE["Predicates"]) for row in found if heading in row]


def test_every_predicate_is_accepted(declared):
    found = examples("form") + examples("column type")
    assert len(found) > 20
    for predicate in found:
        declared(f"SELECT count(*) FROM cases WHERE ({predicate}) AND dp_time > now() - INTERVAL '1 day'", every="1 day")


def refused(declared, text, **options):
    with pytest.raises(psycopg.Error) as caught:
        declared(text, **options)
    assert caught.value.sqlstate == "DP010", (text, str(caught.value))
    assert caught.value.diag.message_detail is None or "at character" in caught.value.diag.message_detail


def test_every_refused_predicate_is_refused(declared):
    for row in rows("Predicates", "refused"):
        refused(declared, f"SELECT count(*) FROM cases WHERE {code(row['refused'])}", every="1 day")


def test_every_refused_statement_is_refused(declared):
    for row in rows("Statements that are refused", "refused"):
        refused(declared, code(row["refused"]), every="1 day")


def test_every_source_of_groups_is_accepted(declared):
    for row in rows("Groups", "groups"):
        column, options = ("severity", {}) if row["groups"] == "(left out)" else ("county", {"groups": code(row["groups"])})
        declared(f"SELECT {column}, count(*) FROM public.cases AS c GROUP BY c.{column}, TUMBLE(dp_time, INTERVAL '1 day');", **options)
