"""What others do while dp_retain leads capture on to another segment and drops old ones: nothing is lost, nobody's statement fails."""

from __future__ import annotations

import itertools

import psycopg
import pytest

from tests.integration.interleaving import Actor, orders, play, settle, waits
from tests.integration.test_segments import RETAIN, captured_by, live, require_whole, segments

#: Days after which everything before them is past.
FAR = range(9, 14, 2)
#: A day on which nothing of day 4 is past.
NEAR = range(6, 7)
LETTERS = "AB"


@pytest.fixture
def segmented(tracked):
    """A table on day 1, at noon, whose first segment is current."""
    table = tracked(rows="SELECT i, 'a' FROM generate_series(1, 12) AS i")
    live(table, range(1))
    assert segments(table) == [1]
    return table


def now(table) -> str:
    return table.session.execute("SHOW dbext.now").fetchone()[0]


def lead_on(table, day: int) -> int:
    """Have capture led on to another segment; returns the one before, whose last record is of this day."""
    before = segments(table)[-1]
    table.day(day)
    table.execute("UPDATE entry SET value = value || '.' WHERE id = 12")
    table.seal()
    table.execute(RETAIN)
    assert segments(table)[-1] == before + 1
    return before


def go_far(table, days: range = FAR) -> None:
    """Let so many days pass that whatever may go has gone."""
    for day in days:
        table.day(day)
        table.seal()
        table.execute(RETAIN)


def blocked(table, actor: Actor) -> None:
    settle(table.session, [actor])
    assert waits(table.session, actor)


def taken_once(table, value: str) -> bool:
    return [new for _, _, _, new in table.changes()].count(value) == 1


def test_a_statement_in_the_middle_holds_the_segment_that_it_will_write_to(segmented):
    """Its session had the old function before, hears of nothing until it is through, and has no lock on the segment yet."""
    writer = Actor(segmented.database, now(segmented))
    writer.begin("UPDATE entry SET value = 'warm' WHERE id = 1")
    writer.finish()
    segmented.seal_through(2)
    segmented.execute("SELECT pg_advisory_lock(5)")
    writer.begin("INSERT INTO entry SELECT 100, 'midway' FROM (SELECT pg_advisory_lock_shared(5)) AS waiting")
    blocked(segmented, writer)
    old = lead_on(segmented, 4)
    go_far(segmented)
    assert old in segments(segmented)
    segmented.execute("SELECT pg_advisory_unlock(5)")
    writer.finish()
    assert writer.error is None
    writer.session.close()
    segmented.seal_through(14)
    assert taken_once(segmented, "midway")
    go_far(segmented, range(30, 44, 6))
    assert old not in segments(segmented)
    require_whole(segmented)


def test_a_transaction_that_writes_before_and_after(segmented):
    """Records of one transaction in two segments; the first stays until it is over, and what is past of it stays with the rest."""
    writer = segmented.database.connect(autocommit=False)
    segmented.set_now(now(segmented), writer)
    writer.execute("UPDATE entry SET value = 'before' WHERE id = 1")
    old = lead_on(segmented, 4)
    writer.execute("TABLE dbext_private.only_a_superuser_drops_dbext")  # a lock, with which a session hears of what others did
    writer.execute("UPDATE entry SET value = 'after' WHERE id = 1; UPDATE entry SET value = 'other' WHERE id = 2")
    go_far(segmented)
    assert old in segments(segmented)
    writer.commit()
    writer.close()
    assert len(segmented.fetch("SELECT DISTINCT tableoid FROM {log} WHERE new_2 IN ('before', 'after')")) == 2
    segmented.seal_through(14)
    assert taken_once(segmented, "after")
    assert taken_once(segmented, "other")
    go_far(segmented, FAR[-1:])
    go_far(segmented, range(17, 22))
    assert old not in segments(segmented)
    assert segmented.fetch("SELECT new_2 FROM {log} WHERE key_1 = 1 ORDER BY number") == [("before",), ("after",)]
    require_whole(segmented)


