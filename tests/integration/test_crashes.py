"""Kill -9 at random moments under load. What was acknowledged stays, every mutation is in one tick, nothing is published twice or unpaid.

So it is with a table whose log is cut into segments that come and go meanwhile: a trigger of its own counts what was written.

`make test-crash` does it two hundred times.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import psycopg
import pytest

from tests.integration.tracked import Tracked

#: How often something is killed.
CRASHES = int(os.environ.get("DBEXT_CRASHES", "10"))
ENTRIES = 40
RETAIN = "SELECT dp_retain('tally', '1 second', segments => true)"
RELEASE = "SELECT count(*) FROM entry WHERE dp_time > now() - INTERVAL '1 second'"


class Load:
    """Writers, a publisher, somebody who asks and somebody who forgets, each in a thread of its own until the server is gone. Remembers what was acknowledged."""

    def __init__(self, database, sealed: str):
        self.database, self.sealed = database, sealed
        self.published: dict[int, tuple] = {}
        self.answers: dict[str, float] = {}
        self.committed = 0
        self.unexpected: list[str] = []
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()

    def begin(self, seed: int) -> None:
        """Start everybody."""
        self._over.clear()
        work = [(self.write, seed), (self.write, seed + 1), (self.publish, seed), (self.ask, seed), (self.forget, seed)]
        self._threads = [threading.Thread(target=self._work, args=one, daemon=True) for one in work]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Wait until everybody has noticed."""
        self._over.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        assert self.unexpected == []

    def _work(self, task, seed: int) -> None:
        try:
            # What must be durable is, whatever the session says.
            with psycopg.connect(self.database.dsn(), autocommit=True, options="-c synchronous_commit=off") as session:
                while not self._over.is_set():
                    task(session, random.Random(seed))
                    seed += 1000
        except (psycopg.OperationalError, psycopg.InterfaceError):
            return
        except psycopg.Error as error:
            if error.sqlstate == "DP040":  # the second session went first
                return
            self.unexpected.append(f"{error.sqlstate} {error}")

    def write(self, session, choice: random.Random) -> None:
        """Change some entries in one transaction, with a savepoint that is rolled back."""
        with session.transaction():
            for _ in range(choice.randint(1, 3)):
                number = choice.randrange(ENTRIES)
                session.execute(
                    "INSERT INTO entry VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET value = excluded.value", (number, str(choice.random()))
                )
            with contextlib.suppress(ZeroDivisionError), session.transaction():
                session.execute("DELETE FROM entry")
                raise ZeroDivisionError
            session.execute("DELETE FROM entry WHERE id = %s", (choice.randrange(ENTRIES),))
            session.execute("UPDATE tally SET value = value + 1 WHERE id %% 7 = %s", (choice.randrange(7),))
        self.committed += 1

    def publish(self, session, choice: random.Random) -> None:
        """Publish, then look at what readers see."""
        session.execute("CALL dp_publish()")
        for number, *rest in session.execute("SELECT release_no, net, lower_95, window_end::text FROM dp_release.each_second"):
            assert self.published.setdefault(number, tuple(rest)) == tuple(rest)
        time.sleep(choice.random() / 20)

    def forget(self, session, choice: random.Random) -> None:
        """Seal what the log in segments holds, lead capture on to the next, and drop old ones."""
        session.execute("SELECT dbext_private.seal_table(table_id) FROM dbext_private.tracked_table WHERE table_name = 'tally'")
        session.execute(RETAIN)
        time.sleep(choice.random() / 20)

    def ask(self, session, choice: random.Random) -> None:
        """Ask something new, now and then."""
        if len(self.answers) < CRASHES:
            end = str(len(self.answers) + 1)
            query = f"SELECT dp_window_count('entry', NULL, '{self.sealed}', predicate => 'id < {end}', measure => 'state', epsilon => 0.001)"
            (self.answers[query],) = session.execute(query).fetchone()
        time.sleep(0.2 + choice.random() / 5)


def children(process: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(entry.name))
    return found


def crash(cluster, choice: random.Random) -> None:
    """Kill the postmaster, or one of its children (the server then ends all others and recovers)."""
    if choice.random() < 0.3:
        cluster.kill()
        cluster.start()
        return
    postmaster = int((cluster.data / "postmaster.pid").read_text().split()[0])
    with contextlib.suppress(ProcessLookupError):
        os.kill(choice.choice(children(postmaster)), signal.SIGKILL)


def reconnect(table) -> None:
    """Wait until the server takes connections and all who were connected are gone, and give the table a new session."""
    deadline = time.monotonic() + 60
    while table.session.closed:
        try:
            table.session = psycopg.connect(table.database.dsn(), autocommit=True)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "the server does not come back"
            time.sleep(0.02)


