"""The worker: one leader, clean stops, restarts survived, a log without data."""

from __future__ import annotations

import signal
import time

import pytest

from tests.acceptance.conftest import declare_tickets, wait_until


def published(database) -> int:
    return database.value("SELECT count(*) FROM dp_release.valid_now")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_publishes_and_stops_cleanly(start, tickets, how):
    worker = start("worker", "--dsn", tickets.dsn())
    worker.wait_for("published valid_now")
    assert worker.end(how) == 0
    assert "stopped" in worker.lines[-1]
    assert published(tickets) in (4, 5)
    assert "secret" not in "\n".join(worker.lines)


def test_one_run_publishes_and_the_next_has_nothing_to_do(dbext, tickets):
    codes = [dbext("worker", "--once", "--dsn", tickets.dsn()).returncode for _ in range(2)]
    assert codes == [0, 4]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_one_of_two_workers_leads_and_the_other_takes_over(start, dbext, tickets, how):
    leader = start("worker", "--dsn", tickets.dsn(), "--every", "0.2")
    leader.wait_for("this worker leads")
    standby = start("worker", "--dsn", tickets.dsn(), "--every", "0.2")
    standby.wait_for("connected")
    once = dbext("worker", "--once", "--dsn", tickets.dsn())
    assert once.returncode == 4
    assert "another worker leads" in once.stderr
    standby.wait_for("standing by")
    time.sleep(0.5)
    assert standby.count("this worker leads") == 0
    assert standby.count("standing by") == 1
    leader.end(how)
    standby.wait_for("this worker leads")
    assert standby.end(signal.SIGTERM) == 0
    assert published(tickets) in (4, 5)


def test_it_survives_a_restarted_server(start, make_cluster, open_database):
    cluster = make_cluster()
    database = open_database(cluster)
    declare_tickets(database, days_ago=0, tick="2 seconds")
    worker = start("worker", "--dsn", database.dsn())
    worker.wait_for("published valid_now")
    cluster.stop(signal.SIGQUIT)
    worker.wait_for("trying again")
    before = worker.count("published valid_now")
    cluster.start()
    worker.wait_for("this worker leads", times=2)
    worker.wait_for("published valid_now", times=before + 1)
    assert worker.end(signal.SIGTERM) == 0
    rows = database.connect().execute("SELECT release_no FROM dp_release.valid_now ORDER BY window_end")
    numbers = [number for (number,) in rows]
    assert numbers == list(range(1, len(numbers) + 1))


def test_it_waits_for_a_server_that_is_not_there_yet(start, make_cluster, open_database):
    cluster = make_cluster()
    database = open_database(cluster)
    declare_tickets(database)
    cluster.stop()
    worker = start("worker", "--dsn", database.dsn())
    worker.wait_for("cannot connect")
    cluster.start()
    worker.wait_for("published valid_now")
    assert worker.end(signal.SIGTERM) == 0


def test_a_stop_in_the_middle_of_a_publication_leaves_nothing_behind(start, tickets):
    other = tickets.connect(autocommit=False)
    other.execute("LOCK TABLE dbext_private.ledger IN ACCESS EXCLUSIVE MODE")
    worker = start("worker", "--dsn", tickets.dsn())
    waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'dbext worker' AND wait_event_type = 'Lock'"
    wait_until(lambda: tickets.value(waiting), lambda: f"the worker never waited: {worker.lines}")
    assert worker.end(signal.SIGTERM) == 0
    other.rollback()
    assert published(tickets) == 0


def test_it_follows_the_schedule_of_short_periods(start, database):
    declare_tickets(database, days_ago=0, tick="1 second")
    worker = start("worker", "--dsn", database.dsn())
    worker.wait_for("published valid_now", times=3)
    assert worker.end(signal.SIGTERM) == 0
