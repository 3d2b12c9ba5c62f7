"""A second budget over the same data: copies of the database, tables made again, names changed, dumps restored."""

import psycopg
import pytest

from tests.conftest import Database, create_database, maintenance

ASK = "SELECT dp_window_count('{}', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => 9)"
DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"


@pytest.fixture
def spent(ready):
    """Nine tenths of the budget are spent."""
    ready.insert(*((number, "A", "open") for number in range(1, 41)))
    ready.day(2)
    ready.publish()
    ready.answer = ready.session.execute(ASK.format("cases", "county = 'A'")).fetchone()[0]
    return ready


def refused(connection, sqlstate, sql):
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    assert caught.value.sqlstate == sqlstate, str(caught.value)


@pytest.fixture
def copy(spent):
    """The database copied as a template, by its owner or a superuser."""
    spent.session.close()
    name = f"{spent.database.name}_copy"
    with maintenance(spent.database.cluster) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {spent.database.name}")
    made = Database(spent.database.cluster, name)
    yield made
    made.close()


def test_a_copy_answers_what_was_answered_and_nothing_else(spent, copy):
    assert copy.value(ASK.format("cases", "county = 'A'")) == spent.answer
    refused(copy.superuser, "DP031", ASK.format("cases", "county = 'B'").replace("9)", "0.1)"))
    refused(copy.superuser, "DP031", f"SELECT dp_create_release('x', $${DAILY}$$, '1 day', epsilon => 0.1)")
    refused(copy.superuser, "DP031", "SELECT dbext_private.seal_table(1)")


def test_against_a_build_that_takes_a_copy_for_the_original_noise_is_drawn_twice(spent, copy):
    """What a superuser accepts with dp_confirm_upgrade, and what would be so without the check: the same question has two answers."""
    copy.execute("""CREATE FUNCTION yes() RETURNS boolean LANGUAGE sql AS 'SELECT true'; ALTER FUNCTION dbext_private.is_home() RENAME TO was_home;
        CREATE FUNCTION dbext_private.is_home() RETURNS boolean LANGUAGE sql STABLE AS 'SELECT true'; GRANT EXECUTE ON FUNCTION dbext_private.is_home() TO dbext_owner""")
    questions = [ASK.format("cases", f"county = 'A' AND id < {number}").replace("9)", "0.02)") for number in range(50, 60)]
    there = [copy.value(question) for question in questions]
    here = [spent.database.value(question) for question in questions]
    assert here != there
    assert spent.database.value("SELECT spent FROM dbext.budget_status") == copy.value("SELECT spent FROM dbext.budget_status")


def test_a_table_made_again_has_the_ledger_it_had(spent):
    spent.session.execute("CREATE TABLE kept AS TABLE cases; DROP TABLE cases; CREATE TABLE cases (LIKE kept); ALTER TABLE cases ADD PRIMARY KEY (id)")
    spent.session.execute("INSERT INTO cases SELECT * FROM kept; SELECT dp_track('cases', time_zone => 'Asia/Taipei')")
    refused(spent.session, "DP020", ASK.format("cases", "county = 'B'"))
    assert spent.session.execute(ASK.format("cases", "county = 'A'")).fetchone()[0] == spent.answer


def test_a_table_by_another_name_has_the_ledger_it_had(spent):
    spent.session.execute("SELECT dp_untrack('cases'); ALTER TABLE cases RENAME TO patients; CREATE SCHEMA other; ALTER TABLE patients SET SCHEMA other")
    spent.session.execute("SELECT dp_track('other.patients', time_zone => 'Asia/Taipei')")
    refused(spent.session, "DP020", ASK.format("other.patients", "county = 'B'"))
    assert spent.session.execute(ASK.format("other.patients", "county = 'A'")).fetchone()[0] == spent.answer


def test_against_a_build_that_knows_tables_by_name_a_new_name_is_a_new_budget(spent):
    spent.session.execute("UPDATE dbext_private.tracked_table SET relation = 0, tracked = false, table_name = 'gone'")
    spent.session.execute('DROP TRIGGER "00_dbext_insert" ON cases; DROP TRIGGER "00_dbext_update" ON cases; DROP TRIGGER "00_dbext_delete" ON cases')
    spent.session.execute('DROP TRIGGER "00_dbext_truncate" ON cases; ALTER TABLE cases RENAME TO patients')
    spent.day(2)
    spent.session.execute("SELECT dp_track('patients', time_zone => 'Asia/Taipei')")
    spent.session.execute("SELECT dp_set_budget('patients', epsilon => 10), dp_add_constraint('patients', 'any', max_mutations => 3)")
    spent.day(4)
    spent.publish()
    question = ASK.format("patients", "county = 'A'").replace("2020-01-01", "2020-01-03").replace("2020-01-02", "2020-01-04")
    assert abs(spent.session.execute(question).fetchone()[0] - 40) < 20
    assert spent.database.value("SELECT sum(spent) FROM dbext.budget_status") > 10


def test_a_release_made_again_has_spent_what_it_spent(spent):
    for turn in range(3):
        spent.declare("one", DAILY, every="1 day", epsilon="0.3", start="2020-01-02 00:00+08", horizon=9)
        spent.day(5 + turn)
        spent.publish()
        spent.session.execute("SELECT dp_drop_release('one')")
    assert spent.database.value("SELECT spent FROM dbext.budget_status") > 9.5
    refused(spent.session, "DP020", f"SELECT dp_create_release('one', $${DAILY}$$, '1 day', start => '2020-01-02', epsilon => 0.9, horizon => 9)")


def test_a_second_database_cannot_track_the_table_from_afar(spent, cluster):
    other = create_database(cluster, "dbext_template")
    try:
        other.execute("CREATE EXTENSION postgres_fdw; CREATE SERVER origin FOREIGN DATA WRAPPER postgres_fdw")
        other.execute("CREATE FOREIGN TABLE cases (id integer, county text) SERVER origin; CREATE VIEW seen AS SELECT * FROM cases")
        other.execute("CREATE MATERIALIZED VIEW kept AS SELECT * FROM cases WITH NO DATA")
        for name in ("cases", "seen", "kept"):
            refused(other.superuser, "DP003", f"SELECT dp_track('{name}')")
    finally:
        other.close()
