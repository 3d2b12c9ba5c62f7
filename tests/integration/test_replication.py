"""Tables that logical replication writes to: apply fires row triggers alone, so these tables are captured row by row."""

from __future__ import annotations

import contextlib
import time

import psycopg
import pytest

from tests.integration.test_capture import contents, replayed
from tests.integration.tracked import Tracked

PARTITIONED = "id integer PRIMARY KEY, value text) PARTITION BY HASH (id"


@pytest.fixture
def pair(make_cluster, open_database):
    """Return (publisher, subscriber): two databases of a cluster of their own; tables `entry` and `spread` come with rows."""
    cluster = make_cluster(settings={"wal_level": "logical", "max_wal_senders": "4", "max_replication_slots": "4"})
    publisher, subscriber = open_database(cluster), open_database(cluster)
    for name in ("entry", "spread"):
        publisher.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY, value text); INSERT INTO {name} VALUES (1, 'one'), (2, 'two')")
    publisher.execute("CREATE PUBLICATION p FOR TABLE entry, spread")
    publisher.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
    yield publisher, subscriber
    with contextlib.suppress(psycopg.errors.UndefinedObject):
        subscriber.execute("ALTER SUBSCRIPTION s DISABLE")
        subscriber.execute("ALTER SUBSCRIPTION s SET (slot_name = NONE)")
        subscriber.execute("DROP SUBSCRIPTION s")
    until(lambda: publisher.fetch("SELECT active FROM pg_replication_slots WHERE slot_name = 's'") == [(False,)])
    publisher.execute("SELECT pg_drop_replication_slot('s')")


def until(holds) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def subscribe(publisher, subscriber, options: str = "") -> None:
    subscriber.execute(
        f"CREATE SUBSCRIPTION s CONNECTION '{publisher.dsn()}' PUBLICATION p WITH (create_slot = false, slot_name = 's'{options})"
    )


def follow(publisher, *tables) -> None:
    """Wait until the subscriber holds what the publisher holds."""
    for table in tables:
        wanted = publisher.fetch(f"SELECT id, value FROM {table.name} ORDER BY id")
        until(lambda t=table, w=wanted: t.fetch(f"SELECT id, value FROM {t.name} ORDER BY id") == w)


def check(table) -> None:
    """The changelog, replayed, is the table; a recount says the same."""
    assert replayed(table) == contents(table)
    assert table.fetch(f"SELECT * FROM dp_recount('{table.name}')") == [(0, 0, 0)]


CHANGES = (
    "INSERT INTO {0} SELECT i, 'v' || i FROM generate_series(3, 20) AS i",
    "UPDATE {0} SET value = value || '!' WHERE id < 10",
    "UPDATE {0} SET value = value",
    "DELETE FROM {0} WHERE id % 3 = 0",
    "UPDATE {0} SET id = id + 100, value = 'moved' WHERE id IN (4, 5)",
    "TRUNCATE {0}",
    "INSERT INTO {0} VALUES (1, 'again')",
)


def test_what_a_subscription_applies_is_captured(pair):
    """Initial copy, apply, truncation, and local writes beside them, into an ordinary and into a partitioned table."""
    publisher, subscriber = pair
    subscriber.execute("CREATE TABLE entry (id integer PRIMARY KEY, value text); CREATE TABLE spread (" + PARTITIONED + ")")
    subscriber.execute("CREATE TABLE s0 PARTITION OF spread FOR VALUES WITH (MODULUS 2, REMAINDER 0)")
    subscriber.execute("CREATE TABLE s1 PARTITION OF spread FOR VALUES WITH (MODULUS 2, REMAINDER 1)")
    subscribe(publisher, subscriber, ", enabled = false")
    tables = []
    for name in ("entry", "spread"):
        table = Tracked.__new__(Tracked)
        table.database, table.name, table.zone, table.session = subscriber, name, "UTC", subscriber.superuser
        table.track()
        table.number = subscriber.value("SELECT max(table_id) FROM dbext_private.tracked_table")
        tables.append(table)
    subscriber.execute("ALTER SUBSCRIPTION s ENABLE")
    for change in CHANGES:
        for table in tables:
            publisher.execute(change.format(table.name))
        follow(publisher, *tables)
        for table in tables:
            check(table)
    for table in tables:
        table.execute(
            f"INSERT INTO {table.name} VALUES (500, 'local'), (501, 'local'); UPDATE {table.name} SET value = 'here' WHERE id = 500"
        )
        check(table)
        recorded = "".join(op for (op,) in table.fetch("SELECT op::text FROM {log} ORDER BY number"))
        assert recorded.endswith("IIIU")
        assert table.fetch("SELECT count(*) FROM dbext.schema_event") == [(0,)]


def test_a_subscription_that_comes_later_is_marked_and_taken_up(pair):
    publisher, subscriber = pair
    subscriber.execute("CREATE TABLE spread (id integer PRIMARY KEY, value text)")
    table = Tracked(subscriber, "id integer PRIMARY KEY, value text", tick="1 second", real_time=True)
    subscribe(publisher, subscriber)
    follow(publisher, table)
    publisher.execute("UPDATE entry SET value = 'unseen'")
    follow(publisher, table)
    subscriber.execute("SELECT pg_sleep(1.1)")
    table.seal()
    assert [(end, kind) for _, end, kind, _ in table.events()] == [(None, "trigger")]
    table.execute("SELECT dp_rebase('entry')")
    assert table.fetch("SELECT proname FROM pg_proc WHERE proname LIKE 'capture!_%!_1' ESCAPE '!' ORDER BY 1") == [
        (f"capture_{event}_1",) for event in ("rowdelete", "rowinsert", "rowupdate", "truncate")
    ]
    publisher.execute("UPDATE entry SET value = 'seen' WHERE id = 1; DELETE FROM entry WHERE id = 2")
    follow(publisher, table)
    check(table)
    assert [kind for _, end, kind, _ in table.events() if end is None] == []
