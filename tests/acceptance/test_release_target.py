"""A release target: another database where releases are delivered exactly once, whatever dies in between."""

from __future__ import annotations

import signal
import time

import psycopg
import pytest

from dbext.control import publishing
from dbext.control.database import connect
from dbext.control.delivery import Deliveries
from dbext.control.failures import ExitCode, exit_code
from dbext.control.outside import Places
from dbext.control.outside import outside as open_outside
from dbext.control.worker import Worker
from dbext.errors import DbextError
from tests.acceptance.conftest import declare_tickets, wait_until

ROWS = "SELECT * FROM dp_release.valid_now ORDER BY window_end"


@pytest.fixture
def outside(empty_database):
    """The release target: a database without the extension."""
    return empty_database


@pytest.fixture
def source(tickets):
    """A database whose releases go to the target."""
    tickets.execute("SELECT dp_publish_to('warehouse')")
    return tickets


def deliver(source, outside, expected=0):
    """Do what `dbext publish` does, hold its exit code against `expected`, and return what it says."""
    try:
        with connect(source.dsn()) as connection, open_outside(connection, Places(outside.dsn()), thorough=False) as found:
            done = publishing.publish(connection, found)
    except DbextError as refusal:
        said, code = refusal.message, exit_code(refusal)
    else:
        said = "\n".join([*done.warnings, *map(str, done.deliveries)])
        code = ExitCode.FAILED if done.failed else ExitCode.DONE if done.periods else ExitCode.NOTHING_TO_DO
    assert code == expected, said
    return said


