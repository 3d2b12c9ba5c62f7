"""Tracking is all or nothing: what it makes goes with a ROLLBACK, an error or dp_untrack, and every refusal says what to do instead."""

from __future__ import annotations

import psycopg
import pytest

SETUP = """
CREATE TABLE plain (id integer PRIMARY KEY, value text); INSERT INTO plain VALUES (1, 'one');
CREATE TABLE twice (id integer, region text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE n PARTITION OF twice FOR VALUES IN ('n'); CREATE TABLE s PARTITION OF twice FOR VALUES IN ('s'); INSERT INTO twice VALUES (1, 'n'), (1, 's');
CREATE TABLE wide (id integer PRIMARY KEY, value text)
"""
#: Everything that tracking makes: relations, functions, triggers, rights, catalog rows.
OBJECTS = """
SELECT array_agg(o ORDER BY o) FROM (
    SELECT 'relation ' || c.oid::regclass || coalesce(c.relacl::text, '') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname !~ '^pg_'
    UNION ALL SELECT 'function ' || p.oid::regprocedure || coalesce(p.proacl::text, '') FROM pg_proc p WHERE p.pronamespace = 'dbext_private'::regnamespace
    UNION ALL SELECT 'trigger ' || g.tgname || ' ' || g.tgrelid::regclass || g.tgenabled::text FROM pg_trigger g
    UNION ALL SELECT 'column ' || k::text FROM dbext_private.tracked_column k UNION ALL SELECT 'table ' || t::text FROM dbext_private.tracked_table t
    UNION ALL SELECT 'partition ' || p::text FROM dbext_private.tracked_partition p UNION ALL SELECT 'head ' || h::text FROM dbext_private.seal_head h
    UNION ALL SELECT 'mark ' || e::text FROM dbext_private.schema_event e UNION ALL SELECT 'ledger ' || l::text FROM dbext_private.ledger l
) AS found (o)
"""


@pytest.fixture
def made(database):
    database.execute(SETUP)
    return database


FAILURES = {
    "rolled back": ("BEGIN; SELECT dp_track('plain'); UPDATE plain SET value = 'x'; TRUNCATE plain; ROLLBACK", None),
    "an error after it": ("SELECT dp_track('plain'), 1 / 0", "22012"),
    "an unknown time zone": ("SELECT dp_track('plain', time_zone => 'nowhere')", "DP001"),
    "an unknown column": ("SELECT dp_track('plain', columns => '{nothing}')", "DP002"),
    "a unit in two rows": ("SELECT dp_track('twice', unit => '{id}')", "DP003"),
    "a subtransaction": ("BEGIN; SAVEPOINT a; SELECT dp_track('plain'); ROLLBACK TO a; COMMIT", None),
    "a lock that is not to be had": ("SET lock_timeout = '50ms'; SELECT dp_track('wide')", "55P03"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_tracking_that_fails_leaves_nothing(made, name):
    statement, state = FAILURES[name]
    before = made.value(OBJECTS)
    holder = made.connect(autocommit=False)
    holder.execute("LOCK TABLE wide IN ROW EXCLUSIVE MODE")
    if state is None:
        made.execute(statement)
    else:
        with pytest.raises(psycopg.Error) as refusal:
            made.execute(statement)
        assert refusal.value.sqlstate == state
    assert made.value(OBJECTS) == before
    made.execute("UPDATE plain SET value = 'free'; TRUNCATE plain")


@pytest.mark.parametrize("failing", ["dp_rebase", "dp_untrack", "dp_recount"])
def test_what_fails_on_a_tracked_table_leaves_it_tracked(made, failing):
    made.execute("SELECT dp_track('plain'); SELECT dp_set_budget('plain', 1)")
    before = made.value(OBJECTS)
    with pytest.raises(psycopg.errors.DivisionByZero):
        made.execute(f"SELECT {failing}('plain'), 1 / (SELECT count(*) FROM plain WHERE false)")
    assert made.value(OBJECTS) == before
    made.execute("UPDATE plain SET value = 'x'")
    assert made.fetch("SELECT op::text FROM dbext_private.log_1 ORDER BY number") == [("B",), ("U",)]


@pytest.mark.parametrize("name", ["plain", "twice"])
def test_untracking_leaves_nothing_on_the_table_and_keeps_the_ledger(made, name):
    own = f"""SELECT (SELECT count(*) FROM pg_trigger g WHERE g.tgrelid IN (SELECT relid FROM pg_partition_tree('{name}') UNION SELECT '{name}'::regclass))
        + (SELECT count(*) FROM pg_proc p WHERE p.proname ~ '^capture_[a-z]+_[0-9]+$') + (SELECT count(*) FROM dbext_private.tracked_partition)"""
    before = made.value(own)
    made.execute(
        f"SELECT dp_track('{name}'); SELECT dp_add_constraint('{name}', 'any', max_mutations => 2); SELECT dp_set_budget('{name}', 1)"
    )
    made.execute(f"SELECT dp_create_release('all', 'SELECT count(*) FROM {name}', every => '1 day', horizon => 9, epsilon => 0.5)")
    assert made.value(own) > before
    ledger = made.fetch("SELECT * FROM dbext_private.ledger ORDER BY ledger_no")
    assert ledger
    made.execute(f"SELECT dp_untrack('{name}')")
    assert made.value(own) == before
    assert made.fetch("SELECT * FROM dbext_private.ledger ORDER BY ledger_no") == ledger
    made.execute(f"DROP TABLE {name}")
    assert made.fetch("SELECT * FROM dbext_private.ledger ORDER BY ledger_no") == ledger


UNSUPPORTED = {
    "CREATE VIEW t AS SELECT 1 AS id": "tables that it is made from",
    "CREATE MATERIALIZED VIEW t AS SELECT 1 AS id": "tables that it is made from",
    "CREATE UNLOGGED TABLE t (id integer PRIMARY KEY)": "SET LOGGED",
    "CREATE TEMPORARY TABLE t (id integer PRIMARY KEY)": "permanent",
    "CREATE TABLE t (id integer PRIMARY KEY); CREATE TABLE c () INHERITS (t)": "partitions of a partitioned table",
    "CREATE TABLE p (id integer); CREATE TABLE t (PRIMARY KEY (id)) INHERITS (p)": "NO INHERIT",
    "CREATE TABLE p (id integer PRIMARY KEY) PARTITION BY HASH (id); CREATE TABLE t PARTITION OF p FOR VALUES WITH (MODULUS 1, REMAINDER 0)": "that it belongs to",
    "CREATE TABLE t (id integer)": "unit =>",
    "CREATE SEQUENCE t": "ordinary and partitioned tables",
}


@pytest.mark.parametrize("definition", UNSUPPORTED)
def test_every_refusal_says_what_to_do_instead(database, definition):
    database.execute(definition)
    with pytest.raises(psycopg.Error) as refusal:
        database.execute("SELECT dp_track('t')")
    assert refusal.value.sqlstate == "DP003"
    assert UNSUPPORTED[definition] in refusal.value.diag.message_hint
