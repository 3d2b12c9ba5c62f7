"""Partitioned tables: what DDL on partitions does to capture, who may do it, and what is marked when it happened unseen."""

from __future__ import annotations

import psycopg
import pytest

DEFINITION = "id integer PRIMARY KEY, value text) PARTITION BY RANGE (id"
LEAF = "CREATE TABLE {} PARTITION OF entry FOR VALUES FROM ({}) TO ({})"
UNSEEN = "ALTER EVENT TRIGGER dbext_follow_command DISABLE; ALTER EVENT TRIGGER dbext_follow_drop DISABLE"


@pytest.fixture(params=["statement", "row"])
def table(tracked, request):
    """A table with partitions a [0, 10) and b [10, 20), one row in each."""
    made = tracked(DEFINITION, capture=request.param)
    made.execute(LEAF.format("a", 0, 10) + ";" + LEAF.format("b", 10, 20))
    made.execute("INSERT INTO entry VALUES (1, 'one'), (11, 'eleven')")
    made.seal_through(0)
    return made


def contents(table) -> dict:
    return dict(table.fetch("SELECT id, value FROM entry"))


def marks(table) -> list[tuple]:
    return [(begin, end, kind) for begin, end, kind, _ in table.events()]


def test_partitions_of_roles_without_any_right_on_dbext(table, database):
    """Whoever owns the table adds, attaches, detaches and drops; capture follows and says nothing."""
    owner = database.create_role(name="owner")
    database.execute(
        f"GRANT CREATE ON SCHEMA public TO {owner}; ALTER TABLE entry OWNER TO {owner}; ALTER TABLE a OWNER TO {owner}; ALTER TABLE b OWNER TO {owner}"
    )
    own = database.connect(owner)
    notices = []
    own.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    table.set_now("")
    own.execute(LEAF.format("c", 20, 30))
    own.execute("INSERT INTO c VALUES (21, 'x'); CREATE TABLE d (id integer NOT NULL, value text); INSERT INTO d VALUES (31, 'y')")
    own.execute("ALTER TABLE entry ATTACH PARTITION d FOR VALUES FROM (30) TO (40); INSERT INTO d VALUES (32, 'z')")
    own.execute("ALTER TABLE entry DETACH PARTITION a; DROP TABLE a; TRUNCATE b")
    assert notices == []
    assert table.fetch("SELECT op::text, key_1 FROM {log} WHERE number > 2 ORDER BY number") == [
        ("I", 21),
        ("I", 31),
        ("I", 32),
        ("D", 1),
        ("D", 11),
    ]
    assert marks(table) == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        own.execute(f"SELECT dbext_private.adopt_partition({table.number}, 'entry'::regclass)")


UNSEEN_CHANGES = {
    "a partition dropped": ("DROP TABLE a", False),
    "a partition created": (LEAF.format("c", 20, 30), True),
    "a partition attached": ("CREATE TABLE c (LIKE entry); ALTER TABLE entry ATTACH PARTITION c FOR VALUES FROM (20) TO (30)", True),
    "a partition detached": ("ALTER TABLE entry DETACH PARTITION a", True),
    "a trigger of a partition disabled": ('ALTER TABLE a DISABLE TRIGGER "00_dbext_truncate"', False),
    "an unlogged partition": ("CREATE UNLOGGED TABLE c PARTITION OF entry DEFAULT", False),
}


@pytest.mark.parametrize("event_triggers", [True, False], ids=["followed", "found at the seal"])
@pytest.mark.parametrize("name", UNSEEN_CHANGES)
def test_what_cannot_be_recorded_is_marked_from_the_open_tick_on(table, name, event_triggers):
    command, followed = UNSEEN_CHANGES[name]
    if not event_triggers:
        table.execute(UNSEEN)
    table.execute(command)
    table.execute("UPDATE entry SET value = 'x'")
    table.seal_through(1)
    found = [mark for mark in marks(table) if mark[2] in ("partition", "trigger", "table")]
    assert bool(found) is not (followed and event_triggers), table.events()
    assert {(begin, end) for begin, end, _ in found} <= {(1, None)}