def test_a_repeatable_read_transaction_that_writes_long_after(segmented):
    writer = segmented.database.connect(autocommit=False)
    writer.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    writer.commit()
    segmented.set_now(now(segmented), writer)
    writer.execute("SELECT count(*) FROM entry; LOCK TABLE entry IN ROW EXCLUSIVE MODE")
    old = lead_on(segmented, 4)
    go_far(segmented)
    assert old in segments(segmented)
    writer.execute("INSERT INTO entry VALUES (100, 'late')")
    writer.commit()
    writer.close()
    segmented.seal_through(14)
    assert taken_once(segmented, "late")
    go_far(segmented, range(30, 44, 6))
    assert old not in segments(segmented)
    require_whole(segmented)


def test_a_prepared_transaction_holds_its_segment(segmented):
    with segmented.database.connect(autocommit=False) as writer:
        segmented.set_now(now(segmented), writer)
        writer.execute("UPDATE entry SET value = 'prepared' WHERE id = 1")
        writer.execute("PREPARE TRANSACTION 'held'")
    old = lead_on(segmented, 4)
    go_far(segmented)
    assert old in segments(segmented)
    assert segmented.fetch(RETAIN)[0][0].endswith("old segments of it stay until next time.")
    segmented.execute("COMMIT PREPARED 'held'")
    segmented.execute(RETAIN)
    assert old in segments(segmented)
    segmented.seal_through(14)
    assert taken_once(segmented, "prepared")
    go_far(segmented, range(30, 44, 6))
    assert old not in segments(segmented)
    require_whole(segmented)


def test_who_closed_a_segment_in_this_transaction_does_not_note_who_writes(segmented):
    """Until it commits, sessions begin that have not heard of it."""
    segmented.seal_through(2)
    segmented.execute("BEGIN" + 3 * "; SELECT dp_retain('entry', '0 days', segments => true)")
    segmented.execute("COMMIT")
    assert segments(segmented) == [1, 2]
    assert segmented.fetch("SELECT writers FROM dbext_private.log_segment WHERE segment = 1") == [(None,)]
    go_far(segmented)
    assert 1 not in segments(segmented)


def test_what_is_committed_while_a_segment_is_copied_is_not_lost(segmented):
    """A prepared transaction needs no session to commit: whoever reads a segment that is to go must keep it from doing so, or see it."""
    with segmented.database.connect(autocommit=False) as writer:
        segmented.set_now(now(segmented), writer)
        writer.execute("UPDATE entry SET value = 'prepared' WHERE id = 1")
        writer.execute("PREPARE TRANSACTION 'held'")
    lead_on(segmented, 4)
    go_far(segmented, NEAR)
    segmented.day(14)
    segmented.seal()
    segmented.execute("""ALTER FUNCTION dbext_private.forget_records RENAME TO then_forget_records;
        CREATE OR REPLACE FUNCTION dbext_private.is_held(table_id integer, segment integer) RETURNS boolean LANGUAGE sql AS 'SELECT false';
        CREATE FUNCTION dbext_private.forget_records(a integer, b timestamptz, c dbext_private.seal_head, d integer[], OUT went bigint, OUT stayed bigint)
        LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(6) WHERE d <> '{}';
            SELECT f.* INTO went, stayed FROM dbext_private.then_forget_records(a, b, c, d) AS f; END $$;
        SELECT pg_advisory_lock(6)""")
    keeper = Actor(segmented.database, now(segmented))
    keeper.begin(RETAIN)
    settle(segmented.session, [keeper])
    segmented.execute("COMMIT PREPARED 'held'")
    segmented.execute("UPDATE entry SET value = 'newer' WHERE id = 1; SELECT pg_advisory_unlock(6)")
    keeper.finish()
    keeper.session.close()
    assert keeper.error is None
    segmented.seal_through(14)
    assert taken_once(segmented, "newer")
    require_whole(segmented)  # its old image is that of the prepared transaction


COMMANDS = {
    "rename": ("ALTER TABLE entry RENAME value TO content", "content"),
    "add": ("ALTER TABLE entry ADD COLUMN more text", "value"),
    "track": ("ALTER TABLE entry ADD COLUMN more text; SELECT dp_track('entry', columns => '{id, value, more}')", "value"),
    "rebase": ("SELECT dp_rebase('entry')", "value"),
}


