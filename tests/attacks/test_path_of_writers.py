"""Capture functions run with the changelog's rights under the writer's search_path: not a name in them may be looked up there."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.integration.tracked import Tracked

#: What looks like a call and is syntax of PostgreSQL.
SYNTAX = {"coalesce", "row", "exists", "operator", "values", "and", "or", "not", "if", "from", "as", "on", "select", "where", "join", "when", "elsif"}
COLUMNS = """id bigint, "Wéird ""name" varchar(20), n numeric, b boolean, d date, at timestamptz, u uuid, j jsonb, t text, plain json, list integer[],
    word name, mood mood, pair pair, few positive, span interval, bits bit(3), c char(3), r real, f double precision, s smallint"""


def left_to_the_path(body: str) -> list[str]:
    """Everything in the text of a function whose meaning would depend on search_path."""
    text = re.sub(r"'(?:[^']|'')*'", "''", re.sub(r"^--.*", "", body, flags=re.MULTILINE)).replace("#variable_conflict use_variable", "")
    text = re.sub(r'(?<!pg_catalog\.)"(?:[^"]|"")+"', "quoted", text)
    text = re.sub(r"OPERATOR\(pg_catalog\.[^)\s]+\)", " ", text)
    operators = re.findall(r"[-+*/<>=~!@#%^&|`?]+", text.replace(":=", ""))
    calls = [name for name in re.findall(r"(?<![\w.])([a-zA-Z_]\w*)\s*\(", text) if name.lower() not in SYNTAX and not name.startswith("log_")]
    comparisons = re.findall(r"\b(?:DISTINCT FROM (?!NULL\b)\S+|IN \(|BETWEEN|I?LIKE|SIMILAR|NULLIF|GREATEST|LEAST|ANY|ALL|USING)", text, re.IGNORECASE)
    comparisons += re.findall(r"\bCASE (?!WHEN\b)\S+", text)
    types = re.findall(r"::(?!pg_catalog\.)\S+", text) + re.findall(r"DECLARE\s+\w+ (?!pg_catalog\.)\S+", text)
    relations = re.findall(r"\b(?:FROM|JOIN|INTO) (?!dbext_private\.|dbext_old\b|dbext_new\b|\(|NULL\b)\S+", text)
    return operators + calls + comparisons + types + relations


TYPES = """CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TYPE pair AS (n integer, j json); CREATE DOMAIN positive AS integer"""
EVENTS = ("insert", "update", "delete", "rowinsert", "rowupdate", "rowdelete", "truncate")


@pytest.fixture(params=["a table", "a partitioned table"])
def table(request, database):
    """A table of columns of every sort, tracked."""
    database.execute(TYPES)
    if request.param == "a table":
        return Tracked(database, f"{COLUMNS}, PRIMARY KEY (id, t)", real_time=True)
    whole = Tracked(database, f"{COLUMNS}, PRIMARY KEY (id, t)) PARTITION BY RANGE (id", real_time=True)
    whole.execute("CREATE TABLE part PARTITION OF entry DEFAULT")
    return whole


def test_nothing_in_a_capture_function_is_looked_up(table):
    bodies = [table.fetch(f"SELECT dbext_private.capture_body({table.number}, '{event}')")[0][0] for event in EVENTS]
    assert [left_to_the_path(body) for body in bodies] == [[]] * len(EVENTS)
    written = table.fetch(f"SELECT prosrc, proconfig FROM pg_proc WHERE proname ~ '^capture_[a-z]+_{table.number}$'")
    assert len(written) == 4
    assert {body for body, _ in written} <= set(bodies)
    assert {settings for _, settings in written} == {None}


@pytest.mark.parametrize("unit", ["integer[]", "int4range", "citext"])
def test_where_equality_is_not_postgresqls_own_the_path_is_pinned(database, unit):
    database.execute("CREATE EXTENSION citext")
    table = Tracked(database, f"id {unit} PRIMARY KEY, value text", real_time=True)
    settings = table.fetch(f"SELECT DISTINCT proconfig FROM pg_proc WHERE proname ~ '^capture_[a-z]+_{table.number}$'")
    assert settings == [(["search_path=pg_catalog, pg_temp"],)]


#: Whatever the capture functions use, in a schema that comes before pg_catalog; each says when it is run.
PLANT = """
CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO PUBLIC;
CREATE TYPE evil.char AS ENUM ('evil'); CREATE TYPE evil.timestamptz AS ENUM ('evil'); CREATE TYPE evil.record AS (evil integer);
CREATE TABLE evil.dbext_old (id bigint); CREATE TABLE evil.dbext_new (id bigint); CREATE TABLE evil.log_1 (id bigint);
DO $$
DECLARE
    trap text := 'BEGIN RAISE EXCEPTION ''trapped''; END';
    one record;
