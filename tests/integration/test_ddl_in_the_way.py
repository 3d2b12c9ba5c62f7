"""DDL of a table's owner that is not committed yet, or that comes where it cannot be followed: nobody waits for ever, no writer's statement breaks."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.interleaving import Actor, settle, waits
from tests.integration.test_replication import until
from tests.integration.test_segments import RETAIN, live, require_whole, segments
from tests.integration.tracked import Tracked

#: Commands that an event trigger follows, and who meets them.
IN_THE_WAY = (
    ("ALTER TYPE mood RENAME TO feeling", "SELECT dbext_private.seal_table({})"),
    ("ALTER TABLE entry RENAME COLUMN value TO worth", "SELECT dp_retain('entry', '1 day', segments => true)"),
)


@pytest.fixture
def moods(tracked, database):
    """A table with a column of a type of the owner's, which no seal has looked at yet."""
    database.execute("CREATE TYPE mood AS ENUM ('a', 'b')")
    return tracked("id integer PRIMARY KEY, value mood", rows="SELECT i, 'a' FROM generate_series(1, 3) AS i")


@pytest.mark.parametrize(("command", "step"), IN_THE_WAY)
def test_nobody_waits_for_ever_for_ddl_that_is_not_committed(moods, database, command, step):
    """The first seal, and the one after each new segment, has something to note where DDL holds what is noted."""
    if "retain" in step:
        moods.seal_through(2)
    moods.day(4)
    with database.connect(autocommit=False) as owner:
        owner.execute(command)
        with pytest.raises(psycopg.errors.DatabaseError, match=r"another transaction is changing table public\.entry|is being renamed") as caught:
            moods.execute(step.format(moods.number))
        assert caught.value.sqlstate == "DP031"
        owner.rollback()
    moods.execute(step.format(moods.number))
    moods.seal_through(5)


@pytest.mark.parametrize("capture", ["statement", "row"])
def test_ddl_of_an_old_snapshot_is_refused_and_not_left_unfollowed(tracked, database, capture):
    """dp_retain changed what the command has to change: committed unfollowed, it would break every write until the next seal."""
    table = tracked(rows="VALUES (12, 'a')", capture=capture)
    live(table, range(2))
    owner = database.connect(autocommit=False)
    owner.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT")
    live(table, range(2, 4))
    with pytest.raises(psycopg.errors.SerializationFailure):
        owner.execute("ALTER TABLE entry RENAME COLUMN value TO worth")
    owner.rollback()
    owner.execute("ALTER TABLE entry RENAME COLUMN value TO worth")
    owner.commit()
    table.execute("UPDATE entry SET worth = 'x'")
    table.seal_through(4)
    assert table.settled() == {12: "x"}
    assert table.events() == []


