"""A charge is committed before its answer is seen, and nothing that the caller does takes it back."""

import threading
import time

import psycopg
import pytest

ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => 1)"


def tell(cases):
    """A constraint, a budget of 10, and two sealed days."""
    cases.constrain()
    cases.budget(10)
    cases.insert((1, "A", "open"), (2, "B", "open"))
    cases.day(2)
    cases.publish()
    return cases


@pytest.fixture
def told(cases):
    return tell(cases)


def charges(told):
    return told.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'question'")


def test_a_rollback_does_not_refund(told):
    with told.database.connect(autocommit=False) as connection:
        answer = connection.execute(ASK.format("id = 1")).fetchone()
        assert charges(told) == 1
        connection.rollback()
        assert charges(told) == 1
        assert connection.execute(ASK.format("id = 1")).fetchone() == answer
    assert charges(told) == 1


def test_a_failing_cast_around_the_call_does_not_refund(told):
    with pytest.raises(psycopg.Error) as caught:
        told.session.execute(ASK.format("id = 1").replace("SELECT ", "SELECT (") + "::text || 'x')::integer")
    assert caught.value.sqlstate == "22P02"
    assert charges(told) == 1


def test_a_division_by_the_answer_does_not_refund(told):
    with pytest.raises(psycopg.Error):
        told.session.execute(f"SELECT 1 / (n - n) FROM ({ASK.format('id = 1')} AS n) AS s")
    assert charges(told) == 1


def test_a_savepoint_does_not_refund(told):
    with told.database.connect(autocommit=False) as connection:
        connection.execute("SAVEPOINT before")
        answer = connection.execute(ASK.format("id = 1")).fetchone()
        connection.execute("ROLLBACK TO SAVEPOINT before")
        assert charges(told) == 1
        assert connection.execute(ASK.format("id = 1")).fetchone() == answer
        connection.rollback()
    assert charges(told) == 1


def test_an_exception_block_does_not_refund(told):
    told.session.execute(
        f"DO $do$ BEGIN PERFORM 1 / (n - n)::int FROM ({ASK.format('id = 1')} AS n) AS s; EXCEPTION WHEN division_by_zero THEN NULL; END $do$"
    )
    assert charges(told) == 1


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "READ ONLY"])
def test_every_isolation_level_is_charged_and_remembered(told, level):
    with told.database.connect(autocommit=False) as connection:
        connection.execute(f"SET TRANSACTION {level if level == 'READ ONLY' else 'ISOLATION LEVEL ' + level}")
        connection.execute("SELECT 1 FROM cases")
        answer = connection.execute(ASK.format("id = 1")).fetchone()
        assert connection.execute(ASK.format("id = 1")).fetchone() == answer
        connection.rollback()
    assert charges(told) == 1


def test_a_crash_right_after_the_answer_does_not_refund(make_cluster, open_database, make_cases):
    """synchronous_commit = off in the caller's session, then the server is killed at once."""
    cluster = make_cluster(durable=True, settings={"wal_writer_delay": "10s", "synchronous_commit": "off"})
    database = open_database(cluster)
    tell(make_cases(database))
    with database.connect() as connection:
        connection.execute("SET synchronous_commit = off")
        answer = connection.execute(ASK.format("id = 1")).fetchone()
    cluster.kill()
    cluster.start()
    with database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'question'").fetchone() == (1,)
        assert connection.execute(ASK.format("id = 1")).fetchone() == answer


def test_a_crash_right_after_publication_loses_nothing(make_cluster, open_database, make_cases):
    cluster = make_cluster(durable=True, settings={"wal_writer_delay": "10s", "synchronous_commit": "off"})
    database = open_database(cluster)
    cases = tell(make_cases(database))
    cases.declare("one", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=1)
    cases.day(5)
    cases.publish()
    with database.connect() as connection:
        seen = connection.execute("SELECT * FROM dp_release.one ORDER BY 1").fetchall()
    cluster.kill()
    cluster.start()
    with database.connect() as connection:
        assert connection.execute("SELECT * FROM dp_release.one ORDER BY 1").fetchall() == seen


