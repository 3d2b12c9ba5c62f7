"""DDL on a tracked table: writes go on, capture follows, and what it cannot follow is marked, at once or at the next seal."""

from __future__ import annotations

import psycopg
import pytest

DEFINITION = "id integer PRIMARY KEY, value text, other integer DEFAULT 0"


@pytest.fixture
def table(tracked):
    return tracked(DEFINITION, rows="VALUES (1, 'one'), (2, 'two')")


def write(table, name: str = "entry", column: str = "value", key: str = "id") -> None:
    """Write with every kind of statement, as an application that knows the new names."""
    table.execute(f"INSERT INTO {name} ({key}, {column}) VALUES (10, 'x'), (11, 'y')")
    table.execute(f"UPDATE {name} SET {column} = 'z' WHERE {key} = 10")
    table.execute(f"DELETE FROM {name} WHERE {key} = 11")


def captured(table) -> list[tuple]:
    return table.fetch("SELECT op::text, key_1, new_2 FROM {log} WHERE op <> 'B' ORDER BY number")


WRITTEN = [("I", 10, "x"), ("I", 11, "y"), ("U", 10, "z"), ("D", 11, None)]
RENAMES = {
    "a column": ("ALTER TABLE entry RENAME value TO content", {"column": "content"}),
    "the unit": ("ALTER TABLE entry RENAME id TO number", {"key": "number"}),
    "the table": ("ALTER TABLE entry RENAME TO renamed", {"name": "renamed"}),
    "the schema of the table": ("CREATE SCHEMA apart; ALTER TABLE entry SET SCHEMA apart", {"name": "apart.entry"}),
    "the schema itself": ("CREATE SCHEMA a; ALTER TABLE entry SET SCHEMA a; ALTER SCHEMA a RENAME TO b", {"name": "b.entry"}),
    "two columns each to the other": (
        "ALTER TABLE entry RENAME value TO w; ALTER TABLE entry RENAME other TO value; ALTER TABLE entry RENAME w TO other",
        {"column": "other"},
    ),
    "a trigger": ('ALTER TRIGGER "00_dbext_insert" ON entry RENAME TO mine', {}),
}


@pytest.mark.parametrize("name", RENAMES)
def test_what_is_renamed_is_followed(table, name):
    command, names = RENAMES[name]
    table.execute(command)
    write(table, **names)
    assert captured(table) == WRITTEN
    table.seal_through(0)
    assert table.events() == []
    assert table.fetch("SELECT schema_name || '.' || table_name FROM dbext_private.tracked_table")[0][0].endswith(
        names.get("name", "entry")
    )


def test_names_are_followed_without_event_triggers_from_the_next_seal_on(table):
    """Where event triggers cannot be had, a rename stops writes rather than recording nothing."""
    table.execute("ALTER EVENT TRIGGER dbext_follow_command DISABLE")
    table.execute("ALTER TABLE entry RENAME value TO content")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        write(table, column="content")
    table.seal_through(0)
    write(table, column="content")
    assert captured(table) == WRITTEN
    assert table.events() == []