def test_rows_comments_keys_and_views_arrive_and_readers_are_there_alone(dbext, source, outside):
    done = dbext("publish", "--dsn", source.dsn(), "--release-dsn", outside.dsn())
    assert (done.returncode, "delivered valid_now" in done.stderr) == (0, True), done.stderr
    assert outside.fetch(ROWS) == source.fetch(ROWS)
    assert outside.value("SELECT count(*) FROM dp_release.valid_now") in (4, 5)
    described = """SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), col_description(c.oid, a.attnum), obj_description(c.oid)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'dp_release'::regnamespace AND c.relkind IN ('r', 'v') ORDER BY 1, a.attnum"""
    assert outside.fetch(described) == source.fetch(described)
    rounded = "SELECT * FROM dp_release.valid_now_rounded ORDER BY window_end"
    assert outside.fetch(rounded) == source.fetch(rounded)
    with pytest.raises(psycopg.errors.UniqueViolation):
        outside.execute("INSERT INTO dp_release.valid_now SELECT * FROM dp_release.valid_now")
    reader = source.create_role("dbext_reader", name="reader")
    source.execute(f"GRANT USAGE ON SCHEMA dbext, dp_release TO {reader}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        outside.connect(reader).execute(ROWS)
    outside.execute(f"GRANT USAGE ON SCHEMA dp_release TO {reader}")
    assert outside.connect(reader).execute(ROWS).fetchall() == source.fetch(ROWS)
    for relation in ("dp_release.valid_now", "dp_release.valid_now_rounded"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            source.connect(reader).execute(f"SELECT * FROM {relation}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        outside.connect(reader).execute("SELECT * FROM dbext_target.release")
    assert source.fetch("SELECT target, delivered = published, status FROM dbext.release_status") == [("warehouse", True, "waiting")]
    assert "delivered" not in deliver(source, outside, expected=4).replace("delivered valid_now: 0", "")


def test_types_that_only_the_source_has_become_text(database, outside):
    database.execute("CREATE TYPE colour AS ENUM ('red', 'dark blue'); CREATE TABLE thing (id int PRIMARY KEY, colour colour NOT NULL)")
    database.execute("SET dbext.now = '2024-01-01 12:00+00'; SELECT dp_track('thing'); SELECT dp_add_constraint('thing', 'any', max_mutations => 3)")
    database.execute("SELECT dp_set_budget('thing', epsilon => 4); SELECT dp_publish_to('warehouse')")
    database.execute("""SELECT dp_create_release('by_colour', $$SELECT colour, count(*) FROM thing WHERE dp_time > now() - INTERVAL '1 day'
        GROUP BY colour$$, every => '1 day', measure => 'net', epsilon => 1, groups => 'VALUES (''red''), (''dark blue'')')""")
    database.execute("INSERT INTO thing VALUES (1, 'dark blue'); SET dbext.now = '2024-01-04 12:00+00'")
    database.execute("CALL dp_publish()")
    deliver_only(database, outside)
    rows = "SELECT window_end, colour::text, net, lower_95, upper_95 FROM dp_release.by_colour ORDER BY 1, 2"
    assert outside.fetch(rows) == database.fetch(rows)
    assert outside.value("SELECT pg_typeof(colour)::text FROM dp_release.by_colour LIMIT 1") == "text"


def test_levels_and_figures_arrive_as_they_are(database, outside):
    database.execute("CREATE TABLE person (id int PRIMARY KEY, county text NOT NULL, age int NOT NULL); SET dbext.now = '2024-01-01 12:00+00'")
    database.execute("SELECT dp_track('person'); SELECT dp_add_constraint('person', 'any', max_mutations => 3); SELECT dp_bounds('person', 'age', 0, 120)")
    database.execute("SELECT dp_set_budget('person', epsilon => 9); SELECT dp_publish_to('warehouse')")
    database.execute("""SELECT dp_create_release('by_level', $$SELECT count(*) FROM person WHERE dp_time > now() - INTERVAL '1 day'$$,
        levels => '{1 day, 2 days}', epsilon => 1)""")
    database.execute("""SELECT dp_create_release('figures', $$SELECT county, count(*) AS n, count(*) FILTER (WHERE age > 60) AS old, avg(age) AS mean_age
        FROM person GROUP BY county$$, every => '1 day', measure => 'state', horizon => 9, epsilon => 2, groups => 'VALUES (''A''), (''B'')')""")
    database.execute("INSERT INTO person SELECT i, 'A', i FROM generate_series(1, 90) AS i; SET dbext.now = '2024-01-05 12:00+00'")
    database.execute("CALL dp_publish()")
    assert [(one.release, one.error) for one in deliver_only(database, outside)] == [("by_level", None), ("figures", None)]
    relations = "SELECT relname FROM pg_class WHERE relnamespace = 'dp_release'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1"
    assert outside.fetch(relations) == database.fetch(relations)
    for (name,) in database.fetch(relations):
        whole = f"SELECT r::text FROM dp_release.{name} AS r ORDER BY 1"
        assert outside.fetch(whole) == database.fetch(whole) != []
        assert not database.value("SELECT has_any_column_privilege('dbext_reader', %s, 'SELECT')", [f"dp_release.{name}"])


def test_reports_of_the_local_model_go_with_their_release(database, outside):
    database.execute("CREATE TABLE person (id int PRIMARY KEY, ill boolean NOT NULL); SET dbext.now = '2024-01-01 12:00+00'")
    database.execute("SELECT dp_track('person'); SELECT dp_add_constraint('person', 'any', max_mutations => 3)")
    database.execute("SELECT dp_set_budget('person', epsilon => 4); SELECT dp_publish_to('warehouse')")
    database.execute("""SELECT dp_create_release('ill', $$SELECT count(*) FROM person WHERE ill$$, every => '1 day', measure => 'state', horizon => 10,
        epsilon => 1, model => 'local', roster => 'VALUES (1), (2), (3)', publish_reports => true)""")
    database.execute("INSERT INTO person VALUES (1, true); SET dbext.now = '2024-01-04 12:00+00'")
    database.execute("CALL dp_publish()")
    deliver_only(database, outside)
    for relation in ("dp_release.ill", "dp_release.ill_reports"):
        whole = f"SELECT r::text FROM {relation} AS r ORDER BY 1"
        assert outside.fetch(whole) == database.fetch(whole) != []
        assert not database.value("SELECT has_any_column_privilege('dbext_reader', %s, 'SELECT')", [relation])
    reports = outside.fetch("TABLE dp_release.ill_reports ORDER BY window_end, pseudonym")
    outside.execute("DROP TABLE dp_release.ill_reports")
    deliver_only(database, outside)
    assert outside.fetch("TABLE dp_release.ill_reports ORDER BY window_end, pseudonym") == reports
    database.execute("SELECT dp_drop_release('ill')")
    deliver_only(database, outside)
    assert outside.fetch("SELECT relname FROM pg_class WHERE relnamespace = 'dp_release'::regnamespace") == []


def test_without_an_address_nothing_is_delivered_and_it_is_said(dbext, source):
    done = dbext("publish", "--dsn", source.dsn())
    assert done.returncode == 1
    assert "--release-dsn" in done.stderr
    assert source.value("SELECT status FROM dbext.release_status") == "to be delivered"
    lost = dbext("publish", "--dsn", source.dsn(), "--release-dsn", source.dsn().replace(source.name, "no_such_database"))
    assert lost.returncode == 5
    assert "hint: Name the release target with --release-dsn" in lost.stderr


def test_a_release_may_come_back_and_another_target_is_refused(source, outside):
    deliver(source, outside)
    declare = "SELECT dp_create_release('again', $$SELECT count(*) FROM ticket$$, every => '1 day', measure => 'state', epsilon => 1, horizon => 9)"
    source.execute(declare)
    assert source.value("SELECT target FROM dbext.release_status WHERE release = 'again'") == "warehouse"
    with pytest.raises(psycopg.Error, match="one target"):
        source.execute("SELECT dp_publish_to('elsewhere', 'again')")
    source.execute("SELECT dp_publish_to(NULL, 'valid_now')")
    reader = source.create_role("dbext_reader", name="reader")
    source.execute(f"GRANT USAGE ON SCHEMA dbext, dp_release TO {reader}")
    assert source.connect(reader).execute(ROWS).fetchall() == outside.fetch(ROWS)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        source.connect(reader).execute("TABLE dp_release.again")
    deliver(source, outside, expected=4)
    source.execute("SELECT dp_publish_to('warehouse', 'valid_now')")
    deliver(source, outside, expected=4)
    outside.execute("UPDATE dbext_target.about SET name = 'other'")
    assert 'this is release target "other"' in deliver(source, outside, expected=1)


def test_a_database_with_the_extension_is_no_target(source):
    assert "cannot be a release target" in deliver(source, source, expected=1)


def test_dropped_releases_go_unless_something_depends_on_them(source, outside):
    deliver(source, outside)
    source.execute("SELECT dp_create_release('second', $$SELECT count(*) FROM ticket$$, every => '1 day', measure => 'state', epsilon => 1, horizon => 9)")
    deliver(source, outside, expected=4)
    outside.execute("CREATE VIEW mine AS SELECT * FROM dp_release.valid_now")
    source.execute("SELECT dp_drop_release('valid_now'); SELECT dp_drop_release('second')")
    deliver(source, outside, expected=4)
    assert outside.fetch("SELECT relname::text FROM pg_class WHERE relnamespace = 'dp_release'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1") == [
        ("valid_now",), ("valid_now_rounded",)]  # fmt: skip
    source.execute("SELECT dp_create_release('valid_now', $$SELECT count(*) FROM ticket$$, every => '1 day', measure => 'state', epsilon => 1, horizon => 9)")
    assert "not of this release" in deliver(source, outside, expected=1)
    outside.execute("DROP VIEW mine; ALTER TABLE dp_release.valid_now RENAME TO old; DROP VIEW dp_release.valid_now_rounded")
    deliver(source, outside, expected=4)


def backup(outside) -> list[str]:
    """Copy what the target holds; `restore` brings it back as a restored backup would."""
    outside.execute("CREATE SCHEMA kept; CREATE TABLE kept.rows AS TABLE dp_release.valid_now; CREATE TABLE kept.release AS TABLE dbext_target.release")


def restore(outside) -> None:
    outside.execute("TRUNCATE dp_release.valid_now; INSERT INTO dp_release.valid_now TABLE kept.rows")
    outside.execute("DELETE FROM dbext_target.release; INSERT INTO dbext_target.release TABLE kept.release")


@pytest.fixture
def replayed(database):
    """A release that goes to a target, and how to publish so many days of it."""
    declare_tickets(database, days_ago=9)
    database.execute("SELECT dp_publish_to('warehouse')")

    def publish(days_ago: int) -> None:
        database.execute(f"SELECT set_config('dbext.now', (clock_timestamp() - interval '{days_ago} days')::text, false)")
        database.execute("CALL dp_publish()")
        database.execute("RESET dbext.now")

    publish(6)
    database.publish = publish
    return database


def deliver_only(source, outside, *, thorough=True):
    """Deliver without publishing, and return what was said."""
    deliveries = Deliveries(source.connect(), outside.dsn(), thorough=thorough)
    try:
        deliveries.check()
        return deliveries.deliver()
    finally:
        deliveries.close()


def test_a_target_restored_from_an_old_backup_is_filled_again_with_the_same_values(replayed, outside):
    deliver_only(replayed, outside)
    backup(outside)
    replayed.publish(3)
    deliver_only(replayed, outside)
    published = outside.fetch(ROWS)
    restore(outside)
    assert len(outside.fetch(ROWS)) < len(published)
    nodes = replayed.fetch("SELECT * FROM dbext_private.node ORDER BY release_id, node_no")
    (one,) = deliver_only(replayed, outside)
    assert one.periods == 3
    assert outside.fetch(ROWS) == published
    assert replayed.fetch("SELECT * FROM dbext_private.node ORDER BY release_id, node_no") == nodes
    outside.execute("DROP SCHEMA dp_release, dbext_target CASCADE")
    deliver_only(replayed, outside)
    assert outside.fetch(ROWS) == published
    outside.execute("DROP TABLE dp_release.valid_now CASCADE")
    deliver_only(replayed, outside)
    assert outside.fetch(ROWS) == published


@pytest.mark.parametrize("harm", ["DELETE FROM {} WHERE release_no = 2", "UPDATE {} SET net = net + 1 WHERE release_no = 2", "ALTER TABLE {} ADD more text",
                                  "INSERT INTO {} SELECT window_end + '99 days', window_start, net, std_error, lower_95, upper_95, 99, status FROM {} LIMIT 1"])  # fmt: skip
def test_what_was_done_to_a_target_by_hand_is_noticed(replayed, outside, harm):
    deliver_only(replayed, outside)
    outside.execute(harm.replace("{}", "dp_release.valid_now"))
    replayed.publish(3)
    (one,) = deliver_only(replayed, outside)
    if harm.startswith("DELETE"):
        assert one.error is None
        assert outside.fetch(ROWS) == replayed.fetch(ROWS)
    else:
        assert "release target" in one.error
        assert one.periods == 0


def test_a_target_that_is_ahead_stops_publication(replayed, outside):
    deliver_only(replayed, outside)
    published = replayed.value("SELECT max(release_no) FROM dp_release.valid_now")
    outside.execute("UPDATE dbext_target.release SET last_no = last_no + 1")
    said = deliver(replayed, outside, expected=3)
    assert "of which this database remembers" in said
    assert replayed.value("SELECT max(release_no) FROM dp_release.valid_now") == published
    outside.execute("UPDATE dbext_target.release SET last_no = last_no - 1, identity = 'of a release that is not known here'")
    assert "of which this database remembers 0" in deliver(replayed, outside, expected=3)


def test_periods_without_rows_leave_their_number_at_the_target(database, outside):
    """While every key of the data is hidden no period has rows: what is delivered is known all the same, and so is a target that is ahead."""
    database.execute("CREATE TABLE person (id int PRIMARY KEY, county text NOT NULL); SET dbext.now = '2024-01-01 12:00+00'")
    database.execute("SELECT dp_track('person'); SELECT dp_add_constraint('person', 'any', max_mutations => 3)")
    database.execute("SELECT dp_set_budget('person', epsilon => 9, delta => 4e-6, key_delta => 2e-6); SELECT dp_publish_to('warehouse')")
    database.execute("""SELECT dp_create_release('counts', 'SELECT county, count(*) FROM person GROUP BY county',
        every => '1 day', horizon => 20, epsilon => 8, key_delta => 1e-6)""")
    database.execute("INSERT INTO person VALUES (1, 'alone'); SET dbext.now = '2024-01-05 12:00+00'")
    database.execute("CALL dp_publish()")
    assert database.value("SELECT count(*) FROM dp_release.counts") == 0
    delivered = "SELECT last_no, delivered_at FROM dbext_target.release"
    for thorough in (True, False):
        assert [(one.release, one.error) for one in deliver_only(database, outside, thorough=thorough)] == [("counts", None)]
        ((last, moment),) = outside.fetch(delivered)
        assert last == database.value("SELECT published FROM dbext.release_status") == 3
    deliver_only(database, outside)
    assert outside.fetch(delivered) == [(last, moment)], "nothing new leaves no trace"
    database.execute("UPDATE dbext_private.release SET next_answer = next_answer - 1, next_period = next_period - 1")
    with pytest.raises(DbextError, match="holds 3 periods of counts, of which this database remembers 2"):
        deliver_only(database, outside)


class Stopped:
    """A worker that was killed where a lock made it wait."""

    def __init__(self, start, source, outside):
        self.start, self.source, self.outside = start, source, outside

    def at(self, holder, lock: str, where=None, then=None):
        """Let a worker run into a lock that `holder` takes, `then` do something, and kill the worker without warning."""
        connection = holder.connect(autocommit=False)
        connection.execute(lock)
        worker = self.start("worker", "--dsn", self.source.dsn(), "--release-dsn", self.outside.dsn())
        waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = ANY (%s) AND wait_event_type = 'Lock'"
        names = ["dbext worker"] if holder is self.source else ["dbext delivery"]
        wait_until(lambda: holder.value(waiting, [names]), lambda: f"never waited: {worker.lines}")
        if then:
            then(connection, worker)
        worker.end(signal.SIGKILL)
        # The host that it ran on is gone: its sessions are, too, and do not finish what they were asked.
        sessions = "FROM pg_stat_activity WHERE application_name = ANY (ARRAY['dbext worker', 'dbext delivery'])"
        self.source.execute(f"SELECT pg_terminate_backend(pid) {sessions}")
        wait_until(lambda: self.source.value(f"SELECT count(*) = 0 {sessions}"), lambda: "sessions of a killed worker stay")
        connection.rollback()
        connection.close()


@pytest.fixture
def stopped(start, source, outside):
    return Stopped(start, source, outside)


def finish(source, outside):
    """Run another worker to its end and compare both sides."""
    assert Worker(source.dsn(), None, Places(outside.dsn())).run_once() in (ExitCode.DONE, ExitCode.NOTHING_TO_DO)
    rows = outside.fetch(ROWS)
    assert rows == source.fetch(ROWS)
    assert [row[6] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) in (4, 5)
    assert source.value("SELECT delivered FROM dbext.release_status") == len(rows) == outside.value("SELECT last_no FROM dbext_target.release")
    return rows


@pytest.mark.parametrize("lock", ["LOCK dbext_private.ledger IN ACCESS EXCLUSIVE MODE", "LOCK dp_release.valid_now IN ACCESS EXCLUSIVE MODE"])
def test_a_worker_killed_while_it_publishes(stopped, source, outside, lock):
    stopped.at(source, lock)
    finish(source, outside)


def test_a_worker_killed_while_it_makes_the_target(stopped, source, outside):
    stopped.at(outside, "SELECT pg_advisory_xact_lock(1684170104, 2)")
    finish(source, outside)


def test_a_worker_killed_before_the_target_commits(stopped, source, outside):
    deliver(source, outside)
    rows = outside.fetch(ROWS)
    outside.execute("DELETE FROM dp_release.valid_now; UPDATE dbext_target.release SET last_no = 0")
    stopped.at(outside, "LOCK dp_release.valid_now IN SHARE MODE")
    assert outside.fetch(ROWS) == []
    assert finish(source, outside) == rows


def test_a_worker_killed_between_the_two_commits(stopped, source, outside):
    deliver(source, outside)
    rows = outside.fetch(ROWS)
    outside.execute("DELETE FROM dp_release.valid_now; UPDATE dbext_target.release SET last_no = 0")
    source.execute("SELECT dbext_private.note_delivered(1, 0)")

    def let_the_target_commit(connection, worker):
        mark = source.connect(autocommit=False)
        mark.execute("SELECT FROM dbext_private.release FOR UPDATE")
        connection.rollback()
        wait_until(lambda: outside.fetch(ROWS) == rows, lambda: f"never committed: {worker.lines}")
        blocked = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'dbext worker' AND wait_event_type = 'Lock'"
        wait_until(lambda: source.value(blocked), lambda: f"never came to its mark: {worker.lines}")
        marks.append(mark)

    marks = []
    stopped.at(outside, "LOCK dp_release.valid_now IN SHARE MODE", then=let_the_target_commit)
    assert outside.value("SELECT last_no FROM dbext_target.release") == len(rows)
    assert source.value("SELECT delivered FROM dbext.release_status") == 0
    marks[0].rollback()
    assert finish(source, outside) == rows


def test_a_worker_killed_at_any_moment(start, database, outside):
    """Short periods, a worker killed again and again: every period arrives once, as it was stored at the source."""
    declare_tickets(database, days_ago=0, tick="1 second")
    database.execute("SELECT dp_publish_to('warehouse')")
    for turn in range(4):
        worker = start("worker", "--dsn", database.dsn(), "--release-dsn", outside.dsn(), "--every", "0.1")
        worker.wait_for("this worker leads")
        time.sleep(0.3 + 0.27 * turn)
        worker.end(signal.SIGKILL)
    orphans = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'dbext%'"
    wait_until(lambda: database.value(orphans) == 0, lambda: "the sessions of a killed worker go on")
    database.execute("CALL dp_publish()")
    deliver_only(database, outside)
    rows = outside.fetch(ROWS)
    assert len(rows) >= 2
    assert rows == database.fetch(ROWS)


def test_an_outage_of_the_target_delays_deliveries_alone(start, tickets, make_cluster):
    other = make_cluster(with_extension=False)
    tickets.execute("SELECT dp_publish_to('warehouse')")
    worker = start("worker", "--dsn", tickets.dsn(), "--release-dsn", other.dsn(), "--every", "0.3")
    worker.wait_for("delivered valid_now")
    other.stop()
    worker.wait_for("delivery of ")
    tickets.execute(
        "SELECT dp_create_release('later', $$SELECT count(*) FROM ticket$$, every => '1 day', measure => 'state', epsilon => 1, horizon => 20, start => %s)",
        [tickets.value("SELECT (current_date - 3)::text")],
    )
    worker.wait_for("published later")
    other.start()
    worker.wait_for("delivered later")
    assert worker.end(signal.SIGTERM) == 0
    with psycopg.connect(other.dsn()) as connection:
        assert connection.execute("SELECT count(*) FROM dp_release.later").fetchone()[0] in (2, 3)
