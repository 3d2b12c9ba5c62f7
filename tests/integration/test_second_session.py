"""The second session: what is said when it cannot be had, and that it is never left open for others to speak through."""

import threading
import time

import psycopg
import pytest

from tests.integration.refusals import refused

ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => 0.001)"


def charges(told):
    return told.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'question'")


def others(told):
    sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'dbext'"
    deadline = time.monotonic() + 60
    while (left := told.database.value(sql)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


@pytest.mark.parametrize("where", ["host=/nowhere", "host=/nowhere connect_timeout=1 user=nobody"])
def test_a_session_that_cannot_be_opened_is_named_and_nothing_is_spent(told, where):
    told.session.execute("UPDATE dbext_private.runtime SET second_session = %s", (where,))
    said = refused(told.session, "DP040", ASK.format("id = 1"))
    assert "nothing was spent" in said
    assert "pg_hba.conf" in said
    assert charges(told) == 0
    assert told.database.value("SELECT count(*) FROM dbext_private.question") == 0


def test_a_remembered_answer_needs_no_second_session(told):
    answer = told.database.fetch(ASK.format("id = 1"))
    told.session.execute("UPDATE dbext_private.runtime SET second_session = 'host=/nowhere'")
    assert told.database.fetch(ASK.format("id = 1")) == answer


def test_connections_used_up_are_named_and_nothing_is_spent(told):
    """A login without the right to more connections stands for a server that has none left."""
    role = told.database.create_role(name="lonely", options="LOGIN SUPERUSER CONNECTION LIMIT 0")
    told.session.execute(f"ALTER ROLE {role} NOSUPERUSER")
    told.session.execute(
        "UPDATE dbext_private.runtime SET second_session = replace(second_session, 'user=postgres', %s)", (f"user={role}",)
    )
    refused(told.session, "DP040", ASK.format("id = 1"))
    assert charges(told) == 0


def test_a_transaction_that_holds_the_budget_is_told_at_once(told):
    with told.database.connect(autocommit=False) as connection:
        connection.execute("SELECT dp_set_budget('cases', epsilon => 20)")
        before = time.monotonic()
        said = refused(connection, "DP040", ASK.format("id = 1"))
        assert time.monotonic() - before < 10, "the second session would wait that long"
        assert "COMMIT" in said
        connection.rollback()
        connection.execute(ASK.format("id = 1"))
    assert charges(told) == 1


def test_it_is_closed_after_answers_and_refusals(told):
    with told.database.connect() as connection:
        connection.execute(ASK.format("id = 1"))
        refused(connection, "DP020", ASK.format("id = 1").replace("0.001", "999"))
        assert connection.execute("SELECT dblink_get_connections()").fetchone() == (None,)
    assert others(told) == 0


def test_a_budget_locked_by_someone_else_is_given_up_in_time(told):
    with told.database.connect(autocommit=False) as holder:
        holder.execute("SELECT dp_set_budget('cases', epsilon => 20)")
        with told.database.connect() as connection:
            said = refused(connection, "DP040", ASK.format("id = 1"))
            assert "nothing was spent" in said
            assert connection.execute("SELECT dblink_get_connections()").fetchone() == (None,)
        holder.rollback()
    assert charges(told) == 0
    assert others(told) == 0


def test_a_storm_of_cancel_requests_never_leaves_it_open(told):
    """Whenever a cancelled call comes back, no connection may be left that the caller could use as dbext_owner."""
    left_open, outcomes, stop = [], [], threading.Event()
    victim = told.database.connect()
    killer = told.database.connect()
    pid = victim.info.backend_pid

    def storm():
        while not stop.is_set():
            killer.execute("SELECT pg_cancel_backend(%s)", (pid,))

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        for number in range(40):
            outcomes.append(attempt(victim, ASK.format(f"id = {number}")))
            left_open.append(connections(victim))
    finally:
        stop.set()
        thread.join()
    assert "57014" in outcomes
    assert [names for names in left_open if names] == []
    assert others(told) == 0


def attempt(connection, sql):
    try:
        return connection.execute(sql).fetchone()[0]
    except psycopg.Error as error:
        return error.sqlstate


def connections(victim):
    """Return what connections are open in a session that is being cancelled all the time."""
    while True:
        try:
            return victim.execute("SELECT dblink_get_connections()").fetchone()[0]
        except psycopg.errors.QueryCanceled:
            continue


def test_a_cancelled_question_that_was_answered_is_remembered(told):
    """The second session waits for the budget; its caller is cancelled meanwhile; the charge that follows buys an answer that is kept."""
    outcome = []
    with told.database.connect(autocommit=False) as holder, told.database.connect() as asking:
        holder.execute("SELECT dp_set_budget('cases', epsilon => 20)")
        thread = threading.Thread(target=lambda: outcome.append(attempt(asking, ASK.format("id = 1"))))
        thread.start()
        time.sleep(0.7)
        told.session.execute("SELECT pg_cancel_backend(%s)", (asking.info.backend_pid,))
        holder.commit()
        thread.join()
        spent = charges(told)
        assert asking.execute("SELECT dblink_get_connections()").fetchone() == (None,)
        asking.execute(ASK.format("id = 1"))
    assert outcome[0] == "57014" or isinstance(outcome[0], float)
    assert charges(told) == 1 >= spent


def test_the_second_session_is_durable_whatever_the_caller_sets(told):
    """What it inherits from nobody: role, isolation, commit and path."""
    told.session.execute(
        "ALTER ROLE postgres SET synchronous_commit = off; ALTER ROLE postgres SET default_transaction_isolation = 'serializable'"
    )
    told.session.execute("ALTER ROLE postgres SET default_transaction_read_only = on; ALTER ROLE postgres SET search_path = nowhere")
    told.session.execute(
        "CREATE TABLE seen (role text, synchronous text, isolation text, path text); ALTER TABLE seen OWNER TO dbext_owner"
    )
    told.session.execute("""
        CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql SECURITY INVOKER AS $$ BEGIN
            INSERT INTO public.seen VALUES (current_user, current_setting('synchronous_commit'), current_setting('transaction_isolation'),
                                     current_setting('lock_timeout'));
            RETURN NULL; END $$;
        CREATE TRIGGER look AFTER INSERT ON dbext_private.question EXECUTE FUNCTION look()""")
    try:
        told.session.execute(ASK.format("id = 1"))
        assert told.database.fetch("SELECT * FROM seen") == [("dbext_owner", "on", "read committed", "10s")]
    finally:
        told.session.execute("ALTER ROLE postgres RESET ALL")
