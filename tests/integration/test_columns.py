"""Columns that come, change their type or come back after a table was tracked, and are taken up by dp_track."""

from __future__ import annotations

import psycopg
import pytest

ROWS = "VALUES (1, 'one'), (2, 'two')"


def contents(table, columns: str = "id, value") -> list[tuple]:
    return table.fetch(f"SELECT {columns} FROM {table.name} ORDER BY 1")


def settled(table, columns: str = "key_1, image_2") -> list[tuple]:
    return table.fetch(f"SELECT {columns} FROM {{admission}} WHERE present ORDER BY 1")


@pytest.mark.parametrize("untracked", [True, False], ids=["untracked between", "tracked all along"])
def test_a_column_added_later_is_recorded_from_then_on(tracked, untracked):
    """Entries that differ from NULL in it mutate once; what was recorded and not yet sealed keeps its tick."""
    table = tracked(rows=ROWS)
    table.execute("SELECT dp_set_budget('entry', 9)")
    table.seal_through(0)
    table.execute(
        'ALTER TABLE entry ADD COLUMN more integer, ADD COLUMN "Third, """ text DEFAULT \'d\'; UPDATE entry SET more = 7 WHERE id = 1'
    )
    table.execute("INSERT INTO entry VALUES (3, 'three')")
    table.day(2)
    if untracked:
        table.execute("SELECT dp_untrack('entry')")
    table.track(columns=["value", "more"])
    table.execute('UPDATE entry SET more = 8, "Third, """ = \'x\' WHERE id = 2')
    table.seal_through(2)
    assert settled(table, "key_1, image_2, image_3") == contents(table, "id, value, more")
    expected = [(1, None, 7), (2, None, 8)] if not untracked else [(1, None, 7), (2, None, 8), (3, None, None)]
    assert table.fetch("SELECT key_1, old_3, new_3 FROM {change} WHERE tick = " + str(table.first + 2) + " ORDER BY 1") == expected
    assert table.fetch("SELECT max(slots) FROM {admission}") == [(2,)]
    assert [mark for mark in table.events() if mark[1] is None] == []
    table.track(columns=["value", "more", 'Third, "'])
    table.execute("DELETE FROM entry WHERE id = 1")
    table.seal_through(4)
    assert settled(table, "key_1, image_2, image_3, image_4") == contents(table, 'id, value, more, "Third, """')
    for arguments in ({}, {"columns": ["value", "more"]}, {"columns": ["value", "more", 'Third, "']}):
        with pytest.raises(psycopg.Error) as refusal:
            table.track(**arguments)
        assert refusal.value.sqlstate in ("DP003", "DP004")


def test_a_release_over_a_column_added_later(cases):
    """Declared after the column was taken up, it counts what the column holds."""
    cases.constrain()
    cases.budget(100)
    cases.insert((1, "a", "open"), (2, "b", "open"))
    cases.day(1)
    cases.publish()
    cases.session.execute("ALTER TABLE cases ADD COLUMN more integer; UPDATE cases SET more = id")
    cases.session.execute("SELECT dp_track('cases', time_zone => 'Asia/Taipei', columns => '{county,status,reported,more}')")
    cases.day(2)
    cases.publish()
    assert abs(cases.ask(None, cases.midnight(2), predicate="more = 2", measure="state", epsilon=40) - 1) < 1


WIDER = {
    "integer to bigint": ("integer", "bigint", "1", "2", "3000000000"),
    "smallint to bigint": ("smallint", "bigint", "1", "2", "3000000000"),
    "varchar to text": ("varchar(3)", "text", "'a'", "'b'", "'longer'"),
    "real to double": ("real", "double precision", "0.5", "2", "1e300"),
    "date to timestamp": ("date", "timestamp", "'2020-01-01'", "'2020-01-02'", "'2020-01-03 12:00'"),
}


@pytest.mark.parametrize("name", WIDER)
def test_a_unit_of_a_wider_type_is_taken_up_again(tracked, name):
    """Entries stay who they were, with the slots they used."""
    before, after, one, other, wide = WIDER[name]
    table = tracked(f"id {before} PRIMARY KEY, value {before}", rows=f"VALUES ({one}, {other}), ({other}, {one})")
    table.execute("SELECT dp_set_budget('entry', 9)")
    table.seal_through(0)
    table.execute(f"ALTER TABLE entry ALTER COLUMN id TYPE {after}, ALTER COLUMN value TYPE {after}")
    table.execute(f"UPDATE entry SET value = {wide} WHERE id = {one}")
    assert {kind for _, _, kind, _ in table.events()} == {"column"}
    table.day(2)
    table.track()
    table.execute(f"INSERT INTO entry VALUES ({wide}, {one})")
    table.seal_through(2)
    assert settled(table) == contents(table)
    assert table.fetch("SELECT slots, count(*)::integer FROM {admission} GROUP BY 1 ORDER BY 1") == [(1, 2), (2, 1)]
    assert [mark for mark in table.events() if mark[1] is None] == []


@pytest.mark.parametrize("kind", ["text", "numeric", "double precision"])
def test_a_unit_of_another_kind_of_type_is_another_unit(tracked, kind):
    table = tracked("id integer PRIMARY KEY, value text", rows=ROWS)
    table.execute("SELECT dp_set_budget('entry', 9); ALTER TABLE entry ALTER COLUMN id TYPE " + kind)
    with pytest.raises(psycopg.Error) as refusal:
        table.track()
    assert (refusal.value.sqlstate, "To begin anew" in refusal.value.diag.message_hint) == ("DP003", True)


def test_a_column_of_another_type_is_taken_up_as_a_new_one(tracked):
    table = tracked("id integer PRIMARY KEY, value text, other integer", rows="VALUES (1, 'one', 5), (2, 'two', 6)")
    table.seal_through(0)
    table.execute("ALTER TABLE entry ALTER COLUMN other TYPE text USING 'was ' || other")
    table.execute("UPDATE entry SET value = 'x' WHERE id = 2")
    table.day(1)
    table.track(columns=["value", "other"])
    table.execute("UPDATE entry SET other = 'now' WHERE id = 2")
    table.seal_through(1)
    assert settled(table, "key_1, image_2, image_3, image_4") == [(1, "one", None, "was 5"), (2, "x", None, "now")]
    assert [mark for mark in table.events() if mark[1] is None] == []
    assert table.fetch("SELECT * FROM dp_recount('entry')") == [(0, 0, 0)]


def test_an_added_column_that_does_not_fit_changes_nothing(tracked, database):
    database.execute("CREATE SCHEMA apart; CREATE TYPE apart.mood AS ENUM ('a')")
    table = tracked(rows=ROWS)
    table.execute("ALTER TABLE entry ADD COLUMN mood apart.mood")
    before = table.fetch("SELECT * FROM dbext_private.tracked_column ORDER BY position")
    with pytest.raises(psycopg.Error) as refusal:
        table.track(columns=["value", "mood"])
    assert refusal.value.sqlstate == "DP005"
    assert table.fetch("SELECT * FROM dbext_private.tracked_column ORDER BY position") == before
    table.execute("INSERT INTO entry VALUES (3, 'three', 'a')")
    table.seal_through(0)
    assert settled(table) == contents(table)