@pytest.mark.parametrize(("name", "order"), list(itertools.product(COMMANDS, orders(3, 3)[3::8])), ids=lambda one: one if isinstance(one, str) else "".join(LETTERS[i] for i in one))
def test_ddl_among_the_steps(segmented, name, order):
    """Both write the capture functions: they must write to the newest segment, and know the columns as they are."""
    command, column = COMMANDS[name]
    segmented.seal_through(2)
    segmented.day(4)
    moment = now(segmented)
    for actor in play(segmented.database, order, (("BEGIN", command, "COMMIT"), ("BEGIN", RETAIN, "COMMIT")), (moment, moment)):
        assert actor.error is None
    segmented.execute(RETAIN)  # where columns were being added to the log, it did not wait
    assert segments(segmented)[-1] == 2
    assert captured_by(segmented) == {f"log_{segmented.number}_2"}
    segmented.execute(f"UPDATE entry SET {column} = 'written' WHERE id = 2")
    segmented.seal_through(4)
    assert [change for change in segmented.changes() if change[3] == "written"] == [(4, 2, "a", "written")]
    go_far(segmented)
    assert segmented.fetch("SELECT * FROM dp_recount('entry')") == [(0, 0, 0)]


@pytest.mark.parametrize("order", orders(3, 3)[1::4], ids=lambda order: "".join(LETTERS[one] for one in order))
def test_a_seal_among_the_steps(segmented, order):
    """One that leads on and one that drops, with mutations that only this seal takes."""
    lead_on(segmented, 4)
    segmented.execute("UPDATE entry SET value = 'unsealed' WHERE id < 4")
    segmented.day(12)
    segmented.execute("UPDATE entry SET value = 'open' WHERE id = 9")
    moment = now(segmented)
    seal = f"SELECT dbext_private.seal_table({segmented.number})"
    for actor in play(segmented.database, order, (("BEGIN", seal, "COMMIT"), ("BEGIN", RETAIN, "COMMIT")), (moment, moment)):
        assert actor.error is None
    segmented.seal_through(13)
    assert [key for _, key, _, new in segmented.changes() if new == "unsealed"] == [1, 2, 3]
    go_far(segmented, range(30, 60, 8))
    assert segments(segmented)[0] > 2
    require_whole(segmented)


@pytest.mark.parametrize("order", orders(3, 3)[::5], ids=lambda order: "".join(LETTERS[one] for one in order))
def test_two_at_once(segmented, order):
    lead_on(segmented, 4)
    segmented.execute("UPDATE entry SET value = 'b' WHERE id < 4")
    go_far(segmented, NEAR)
    segmented.day(12)
    segmented.seal()
    moment = now(segmented)
    steps = ("BEGIN", RETAIN, "COMMIT")
    for actor in play(segmented.database, order, (steps, steps), (moment, moment)):
        assert actor.error is None
    assert segments(segmented)[-1] == 4
    require_whole(segmented)


@pytest.mark.parametrize("order", [(0, 0, 1, 1, 0, 1), *orders(3, 3)[7::6]], ids=lambda order: "".join(LETTERS[one] for one in order))
def test_a_recount_among_the_steps(segmented, order):
    """What it reads must not go, with a copy made that it does not see yet."""
    segmented.execute("UPDATE entry SET value = 'b' WHERE id < 4")
    lead_on(segmented, 4)
    go_far(segmented, NEAR)
    segmented.day(12)
    segmented.seal()
    segmented.execute("CREATE TABLE found AS SELECT * FROM dp_recount('entry')")
    moment = now(segmented)
    recount = "INSERT INTO found SELECT * FROM dp_recount('entry')"
    for actor in play(segmented.database, order, (("BEGIN", RETAIN, "COMMIT"), ("BEGIN", recount, "COMMIT")), (moment, moment)):
        assert actor.error is None
    assert segmented.fetch("SELECT DISTINCT * FROM found") == [(0, 0, 0)]


