"""Noise comes from the operating system, draw by draw: no seed is reachable, and no two sessions, copies or prepared statements share one."""

import threading

import pytest

from tests.conftest import Database, maintenance

DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
DRAW = "SELECT dbext_private.draw_release(1)"
#: Weakens a backend: its operating system always says the same.
CONSTANT = """
DO LANGUAGE plpython3u $$
import hashlib, os
state = [0]
def urandom(size):
    state[0] += 1
    return hashlib.shake_128(str(state[0]).encode()).digest(size)
os.urandom = urandom
$$"""


@pytest.fixture
def town(ready):
    ready.declare("daily", DAILY, every="1 day", epsilon="0.3", start="2020-01-01 00:00+08", horizon=40)
    ready.day(45)
    ready.session.execute("SELECT dbext_private.seal_table(1)")
    return ready


@pytest.fixture
def clones(town):
    """Two copies of a sealed database in which nothing is drawn yet, which take themselves for the original."""
    town.session.close()
    made = [Database(town.database.cluster, f"{town.database.name}_{letter}") for letter in "ab"]
    with maintenance(town.database.cluster) as connection:
        for one in made:
            connection.execute(f"CREATE DATABASE {one.name} TEMPLATE {town.database.name}")
    for one in made:
        one.execute("UPDATE dbext_private.cluster_identity SET database_oid = (SELECT oid FROM pg_database WHERE datname = current_database())")
    yield made
    for one in made:
        one.close()


def drawn(database, *before):
    with database.connect() as connection:
        for statement in (*before, DRAW):
            connection.execute(statement)
    return [noisy for (noisy,) in database.fetch("SELECT noisy[1] FROM dbext_private.node ORDER BY node_no")]


def test_a_database_put_back_to_what_it_was_draws_other_noise(clones):
    """A restored snapshot, a copy, the same seed of the database's own generator in both."""
    one, other = (drawn(database, "SELECT setseed(0.5)", "SELECT random()") for database in clones)
    assert len(one) == len(other) == 40
    assert sum(a == b for a, b in zip(one, other, strict=True)) < 20


def test_against_a_build_with_a_seed_both_draw_the_same(clones):
    one, other = (drawn(database, "SELECT dbext_private.boot()", CONSTANT) for database in clones)
    assert one == other


def test_backends_forked_at_the_same_moment_draw_other_noise(clones):
    """Children of one postmaster, started together."""
    results, start = {}, threading.Barrier(2)

    def work(place):
        start.wait()
        results[place] = drawn(clones[place])

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(a == b for a, b in zip(results[0], results[1], strict=True)) < 20


def test_a_prepared_statement_keeps_no_answer_and_draws_none_again(ready):
    ready.insert((1, "A", "open"))
    ready.day(2)
    ready.publish()
    ask = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => 'id < ' || $1, epsilon => 0.1)"
    with ready.database.connect() as connection:
        connection.execute(f"PREPARE ask(integer) AS {ask}; SET plan_cache_mode = force_generic_plan")
        answers = [[connection.execute(f"EXECUTE ask({number})").fetchone()[0] for number in range(100, 112)] for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 1
    assert ready.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'question'") == 12


def test_nothing_that_draws_may_be_folded_into_a_constant(database):
    """An immutable or stable function's answer may be kept by a plan; what charges and draws is volatile."""
    kept = database.fetch("""SELECT p.proname FROM pg_proc AS p WHERE p.provolatile <> 'v'
        AND p.proname ~ '^(dp_window|dp_create|dp_publish|dp_drop|draw_|publish_|answer_|reserve_|in_second|call$|run$|ask$)'""")
    assert kept == []
    assert database.value("SELECT bool_and(proparallel = 'u') FROM pg_proc WHERE proname IN ('run', 'call', 'in_second_session')")