def test_a_question_that_is_given_up_is_not_free(told):
    """How long a count takes depends on the data: what ends the caller's wait does not end the charge."""
    told.session.execute("""
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_advisory_xact_lock(7); PERFORM pg_sleep(2); RETURN NULL; END $$;
        CREATE TRIGGER slow AFTER INSERT ON dbext_private.question EXECUTE FUNCTION slow()""")
    outcome = []
    with told.database.connect(autocommit=False) as holder, told.database.connect() as asking:

        def ask():
            try:
                asking.execute(ASK.format("id = 1"))
            except psycopg.Error as error:
                outcome.append(error.sqlstate)

        holder.execute("SELECT pg_advisory_xact_lock(7)")
        thread = threading.Thread(target=ask)
        thread.start()
        until(lambda: told.database.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted"))
        told.session.execute("SELECT pg_cancel_backend(%s)", (asking.info.backend_pid,))
        holder.rollback()
        thread.join()
    assert outcome == ["57014"]
    until(lambda: charges(told))
    assert charges(told) == 1


def until(holds):
    """Wait for a condition."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_twenty_clients_cannot_pass_the_budget(told, level):
    """Twenty clients ask different questions of 1 at once from a budget of 10, with snapshots taken before any was answered."""
    results, start = [], threading.Barrier(20)

    def client(number):
        with psycopg.connect(told.database.dsn(), autocommit=True) as connection:
            connection.execute(f"SET default_transaction_isolation = '{level}'")
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM dbext_private.ledger")
            start.wait()
            try:
                results.append(connection.execute(ASK.format(f"id = {number}")).fetchone()[0])
            except psycopg.Error as error:
                results.append(error.sqlstate)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert charges(told) == 10
    assert results.count("DP020") == 10
    assert told.database.fetch('SELECT spent, "left" FROM dbext.budget_status') == [(10, 0)]


def test_two_clients_who_ask_the_same_pay_once(told):
    answers, start = [], threading.Barrier(8)

    def client():
        with psycopg.connect(told.database.dsn(), autocommit=True) as connection:
            start.wait()
            answers.append(connection.execute(ASK.format("id = 1")).fetchone()[0])

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(answers)) == 1
    assert charges(told) == 1


def test_a_reader_who_keeps_a_release_open_does_not_keep_others_from_spending(told):
    text = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
    told.declare("one", text, every="1 day", epsilon=1)
    with told.database.connect(autocommit=False) as reader, told.database.connect() as dropping:
        reader.execute("SELECT * FROM dp_release.one")
        thread = threading.Thread(target=lambda: dropping.execute("SELECT dp_drop_release('one')"))
        thread.start()
        time.sleep(0.5)
        assert thread.is_alive()
        told.session.execute(ASK.format("id = 1"))
        reader.rollback()
        thread.join()
    assert told.database.value("SELECT count(*) FROM dbext.release_status") == 0


def test_a_copy_of_the_database_neither_answers_nor_publishes_nor_reserves(told):
    """In a restored, promoted or cloned database charges and noise that left elsewhere may be missing."""
    text = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
    told.declare("one", text, every="1 day", epsilon=1)
    remembered = told.session.execute(ASK.format("id = 1")).fetchone()
    told.day(4)
    told.session.execute("SELECT dbext_private.seal_table(1)")
    told.session.execute("UPDATE dbext_private.cluster_identity SET timeline = 'elsewhere'")
    statements = (
        ASK.format("id = 2"),
        "SELECT dbext_private.draw_release(1)",
        f"SELECT dp_create_release('two', $${text}$$, '1 day', epsilon => 1)",
    )
    for statement in statements:
        with pytest.raises(psycopg.Error) as caught:
            told.session.execute(statement)
        assert caught.value.sqlstate == "DP031"
    assert told.session.execute(ASK.format("id = 1")).fetchone() == remembered
    assert charges(told) == 1


def test_settings_of_the_database_do_not_reach_the_second_session(told):
    """Its owner could have questions end early, for nothing, as soon as whoever asked has gone or a time is up."""
    mine = {"client_connection_check_interval": "70s", "idle_in_transaction_session_timeout": "70s", "statement_timeout": "70s", "lock_timeout": "70s"}
    told.session.execute("""
        CREATE TABLE seen (name text, setting text);
        CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO public.seen SELECT s.name, current_setting(s.name) FROM pg_settings AS s WHERE s.name ~ '(timeout|check_interval)$'; RETURN NULL; END $$;
        CREATE TRIGGER look AFTER INSERT ON dbext_private.question EXECUTE FUNCTION look(); GRANT ALL ON seen TO PUBLIC""")
    for name, value in mine.items():
        told.database.execute(f"ALTER DATABASE {told.database.name} SET {name} = '{value}'")
    with told.database.connect() as connection:
        connection.execute(ASK.format("id = 1"))
    seen = dict(told.database.fetch("SELECT name, setting FROM seen"))
    expected = {**dict.fromkeys(mine, "0"), "lock_timeout": "10s"}
    assert {name: seen[name] for name in mine} == expected
    assert seen.get("transaction_timeout", "0") == "0"
