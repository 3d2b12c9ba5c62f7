"""Constraints: what is refused, which type an entry takes, and what happens to entries when limits change."""

from __future__ import annotations

import psycopg
import pytest

DEFINITION = "id integer PRIMARY KEY, value text"


def constrain(table, name: str, **options) -> str:
    named = "".join(f", {option} => %s{'::interval' if option == 'active_within' else ''}" for option in options)
    return table.session.execute(f"SELECT dp_add_constraint('{table.name}', %s{named})", [name, *options.values()]).fetchone()[0]


def alter(table, name: str, **options) -> str:
    named = "".join(f", {option} => %s{'::interval' if option == 'active_within' else ''}" for option in options)
    return table.session.execute(f"SELECT dp_alter_constraint('{table.name}', %s{named})", [name, *options.values()]).fetchone()[0]


def admission(table) -> list[tuple]:
    """Return (key, type, slots, frozen, settled value) of every entry."""
    return table.fetch("SELECT key_1, type_no, slots, frozen, CASE WHEN present THEN image_2 END FROM {admission} ORDER BY key_1")


BAD = {
    "no limit": ({}, "DP001"),
    "no mutations": ({"max_mutations": 0}, "DP001"),
    "negative mutations": ({"max_mutations": -1}, "DP001"),
    "less than a tick": ({"active_within": "6 hours"}, "DP001"),
    "not a multiple of the tick": ({"active_within": "36 hours"}, "DP001"),
    "a negative time": ({"active_within": "-3 days"}, "DP001"),
    "months of days": ({"active_within": "1 month"}, "DP001"),
    "an unknown limit": ({"max_mutations": 3, "at_limit": "vanish"}, "DP001"),
    "leaving without a time": ({"max_mutations": 3, "at_limit": "leave"}, "DP001"),
    "leaving without a slot for it": ({"max_mutations": 1, "active_within": "3 days", "at_limit": "leave"}, "DP001"),
    "an unknown column": ({"max_mutations": 3, "applies_to": "nothing = 1"}, "DP010"),
    "a subquery": ({"max_mutations": 3, "applies_to": "id IN (SELECT 1)"}, "DP010"),
    "a cast that can fail": ({"max_mutations": 3, "applies_to": "value::integer = 1"}, "DP010"),
    "a literal of another type": ({"max_mutations": 3, "applies_to": "id = 'x'"}, "DP010"),
}


@pytest.mark.parametrize("name", BAD)
def test_constraints_that_say_nothing(tracked, name):
    options, state = BAD[name]
    table = tracked()
    with pytest.raises(psycopg.Error) as caught:
        constrain(table, "bad", **options)
    assert caught.value.sqlstate == state, caught.value
    assert table.fetch("SELECT count(*) FROM dbext_private.entry_type") == [(0,)]


def test_names_and_the_default_are_taken_once(tracked):
    table = tracked()
    constrain(table, "one", max_mutations=3)
    for name, options in (("one", {"applies_to": "id = 1"}), ("two", {})):
        with pytest.raises(psycopg.Error) as caught:
            constrain(table, name, max_mutations=3, **options)
        assert caught.value.sqlstate == "DP004"
    for name in ("", " ", "x" * 64, None):
        with pytest.raises(psycopg.Error) as caught:
            constrain(table, name, max_mutations=3, applies_to="id = 1")
        assert caught.value.sqlstate == "DP001"
    with pytest.raises(psycopg.Error) as caught:
        alter(table, "three", max_mutations=3)
    assert caught.value.sqlstate == "DP002"


