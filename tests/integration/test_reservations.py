"""A declaration reserves at once, for everybody to see; left open or rolled back it keeps nobody from spending, and loses nothing."""

import os
import threading

import psycopg
import pytest

from tests.integration.refusals import refused
from tests.integration.test_cluster_changes import dump_and_restore

ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => {})"
DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
DECLARE = f"SELECT dp_create_release('{{}}', $${DAILY}$$, '1 day', epsilon => {{}})"
FIGURES = 'SELECT round(spent, 4), round(reserved, 4), round("left", 4) FROM dbext.budget_status'


def open_ones(told):
    return told.database.value("SELECT count(*) FROM dbext_private.open_reservation")


def test_an_open_declaration_counts_and_keeps_nobody_waiting(told):
    with told.database.connect(autocommit=False) as declaring, told.database.connect() as asking:
        asking.execute("SET lock_timeout = '8s'")
        declaring.execute(DECLARE.format("one", 9))
        assert told.database.fetch(FIGURES) == [(0, 9, 1)]
        asking.execute(ASK.format("id = 1", "0.5"))
        assert "left 0.5" in refused(asking, "DP020", ASK.format("id = 2", "0.6"))
        refused(asking, "DP020", DECLARE.format("two", 1))
        declaring.commit()
    assert told.database.fetch(FIGURES) == [(0.5, 9, 0.5)]
    told.session.execute(ASK.format("id = 2", "0.5"))
    assert open_ones(told) == 0
    assert told.database.fetch(FIGURES) == [(1, 9, 0)]


def test_a_prepared_declaration_keeps_nobody_waiting(told):
    name = f"left_{os.getpid()}"
    with told.database.connect(autocommit=False) as declaring:
        declaring.execute(DECLARE.format("one", 9))
        declaring.execute(f"PREPARE TRANSACTION '{name}'")
        declaring.rollback()
    told.session.execute(ASK.format("id = 1", "0.5"))
    refused(told.session, "DP020", ASK.format("id = 2", "1"))
    told.session.execute(f"ROLLBACK PREPARED '{name}'")
    told.session.execute(ASK.format("id = 2", "1"))


@pytest.mark.parametrize("undo", ["rollback", "savepoint", "exception", "disconnect"])
def test_what_came_to_nothing_is_given_back(told, undo):
    with told.database.connect(autocommit=False) as declaring:
        if undo == "savepoint":
            declaring.execute("SAVEPOINT before")
            declaring.execute(DECLARE.format("one", 9))
            declaring.execute("ROLLBACK TO SAVEPOINT before")
            declaring.commit()
        elif undo == "exception":
            declaring.execute(f"DO $do$ BEGIN PERFORM {DECLARE.format('one', 9)[7:]}; RAISE EXCEPTION 'no'; EXCEPTION WHEN raise_exception THEN NULL; END $do$")
            declaring.commit()
        else:
            declaring.execute(DECLARE.format("one", 9))
            declaring.close() if undo == "disconnect" else declaring.rollback()
    told.session.execute(ASK.format("id = 1", "0.5"))
    assert open_ones(told) == 0
    assert told.database.fetch(FIGURES) == [(0.5, 0, 9.5)]
    told.session.execute(DECLARE.format("one", "9.5"))
    assert told.database.fetch(FIGURES) == [(0.5, 9.5, 0)]


def test_declared_and_dropped_in_one_transaction(told):
    with told.database.connect(autocommit=False) as declaring:
        declaring.execute(DECLARE.format("one", 9))
        declaring.execute("SELECT dp_drop_release('one')")
        declaring.commit()
    assert told.database.fetch(FIGURES) == [(0, 0, 10)]
    told.session.execute(ASK.format("id = 1", "10"))


def test_a_drop_left_open_stops_neither_questions_nor_publication(told):
    told.session.execute(DECLARE.format("one", 4))
    told.session.execute(DECLARE.format("two", 4))
    told.day(4)
    with told.database.connect(autocommit=False) as dropping:
        dropping.execute("SELECT dp_drop_release('one')")
        told.session.execute("SET lock_timeout = '8s'")
        told.session.execute(ASK.format("id = 1", "0.5"))
        told.publish()
        assert told.database.fetch("SELECT release, published FROM dbext.release_status ORDER BY release") == [("one", 0), ("two", 2)]
        refused(told.session, "DP020", ASK.format("id = 2", "3"))
        dropping.rollback()
    told.publish()
    assert told.database.fetch("SELECT release, published FROM dbext.release_status ORDER BY release") == [("one", 2), ("two", 2)]


def test_the_budget_set_in_the_same_transaction_is_reserved_from(told):
    with told.database.connect(autocommit=False) as declaring:
        declaring.execute("SELECT dp_set_budget('cases', epsilon => 20)")
        declaring.execute(DECLARE.format("one", 15))
        assert open_ones(told) == 0
        declaring.commit()
    assert told.database.fetch(FIGURES) == [(0, 15, 5)]


def test_twenty_declarations_at_once_cannot_pass_the_budget(told):
    """Each stays open until all have had their answer."""
    outcomes, start, done = [], threading.Barrier(20), threading.Barrier(20)

    def client(number):
        with psycopg.connect(told.database.dsn(), autocommit=False) as connection:
            start.wait()
            try:
                connection.execute(DECLARE.format(f"r{number}", 1))
                outcomes.append("done")
            except psycopg.Error as error:
                outcomes.append(error.sqlstate)
            done.wait()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("done"), outcomes.count("DP020")) == (10, 10)
    assert told.database.fetch(FIGURES) == [(0, 10, 0)]


def test_a_constraint_changed_while_the_reservation_waits_has_the_release_planned_anew(told):
    """The reservation waits for the budget, and is priced for the limits that it finds."""
    outcome = []
    with told.database.connect(autocommit=False) as changing:
        changing.execute("SELECT dp_alter_constraint('cases', 'any', max_mutations => 6)")
        thread = threading.Thread(target=lambda: outcome.append(told.database.connect().execute(DECLARE.format("one", 6)).fetchone()[0]))
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'dbext'"
        while not told.database.value(waiting):
            thread.join(0.02)
        changing.commit()
        thread.join()
    assert "reserves epsilon 6" in outcome[0]
    assert told.database.fetch(FIGURES) == [(0, 6, 4)]


def test_a_dump_keeps_grants_allowances_and_admission_and_no_open_reservation(told, empty_database):
    """What was reserved for a declaration that the dump does not hold is given back when the restored database is accepted."""
    ann = told.database.create_role("dbext_analyst", name="ann")
    told.session.execute("SELECT dp_grant('cases', %s, '{status}'), dp_set_allowance('cases', %s, 2)", (ann, ann))
    told.session.execute(DECLARE.format("kept", 3))
    with told.database.connect(autocommit=False) as declaring:
        declaring.execute(DECLARE.format("open", 6))
        dump_and_restore(told.database.cluster, told.database.name, empty_database.name)
        declaring.rollback()
    assert empty_database.fetch(FIGURES) == [(0, 9, 1)]
    empty_database.execute("SELECT dp_confirm_upgrade()")
    assert empty_database.fetch(FIGURES) == [(0, 3, 7)]
    with empty_database.connect(ann) as connection:
        connection.execute(ASK.format("status = 'open'", 2))
        refused(connection, "DP005", ASK.format("county = 'A'", 1))
        refused(connection, "DP020", ASK.format("status = 'shut'", 1))
