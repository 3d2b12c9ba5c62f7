"""Whoever may publish, but not read the table, tries to see noise drawn twice: by rolling back, cancelling, or in another order."""

import statistics
import threading

import psycopg
import pytest

DAILY = "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"
SEEN = "SELECT window_end, county, net FROM dp_release.daily"


@pytest.fixture
def town(ready):
    """Forty entries of county A, none of B; a release of thirty days; an administrator who may read nothing."""
    ready.session.execute("SELECT dp_set_budget('cases', epsilon => 10)")
    ready.declare("daily", DAILY, every="1 day", epsilon="0.3", groups="VALUES ('A'), ('B')", start="2020-01-01 00:00+08", horizon=30)
    ready.insert(*((number, "A", "open") for number in range(1, 41)))
    ready.admin = ready.database.create_role("dbext_admin", name="admin")
    return ready


def connect(town):
    connection = town.database.connect(town.admin)
    connection.execute("SET dbext.now = '2020-02-05 12:00+08'")
    return connection


def seal(town):
    with connect(town) as connection:
        connection.execute("SELECT dbext_private.seal_table(1)")




def first_window(connection):
    """Return what of the first window could be seen inside a transaction that came to nothing."""
    with connection.transaction(force_rollback=True):
        connection.execute("SELECT dbext_private.draw_release(1), dbext_private.publish_release(1)")
        return [net for (net,) in connection.execute("SELECT net FROM dp_release.daily WHERE county = 'A' AND release_no = 1").fetchall()]


def test_nothing_is_seen_of_what_can_still_be_rolled_back(town):
    seal(town)
    with connect(town) as connection:
        assert [first_window(connection) for _ in range(10)] == [[]] * 10
        connection.execute("SELECT dbext_private.draw_release(1)")
        seen = [first_window(connection) for _ in range(10)]
        assert len(seen[0]) == 1
        assert seen == [seen[0]] * 10


def test_against_a_build_that_trusts_the_transaction_the_noise_averages_out(town):
    """Nodes look committed as soon as they are drawn."""
    town.session.execute("""
        CREATE FUNCTION trust() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.drawn_in := '3'; RETURN NEW; END $$;
        CREATE TRIGGER trust BEFORE INSERT ON dbext_private.node FOR EACH ROW EXECUTE FUNCTION trust()""")
    seal(town)
    with connect(town) as connection:
        seen = [net for _ in range(60) for net in first_window(connection)]
    assert len(set(seen)) > 10
    assert abs(statistics.median(seen) - 40) < 15


def test_a_storm_of_cancellations_and_timeouts_publishes_each_value_once(town):
    """Whatever could be read at any time stays what it was, and what is missing comes later."""
    seen, outcomes, stop = {}, [], threading.Event()
    victim = connect(town)
    victim.execute("SET statement_timeout = '900ms'")

    def storm():
        with town.database.connect() as killer:
            while not stop.wait(0.15):
                killer.execute("SELECT pg_cancel_backend(%s)", (victim.info.backend_pid,))

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        for _ in range(12):
            try:
                victim.execute("CALL dp_publish()")
                outcomes.append("done")
            except psycopg.Error as error:
                outcomes.append(error.sqlstate)
            look(town, seen)
    finally:
        stop.set()
        thread.join()
    victim.close()
    with connect(town) as connection:
        connection.execute("CALL dp_publish()")
    look(town, seen)
    assert "57014" in outcomes or outcomes.count("done") == 12
    assert len(seen) == 60
    assert town.database.fetch("SELECT published, status FROM dbext.release_status") == [(30, "horizon reached")]
    assert town.database.value("SELECT spent <= 0.3 FROM dbext.budget_status")


def look(town, seen):
    """Read the release and hold every value to what it was when it was first seen."""
    for end, county, net in town.database.fetch(SEEN):
        assert seen.setdefault((end, county), net) == net


def test_publishing_is_seen_whole_or_not_at_all(town):
    """A reader in between sees whole windows: every key, zeros included."""
    partial, stop = [], threading.Event()

    def watch():
        with town.database.connect() as reader:
            while not stop.is_set():
                partial.extend(reader.execute("SELECT window_end FROM dp_release.daily GROUP BY 1 HAVING count(*) <> 2").fetchall())

    thread = threading.Thread(target=watch)
    thread.start()
    with connect(town) as connection:
        connection.execute("CALL dp_publish()")
    stop.set()
    thread.join()
    assert partial == []


def test_keys_and_windows_without_data_look_like_any_other(town):
    """County B never had an entry, and nothing happened after the first day."""
    with connect(town) as connection:
        connection.execute("CALL dp_publish()")
    rows = town.database.fetch(
        "SELECT county, release_no, net <> 0, std_error, upper_95 - lower_95, status, window_end - window_start FROM dp_release.daily ORDER BY 2, 1"
    )
    assert [(county, number) for county, number, *_ in rows] == [(county, number) for number in range(1, 31) for county in ("A", "B")]
    assert len({tuple(row[3:]) for row in rows}) == 1
    noisy = {county: sum(moved for key, _, moved, *_ in rows if key == county) for county in ("A", "B")}
    assert min(noisy.values()) > 12, "a change of nothing is published as nothing once in twenty times"


def test_against_a_build_that_leaves_out_what_is_empty_the_keys_tell(town):
    town.session.execute("""
        CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RETURN CASE WHEN EXISTS (SELECT FROM public.cases AS c WHERE c.county = NEW.county) THEN NEW END; END $$;
        GRANT SELECT ON cases TO dbext_owner;
        CREATE TRIGGER leave_out BEFORE INSERT ON dp_release.daily FOR EACH ROW EXECUTE FUNCTION leave_out()""")
    with connect(town) as connection:
        connection.execute("CALL dp_publish()")
    assert town.database.fetch("SELECT DISTINCT county FROM dp_release.daily") == [("A",)]