def verify(table, load: Load) -> None:
    """Hold what is stored against what was acknowledged."""
    table.seal()
    ((recorded, taken),) = table.fetch(
        "SELECT (SELECT count(*) FROM {log} AS l, dbext_private.seal_head AS h WHERE h.table_id = 1 AND l.mutated_at <= h.boundary),"
        " (SELECT sum(taken) FROM dbext_private.seal WHERE table_id = 1)"
    )
    assert recorded == taken
    rows = {number: tuple(rest) for number, *rest in table.fetch("SELECT release_no, net, lower_95, window_end::text FROM dp_release.each_second")}
    assert sorted(rows) == list(range(1, len(rows) + 1))
    assert load.published.items() <= rows.items()
    ((nodes, charged),) = table.fetch(
        "SELECT (SELECT count(*) FROM dbext_private.node), (SELECT coalesce(max((l.charges #>> '{{0,pattern,count}}')::integer), 0)"
        " FROM dbext_private.ledger AS l WHERE l.kind = 'publish')"
    )
    assert nodes >= len(rows)
    assert charged >= nodes
    ((questions, paid),) = table.fetch(
        "SELECT (SELECT count(*) FROM dbext_private.question), (SELECT count(*) FROM dbext_private.ledger WHERE kind = 'question')"
    )
    assert paid >= questions >= len(load.answers)


def verify_soon(table, tally, load: Load) -> None:
    """Reconnect and verify, again if the server had yet to notice that one of its processes was killed."""
    deadline = time.monotonic() + 60
    while True:
        reconnect(table)
        try:
            verify(table, load)
            tally.session = table.session
            return verify_segments(tally)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "the server does not come back"
            table.session.close()


def verify_segments(tally) -> None:
    """Hold what seals took of the log in segments against what the table's own trigger counted; nothing that recounts need is missing."""
    deadline = time.monotonic() + 60
    head = f"dbext_private.seal_head AS h WHERE h.table_id = {tally.number} AND "
    left = "SELECT count(*) FROM {log} AS l, " + head + "(l.mutated_at > h.boundary OR NOT pg_visible_in_snapshot(l.xid, h.snapshot))"
    while tally.fetch(left) != [(0,)]:
        assert time.monotonic() < deadline, "ticks do not end"
        tally.seal()
    assert tally.fetch(f"SELECT sum(taken) FROM dbext_private.seal WHERE table_id = {tally.number}") == tally.fetch("SELECT count(*) FROM noted")
    assert tally.fetch("SELECT * FROM dp_recount('tally')") == [(0, 0, 0)]
    tally.execute(RETAIN)


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_unpaid(make_cluster, open_database):
    cluster = make_cluster(settings={"restart_after_crash": "on", "checkpoint_timeout": "30s", "max_wal_size": "32MB"})
    table = Tracked(open_database(cluster), "id integer PRIMARY KEY, value text", tick="1 second", real_time=True)
    table.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 100000)")
    table.execute("SELECT dp_set_budget('entry', epsilon => 1000)")
    table.execute(
        f"SELECT dp_create_release('each_second', $${RELEASE}$$, every => '1 second', measure => 'net', epsilon => 500)"
    )
    tally = Tracked(table.database, "id integer PRIMARY KEY, value integer", name="tally", tick="1 second", real_time=True)
    tally.execute("""CREATE TABLE noted (id integer);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO noted VALUES (NEW.id); RETURN NULL; END';
        CREATE TRIGGER note AFTER INSERT OR UPDATE ON tally FOR EACH ROW EXECUTE FUNCTION note();
        INSERT INTO tally SELECT i, 0 FROM generate_series(1, 40) AS i""")
    time.sleep(1.1)
    table.seal()
    load = Load(table.database, table.fetch("SELECT boundary::text FROM dbext_private.seal_head WHERE table_id = 1")[0][0])
    seed = int(os.environ.get("DBEXT_SEED", "1"))
    for number in range(CRASHES):
        choice = random.Random(seed + number)
        load.begin(seed + number)
        time.sleep(choice.uniform(0.05, 0.8))
        crash(cluster, choice)
        load.end()
        table.session.close()
        verify_soon(table, tally, load)
    load.begin(seed + CRASHES)
    latest = time.monotonic() + 60
    while load.committed <= CRASHES and time.monotonic() < latest:
        time.sleep(0.02)
    load.end()
    assert load.committed > CRASHES
    time.sleep(1.1)
    table.execute("CALL dp_publish()")
    verify(table, load)
    assert table.settled() == dict(table.fetch("SELECT id, value FROM entry"))
    assert tally.settled() == dict(table.fetch("SELECT id, value FROM tally"))
    assert table.fetch("SELECT sum(mismatched) FROM dbext_private.seal") == [(0,)]
    assert table.fetch("SELECT min(segment) > 1 FROM dbext_private.log_segment") == [(True,)]
    for query, answer in load.answers.items():
        assert table.session.execute(query).fetchone() == (answer,)
    table.session.close()