def test_only_admins_constrain(tracked, database):
    table = tracked()
    session = database.connect(database.create_role("dbext_analyst", name="analyst"))
    for call in ("dp_add_constraint('entry', 'x', max_mutations => 2)", "dp_alter_constraint('entry', 'x', max_mutations => 2)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(f"SELECT {call}")
    assert table.fetch("SELECT count(*) FROM dbext_private.entry_type") == [(0,)]


def test_the_type_is_that_of_the_first_image_ever(tracked):
    """First match in order of declaration, then the default type; a later image, a deletion or a return changes nothing."""
    table = tracked(rows="VALUES (1, 'red'), (2, 'blue'), (3, NULL)")
    constrain(table, "warm", applies_to="value IN ('red', 'orange')", max_mutations=5)
    constrain(table, "red too", applies_to="value = 'red'", max_mutations=5)
    constrain(table, "rest", max_mutations=5)
    constrain(table, "late", applies_to="value = 'green'", max_mutations=5)
    table.execute(
        "UPDATE entry SET value = 'blue' WHERE id = 1; INSERT INTO entry VALUES (4, 'green'), (5, 'orange'); DELETE FROM entry WHERE id = 5"
    )
    table.seal_through(0)
    table.execute("DELETE FROM entry WHERE id = 2; INSERT INTO entry VALUES (6, 'orange'), (5, 'blue')")
    table.seal_through(1)
    table.execute("INSERT INTO entry VALUES (2, 'red')")
    table.seal_through(2)
    assert {key: kind for key, kind, *_ in admission(table)} == {1: 1, 2: 3, 3: 3, 4: 4, 5: 1, 6: 1}


def test_the_first_image_is_the_inserted_one_even_if_a_trigger_changes_it_at_once(tracked):
    table = tracked()
    constrain(table, "red", applies_to="value = 'red'", max_mutations=5)
    constrain(table, "rest", max_mutations=5)
    table.execute("""CREATE FUNCTION paint() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE entry SET value = 'blue' WHERE id = NEW.id; RETURN NULL; END $$;
        CREATE TRIGGER paint AFTER INSERT ON entry FOR EACH ROW EXECUTE FUNCTION paint()""")
    table.execute("INSERT INTO entry VALUES (1, 'red')")
    table.seal_through(0)
    assert admission(table) == [(1, 1, 1, False, "blue")]


def test_entries_of_no_type_are_in_no_statistic(tracked):
    table = tracked(rows="VALUES (1, 'red'), (2, 'blue')")
    constrain(table, "red", applies_to="value = 'red'", max_mutations=5)
    table.seal_through(0)
    table.execute("UPDATE entry SET value = 'red' WHERE id = 2")
    constrain(table, "rest", max_mutations=5)
    table.execute("INSERT INTO entry VALUES (3, 'blue')")
    table.seal_through(1)
    assert admission(table) == [(1, 1, 1, False, "red"), (2, None, 0, False, None), (3, 2, 1, False, "blue")]
    assert [change[1] for change in table.changes()] == [1, 3]


def test_a_seal_before_any_constraint_is_remembered_whether_or_not_there_were_rows(tracked):
    first, second = tracked(name="first"), tracked(name="second", rows="VALUES (1, 'one')")
    constrain(second, "any", max_mutations=2)
    for table in (first, second):
        table.seal_through(0)
    assert first.fetch("SELECT sealed_unconstrained FROM dbext_private.tracked_table ORDER BY table_id") == [(True,), (False,)]


def test_what_the_accountant_counts_with_is_the_loosest_ever(tracked):
    table = tracked()
    constrain(table, "any", max_mutations=3, active_within="5 days")
    alter(table, "any", max_mutations=2, active_within="7 days")
    assert table.fetch(
        "SELECT max_mutations, active_within, loosest_max_mutations, loosest_active_within FROM dbext_private.entry_type"
    ) == [(2, 7, 3, 7)]
    alter(table, "any", active_within="1 day")
    assert table.fetch(
        "SELECT max_mutations, active_within, loosest_max_mutations, loosest_active_within FROM dbext_private.entry_type"
    ) == [(None, 1, None, 7)]


@pytest.mark.parametrize("days", [(4, 5, 6, 7), (5, 7)], ids=["daily", "two days at once"])
def test_entries_past_their_time_stay_frozen_when_more_is_given(tracked, days):
    table = tracked(rows="VALUES (1, 'old')")
    constrain(table, "any", active_within="2 days")
    table.seal_through(1)
    table.execute("INSERT INTO entry VALUES (2, 'young')")
    table.seal_through(3)
    alter(table, "any", active_within="20 days")
    changed, deleted = days[: len(days) // 2], days[len(days) // 2 :]
    table.execute("UPDATE entry SET value = 'new'")
    for day in changed:
        table.seal_through(day)
    assert admission(table) == [(1, 1, 1, True, "old"), (2, 1, 2, False, "new")]
    table.execute("DELETE FROM entry")
    for day in deleted:
        table.seal_through(day)
    assert admission(table) == [(1, 1, 2, True, None), (2, 1, 3, False, None)]


def test_tighter_limits_hold_at_once(tracked):
    table = tracked(rows="VALUES (1, 'a'), (2, 'b')")
    constrain(table, "any", max_mutations=5, active_within="20 days")
    for day, value in enumerate("xyz"):
        table.execute(f"UPDATE entry SET value = '{value}'")
        table.seal_through(day)
    alter(table, "any", max_mutations=2)
    table.execute("UPDATE entry SET value = 'ignored' WHERE id = 1; DELETE FROM entry WHERE id = 2")
    table.seal_through(3)
    # Three slots are used of two: not even leaving is admitted.
    assert admission(table) == [(1, 1, 3, True, "z"), (2, 1, 3, True, "z")]


def test_entries_leave_when_their_time_is_over_and_no_later(tracked):
    table = tracked(rows="VALUES (1, 'early')")
    constrain(table, "any", active_within="10 days")
    table.execute("INSERT INTO entry VALUES (2, 'x')")
    table.seal_through(5)
    table.execute("INSERT INTO entry VALUES (3, 'late')")
    table.seal_through(12)
    # Those of day 0 are past the longest time ever promised: leaving now would touch a tick that the accountant does not count with.
    alter(table, "any", active_within="3 days", at_limit="leave")
    table.seal_through(13)
    assert [change for change in table.changes() if change[0] > 6] == [(13, 3, "late", None)]
    table.execute("INSERT INTO entry VALUES (4, 'new')")
    table.seal_through(30)
    assert [change for change in table.changes() if change[0] > 13] == [(14, 4, None, "new"), (17, 4, "new", None)]
    assert table.settled() == {1: "early", 2: "x"}


def test_constraints_wait_for_a_running_seal(tracked):
    table = tracked(rows="VALUES (1, 'one')")
    table.day(1)
    session = table.database.connect()
    table.set_now(table.session.execute("SELECT current_setting('dbext.now')").fetchone()[0], session)
    session.autocommit = False
    session.execute(f"SELECT dbext_private.seal_table({table.number})")
    table.execute("SET lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        constrain(table, "any", max_mutations=2)
    session.commit()
    constrain(table, "any", max_mutations=2)


def test_looser_limits_must_leave_the_ledger_within_the_budget(tracked):
    table = tracked()
    constrain(table, "any", max_mutations=2)
    table.execute("SELECT dp_set_budget('entry', 1)")
    table.execute("""SELECT dp_create_release('daily', $$SELECT count(*) FROM entry WHERE dp_time > now() - INTERVAL '1 day'$$,
        every => '1 day', measure => 'net', epsilon => 0.9)""")
    alter(table, "any", max_mutations=1)
    alter(table, "any", max_mutations=2)
    with pytest.raises(psycopg.Error) as caught:
        alter(table, "any", max_mutations=5)
    assert caught.value.sqlstate == "DP020"
    with pytest.raises(psycopg.Error) as caught:
        constrain(table, "more", applies_to="id = 1", max_mutations=9)
    assert caught.value.sqlstate == "DP020"
    assert table.fetch("SELECT name, max_mutations FROM dbext_private.entry_type") == [("any", 2)]


def test_limits_that_change_while_the_table_gets_its_first_budget(tracked, database):
    """Whoever comes second waits for the first, and prices what that one left."""
    table = tracked()
    constrain(table, "any", max_mutations=1)
    table.seal_through(3)
    one, other = "SELECT dp_alter_constraint('entry', 'any', max_mutations => 100)", "SELECT dp_set_budget('entry', 1)"
    for first, second in ((one, other), (other, one)):
        early, late = database.connect(autocommit=False), database.connect(autocommit=False)
        early.execute(first)
        late.execute("SET lock_timeout = '200ms'")
        with pytest.raises(psycopg.Error) as refusal:
            late.execute(second)
        assert refusal.value.sqlstate in ("55P03", "DP099"), refusal.value
        early.rollback()
        late.rollback()
