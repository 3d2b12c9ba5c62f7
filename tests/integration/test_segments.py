"""The log in segments that dp_retain drops whole: nothing is lost or doubled, what recounts need stays, and everything that reads the log reads them."""

from __future__ import annotations

import random
import re

import psycopg
import pytest

from tests.integration.test_cluster_changes import Restored, archive, dump_and_restore
from tests.integration.test_seal_cost import sealed_blocks
from tests.integration.test_tracking_objects import OBJECTS

KEEP = 4
RETAIN = f"SELECT dp_retain('entry', '{KEEP} days', segments => true)"


def segments(table) -> list[int]:
    """Return the numbers of the segments there are, which must be children of the log and nothing else."""
    known = [number for (number,) in table.fetch(f"SELECT segment FROM dbext_private.log_segment WHERE table_id = {table.number} ORDER BY 1")]
    children = table.fetch("SELECT c.relname::text FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = '{log}'::regclass")
    assert sorted(children) == sorted((f"log_{table.number}_{number}",) for number in known)
    return known


def captured_by(table) -> set[str]:
    """Return the tables that the capture functions write to."""
    rows = table.fetch(
        f"SELECT DISTINCT substring(prosrc FROM 'INSERT INTO dbext_private.(log_[0-9_]+) ') FROM pg_proc WHERE proname ~ '^capture_[a-z]+_{table.number}$'"
    )
    return {name for (name,) in rows if name is not None}


def live(table, days: range, statement: str = "UPDATE entry SET value = 'day {day}' WHERE id % 3 = {day} % 3") -> None:
    """Let days pass: mutations, a seal, dp_retain."""
    for day in days:
        table.day(day)
        table.execute(statement.format(day=day))
        table.seal_through(day)
        table.execute(RETAIN)


@pytest.fixture
def table(tracked):
    return tracked(rows="SELECT i, 'a' FROM generate_series(1, 12) AS i")


@pytest.fixture
def segmented(table):
    """A table with a closed segment that holds the mutations of days 2 and 3, and is past on day 8."""
    live(table, range(4))
    assert segments(table)[0] == 1
    return table


def require_whole(table) -> None:
    """Nothing was lost or doubled: settled images are the table, a recount finds no difference, no seal a mismatch, no record is there twice."""
    assert table.settled() == dict(table.fetch(f"SELECT id, value FROM {table.name}"))
    assert table.fetch(f"SELECT * FROM dp_recount('{table.name}')") == [(0, 0, 0)]
    assert table.fetch("SELECT sum(mismatched) FROM dbext_private.seal") == [(0,)]
    assert table.fetch("SELECT number FROM {log} GROUP BY 1 HAVING count(*) > 1") == []


def test_segments_follow_each_other_and_go_when_all_of_them_is_old(table):
    live(table, range(30))
    assert 2 <= len(segments(table)) <= 6
    assert captured_by(table) == {f"log_{table.number}_{segments(table)[-1]}"}
    ((oldest,),) = table.fetch("SELECT min(mutated_at)::date::text FROM {log} WHERE tableoid <> '{log}'::regclass")
    assert oldest >= "2020-03-25"  # day 30 less four days kept and one of a segment that is not wholly past
    assert table.fetch("SELECT key_1 FROM ONLY {log} GROUP BY 1 HAVING count(*) > 1") == []
    require_whole(table)
    assert sum(taken for (taken,) in table.fetch("SELECT taken FROM dbext_private.seal")) == 12 + 30 * 4


def test_names_tell_the_clock_and_not_rows(table):
    """Anybody may read them: tables of other sizes, with other mutations, have the same segments at the same time."""
    table.execute("CREATE TABLE other (id integer PRIMARY KEY, value text); INSERT INTO other SELECT i, 'a' FROM generate_series(1, 300) AS i")
    table.day(0)
    table.execute("SELECT dp_track('other')")
    names = "SELECT array_agg(regexp_replace(relname, '^log_[0-9]+', '') ORDER BY 1) FROM pg_class WHERE relname ~ '^log_{}(_[0-9]+)?$'"
    for day in range(14):
        table.day(day)
        table.execute("UPDATE other SET value = %s WHERE id > 1", (f"day {day}",))
        table.execute("UPDATE entry SET value = 'b' WHERE id = 1")
        table.day(day + 1)
        for number, name in ((1, "entry"), (2, "other")):
            table.execute(f"SELECT dbext_private.seal_table({number})")
            table.execute(f"SELECT dp_retain('{name}', '{KEEP} days', segments => true)")
        assert table.fetch(names.format(1)) == table.fetch(names.format(2))
    assert segments(table)[0] > 1


