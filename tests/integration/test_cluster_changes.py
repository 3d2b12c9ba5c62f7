"""Clusters come and go: crashes, standbys, promotions, dumps. A seal never runs where its snapshots mean nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import psycopg
import pytest

from dbext.control.cluster import SUPERUSER
from dbext.control.postgres import usable_installation
from tests.integration.tracked import Tracked

DEFINITION = "id integer PRIMARY KEY, value text"
RECORDED = "SELECT count(*) FROM {log}"


def contents(table) -> dict:
    return dict(table.fetch(f"SELECT id, value FROM {table.name}"))


def refusal(session, table) -> str:
    with pytest.raises(psycopg.Error) as caught:
        session.execute(f"SELECT dbext_private.seal_table({table.number})")
    return caught.value.sqlstate


@pytest.mark.slow
def test_a_standby_does_not_seal_and_a_promoted_one_asks_first(make_cluster, open_database):
    cluster = make_cluster(durable=True)
    database = open_database(cluster)
    table = Tracked(database, DEFINITION, rows="VALUES (1, 'one')")
    table.day(1)
    now = table.session.execute("SELECT current_setting('dbext.now')").fetchone()[0]
    table.execute("BEGIN; INSERT INTO entry VALUES (2, 'two'); PREPARE TRANSACTION 'left'")
    cluster.stop()
    (cluster.data / "standby.signal").touch()
    os.chown(cluster.data / "standby.signal", (cluster.data / "PG_VERSION").stat().st_uid, -1)
    cluster.start()
    table.session = database.connect()
    table.set_now(now)
    assert refusal(table.session, table) == "DP031"
    with pytest.raises(psycopg.Error) as retained:
        table.execute("SELECT dp_retain('entry', '1 day', segments => true)")
    assert retained.value.sqlstate == "DP031"
    table.session.execute("SELECT pg_promote()")
    assert table.fetch("SELECT pg_is_in_recovery()") == [(False,)]
    assert refusal(table.session, table) == "DP031"
    table.execute("UPDATE entry SET value = 'after'")
    with pytest.raises(psycopg.Error, match="a prepared transaction has written") as confirmed:  # and no writer waits behind
        table.execute("SELECT dp_confirm_upgrade()")
    assert confirmed.value.sqlstate == "DP031"
    table.execute("COMMIT PREPARED 'left'")
    table.execute("SELECT dp_confirm_upgrade()")
    assert table.seal() == 0
    assert table.settled() == {1: "one"}
    table.seal_through(1)
    assert table.settled() == {1: "after", 2: "two"}
    assert sum(taken for (taken,) in table.fetch("SELECT taken FROM dbext_private.seal")) == 3


@pytest.mark.slow
def test_a_crash_loses_no_committed_mutation_and_doubles_none(make_cluster, open_database):
    cluster = make_cluster(durable=True)
    table = Tracked(open_database(cluster), DEFINITION, tick="1 second", real_time=True)

    def write(number: int) -> None:
        try:
            session = table.database.connect()
            for turn in range(10**6):
                session.execute(
                    f"INSERT INTO entry VALUES ({turn % 20}, '{number}') ON CONFLICT (id) DO UPDATE SET value = entry.value || '{number}'"
                )
                session.execute(f"DELETE FROM entry WHERE id = {(turn + 7) % 20}")
        except psycopg.OperationalError:
            return

    for how in (cluster.kill, lambda: cluster.stop(signal.SIGQUIT)):
        writers = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
        for one in writers:
            one.start()
        before, latest = table.fetch(RECORDED)[0][0], time.monotonic() + 60
        for _ in range(3):
            time.sleep(0.6)
            table.seal()
        while table.fetch(RECORDED)[0][0] < before + 50 and time.monotonic() < latest:
            table.seal()
        how()
        for one in writers:
            one.join(30)
        cluster.start()
        table.session = table.database.connect()
    time.sleep(1.1)
    table.seal()
    recorded = table.fetch(RECORDED)[0][0]
    assert recorded > 50
    assert table.fetch("SELECT sum(taken), sum(mismatched) FROM dbext_private.seal") == [(recorded, 0)]
    assert table.settled() == contents(table)


def dump_and_restore(cluster, source: str, target: str) -> None:
    """Restore a dump of one database into another of the same cluster, as an administrator would."""
    programs = usable_installation().bindir
    arguments = ["-h", str(cluster.socket_folder), "-U", SUPERUSER]
    dump = subprocess.run([programs / "pg_dump", *arguments, source], capture_output=True, check=True).stdout
    done = subprocess.run(
        [programs / "psql", *arguments, "-X", "-q", "-v", "ON_ERROR_STOP=1", target], input=dump, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]


def test_a_restored_database_goes_on_where_the_dump_was_taken(tracked, empty_database):
    """Nothing unsealed is lost, nothing sealed comes twice, and capture works before anybody confirms."""
    table = tracked(rows="VALUES (1, 'one'), (2, 'two')")
    table.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 9)")
    table.execute("ALTER TABLE entry ADD COLUMN gone text; ALTER TABLE entry DROP COLUMN gone; ALTER TABLE entry ADD COLUMN late text")
    table.execute("UPDATE entry SET value = 'sealed' WHERE id = 1")
    table.seal_through(0)
    table.execute("UPDATE entry SET value = 'not sealed' WHERE id = 2; INSERT INTO entry VALUES (3, 'three')")
    dump_and_restore(table.database.cluster, table.database.name, empty_database.name)
    restored = Restored(empty_database, table)
    restored.execute("UPDATE entry SET value = 'restored' WHERE id = 3")
    restored.day(2)
    assert refusal(restored.session, restored) == "DP031"
    assert restored.events() == []
    restored.execute("SELECT dp_confirm_upgrade()")
    restored.execute("ALTER TABLE entry RENAME value TO content; UPDATE entry SET content = 'later' WHERE id = 1")
    assert restored.seal() == 1
    assert restored.settled() == {1: "sealed", 2: "not sealed", 3: "restored"}
    restored.seal_through(2)
    assert restored.settled() == {1: "later", 2: "not sealed", 3: "restored"}
    # Three before the dump were sealed there; two before it, one after it and one after confirmation are taken here, once each.
    assert restored.fetch("SELECT seal_no, taken, mismatched FROM dbext_private.seal ORDER BY seal_no") == [(1, 3, 0), (2, 3, 0), (3, 1, 0)]
    assert restored.events() == []
    restored.execute("SELECT dp_untrack('entry')")


def archive(cluster, source: str, target: str, *options: str) -> str:
    """Dump a database in the custom format and restore it with pg_restore; return what that said on the way."""
    programs = usable_installation().bindir
    arguments = ["-h", str(cluster.socket_folder), "-U", SUPERUSER]
    dump = subprocess.run([programs / "pg_dump", *arguments, "-Fc", source], capture_output=True, check=True).stdout
    done = subprocess.run([programs / "pg_restore", *arguments, *options, "-d", target], input=dump, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stderr.decode()


@pytest.mark.parametrize("capture", ["statement", "row"])
def test_a_partitioned_table_comes_back_from_an_archive(tracked, empty_database, capture):
    """Partitions have other OIDs there; names tell which is which, also before anybody confirms."""
    table = tracked("id integer PRIMARY KEY, value text) PARTITION BY RANGE (id", capture=capture)
    table.execute(
        "CREATE TABLE a PARTITION OF entry FOR VALUES FROM (0) TO (10); CREATE TABLE b PARTITION OF entry FOR VALUES FROM (10) TO (20)"
    )
    table.execute("INSERT INTO entry VALUES (1, 'one'), (11, 'eleven')")
    table.seal_through(0)
    table.execute("UPDATE b SET value = 'not sealed'")
    said = archive(table.database.cluster, table.database.name, empty_database.name)
    assert "dbext could not follow" not in said
    restored = Restored(empty_database, table)
    restored.execute("UPDATE a SET value = 'restored'; INSERT INTO entry VALUES (2, 'two'); TRUNCATE b; INSERT INTO b VALUES (12, 'new')")
    restored.execute("SELECT dp_confirm_upgrade()")
    restored.execute(
        "ALTER TABLE entry DETACH PARTITION b; CREATE TABLE c PARTITION OF entry FOR VALUES FROM (30) TO (40); INSERT INTO c VALUES (31, 'c')"
    )
    restored.seal_through(1)
    assert restored.settled() == contents(restored) == {1: "restored", 2: "two", 31: "c"}
    assert restored.events() == []
    assert restored.fetch("SELECT sum(mismatched) FROM dbext_private.seal") == [(0,)]


@pytest.mark.parametrize("capture", ["statement", "row"])
def test_a_copy_of_the_schema_alone_is_written_to_and_tracked_anew(tracked, empty_database, capture):
    """Nothing is tracked there: triggers that came along record nothing and stop nobody."""
    table = tracked(capture=capture)
    archive(table.database.cluster, table.database.name, empty_database.name, "--schema-only")
    copy = Restored(empty_database, table)
    copy.execute("INSERT INTO entry VALUES (1, 'one'), (2, 'two'); UPDATE entry SET value = 'x'; DELETE FROM entry WHERE id = 1")
    copy.day(0)
    copy.track(capture=capture)
    ((copy.number,),) = copy.fetch("SELECT table_id FROM dbext_private.tracked_table")
    assert copy.number > table.number
    copy.execute("UPDATE entry SET value = 'y'; TRUNCATE entry; INSERT INTO entry VALUES (3, 'three')")
    copy.day(1)
    copy.execute(f"SELECT dbext_private.seal_table({copy.number})")
    assert copy.settled() == contents(copy) == {3: "three"}
    assert copy.fetch(f"SELECT count(*) FROM dbext_private.log_{table.number}") == [(0,)]


def test_others_archives_are_restored_beside_tracked_tables(tracked, empty_database):
    """The event triggers have nothing to say about tables that are not tracked, and stop nobody who loads rows with triggers disabled."""
    table = tracked(rows="VALUES (1, 'one')")
    empty_database.execute("""CREATE SCHEMA apart; CREATE TYPE apart.mood AS ENUM ('sad'); CREATE TABLE apart.t (id integer PRIMARY KEY, m apart.mood) PARTITION BY HASH (id);
        CREATE TABLE apart.t0 PARTITION OF apart.t FOR VALUES WITH (MODULUS 1, REMAINDER 0); INSERT INTO apart.t VALUES (1, 'sad');
        CREATE TABLE apart.p (id integer PRIMARY KEY); CREATE TABLE apart.c (p integer REFERENCES apart.p); CREATE MATERIALIZED VIEW apart.v AS SELECT * FROM apart.t;
        CREATE TABLE public.entry (id integer PRIMARY KEY, value text); INSERT INTO entry VALUES (5, 'loaded')""")
    server = table.database.cluster
    table.execute("CREATE SCHEMA apart")
    assert "dbext" not in archive(server, empty_database.name, table.database.name, "--schema=apart")
    table.execute("DROP SCHEMA apart CASCADE; CREATE SCHEMA apart")
    assert "dbext" not in archive(server, empty_database.name, table.database.name, "--schema=apart")
    assert table.events() == []
    archive(server, empty_database.name, table.database.name, "--data-only", "--disable-triggers", "--table=entry")
    table.execute("UPDATE entry SET value = 'x' WHERE id = 1")
    table.seal_through(0)
    assert {kind for _, _, kind, _ in table.events()} == {"trigger"}
    assert table.fetch("SELECT unexpected FROM dp_recount('entry')") == [(1,)]
    table.execute("SELECT dp_rebase('entry')")
    table.seal_through(1)
    assert table.settled() == contents(table) == {1: "x", 5: "loaded"}


def test_transaction_numbers_of_another_cluster_mean_nothing(tracked, empty_database):
    """They may lie ahead of this cluster's own: rows sealed there must not look new when the counter passes them, a late one not sealed."""
    table = tracked(rows="VALUES (1, 'one'), (2, 'two')")
    table.seal_through(0)
    table.execute("UPDATE entry SET value = 'late' WHERE id = 1; UPDATE entry SET value = 'open' WHERE id = 2")
    dump_and_restore(table.database.cluster, table.database.name, empty_database.name)
    restored = Restored(empty_database, table)
    restored.execute(f"""
        CREATE TABLE far AS SELECT pg_current_xact_id()::text::bigint AS away;
        UPDATE dbext_private.log_{table.number} SET xid = (away + CASE WHEN op = 'B' THEN 20 ELSE 60 END)::text::xid8 FROM far;
        UPDATE dbext_private.log_{table.number} SET mutated_at = mutated_at - interval '1 day' WHERE new_2 = 'late';
        UPDATE dbext_private.seal_head SET snapshot = format('%s:%s:', away + 40, away + 40)::pg_snapshot FROM far""")
    restored.execute("SELECT dp_confirm_upgrade()")
    for _ in range(100):
        restored.execute("SELECT pg_current_xact_id()")
    restored.seal_through(1)
    restored.seal_through(2)
    assert restored.settled() == {1: "late", 2: "open"}
    assert restored.fetch("SELECT taken, late, mismatched FROM dbext_private.seal ORDER BY seal_no") == [(2, 0, 0), (2, 1, 0), (0, 0, 0)]


class Restored(Tracked):
    """The tracked table as it came back."""

    def __init__(self, database, source: Tracked):
        self.database, self.name, self.zone = database, source.name, source.zone
        self.session, self.number, self.first = database.superuser, source.number, source.first
        self.day(1)