def test_writes_to_a_partition_that_was_detached_unseen_go_on(table):
    table.execute(UNSEEN)
    table.execute("ALTER TABLE entry DETACH PARTITION a; INSERT INTO a VALUES (2, 'apart'); TRUNCATE a")
    assert table.fetch("SELECT count(*) FROM {log}") == [(2,)]


def test_truncation_of_a_partition_outside_read_committed_is_refused(table):
    """What another transaction committed since the snapshot could not be read."""
    with table.session.transaction():
        table.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(psycopg.Error) as refusal, table.session.transaction():
            table.execute("TRUNCATE a")
        assert refusal.value.sqlstate == "DP031"
    assert contents(table) == {1: "one", 11: "eleven"}


def test_attaching_outside_read_committed_goes_on_and_is_marked(table):
    table.execute("CREATE TABLE c (LIKE entry); INSERT INTO c VALUES (21, 'x')")
    with table.session.transaction():
        table.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; ALTER TABLE entry ATTACH PARTITION c FOR VALUES FROM (20) TO (30)")
    assert "partition" in {kind for _, _, kind in marks(table)}


def test_a_unit_that_is_in_two_partitions(database):
    database.execute("""CREATE TABLE t (id integer, region text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
        CREATE TABLE n PARTITION OF t FOR VALUES IN ('n'); CREATE TABLE s PARTITION OF t FOR VALUES IN ('s'); INSERT INTO t VALUES (1, 'n'), (1, 's')""")
    with pytest.raises(psycopg.Error) as refusal:
        database.execute("SELECT dp_track('t', unit => '{id}')")
    assert refusal.value.sqlstate == "DP003"
    with pytest.raises(psycopg.Error):
        database.execute("SELECT dp_track('t', unit => '{region}')")
    assert database.fetch("SELECT * FROM dbext_private.tracked_table") == []
    database.execute("SELECT dp_track('t')")
    number = database.value("SELECT table_id FROM dbext_private.tracked_table")
    assert database.value(f"SELECT count(*) FROM dbext_private.log_{number}") == 2


@pytest.mark.parametrize(("command", "kept"), [("dp_untrack('entry')", []), ("dp_track('entry', capture => '{}')", [("00_dbext_truncate",)])])
def test_triggers_of_a_partition_that_left_unseen_hinder_nobody(table, command, kept):
    for state in ("DISABLE", "ENABLE ALWAYS"):
        table.execute(f"ALTER EVENT TRIGGER dbext_follow_command {state}; ALTER EVENT TRIGGER dbext_follow_drop {state}")
        if state == "DISABLE":
            table.execute("ALTER TABLE entry DETACH PARTITION a")
    left = "SELECT tgname FROM pg_trigger WHERE tgrelid = 'a'::regclass AND NOT tgisinternal"
    assert len(table.fetch(left)) == 4
    table.execute("SELECT " + command.format(*{"statement", "row"} - set(*table.fetch("SELECT capture FROM dbext.tracked_table"))))
    assert table.fetch(left) == kept
    table.execute("INSERT INTO a VALUES (2, 'apart'); TRUNCATE a")
    assert table.fetch("SELECT count(*) FROM {log} WHERE key_1 = 2") == [(0,)]


def test_untracking_leaves_no_trigger_on_any_partition(table):
    table.execute("SELECT dp_untrack('entry')")
    assert table.fetch("SELECT count(*) FROM pg_trigger WHERE tgname LIKE '00_dbext%'") == [(0,)]
    assert table.fetch("SELECT count(*) FROM pg_proc WHERE proname LIKE 'capture!_%!_" + str(table.number) + "' ESCAPE '!'") == [(0,)]
    table.execute("UPDATE a SET value = 'unseen'; " + LEAF.format("c", 20, 30) + "; INSERT INTO c VALUES (21, 'x')")
    table.track()
    table.execute("INSERT INTO c VALUES (22, 'y')")
    table.seal_through(1)
    assert table.settled() == contents(table)