@pytest.mark.parametrize("race", [False, True], ids=["before", "in between"])
def test_a_dump_keeps_what_it_reads(segmented, race):
    """It waits for nothing, sees all that was there when it began, and what it held goes next time."""
    old = lead_on(segmented, 4)
    go_far(segmented, NEAR)
    if race:  # as if the dump had come after dp_retain had looked
        segmented.execute("CREATE OR REPLACE FUNCTION dbext_private.is_held(table_id integer, segment integer) RETURNS boolean LANGUAGE sql AS 'SELECT false'")
    dump = segmented.database.connect(autocommit=False)
    dump.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    segmented.execute("SET statement_timeout = '30s'")
    before = dump.execute(f"SELECT tableoid, * FROM dbext_private.log_{segmented.number} ORDER BY number").fetchall()
    segmented.day(14)
    segmented.seal()
    said = segmented.fetch(RETAIN)[0][0]
    assert said.endswith("Somebody else has its log locked: old segments of it stay until next time.")
    assert old in segments(segmented)
    assert dump.execute(f"SELECT tableoid, * FROM dbext_private.log_{segmented.number} ORDER BY number").fetchall() == before
    segmented.execute("UPDATE entry SET value = 'meanwhile' WHERE id = 1")
    segmented.seal_through(14)
    dump.rollback()
    assert not segmented.fetch(RETAIN)[0][0].endswith("next time.")
    assert old not in segments(segmented)
    require_whole(segmented)


def test_a_cursor_of_the_same_session_keeps_what_it_reads(segmented):
    old = lead_on(segmented, 4)
    go_far(segmented, NEAR)
    segmented.day(14)
    segmented.seal()
    segmented.execute(f"BEGIN; DECLARE open CURSOR FOR SELECT * FROM dbext_private.log_{segmented.number}; FETCH open")
    assert segmented.fetch(RETAIN)[0][0].endswith("next time.")
    segmented.execute("COMMIT")
    assert old in segments(segmented)
    segmented.execute(RETAIN)
    assert old not in segments(segmented)


def test_vacuum_of_the_log_is_not_waited_for(segmented):
    with segmented.database.connect(autocommit=False) as vacuum:
        vacuum.execute(f"LOCK TABLE ONLY dbext_private.log_{segmented.number} IN SHARE UPDATE EXCLUSIVE MODE")
        segmented.day(6)
        segmented.seal()
        segmented.execute("SET statement_timeout = '30s'")
        assert segmented.fetch(RETAIN)[0][0].endswith("next time.")
        assert segments(segmented) == [1]
        vacuum.rollback()
    segmented.execute(RETAIN)
    assert segments(segmented) == [1, 2]


def test_writers_wait_for_nothing(segmented):
    """While a call is open that led on and dropped, others write, and their sessions hear of it when it commits."""
    old = lead_on(segmented, 4)
    go_far(segmented, NEAR)
    with segmented.database.connect() as writer, segmented.database.connect(autocommit=False) as keeper:
        segmented.day(14)
        segmented.seal()
        for session in (writer, keeper):
            segmented.set_now(now(segmented), session)
        writer.execute("SET statement_timeout = '20s'")
        keeper.execute(RETAIN)
        writer.execute("UPDATE entry SET value = 'now' WHERE id = 1; INSERT INTO entry VALUES (50, 'x'); DELETE FROM entry WHERE id = 2")
        keeper.commit()
        writer.execute("UPDATE entry SET value = 'then' WHERE id = 3")
    assert old not in segments(segmented)
    segmented.seal_through(14)
    assert taken_once(segmented, "now")
    assert taken_once(segmented, "then")
    require_whole(segmented)


def test_no_more_segments_than_a_dozen_pile_up(segmented):
    with segmented.database.connect(autocommit=False) as writer:
        segmented.set_now(now(segmented), writer)
        writer.execute("UPDATE entry SET value = 'prepared' WHERE id = 1")
        writer.execute("PREPARE TRANSACTION 'held'")
    for day in range(3, 20):
        segmented.day(day)
        segmented.seal()
        segmented.execute("SELECT dp_retain('entry', '0 days', segments => true)")
    assert len(segments(segmented)) == 12
    segmented.execute("ROLLBACK PREPARED 'held'")
    go_far(segmented, range(30, 60, 8))
    assert segments(segmented)[0] > 12
    require_whole(segmented)


def test_a_statement_that_fails_beside_it_is_the_callers_own(segmented):
    segmented.day(6)
    segmented.seal()
    with segmented.database.connect(autocommit=False) as other:
        other.execute(f"SELECT FROM dbext_private.seal_head WHERE table_id = {segmented.number} FOR UPDATE")
        segmented.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            segmented.execute(RETAIN)
        other.rollback()
    segmented.execute("RESET lock_timeout; " + RETAIN)
    assert segments(segmented) == [1, 2]
