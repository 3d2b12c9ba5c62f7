"""Reading an answer and taking its charge back: by every way a caller has of running a call and letting it come to nothing."""

import statistics
import threading

import psycopg
import pytest

ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => 0.2)"
CALL = ASK.removeprefix("SELECT ")


@pytest.fixture
def town(ready):
    """Forty entries, sealed; mallory owns the table and may ask."""
    ready.insert(*((number, "A", "open") for number in range(1, 41)))
    ready.day(2)
    ready.publish()
    ready.mallory = ready.database.create_role("dbext_analyst", name="mallory")
    ready.session.execute(f"ALTER TABLE cases OWNER TO {ready.mallory}")
    return ready


def charges(town):
    return town.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'question'")


#: Ways to see an answer in a transaction that is rolled back; {call} is the call, {ask} the query.
WAYS = {
    "a query": "{ask}",
    "a cursor": "DECLARE c CURSOR FOR {ask}; FETCH c; CLOSE c",
    "a cursor that is never closed": "DECLARE c SCROLL CURSOR FOR {ask}; FETCH FORWARD ALL FROM c; FETCH PRIOR FROM c",
    "a prepared statement": "PREPARE p AS {ask}; EXECUTE p; EXECUTE p; DEALLOCATE p",
    "a table made of it": "CREATE TEMP TABLE t AS {ask}; TABLE t",
    "EXPLAIN ANALYZE": "EXPLAIN (ANALYZE, FORMAT JSON) {ask}",
    "a condition": "SELECT 1 WHERE {call} > 20",
    "a sort": "SELECT n FROM generate_series(1, 3) AS n ORDER BY {call} * n",
    "a limit": "SELECT {call} FROM generate_series(1, 9) LIMIT 1",
    "many rows": "SELECT DISTINCT {call} FROM generate_series(1, 5)",
    "a subtransaction": "SAVEPOINT s; {ask}; ROLLBACK TO SAVEPOINT s",
    "an exception": "DO $do$ BEGIN PERFORM 1 / (n - n)::int FROM ({ask}) AS s(n); EXCEPTION WHEN division_by_zero THEN NULL; END $do$",
    "a trigger": "CREATE TEMP TABLE t (a float8); CREATE FUNCTION pg_temp.f() RETURNS trigger LANGUAGE plpgsql AS "
    "$f$ BEGIN NEW.a := {call}; RETURN NEW; END $f$; CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION pg_temp.f(); "
    "INSERT INTO t VALUES (0) RETURNING a",
    "a check": "CREATE TEMP TABLE t (a integer CHECK ({call} IS NOT NULL)); INSERT INTO t VALUES (1)",
    "a serializable transaction": "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; {ask}",
    "a read-only transaction": "SET TRANSACTION READ ONLY; {ask}",
    "asynchronous commit": "SET LOCAL synchronous_commit = off; {ask}",
    "its table locked": "LOCK TABLE cases IN ACCESS EXCLUSIVE MODE; {ask}",
    "its rows changed": "UPDATE cases SET county = 'B'; DELETE FROM cases WHERE id < 20; {ask}",
    "its table altered": "ALTER TABLE cases ADD COLUMN more integer; {ask}",
}


def run(connection, way, number):
    """Run one way of asking in a transaction that is rolled back."""
    predicate = f"id < {1000 + number}"
    with connection.transaction(force_rollback=True):
        for statement in WAYS[way].split("; ") if "$f$" not in WAYS[way] and "$do$" not in WAYS[way] else [WAYS[way]]:
            connection.execute(statement.format(ask=ASK.format(predicate), call=CALL.format(predicate)))


def test_whatever_is_rolled_back_the_charge_stays_and_the_answer_too(town):
    with town.database.connect(town.mallory) as connection:
        connection.execute("SET statement_timeout = '20s'")
        for number, way in enumerate(WAYS):
            before = charges(town)
            run(connection, way, number)
            assert charges(town) == before + 1, way
            again = {connection.execute(ASK.format(f"id < {1000 + number}")).fetchone()[0] for _ in range(2)}
            assert len(again) == 1, way
            assert charges(town) == before + 1, way


def test_against_a_build_that_charges_in_the_callers_transaction_rolling_back_refunds(town):
    town.session.execute("""
        ALTER FUNCTION dbext_private.in_second_session(text, jsonb) RENAME TO in_a_true_second_session;
        CREATE FUNCTION dbext_private.in_second_session(entry text, request jsonb) RETURNS text LANGUAGE sql AS
            'SELECT jsonb_build_object(''value'', dbext_private.answer_question(request))::text';
        GRANT EXECUTE ON FUNCTION dbext_private.in_second_session(text, jsonb) TO dbext_owner""")
    answers = []
    with town.database.connect(town.mallory) as connection:
        for _ in range(40):
            with connection.transaction(force_rollback=True):
                answers.append(connection.execute(ASK.format("id < 1000")).fetchone()[0])
    assert charges(town) == 0
    assert len(set(answers)) > 5
    assert abs(statistics.median(answers) - 40) < 8


def test_a_cursor_kept_open_over_the_commit_holds_one_answer(town):
    with town.database.connect(town.mallory) as connection:
        with connection.transaction():
            connection.execute(f"DECLARE c SCROLL CURSOR WITH HOLD FOR {ASK.format('id < 99')}")
        seen = {connection.execute("FETCH FIRST FROM c").fetchone()[0] for _ in range(5)}
    assert len(seen) == 1
    assert charges(town) == 1


def test_twenty_clients_who_roll_back_spend_what_they_saw(town):
    """A budget of ten: with questions of 0.2 there are fifty answers to be had, however often they are rolled back."""
    seen, refused, start = [], [], threading.Barrier(20)

    def client(place):
        with psycopg.connect(town.database.dsn(town.mallory), autocommit=False) as connection:
            start.wait()
            for turn in range(3):
                try:
                    seen.append(connection.execute(ASK.format(f"id < {1000 + place * 10 + turn}")).fetchone()[0])
                except psycopg.Error as error:
                    refused.append(error.sqlstate)
                connection.rollback()

    threads = [threading.Thread(target=client, args=(place,)) for place in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 50
    assert set(refused) == {"DP020"}
    assert charges(town) == 50
