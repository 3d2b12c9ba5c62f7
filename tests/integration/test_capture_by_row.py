"""Capture by triggers of rows instead of statements: chosen with dp_track, changed without a gap, and known to whatever looks after triggers."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.test_capture import contents, ops, replayed

STATEMENTS = ["delete", "insert", "truncate", "update"]
ROWS = ["rowdelete", "rowinsert", "rowupdate", "truncate"]
KINDS = pytest.mark.parametrize("capture", ["statement", "row"])
WRITES = """
INSERT INTO entry VALUES (10, 'ten'), (11, NULL);
UPDATE entry SET value = 'x' WHERE id < 11;
UPDATE entry SET value = value;
UPDATE entry SET id = 12 WHERE id = 11;
DELETE FROM entry WHERE id = 10"""
RECORDS = "IIUUUDID"


def events(table) -> list[str]:
    """Return what there are capture functions of; each relation has a trigger of each, always enabled, and no other."""
    found = table.fetch(
        f"SELECT split_part(proname, '_', 2), oid FROM pg_proc WHERE proname ~ '^capture_[a-z]+_{table.number}$' ORDER BY 1"
    )
    assert table.fetch(f"SELECT * FROM dbext_private.triggers_missing({table.number}, 'entry'::regclass)") == []
    triggers = table.fetch("SELECT DISTINCT tgfoid FROM pg_trigger WHERE tgname LIKE '00\\_dbext\\_%' AND tgenabled = 'A'")
    assert sorted(triggers) == sorted((number,) for _, number in found)
    return [event for event, _ in found]


@pytest.mark.parametrize("definition", ["id integer PRIMARY KEY, value text", "id integer PRIMARY KEY, value text) PARTITION BY RANGE (id"])
def test_the_triggers_change_and_nothing_is_recorded_anew(tracked, definition):
    table = tracked(definition, capture="statement")
    if "PARTITION" in definition:
        table.execute("CREATE TABLE low PARTITION OF entry FOR VALUES FROM (0) TO (10); CREATE TABLE high PARTITION OF entry DEFAULT")
    table.execute("INSERT INTO entry VALUES (1, 'one'), (2, 'two')")
    for capture, made in (("row", ROWS), ("statement", STATEMENTS), ("row", ROWS)):
        before = ops(table)
        table.track(capture=capture)
        assert ops(table) == before
        assert events(table) == made
        table.execute(WRITES)
        assert ops(table) == before + RECORDS
        table.execute("DELETE FROM entry WHERE id = 12; UPDATE entry SET value = 'back'")
        assert replayed(table) == contents(table)
    if "PARTITION" in definition:
        table.execute("CREATE TABLE mid PARTITION OF entry FOR VALUES FROM (20) TO (30); INSERT INTO mid VALUES (21, 'direct')")
        assert events(table) == ROWS
    table.seal_through(0)
    assert table.settled() == contents(table)
    assert table.events() == []


def test_what_was_chosen_stays_until_another_is(tracked):
    table = tracked(rows="VALUES (1, 'one')", capture="row")
    assert events(table) == ROWS
    table.execute("SELECT dp_rebase('entry')")
    assert events(table) == ROWS
    table.execute("SELECT dp_untrack('entry')")
    table.track()
    assert events(table) == ROWS
    for capture in ({}, {"capture": "row"}):
        with pytest.raises(psycopg.Error) as caught:
            table.track(**capture)
        assert caught.value.sqlstate == "DP004"
    with pytest.raises(psycopg.Error) as caught:
        table.track(capture="statement", tick="1 hour")
    assert caught.value.sqlstate == "DP003"
    table.execute("SELECT dp_untrack('entry')")
    table.track(capture="statement")
    assert events(table) == STATEMENTS


def test_the_choice_is_forgotten_with_all_else(tracked):
    table = tracked(capture="row")
    table.execute("SELECT dp_untrack('entry')")
    table.track(tick="1 hour")
    assert events(table) == STATEMENTS


def test_a_gap_is_closed_when_the_triggers_change(tracked):
    table = tracked(rows="VALUES (1, 'one'), (2, 'two')")
    table.execute("DROP TRIGGER \"00_dbext_update\" ON entry; UPDATE entry SET value = 'unseen'")
    table.seal_through(0)
    table.track(capture="row")
    assert events(table) == ROWS
    table.execute("UPDATE entry SET value = 'seen' WHERE id = 1")
    table.seal_through(1)
    assert table.settled() == contents(table) == {1: "seen", 2: "unseen"}
    assert [end is None for _, end, *_ in table.events()] == [False]


def test_a_missing_trigger_is_marked_by_its_name(tracked):
    table = tracked(capture="row")
    table.execute('DROP TRIGGER "00_dbext_rowupdate" ON entry')
    assert [text for *_, text in table.events()] == ["the trigger that captures UPDATE of rows is missing, disabled or not enabled always"]


@KINDS
def test_a_session_that_wrote_before_goes_on_when_types_change(tracked, capture):
    """Plans that a session keeps for the columns of NEW and OLD fit the types it met first."""
    table = tracked("id integer PRIMARY KEY, value text, more integer", columns=["value"], capture=capture)
    table.execute("CREATE DOMAIN short AS text CHECK (length(VALUE) < 9); CREATE DOMAIN long AS text CHECK (length(VALUE) < 99)")
    for number, change in enumerate(("value TYPE short", "value TYPE long", "value TYPE text", "more TYPE bigint", "id TYPE integer")):
        table.execute(f"INSERT INTO entry VALUES ({number}, 'a'); UPDATE entry SET value = value || 'b' WHERE id = {number}")
        table.execute(f"ALTER TABLE entry ALTER COLUMN {change}")
        table.execute(f"UPDATE entry SET value = 'c' WHERE id = {number}; UPDATE entry SET id = id + 100 WHERE id = {number}")
        table.execute(f"DELETE FROM entry WHERE id = {number + 100}; INSERT INTO entry VALUES ({number}, 'd')")
        assert replayed(table) == contents(table)
    assert ops(table) == "IUUDIDI" * 5


@KINDS
def test_names_decide_where_numbers_are_those_of_another_database(tracked, capture):
    table = tracked(rows="VALUES (1, 'one')", capture=capture)
    ((number,),) = table.fetch("SELECT 'entry'::regclass::oid::integer")
    for (definition,) in table.fetch(f"SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname ~ '^capture_[a-z]+_{table.number}$'"):
        table.execute(definition.replace(f" {number}", " 1"))
    table.execute("UPDATE entry SET value = 'x'; INSERT INTO entry VALUES (2, 'two'); DELETE FROM entry WHERE id = 1")
    assert ops(table) == "UID"
    assert replayed(table) == contents(table)


@KINDS
def test_only_dbext_now_of_an_administrator_is_heard(tracked, database, capture):
    table = tracked(capture=capture, real_time=True)
    writer = database.create_role(name="writer")
    database.execute(f"GRANT ALL ON entry TO {writer}")
    for session, heard in ((database.connect(writer), False), (database.connect(), True)):
        session.execute("SET dbext.now = '2001-01-01'; INSERT INTO entry VALUES (1, 'a'); UPDATE entry SET value = 'b'; DELETE FROM entry")
        assert table.fetch("SELECT DISTINCT extract(year FROM mutated_at) = 2001 FROM {log} WHERE op <> 'B'") == [(heard,)]
        table.execute(f"DELETE FROM dbext_private.log_{table.number}")


@KINDS
@pytest.mark.parametrize("real_time", [False, True])
def test_rows_without_a_unit_are_refused(tracked, capture, real_time):
    definition = "id integer PRIMARY KEY, value text NOT NULL"
    table = tracked(definition, rows="VALUES (1, 'one')", unit=["value"], rows_per_unit=2, capture=capture, real_time=real_time)
    table.execute("ALTER TABLE entry ALTER value DROP NOT NULL")
    for statement in ("INSERT INTO entry VALUES (9, NULL)", "UPDATE entry SET value = NULL"):
        with pytest.raises(psycopg.Error, match="privacy unit is NULL"):
            table.execute(statement)
    assert ops(table) == ""