BEGIN
    FOR one IN SELECT DISTINCT p.oprname AS name, p.oprleft::regtype AS l, p.oprright::regtype AS r FROM pg_operator AS p
        WHERE p.oprname IN ('=', '<>', '*<>', '*=') AND p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprleft <> 0 AND p.oprright <> 0
    LOOP
        EXECUTE format('CREATE FUNCTION evil.%I(a %s, b %s) RETURNS bool LANGUAGE plpgsql AS %L', 'trap ' || one.name, one.l, one.r, trap);
        EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.%I)', one.name, one.l, one.r, 'trap ' || one.name);
    END LOOP;
    FOR one IN SELECT p.proname AS name, pg_get_function_arguments(p.oid) AS arguments, p.prorettype::regtype AS returns FROM pg_proc AS p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN ('pg_current_xact_id', 'clock_timestamp', 'current_setting', 'pg_partition_root', 'count')
            AND p.prokind = 'f'
    LOOP
        EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', one.name, one.arguments, one.returns, trap);
    END LOOP;
END $$;
GRANT ALL ON ALL TABLES IN SCHEMA evil TO PUBLIC;
"""
PATH = "SET search_path = evil, pg_catalog, public, pg_temp"
WRITES = """
INSERT INTO public.entry (id, t, plain, list, mood, pair, few) VALUES (1, 'a', '1', '{1}', 'sad', ROW(1, '1'), 1), (2, 'b', '2', NULL, 'glad', NULL, 2);
INSERT INTO public.entry (id, t) VALUES (3, 'c');
UPDATE public.entry SET id = 30 + id, n = 1, list = '{2}', mood = 'glad', word = 'word';
UPDATE public.entry SET n = n;
UPDATE public.entry SET s = 1, few = 3, b = true, d = '2020-01-01', at = '2020-01-01', u = '00000000-0000-0000-0000-000000000001', j = '{}', bits = '101';
DELETE FROM public.entry WHERE t OPERATOR(pg_catalog.=) 'a';
TRUNCATE public.entry
"""


@pytest.mark.parametrize("triggers", ["of statements", "of rows"])
def test_traps_in_the_path_of_a_writer_catch_nothing(table, database, triggers):
    database.execute(PLANT)
    capture = "row" if triggers == "of rows" else "statement"
    if table.fetch("SELECT capture FROM dbext.tracked_table") != [(capture,)]:
        table.track(capture=capture)
    role = database.create_role()
    database.execute(f"GRANT ALL ON entry TO {role}")
    with database.connect(role) as writer:
        writer.execute(PATH)
        with pytest.raises(psycopg.errors.RaiseException, match="trapped"):
            writer.execute("SELECT 1 = 1")
        with pytest.raises(psycopg.errors.RaiseException, match="trapped"):
            writer.execute("SELECT clock_timestamp()")
        for statement in WRITES.split(";"):
            writer.execute(statement)
    records = "".join(op for (op,) in table.fetch("SELECT op::text FROM {log} ORDER BY number"))
    assert "".join(sorted(records[:9])) == "DDDIIIIII"
    assert records[9:13] == "UUUD"
    assert records[13:] in ("T", "DD")


@pytest.mark.parametrize(
    "weak",
    ["IF a = b THEN", "clock_timestamp()", "a IS DISTINCT FROM b", "x::text", "DECLARE moment timestamptz", "SELECT FROM log_1", "CASE a WHEN b", "a IN (b)"],
)
def test_a_name_left_to_the_path_is_found(weak):
    assert left_to_the_path(f"BEGIN {weak}") != []