@pytest.mark.parametrize("command", ["ALTER TABLE entry RENAME COLUMN value TO worth", "DROP TABLE entry", "ALTER TABLE entry DROP COLUMN value"])
def test_ddl_that_waits_for_a_lock_no_longer_is_refused_and_not_left_unfollowed(tracked, database, command):
    table = tracked(rows="VALUES (12, 'a')")
    live(table, range(2))
    admin = database.connect(autocommit=False)
    table.set_now("2020-03-06 12:00 UTC", admin)
    admin.execute(RETAIN)
    owner = database.connect()
    owner.execute("SET lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        owner.execute(command)
    admin.commit()
    table.execute("UPDATE entry SET value = 'x'")
    owner.execute(command)


def test_values_rewritten_while_marks_cannot_be_written_are_refused(tracked, database):
    table = tracked(rows="VALUES (12, 'a')")
    table.seal_through(1)
    admin = database.connect(autocommit=False)
    admin.execute("LOCK dbext_private.schema_event")
    owner = database.connect()
    owner.execute("SET lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        owner.execute("ALTER TABLE entry ALTER value TYPE text USING 'z'")
    admin.rollback()
    assert table.fetch("SELECT value FROM entry") == [("a",)]


def test_ddl_waits_for_dp_retain_only_at_its_end(tracked, database):
    """Whoever changes a table keeps its writers waiting: what takes long comes before anything that he waits for."""
    table = tracked(rows="SELECT i, 'a' FROM generate_series(1, 12) AS i")
    live(table, range(4))
    reader = database.connect(autocommit=False)
    reader.execute(f"LOCK TABLE dbext_private.change_{table.number} IN SHARE MODE")
    retaining = Actor(database, "2020-03-11 12:00 UTC")
    retaining.begin(RETAIN)
    settle(table.session, [retaining])
    assert waits(table.session, retaining)
    with database.connect() as owner:
        owner.execute("SET lock_timeout = '5s'; ALTER TABLE entry ADD COLUMN more integer")
    reader.rollback()
    retaining.finish()
    assert retaining.error is None
    assert len(segments(table)) > 1
    table.seal_through(10)
    require_whole(table)


@pytest.mark.parametrize("step", [RETAIN, "SELECT dbext_private.seal_table(1)"])
def test_who_waited_while_the_table_was_tracked_anew_is_told_so(tracked, database, step):
    table = tracked(rows="VALUES (12, 'a')")
    assert table.number == 1
    now = "2020-03-06 12:00 UTC"
    with database.connect(autocommit=False) as owner:
        table.set_now(now, owner)
        owner.execute("SELECT dp_untrack('entry'); SELECT dp_track('entry', tick => '1 hour')")
        late = Actor(database, now)
        late.begin(step)
        settle(table.session, [late])
        assert waits(table.session, late)
        owner.commit()
    late.finish()
    assert late.error.sqlstate in ("DP031", "DP002")
    late.session.close()


def test_default_privileges_give_nobody_a_segment(tracked, database):
    table = tracked(rows="VALUES (12, 'a')")
    role = database.create_role()
    database.execute(f"ALTER DEFAULT PRIVILEGES FOR ROLE dbext_owner GRANT ALL ON TABLES TO {role}, PUBLIC")
    live(table, range(3))
    assert len(segments(table)) > 1
    rights = "SELECT count(*) FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.relname ~ '^log_1' AND a.grantee <> c.relowner"
    database.execute(f"ALTER DEFAULT PRIVILEGES FOR ROLE dbext_owner REVOKE ALL ON TABLES FROM {role}, PUBLIC")
    assert table.fetch(rights) == [(0,)]


SHAPES = {"a table": ("id integer PRIMARY KEY, value text", ""), "partitions": ("id integer PRIMARY KEY, value text) PARTITION BY RANGE (id", "CREATE TABLE part PARTITION OF entry DEFAULT")}
TRIGGERS_CHANGE = ("SELECT dp_track('entry', capture => 'row')", "SELECT dp_track('entry', capture => 'statement')", "SELECT dp_rebase('entry')", "SELECT dp_untrack('entry')")


@pytest.mark.parametrize("shape", SHAPES)
def test_who_has_read_and_then_writes_is_not_ended_by_a_deadlock(tracked, database, shape):
    """Whoever changes triggers does not keep writers waiting while he waits for readers: they may be the same."""
    definition, partition = SHAPES[shape]
    table = tracked(definition, capture="statement")
    table.execute(partition + "; INSERT INTO entry VALUES (1, '')")
    moment = table.session.execute("SHOW dbext.now").fetchone()[0]
    for number, command in enumerate(TRIGGERS_CHANGE, start=1):
        application = database.connect(autocommit=False)
        application.execute("SET LOCAL lock_timeout = '20s'; SELECT * FROM entry")
        owner = Actor(database, moment)
        owner.begin(command)
        settle(table.session, [owner])
        application.execute("UPDATE entry SET value = value || '.'")
        application.commit()
        application.close()
        owner.finish()
        assert owner.error is None
        owner.session.close()
        assert table.fetch("SELECT value FROM entry") == [("." * number,)]
    assert table.fetch("SELECT new_2 FROM {log} WHERE op = 'U' ORDER BY number") == [("." * number,) for number in range(1, len(TRIGGERS_CHANGE) + 1)]


@pytest.mark.parametrize("command", [*TRIGGERS_CHANGE, "SELECT * FROM dp_recount('entry')"])
def test_nobody_waits_behind_who_waits_for_a_transaction_that_does_not_end(tracked, database, command):
    """Not even for one that is prepared and forgotten; and who wrote to a partition goes on to its table."""
    table = tracked(SHAPES["partitions"][0], capture="row" if "statement" in command else "statement")
    table.execute(SHAPES["partitions"][1] + "; INSERT INTO entry VALUES (1, ''), (2, '')")
    moment = table.session.execute("SHOW dbext.now").fetchone()[0]
    table.execute("BEGIN; UPDATE part SET value = 'prepared' WHERE id = 1; PREPARE TRANSACTION 'forgotten'")
    application = database.connect(autocommit=False)
    application.execute("UPDATE part SET value = 'first' WHERE id = 2")
    owner = Actor(database, moment)
    owner.begin(command)
    settle(table.session, [owner])
    for session in (table.session, application):
        session.execute("SET lock_timeout = '20s'")
    application.execute("UPDATE entry SET value = 'second' WHERE id = 2")
    table.execute("INSERT INTO entry VALUES (3, '')")
    application.commit()
    assert owner.is_busy
    table.execute("COMMIT PREPARED 'forgotten'")
    owner.finish()
    assert owner.error is None
    owner.session.close()
    assert table.fetch("SELECT new_2 FROM {log} WHERE op = 'U' ORDER BY number") == [("prepared",), ("first",), ("second",)]


def test_the_callers_own_lock_timeout_ends_the_turns(tracked, database):
    table = tracked()
    with database.connect(autocommit=False) as writer:
        writer.execute("INSERT INTO entry VALUES (1, 'one')")
        table.execute("SET lock_timeout = '700ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            table.execute("SELECT dp_rebase('entry')")
        writer.rollback()
    table.execute("SELECT dp_rebase('entry')")
    assert table.fetch("SHOW lock_timeout") == [("700ms",)]


def test_autovacuum_gives_way(make_cluster, open_database):
    """It does so to whoever waits for longer than deadlock_timeout, and to nobody else; of a large table it may take hours."""
    slow = "autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1"
    database = open_database(make_cluster(settings={"autovacuum_naptime": "1s"}))
    table = Tracked(database, "id integer PRIMARY KEY, value text", rows="SELECT i, repeat('x', 500) FROM generate_series(1, 20000) AS i")
    table.execute(f"ALTER TABLE entry SET ({slow}); DELETE FROM entry WHERE id % 2 = 0")
    vacuums = """SELECT count(*) > 0 FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
        WHERE a.backend_type = 'autovacuum worker' AND l.relation = 'entry'::regclass AND l.mode = 'ShareUpdateExclusiveLock'"""
    until(lambda: table.fetch(vacuums) == [(True,)])
    table.execute("SET lock_timeout = '30s'; SELECT dp_rebase('entry')")


#: What somebody else holds, and whom that would keep waiting with the table locked.
IN_USE = {
    "a dump": ("SELECT count(*) FROM {log}", "SELECT dp_track('entry', columns => '{{id, value, more}}')"),
    "dp_retain": ("SELECT FROM dbext_private.tracked_table FOR NO KEY UPDATE", "SELECT dp_rebase('entry')"),
    "dp_retain that drops segments": ("LOCK TABLE {log} IN ACCESS EXCLUSIVE MODE", "SELECT * FROM dp_recount('entry')"),
    "what follows DDL": ("SELECT FROM dbext_private.tracked_table FOR NO KEY UPDATE", "SELECT dp_untrack('entry')"),
}


@pytest.mark.parametrize("who", IN_USE)
def test_writers_do_not_wait_for_who_uses_the_changelog(tracked, database, who):
    """A dump may take hours: nobody waits for it with the table locked."""
    holds, command = (one.format(log="dbext_private.log_1") for one in IN_USE[who])
    table = tracked(rows="VALUES (1, 'one')")
    table.execute("ALTER TABLE entry ADD COLUMN more integer; SET statement_timeout = '30s'")
    with database.connect(autocommit=False) as other:
        other.execute(holds)
        with pytest.raises(psycopg.Error, match=r"what was recorded of table public\.entry is in use") as caught:
            table.execute(command)
        assert caught.value.sqlstate == "DP031"
        other.rollback()
    table.execute(command)