EVIL = """CREATE FUNCTION evil(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    PERFORM set_config('evil.who', coalesce(current_setting('evil.who', true), '') || current_user || ',', false); RETURN $1; END $$"""
PLANNED = {
    "a partial index": "CREATE INDEX ON a (value) WHERE evil(1) > 0",
    "an index over an expression": "CREATE INDEX ON a ((id + evil(1)))",
    "statistics": "CREATE STATISTICS s ON (id + evil(1)), value FROM a",
    "a check": "ALTER TABLE a ADD CHECK (evil(1) > 0); SET constraint_exclusion = on",
}


@pytest.mark.parametrize("name", PLANNED)
def test_nothing_of_a_partitions_owner_runs_as_superuser(table, database, name):
    """The planner calls functions of indexes and statistics with the rights of whoever reads the table."""
    owner = database.create_role(name="mallory")
    database.execute(f"GRANT CREATE ON SCHEMA public TO {owner}; ALTER TABLE entry OWNER TO {owner}; ALTER TABLE a OWNER TO {owner}")
    own = database.connect(owner)
    own.execute(EVIL)
    own.execute(PLANNED[name])
    own.execute("TRUNCATE a; INSERT INTO a VALUES (3, 'x')")
    own.execute("ALTER TABLE entry DETACH PARTITION a")
    own.execute("ALTER TABLE entry ATTACH PARTITION a FOR VALUES FROM (0) TO (10)")
    own.execute("INSERT INTO a VALUES (4, 'y')")
    callers = set((own.execute("SELECT current_setting('evil.who', true)").fetchone()[0] or "").split(",")) - {""}
    assert callers <= {owner}
    assert table.fetch("SELECT op::text, key_1 FROM {log} ORDER BY number DESC LIMIT 1") == [("I", 4)]
    assert ("partition" in {kind for _, _, kind in marks(table)}) == (name != "a check")
    for call in ("dp_recount('entry')", "dp_rebase('entry')"):
        if name != "a check":
            with pytest.raises(psycopg.Error) as refusal:
                table.execute(f"SELECT {call}")
            assert refusal.value.sqlstate == "DP005"


@pytest.mark.parametrize("capture", ["statement", "row"])
@pytest.mark.parametrize("partitions", [True, False], ids=["partitions", "no partitions"])
@pytest.mark.parametrize("renaming", ["ALTER TABLE entry RENAME TO record", "ALTER TABLE entry SET SCHEMA place"])
def test_a_renamed_table_is_known_by_the_triggers_of_its_partitions(tracked, capture, partitions, renaming):
    """Where rows are captured one by one, the partitioned table itself has no trigger."""
    table = tracked(DEFINITION, capture=capture)
    table.execute("CREATE SCHEMA place; " + (LEAF.format("a", 0, 10) if partitions else ""))
    table.seal_through(0)
    table.execute(renaming)
    if not partitions:
        table.execute(f"CREATE TABLE public.a PARTITION OF {'record' if 'record' in renaming else 'place.entry'} FOR VALUES FROM (0) TO (10)")
    table.execute("INSERT INTO public.a VALUES (1, 'one')")
    table.seal_through(1)
    assert table.settled() == {1: "one"}
    assert table.events() == []


def test_another_table_of_the_old_name_is_another_table(tracked):
    """Also where nothing but columns could tell, and nobody told us."""
    table = tracked(DEFINITION, capture="row")
    table.seal_through(0)
    table.execute(UNSEEN)
    table.execute(f"DROP TABLE entry; CREATE TABLE entry ({DEFINITION})")
    table.seal_through(1)
    assert [kind for _, _, kind in marks(table)] == ["table"]