def test_only_who_asks_for_segments_has_them(segmented):
    """Without them capture goes back to the log itself, and those that there are go when their time has come."""
    assert captured_by(segmented) != {f"log_{segmented.number}"}
    for day in range(4, 12):
        segmented.day(day)
        segmented.execute("UPDATE entry SET value = %s WHERE id < 5", (f"day {day}",))
        segmented.seal_through(day)
        said = segmented.fetch(f"SELECT dp_retain('entry', '{KEEP} days')")[0][0]
        assert captured_by(segmented) == {f"log_{segmented.number}"}
        if "segments" in said:
            assert re.search(r" Of 4 records in segments that went, [0-4] are needed and stay\.$", said)
    assert segments(segmented) == []
    require_whole(segmented)
    live(segmented, range(12, 20))
    assert segments(segmented)[0] > 1
    require_whole(segmented)


def test_what_is_written_after_the_first_segment_is_no_longer_in_the_log_itself(segmented):
    before = segmented.fetch("SELECT count(*) FROM ONLY {log}")
    segmented.execute("UPDATE entry SET value = 'x'; DELETE FROM entry WHERE id = 1; INSERT INTO entry VALUES (1, 'again')")
    assert segmented.fetch("SELECT count(*) FROM ONLY {log}") == before
    numbers = [number for (number,) in segmented.fetch("SELECT number FROM {log} ORDER BY mutated_at, number")]
    assert numbers == sorted(set(numbers))