HARMLESS = {
    "an added column": "ALTER TABLE entry ADD COLUMN more text DEFAULT 'm'",
    "an added index": "CREATE INDEX ON entry (value)",
    "another owner": "CREATE ROLE dbext_test_owner; ALTER TABLE entry OWNER TO dbext_test_owner; ALTER TABLE entry OWNER TO postgres; DROP ROLE dbext_test_owner",
    "a wider varchar": "ALTER TABLE entry ALTER COLUMN note TYPE varchar(40); UPDATE entry SET note = repeat('w', 40)",
    "a dropped column that is not tracked": "ALTER TABLE entry ADD COLUMN more text; ALTER TABLE entry DROP COLUMN more",
    "a default for old rows": "ALTER TABLE entry ADD COLUMN more float DEFAULT random()",
    "a rewritten column that is not tracked": "ALTER TABLE entry ADD COLUMN more text; ALTER TABLE entry ALTER COLUMN more TYPE text USING 'z'",
    "a rewritten table": "CLUSTER entry USING entry_pkey; VACUUM FULL entry",
    "a trigger of its own": "CREATE TRIGGER own AFTER DELETE ON entry EXECUTE FUNCTION suppress_redundant_updates_trigger(); DROP TRIGGER own ON entry",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not_concern_capture_leaves_no_mark(tracked, name):
    table = tracked("id integer PRIMARY KEY, value text, note varchar(3)")
    for command in HARMLESS[name].split("; "):
        table.execute(command)
    table.execute("INSERT INTO entry (id, value) VALUES (5, 'five')")
    table.seal_through(0)
    assert table.events() == []
    assert 5 in table.settled()


LOSSES = {
    "a column dropped": ("ALTER TABLE entry DROP COLUMN other", "column"),
    "a column given another type": ("ALTER TABLE entry ALTER COLUMN other TYPE text", "column"),
    "a column given another collation": ('ALTER TABLE entry ALTER COLUMN value TYPE text COLLATE "C"', "column"),
    "a column dropped with its type": ("DROP TYPE mood CASCADE", "column"),
    "a trigger dropped": ('DROP TRIGGER "00_dbext_update" ON entry', "trigger"),
    "a trigger disabled": ('ALTER TABLE entry DISABLE TRIGGER "00_dbext_insert"', "trigger"),
    "all triggers disabled": ("ALTER TABLE entry DISABLE TRIGGER ALL", "trigger"),
    "the unique key dropped": ("ALTER TABLE entry DROP CONSTRAINT entry_pkey", "unit"),
    "the table made unlogged": ("ALTER TABLE entry SET UNLOGGED", "table"),
    "a child that inherits": ("CREATE TABLE child () INHERITS (entry)", "table"),
    "the table dropped": ("DROP TABLE entry", "table"),
}


@pytest.mark.parametrize("event_triggers", [True, False], ids=["followed", "found at the seal"])
@pytest.mark.parametrize("name", LOSSES)
def test_what_breaks_capture_is_marked_from_the_open_tick_on(database, tracked, name, event_triggers):
    of_its_type = name == "a column dropped with its type"
    database.execute("CREATE TYPE mood AS ENUM ('sad')")
    table = tracked("id integer PRIMARY KEY, value text, other mood" if of_its_type else DEFINITION)
    table.seal_through(2)
    table.day(4)
    if not event_triggers:
        table.execute("ALTER EVENT TRIGGER dbext_follow_command DISABLE; ALTER EVENT TRIGGER dbext_follow_drop DISABLE")
    command, kind = LOSSES[name]
    table.execute(command)
    if name.startswith("a column") and event_triggers:
        table.execute("INSERT INTO entry (id, value) VALUES (9, 'still captured')")
    table.seal_through(4)
    events = table.events()
    assert events
    assert {(begin, end, what) for begin, end, what, _ in events} == {(3, None, kind)}
    if name.startswith("a column") and event_triggers:
        assert table.settled()[9] == "still captured"
    table.seal_through(6)
    assert table.events() == events


def test_the_loss_of_the_unit_stops_capture_but_not_the_application(table):
    table.execute("ALTER TABLE entry DROP COLUMN id")
    table.execute("INSERT INTO entry (value) VALUES ('free'); UPDATE entry SET value = 'x'; DELETE FROM entry; TRUNCATE entry")
    assert captured(table) == []
    kinds = [kind for _, _, kind, _ in table.events()]
    assert kinds == ["column", "unit"]
    table.seal_through(0)


def test_a_constraint_over_a_column_that_is_gone(tracked, database):
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    table = tracked("id integer PRIMARY KEY, value text, other mood, third text")
    for name, predicate in (("sad", "other = 'sad'"), ("x", "third = 'x'"), ("rest", None)):
        table.execute("SELECT dp_add_constraint('entry', %s, applies_to => %s, max_mutations => 2)", (name, predicate))
    table.execute("INSERT INTO entry VALUES (1, 'a', 'sad', 'x'), (2, 'a', 'glad', 'x')")
    table.seal_through(0)
    table.execute("DROP TYPE mood CASCADE; ALTER TABLE entry DROP COLUMN third; INSERT INTO entry VALUES (3, 'a')")
    table.seal_through(1)
    assert sorted(table.fetch("SELECT key_1, type_no FROM {admission}")) == [(1, 1), (2, 2), (3, 3)]


def test_a_unit_dropped_with_its_type(tracked, database):
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    table = tracked("id mood PRIMARY KEY, value text", rows="VALUES ('sad', 'one')")
    table.execute("DROP TYPE mood CASCADE")
    table.execute("INSERT INTO entry VALUES ('free')")
    table.seal_through(0)
    assert [kind for _, _, kind, _ in table.events()] == ["column", "unit"]


def test_a_table_made_anew_under_the_old_name_is_taken_up_again(table):
    table.execute("DROP TABLE entry; CREATE TABLE entry (" + DEFINITION + "); INSERT INTO entry VALUES (2, 'two'), (3, 'three')")
    table.seal_through(0)
    table.day(3)
    table.track()
    table.execute("UPDATE entry SET value = 'new' WHERE id = 3")
    table.seal_through(3)
    assert [(begin, end) for begin, end, _, _ in table.events()] == [(0, 3)]
    assert table.settled() == {2: "two", 3: "new"}


def test_a_missing_trigger_is_mended_by_tracking_again(table):
    table.execute("ALTER TABLE entry DISABLE TRIGGER ALL; UPDATE entry SET value = 'unseen'")
    assert len(table.events()) == 4
    table.seal_through(0)
    table.day(2)
    table.track()
    table.seal_through(2)
    assert table.settled() == {1: "unseen", 2: "unseen"}
    assert {(begin, end) for begin, end, _, _ in table.events()} == {(0, 2)}


def test_an_unseen_change_is_counted_as_a_mismatch(table):
    table.seal_through(0)
    name = '"00_dbext_update"'
    table.execute(
        f"ALTER TABLE entry DISABLE TRIGGER {name}; UPDATE entry SET value = 'unseen'; ALTER TABLE entry ENABLE ALWAYS TRIGGER {name}"
    )
    table.execute("UPDATE entry SET value = 'seen'")
    table.seal_through(1)
    assert table.fetch("SELECT mismatched FROM dbext_private.seal ORDER BY seal_no") == [(0,), (2,)]
    assert table.settled() == {1: "seen", 2: "seen"}
    # The effect is that of the settled images, whatever the log says was there before.
    assert table.changes()[2:] == [(1, 1, "one", "seen"), (1, 2, "two", "seen")]
    assert {kind for _, _, kind, _ in table.events()} == {"trigger"}


def test_following_never_stops_a_command(table, database):
    """Even if the catalog cannot be written, the command succeeds."""
    database.execute("ALTER TABLE dbext_private.tracked_column ADD CHECK (column_name <> 'content')")
    table.execute("ALTER TABLE entry RENAME value TO content")
    assert table.fetch("SELECT count(content) FROM entry") == [(2,)]


def test_other_tables_are_left_alone(table):
    table.execute("CREATE TABLE another (id integer); ALTER TABLE another RENAME id TO number; DROP TABLE another")
    table.execute("CREATE SCHEMA s; CREATE TABLE s.entry (id integer); DROP TABLE s.entry")
    assert table.events() == []
    write(table)
    assert captured(table) == WRITTEN


REWRITES = {
    "values of one of several": (
        "ALTER TABLE entry ALTER COLUMN other TYPE integer USING 7",
        'the values of column "other" were rewritten',
        {1: "b", 2: "two"},
    ),
    "values": (
        "ALTER TABLE entry ALTER COLUMN value TYPE text USING 'z'",
        'the values of column "value" were rewritten',
        {1: "b", 2: "two"},
    ),
    "keys": (
        "ALTER TABLE entry ALTER COLUMN id TYPE integer USING id + 100",
        'the values of column "id" were rewritten',
        {1: "one", 2: "two"},
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_values_rewritten_by_alter_table_are_marked(table, name):
    """No trigger sees them. Rewritten keys would make two entries of one row: nothing more is captured."""
    command, said, settled = REWRITES[name]
    table.seal_through(0)
    table.execute(command)
    table.execute("UPDATE entry SET value = 'b' WHERE id IN (1, 101)")
    table.seal_through(1)
    ((begin, end, kind, text),) = table.events()
    assert (begin, end, kind) == (1, None, "column")
    assert text.startswith(said)
    assert table.settled() == settled
    table.day(3)
    table.track()
    table.seal_through(3)
    assert table.settled() == dict(table.fetch("SELECT id, value FROM entry"))


def test_a_mutation_in_the_transaction_that_rewrites_values(table):
    """It is one transaction number that tells which columns a command altered; savepoints have others."""
    with table.session.transaction():
        table.execute("UPDATE entry SET value = 'seen' WHERE id = 1")
        with table.session.transaction():
            table.execute("ALTER TABLE entry ALTER COLUMN value TYPE text USING value || '!'")
    assert [kind for _, _, kind, _ in table.events()] == ["column"]


def test_another_collation_of_the_unit_stops_capture(tracked, database):
    """One row under a coarser equality would be several entries under that of the log."""
    database.execute("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    table = tracked("id text PRIMARY KEY, value text")
    table.execute("SELECT dp_set_budget('entry', 1)")
    table.execute("ALTER TABLE entry ALTER COLUMN id TYPE text COLLATE ci; INSERT INTO entry VALUES ('a', 'x')")
    table.execute("UPDATE entry SET id = 'A', value = 'y'")
    table.seal_through(0)
    assert [kind for _, _, kind, _ in table.events()] == ["column"]
    assert table.settled() == {}
    for command in ("SELECT", "DROP TABLE entry; CREATE TABLE entry (id text COLLATE ci PRIMARY KEY, value text); SELECT"):
        table.execute(command)
        with pytest.raises(psycopg.Error) as refusal:
            table.track()
        assert refusal.value.sqlstate == "DP003"


def test_others_settings_and_commands_change_nothing(tracked, database):
    """DDL on other tables follows nothing, and no text that depends on a setting decides."""
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    table = tracked("id mood PRIMARY KEY, value mood")
    stranger = database.create_role(name="stranger")
    database.execute(f"CREATE SCHEMA mine AUTHORIZATION {stranger}")
    own = database.connect(stranger)
    own.execute("CREATE TABLE mine.t (x int); CREATE FUNCTION mine.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
    own.execute("CREATE TRIGGER one BEFORE INSERT ON mine.t FOR EACH ROW EXECUTE FUNCTION mine.f()")
    own.execute("SET quote_all_identifiers = on; ALTER TRIGGER one ON mine.t RENAME TO two; ALTER TABLE mine.t RENAME x TO y")
    table.execute("SET quote_all_identifiers = on; ALTER TABLE entry ADD COLUMN more text")
    table.execute("INSERT INTO entry VALUES ('sad', 'glad')")
    table.seal_through(0)
    assert table.events() == []
    assert table.settled() == {"sad": "glad"}


@pytest.mark.parametrize("event_triggers", [True, False], ids=["followed", "found at the seal"])
def test_a_type_that_is_renamed_and_moved_is_the_same_type(tracked, database, event_triggers):
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE SCHEMA apart; CREATE COLLATION c FROM \"C\"")
    table = tracked("id mood PRIMARY KEY, value mood")
    if not event_triggers:
        table.execute("ALTER EVENT TRIGGER dbext_follow_command DISABLE")
    table.execute("ALTER TYPE mood RENAME TO state; ALTER TYPE state SET SCHEMA apart")
    table.execute("INSERT INTO entry VALUES ('sad', 'glad')")
    table.seal_through(0)
    assert table.events() == []
    assert table.settled() == {"sad": "glad"}
    assert table.fetch("SELECT DISTINCT type_name FROM dbext_private.tracked_column") == [("apart.state",)]


def test_a_new_table_of_the_old_name_has_nothing_of_the_history(table, database):
    role = database.create_role("dbext_analyst", name="mallory")
    table.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 2); SELECT dp_set_budget('entry', 9)")
    table.seal_through(2)
    database.execute("DROP TABLE entry; GRANT CREATE ON SCHEMA public TO PUBLIC")
    own = database.connect(role)
    own.execute(f"CREATE TABLE entry ({DEFINITION})")
    with pytest.raises(psycopg.Error) as refusal:
        own.execute("SELECT dp_window_count('entry', '2020-03-02', '2020-03-04', epsilon => 1)")
    assert refusal.value.sqlstate == "DP002"
    with pytest.raises(psycopg.Error) as refusal:
        own.execute("SELECT dp_create_release('r', 'SELECT count(*) FROM entry', every => '1 day', horizon => 4, epsilon => 1)")
    assert refusal.value.sqlstate == "DP002"


def test_a_seal_with_nothing_new_in_the_schema_follows_nothing(table):
    """What there is to follow is one hash; following costs more than all the rest of a seal without mutations."""
    table.seal_through(0)
    table.execute("ALTER FUNCTION dbext_private.follow_columns(integer) RENAME TO not_called")
    table.seal_through(1)
    table.execute("ALTER EVENT TRIGGER dbext_follow_command DISABLE; ALTER TABLE entry ADD COLUMN more text")
    with pytest.raises(psycopg.Error) as failure:
        table.seal_through(2)
    assert psycopg.errors.UndefinedFunction.sqlstate in failure.value.diag.message_primary


@pytest.mark.parametrize("event_triggers", [True, False], ids=["followed", "found at the seal"])
def test_labels_that_are_renamed_are_marked_and_seals_go_on(tracked, database, event_triggers):
    """A stored predicate keeps the old spelling: nothing new matches it. Labels that are added change nothing."""
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    table = tracked("id integer PRIMARY KEY, value mood")
    for name, predicate in (("sad", "value IN ('sad')"), ("rest", None)):
        table.execute("SELECT dp_add_constraint('entry', %s, applies_to => %s, max_mutations => 2)", (name, predicate))
    table.execute("INSERT INTO entry VALUES (1, 'sad')")
    table.seal_through(0)
    table.execute("ALTER TYPE mood ADD VALUE 'glum' BEFORE 'glad'")
    table.seal_through(1)
    assert table.events() == []
    if not event_triggers:
        table.execute("ALTER EVENT TRIGGER dbext_follow_command DISABLE")
    table.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    table.execute("INSERT INTO entry VALUES (2, 'blue')")
    table.seal_through(2)
    assert [(begin, kind) for begin, _, kind, _ in table.events()] == [(2, "column")]
    assert table.fetch("SELECT key_1, type_no FROM {admission} ORDER BY key_1") == [(1, 1), (2, 2)]
    table.execute("ALTER TYPE mood RENAME VALUE 'glad' TO 'sad'; ALTER TYPE mood RENAME TO state")
    table.execute("INSERT INTO entry VALUES (3, 'sad')")
    table.seal_through(3)
    assert table.settled() == {1: "blue", 2: "blue", 3: "sad"}


def test_what_reads_many_other_columns_is_answered_after_one_is_gone(tracked):
    table = tracked("id integer PRIMARY KEY, a integer, b integer, c integer, d integer, gone integer", name="person")
    table.execute("SELECT dp_add_constraint('person', 'any', max_mutations => 3)")
    table.execute("SELECT dp_set_budget('person', 9)")
    table.execute("ALTER TABLE person DROP COLUMN gone")
    table.seal_through(1)
    read = "id > 0 AND a > 0 AND b > 0 AND c > 0 AND d > 0"
    table.execute("SELECT dp_window_count('person', '2020-03-03', '2020-03-04', %s, epsilon => 1)", (read,))
    table.execute(f"SELECT dp_create_release('many', 'SELECT count(*) FROM person WHERE {read}', every => '1 day', epsilon => 1, horizon => 9)")
