"""How long an answer takes must not depend on data where none is looked at: remembered questions and refusals read no table of entries.

Time itself is no evidence on a busy machine. What a session reads is counted by PostgreSQL, relation by relation.
"""

import psycopg
import pytest

ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => {})"
DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
READ = """
SELECT coalesce(sum(pg_stat_get_xact_numscans(c.oid) + pg_stat_get_xact_tuples_returned(c.oid) + coalesce((
    SELECT sum(pg_stat_get_xact_numscans(i.indexrelid)) FROM pg_index AS i WHERE i.indrelid = c.oid), 0)), 0)
FROM pg_class AS c WHERE c.relname = 'cases' OR c.relname ~ '^(log|change|admission|deferred|row)_[0-9]+$' OR c.relname IN ('tick_sum', 'node', 'seal')
"""


@pytest.fixture
def told(ready):
    ready.insert(*((number, "A", "open") for number in range(1, 200)))
    ready.day(2)
    ready.publish()
    ready.session.execute(ASK.format("id = 1", 1))
    return ready


def reads(told, sql):
    """Return how often one call in its own transaction looked into tables that hold data, and how it ended."""
    with told.database.connect(autocommit=False) as connection:
        before, outcome = connection.execute(READ).fetchone()[0], "done"
        connection.execute("SAVEPOINT call")
        try:
            connection.execute(sql)
        except psycopg.Error as error:
            outcome = error.sqlstate
            connection.execute("ROLLBACK TO SAVEPOINT call")
        after = connection.execute(READ).fetchone()[0]
        connection.rollback()
    return after - before, outcome


CALLS = {
    "a remembered answer": (ASK.format("id = 1", 1), "done"),
    "a remembered answer to a smaller epsilon": (ASK.format("id = 1", "0.5"), "done"),
    "a refused predicate": (ASK.format("1 / id = 1", 1), "DP010"),
    "an unknown column": (ASK.format("nothing = 1", 1), "DP010"),
    "too much": (ASK.format("id = 2", 500), "DP020"),
    "a window that is not sealed": (ASK.format("id = 2", 1).replace("2020-01-02", "2090-01-02"), "DP030"),
    "a plan": (f"SELECT * FROM dp_plan_release('x', $${DAILY}$$, '1 day', epsilon => 1)", "done"),
    "a declaration": (f"SELECT dp_create_release('x', $${DAILY}$$, '1 day', epsilon => 1)", "done"),
    "a refused declaration": (f"SELECT dp_create_release('x', $${DAILY}$$, '1 day', epsilon => 500)", "DP020"),
    "the state of budgets": ("SELECT * FROM dbext.budget_status", "done"),
    "the state of releases": ("SELECT * FROM dbext.release_status", "done"),
}


def test_what_needs_no_data_reads_none(told):
    assert {call: reads(told, sql) for call, (sql, _) in CALLS.items()} == {call: (0, outcome) for call, (_, outcome) in CALLS.items()}


def test_a_build_that_looks_before_it_refuses_is_seen(told):
    told.session.execute("""
        ALTER FUNCTION dbext_private.caller() RENAME TO true_caller;
        CREATE FUNCTION dbext_private.caller() RETURNS name LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        BEGIN PERFORM count(*) FROM dbext_private.change_1; RETURN dbext_private.true_caller(); END $$""")
    assert reads(told, CALLS["a refused predicate"][0])[0] > 0
    assert reads(told, CALLS["a remembered answer"][0])[0] > 0