SHAPES = {
    "plain": {},
    "captured by row": {"capture": "row"},
    "two columns": {"definition": "id integer, part integer DEFAULT 1, value text, PRIMARY KEY (id, part)"},
    "partitions": {"definition": "id integer PRIMARY KEY, value text) PARTITION BY RANGE (id"},
    "units of several rows": {"definition": "id integer PRIMARY KEY, unit integer NOT NULL DEFAULT 1, value text", "unit": ["unit"], "rows_per_unit": 3},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_of_what_goes_the_last_record_of_each_entry_stays(tracked, shape):
    """A copy of every record ever made tells what each entry's last one is; some entries change every day and some hardly ever."""
    table = tracked(**SHAPES[shape])
    if shape == "partitions":
        table.execute("CREATE TABLE low PARTITION OF entry FOR VALUES FROM (0) TO (15); CREATE TABLE high PARTITION OF entry FOR VALUES FROM (15) TO (100)")
    table.execute("CREATE TABLE every AS SELECT * FROM dbext_private.log_1; CREATE UNIQUE INDEX ON every (number)")
    # Statements that nest are recorded inside out.
    table.execute("""CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            UPDATE entry SET value = NEW.value || '!' WHERE id = NEW.id AND length(NEW.value) = 2; RETURN NULL; END $$;
        CREATE TRIGGER again AFTER UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION again()""")
    choice = random.Random(5)
    keys = "key_1, key_2" if shape == "two columns" else "key_1"
    for day in range(20):
        table.day(day)
        for _ in range(4):
            key = min(choice.randrange(30), choice.randrange(30))
            table.execute(f"INSERT INTO entry (id, value) VALUES ({key}, 'new {day}') ON CONFLICT DO NOTHING")
            table.execute(f"UPDATE entry SET value = '{choice.choice(('a', 'bb', 'ccc'))}' WHERE id IN ({key}, {choice.randrange(30)})")
            table.execute(f"DELETE FROM entry WHERE id = {choice.randrange(30)}")
        if day in (10, 11):
            table.execute(f"INSERT INTO entry (id, value) SELECT i, 'b{day}' FROM generate_series(50, 53) AS i ON CONFLICT DO NOTHING")
            table.execute("UPDATE entry SET value = 'bb' WHERE id > 50 AND length(value) = 3")
        if day in (3, 9):
            table.execute("TRUNCATE entry; INSERT INTO entry (id, value) VALUES (3, 'left')")
        table.execute("INSERT INTO every SELECT * FROM dbext_private.log_1 ON CONFLICT DO NOTHING")
        table.seal_through(day)
        table.execute(RETAIN)
        missing = f"""WITH since AS (SELECT * FROM every WHERE op <> 'T' AND number > coalesce((SELECT max(number) FROM every WHERE op = 'T'), 0)),
            latest AS (SELECT DISTINCT ON ({keys}) * FROM since ORDER BY {keys}, number DESC)
            SELECT s.number FROM since AS s JOIN latest AS l USING ({keys}, xid) EXCEPT SELECT number FROM dbext_private.log_1"""
        assert table.fetch(missing) == []
        assert table.fetch("SELECT max(number) FROM {log} WHERE op = 'T'") == table.fetch("SELECT max(number) FROM every WHERE op = 'T'")
        assert table.fetch("TABLE dbext_private.log_1 EXCEPT TABLE every") == []
        assert table.fetch("SELECT number FROM {log} GROUP BY 1 HAVING count(*) > 1") == []
        assert table.fetch("SELECT * FROM dp_recount('entry')") == [(0, 0, 0)]
    assert segments(table)[0] > 3
    assert table.fetch("SELECT sum(taken) FROM dbext_private.seal") == table.fetch("SELECT count(*) FROM every WHERE op <> 'T'")


def test_a_rollback_leaves_all_as_it_was(segmented):
    live(segmented, range(4, 7))
    segmented.day(9)
    segmented.seal()
    before = segmented.fetch(OBJECTS), segmented.fetch("SELECT tableoid, * FROM {log} ORDER BY number")
    segmented.execute("BEGIN; " + RETAIN)
    assert segments(segmented)[0] > 1
    segmented.execute("UPDATE entry SET value = 'never'; ROLLBACK")
    assert (segmented.fetch(OBJECTS), segmented.fetch("SELECT tableoid, * FROM {log} ORDER BY number")) == before
    live(segmented, range(9, 12))
    require_whole(segmented)


def test_it_takes_a_read_committed_transaction(segmented):
    segmented.day(9)
    segmented.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    with pytest.raises(psycopg.Error) as refused:
        segmented.execute(RETAIN)
    assert refused.value.sqlstate == "DP031"
    segmented.execute("ROLLBACK")


def test_an_administrator_is_enough_and_nobody_has_rights_on_segments(table):
    table.execute("ALTER DEFAULT PRIVILEGES FOR ROLE dbext_owner GRANT SELECT ON TABLES TO PUBLIC")
    with table.database.connect(table.database.create_role("dbext_admin")) as admin:
        for day in range(12):
            table.day(day)
            table.execute("UPDATE entry SET value = %s", (f"day {day}",))
            table.seal_through(day)
            table.set_now(table.session.execute("SHOW dbext.now").fetchone()[0], admin)
            admin.execute(RETAIN)
        assert segments(table)[0] > 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            admin.execute(f"DROP TABLE dbext_private.log_{table.number}_{segments(table)[0]}")
    owned = "SELECT DISTINCT c.relowner::regrole::text, has_table_privilege('public', c.oid, 'SELECT') FROM pg_class AS c WHERE c.relname ~ '^log_1_[0-9]+$'"
    assert table.fetch(owned) == [("dbext_owner", False)]
    table.execute(f"GRANT SELECT ON dbext_private.log_{table.number}_{segments(table)[-1]} TO PUBLIC")
    table.seal_through(12)
    assert table.fetch(owned) == [("dbext_owner", False)]
    require_whole(table)


def test_a_table_no_longer_tracked_gets_no_new_segments(segmented):
    segmented.execute("SELECT dp_untrack('entry')")
    before = segments(segmented)
    segmented.day(12)
    segmented.seal()
    segmented.execute(RETAIN)
    segmented.execute(RETAIN)
    assert set(segments(segmented)) < set(before)
    assert captured_by(segmented) == set()
    segmented.track()
    segmented.execute("UPDATE entry SET value = 'again' WHERE id = 1")
    live(segmented, range(13, 24))
    require_whole(segmented)


def test_what_is_forgotten_as_unused_takes_its_segments_along(segmented):
    segmented.execute("SELECT dp_untrack('entry')")
    segmented.track(columns=["id"])
    assert segments(segmented) == []
    assert captured_by(segmented) == {f"log_{segmented.number}"}
    assert segmented.fetch("SELECT relname FROM pg_class WHERE relname ~ '^log_1_[0-9]+'") == []


def test_nothing_of_what_was_recorded_is_dropped_by_hand(segmented):
    """Writers would fail, and nobody could tell what is lost."""
    segmented.execute("SET session_replication_role = replica")
    parts = [f"log_1_{number}" for number in segments(segmented)] + ["log_1", "deferred_1", "admission_1", "change_1"]
    for command in [f"DROP TABLE dbext_private.{name} CASCADE" for name in parts]:
        with pytest.raises(psycopg.Error) as refused:
            segmented.execute(command)
        assert (refused.value.sqlstate, "dp_retain" in refused.value.diag.message_hint) == ("DP004", True), command
    segmented.execute("UPDATE entry SET value = 'written'")
    segmented.seal_through(4)
    require_whole(segmented)


@pytest.mark.parametrize("current", [True, False])
def test_a_segment_dropped_by_hand_all_the_same_is_marked_and_made_good(segmented, current):
    """As a restore might do that drops first what it makes: the next seal leads capture back to the log, and says so."""
    segmented.execute("UPDATE entry SET value = 'lost' WHERE id = 1")
    segmented.execute(f"SET check_function_bodies = off; DROP TABLE dbext_private.log_1_{segments(segmented)[-1 if current else 0]}; RESET check_function_bodies")
    segmented.seal_through(4)
    assert [(day, end, kind) for day, end, kind, _ in segmented.events()] == [(4, None, "changelog")]
    segmented.execute("UPDATE entry SET value = 'written' WHERE id = 2; SELECT dp_rebase('entry')")
    live(segmented, range(5, 16))
    assert segments(segmented)[0] > 3
    assert [kind for _, end, kind, _ in segmented.events() if end is None] == []
    require_whole(segmented)


def test_a_publication_of_all_tables_hinders_nothing(table):
    """What has no key has another identity, or nothing could be deleted from it."""
    table.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    live(table, range(10))
    assert segments(table)[0] > 1
    table.execute("SELECT dp_rebase('entry'); SELECT dp_retain('entry', '0 days'); SELECT dp_confirm_upgrade(); UPDATE dbext_private.runtime SET python_path = python_path")
    live(table, range(10, 14))
    require_whole(table)
    without = """SELECT c.relname::text FROM pg_class AS c WHERE c.relnamespace IN ('dbext_private'::regnamespace, 'dbext'::regnamespace, 'dp_release'::regnamespace)
        AND c.relkind = 'r' AND c.relreplident <> 'f' AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)"""
    assert table.fetch(without) == [("only_a_superuser_drops_dbext",)]  # nothing is ever in it


def test_columns_come_widen_and_go_in_all_segments(segmented):
    segmented.execute("CREATE TYPE mood AS ENUM ('sad'); ALTER TABLE entry ADD COLUMN number integer, ADD COLUMN m mood")
    segmented.track(columns=["id", "value", "number", "m"])
    segmented.execute("UPDATE entry SET number = id, m = 'sad' WHERE id < 5")
    segmented.execute("ALTER TABLE entry ALTER COLUMN number TYPE bigint")
    segmented.track(columns=["id", "value", "number", "m"])
    segmented.execute(f"UPDATE entry SET number = {2**40} WHERE id = 6; DROP TYPE mood CASCADE; ALTER TABLE entry RENAME COLUMN number TO moment")
    segmented.execute("UPDATE entry SET moment = 7 WHERE id = 7")
    live(segmented, range(5, 16))
    assert segments(segmented)[0] > 2
    assert segmented.fetch("SELECT key_1, image_3 FROM {admission} WHERE image_3 > 4 ORDER BY 1") == [(6, 2**40), (7, 7)]
    require_whole(segmented)


def test_a_seal_reads_what_is_new_in_segments_as_well(tracked):
    table = tracked(rows="SELECT i, 'a' FROM generate_series(1, 15000) AS i")
    blocks, total = [], []
    for day in range(10):
        table.day(day)
        table.execute("UPDATE entry SET value = %s", (f"day {day}",))
        blocks.append(sealed_blocks(table, day))
        total += table.fetch(f"SELECT sum(pg_relation_size(r.relation)) / 8192 FROM dbext_private.log_relations({table.number}) AS r")
        table.execute("SELECT dp_retain('entry', '20 days', segments => true)")
    assert len(segments(table)) == 2
    assert sum(blocks[6:]) < 1.3 * sum(blocks[1:5]), blocks
    assert blocks[-1] < total[-1][0], (blocks, total)


@pytest.mark.parametrize("way", ["plain", "archive", "schema first"])
def test_a_dump_carries_segments(segmented, empty_database, way):
    """Also where rows come back when their triggers are there already: they were recorded before."""
    segmented.execute("UPDATE entry SET value = 'not sealed' WHERE id = 2")
    source = segmented.database
    if way == "plain":
        dump_and_restore(source.cluster, source.name, empty_database.name)
    else:
        for step in ([],) if way == "archive" else (["--schema-only"], ["--data-only"]):
            assert archive(source.cluster, source.name, empty_database.name, *step) == ""
    restored = Restored(empty_database, segmented)
    assert restored.fetch("SELECT number, op, new_2 FROM {log} ORDER BY number") == segmented.fetch("SELECT number, op, new_2 FROM {log} ORDER BY number")
    assert segments(restored) == segments(segmented)
    restored.day(5)
    restored.execute("UPDATE entry SET value = 'restored' WHERE id = 3")
    assert restored.fetch("SELECT number FROM {log} GROUP BY 1 HAVING count(*) > 1") == []
    assert restored.fetch("SELECT tableoid::regclass::text FROM {log} WHERE new_2 = 'restored'") == [
        (f"dbext_private.log_{restored.number}_{segments(restored)[-1]}",)
    ]
    restored.execute("SELECT dp_confirm_upgrade()")
    live(restored, range(5, 16))
    assert segments(restored)[0] > segments(segmented)[-1]
    require_whole(restored)
    restored.execute("SELECT dp_untrack('entry')")
