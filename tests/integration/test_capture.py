"""Capture: what is recorded, whoever writes; the matrix of all kinds of change is in test_every_change."""

from __future__ import annotations

import itertools
import random

import psycopg
import pytest


def replayed(table) -> dict:
    """Return key -> value after all log records in order of number."""
    images: dict = {}
    for op, key, value in table.fetch("SELECT op::text, key_1, new_2 FROM {log} ORDER BY number"):
        if op == "T":
            images.clear()
        elif op == "D":
            del images[key]
        else:
            images[key] = value
    return images


def contents(table) -> dict:
    return dict(table.fetch(f"SELECT id, value FROM {table.name}"))


def ops(table) -> str:
    """Return the operations recorded since the baseline, in order."""
    return "".join(op for (op,) in table.fetch("SELECT op::text FROM {log} WHERE op <> 'B' ORDER BY number"))


def test_a_statement_that_changes_nothing_records_nothing_and_takes_no_transaction_number(tracked):
    table = tracked(rows="VALUES (1, 'one'), (2, NULL)")
    table.execute("UPDATE entry SET value = value")
    table.execute("UPDATE entry SET value = value WHERE id = 1")
    assert ops(table) == ""
    with table.session.transaction():
        table.execute("DELETE FROM entry WHERE false")
        assert table.fetch("SELECT pg_current_xact_id_if_assigned()") == [(None,)]


def test_only_tracked_columns_are_recorded(tracked):
    table = tracked("id integer PRIMARY KEY, value text, secret text", rows="VALUES (1, 'one', 'x')", columns=["value"])
    table.execute("UPDATE entry SET secret = 'y'")
    assert ops(table) == ""
    columns = table.fetch("SELECT attname FROM pg_attribute WHERE attrelid = '{log}'::regclass AND attnum > 0 ORDER BY attnum")
    assert [name for (name,) in columns] == ["number", "op", "key_1", "old_2", "new_2", "mutated_at", "xid"]


def test_rolled_back_work_leaves_no_record(tracked):
    table = tracked(rows="VALUES (1, 'one')")
    with table.session.transaction():
        table.execute("INSERT INTO entry VALUES (2, 'kept')")
        with table.session.transaction(force_rollback=True):
            table.execute("UPDATE entry SET value = 'undone'")
    assert ops(table) == "I"
    assert replayed(table) == contents(table)


def test_before_triggers_decide_what_is_recorded(tracked):
    table = tracked()
    table.execute("""
        CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.value := upper(NEW.value); RETURN NEW; END $$;
        CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION shout()""")
    table.execute("INSERT INTO entry VALUES (1, 'quiet')")
    assert replayed(table) == {1: "QUIET"}


NESTED = {
    "a row trigger updates its row again": """
        CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.value NOT LIKE '%%!' THEN UPDATE entry SET value = value || '!' WHERE id = NEW.id; END IF; RETURN NULL; END $$;
        CREATE TRIGGER again AFTER INSERT OR UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION again()""",
    "a row trigger puts the old value back": """
        CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF OLD.value = 'one' THEN UPDATE entry SET value = OLD.value WHERE id = NEW.id; END IF; RETURN NULL; END $$;
        CREATE TRIGGER again AFTER UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION again()""",
    "a row trigger deletes its row": """
        CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM entry WHERE id = NEW.id; RETURN NULL; END $$;
        CREATE TRIGGER again AFTER INSERT OR UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION again()""",
    "a deleted row comes back": """
        CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO entry VALUES (OLD.id, 'back'); RETURN NULL; END $$;
        CREATE TRIGGER again AFTER DELETE ON entry FOR EACH ROW EXECUTE FUNCTION again()""",
    "a row makes way before it is inserted": """
        CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM entry WHERE id = NEW.id; RETURN NEW; END $$;
        CREATE TRIGGER again BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION again()""",
    "a statement trigger that sorts first": """
        CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF pg_trigger_depth() = 1 THEN UPDATE entry SET value = 'last word'; END IF; RETURN NULL; END $$;
        CREATE TRIGGER "0" AFTER UPDATE ON entry FOR EACH STATEMENT EXECUTE FUNCTION again()""",
    "a function in RETURNING": """
        CREATE FUNCTION more(integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN UPDATE entry SET value = 'more' WHERE id = $1; RETURN $1; END $$;
        UPDATE entry SET value = 'less' WHERE id = 1 RETURNING more(id)""",
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize(("days", "capture"), [(1, "statement"), (3, "statement"), (3, "row")])
def test_statements_that_nest_settle_to_what_the_table_holds(tracked, name, days, capture):
    """They are recorded inside out, so that numbers alone would settle the wrong image."""
    table = tracked(rows="VALUES (1, 'one'), (2, 'two')", capture=capture)
    for day in range(days):
        if day == days - 1:
            table.day(day)
            table.execute(NESTED[name])
        for statement in (
            "INSERT INTO entry VALUES (3, 'three') ON CONFLICT DO NOTHING",
            "UPDATE entry SET value = value || 'x'",
            "DELETE FROM entry WHERE id = 2",
            "UPDATE entry SET value = value || 'y' WHERE id = 1",
        ):
            table.day(day)
            table.execute(statement)
    table.seal_through(days - 1)
    assert table.settled() == contents(table)
    assert table.fetch("SELECT sum(mismatched) FROM dbext_private.seal") == [(0,)]


def test_cascades_between_rows_of_one_table(tracked):
    """The key changes, and the change cascades to a column of a row whose own key changed in the same statement."""
    table = tracked(
        "id integer PRIMARY KEY, value integer REFERENCES entry ON UPDATE CASCADE ON DELETE SET NULL",
        rows="VALUES (1, NULL), (2, 1), (3, 2)",
    )
    table.execute("UPDATE entry SET id = id + 10")
    table.execute("DELETE FROM entry WHERE id = 12")
    table.seal_through(0)
    assert contents(table) == {11: None, 13: None}
    assert table.settled() == contents(table)


def test_cascades_from_another_table_whoever_caused_them(tracked, database):
    """The trigger runs as the table's owner, not as the one who deleted."""
    database.execute("CREATE TABLE parent (id integer PRIMARY KEY); INSERT INTO parent VALUES (1), (2)")
    table = tracked("id integer PRIMARY KEY, value integer REFERENCES parent ON DELETE CASCADE", rows="VALUES (1, 1), (2, 1), (3, 2)")
    owner, writer = database.create_role(name="owner"), database.create_role(name="writer")
    database.execute(f"ALTER TABLE entry OWNER TO {owner}; ALTER TABLE parent OWNER TO {owner}; GRANT SELECT, DELETE ON parent TO {writer}")
    database.connect(writer).execute("DELETE FROM parent WHERE id = 1")
    assert ops(table) == "DD"
    assert replayed(table) == contents(table) == {3: 2}
    database.execute("TRUNCATE parent CASCADE")
    assert replayed(table) == contents(table) == {}


def test_a_writer_needs_no_right_on_anything_private_and_row_security_hides_nothing(tracked, database):
    table = tracked(rows="VALUES (1, 'one')")
    writer = database.create_role(name="writer")
    database.execute(f"""GRANT SELECT, INSERT, UPDATE, DELETE ON entry TO {writer}; ALTER TABLE entry ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON entry TO {writer} USING (id > 1) WITH CHECK (true)""")
    session = database.connect(writer)
    session.execute("INSERT INTO entry VALUES (2, 'two'); UPDATE entry SET value = 'mine'; INSERT INTO entry VALUES (0, 'hidden')")
    assert replayed(table) == contents(table) == {0: "hidden", 1: "one", 2: "mine"}
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute(f"SELECT * FROM dbext_private.log_{table.number}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute(f"""CREATE TEMPORARY TABLE fake (id integer, value text);
            CREATE TRIGGER fake AFTER INSERT ON fake REFERENCING NEW TABLE AS dbext_new
            FOR EACH STATEMENT EXECUTE FUNCTION dbext_private.capture_insert_{table.number}()""")


@pytest.mark.parametrize(
    ("capture", "trigger"),
    [
        ("statement", "REFERENCING NEW TABLE AS dbext_new FOR EACH STATEMENT EXECUTE FUNCTION dbext_private.capture_insert_{}()"),
        ("row", "FOR EACH ROW EXECUTE FUNCTION dbext_private.capture_rowinsert_{}()"),
    ],
)
@pytest.mark.parametrize("real_time", [False, True])
def test_a_capture_function_on_the_wrong_table_is_noticed(tracked, capture, trigger, real_time):
    table = tracked(capture=capture, real_time=real_time)
    table.execute(f"CREATE TABLE other (id integer, value text); CREATE TRIGGER wrong AFTER INSERT ON other {trigger.format(table.number)}")
    with pytest.raises(psycopg.Error) as caught:
        table.execute("INSERT INTO other VALUES (1, 'one')")
    assert caught.value.sqlstate == "DP099"


def test_an_entry_keeps_the_spelling_of_its_key(tracked, database):
    """A predicate over the key must give the same answer when the entry comes and when it goes."""
    database.execute("CREATE EXTENSION citext")
    table = tracked("id citext PRIMARY KEY, value text", rows="VALUES ('A', 'one')")
    table.seal_through(0)
    table.execute("UPDATE entry SET id = 'a', value = 'two'")
    table.seal_through(1)
    table.execute("DELETE FROM entry WHERE id = 'a'")
    table.seal_through(2)
    assert table.changes() == [(0, "A", None, "one"), (1, "A", "one", "two"), (2, "A", "two", None)]


def test_replica_sessions_are_captured_too(tracked):
    table = tracked()
    table.execute("SET session_replication_role = replica")
    table.execute("INSERT INTO entry VALUES (1, 'one')")
    assert ops(table) == "I"


TYPES = {
    "json": ("id integer PRIMARY KEY, value json", "'{\"a\": 1}'", "'{\"a\":  1}'"),
    "an array of json": ("id integer PRIMARY KEY, value json[]", "ARRAY['1'::json]", "ARRAY['2'::json]"),
    "names of every sort": ('id integer PRIMARY KEY, value text, "Nö ""x"" \' \\ %s ${x} $$ $capture$" text DEFAULT \'d\'', "'a'", "'b'"),
    "a domain that forbids NULL": ("id integer PRIMARY KEY, value positive", "1", "2"),
    "an enum": ("id integer PRIMARY KEY, value mood", "'sad'", "'glad'"),
    "a composite": ("id integer PRIMARY KEY, value pair", "ROW(1, '1')::pair", "ROW(2, '1')::pair"),
    "a narrow varchar and a bit string": (
        "id integer PRIMARY KEY, value varchar(3), flags bit(3) DEFAULT B'101', code char(4) DEFAULT 'a'",
        "'abc'",
        "'abd'",
    ),
    "citext as key": ("id citext PRIMARY KEY, value text", "'a'", "'b'"),
    "an enum as key": ("id mood PRIMARY KEY, value text", "'a'", "'b'"),
    "an array as key": ("id integer[] PRIMARY KEY, value text", "'a'", "'b'"),
    "varchar as key": ("id varchar(5) PRIMARY KEY, value text", "'a'", "'b'"),
    "a range as key": ("id int4range PRIMARY KEY, value text", "'a'", "'b'"),
    "a key without regard to case": ("id text COLLATE loose PRIMARY KEY, value text COLLATE loose", "'a'", "'b'"),
    "nothing but a key": ("id integer PRIMARY KEY", None, None),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_of_every_sort(tracked, database, name):
    database.execute("""CREATE EXTENSION citext; CREATE DOMAIN positive AS integer NOT NULL CHECK (VALUE > 0);
        CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TYPE pair AS (n integer, j json);
        CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)""")
    definition, one, other = TYPES[name]
    key = {"citext as key": "'K'", "an enum as key": "'sad'", "an array as key": "'{1,2}'", "a range as key": "'[1,3)'"}.get(name, "'7'")
    table = tracked(definition)
    table.execute(f"INSERT INTO entry VALUES ({key}{'' if one is None else ', ' + one})")
    if one is not None:
        table.execute("UPDATE entry SET value = value")
        table.execute(f"UPDATE entry SET value = {other}")
        if "citext" in name:
            table.execute("UPDATE entry SET id = 'k'")
    table.seal_through(0)
    assert ops(table) == ("I" if one is None else "IU")
    assert table.fetch("SELECT count(*) FROM {admission} WHERE present") == [(1,)]
    assert table.fetch("SELECT mismatched FROM dbext_private.seal") == [(0,)]
    table.execute("DELETE FROM entry")
    table.seal_through(1)
    assert table.fetch("SELECT count(*) FROM {admission} WHERE present") == [(0,)]
    assert table.fetch("SELECT sum(mismatched) FROM dbext_private.seal") == [(0,)]


def test_a_key_of_several_columns(tracked):
    table = tracked("a integer, b text, value text, PRIMARY KEY (b, a)", rows="VALUES (1, 'x', 'v'), (1, 'y', 'w')")
    table.execute("UPDATE entry SET value = 'z' WHERE b = 'y'; UPDATE entry SET a = 2 WHERE b = 'x'")
    assert table.fetch("SELECT op::text, key_1, key_2, old_3, new_3 FROM {log} WHERE op <> 'B' ORDER BY op, number") == [
        ("D", 1, "x", "v", None), ("I", 2, "x", None, "v"), ("U", 1, "y", "w", "z")]  # fmt: skip
    table.seal_through(0)
    assert sorted(table.fetch("SELECT key_1, key_2, image_3 FROM {admission} WHERE present")) == [(1, "y", "z"), (2, "x", "v")]


def test_the_plan_of_a_large_update_does_not_suffer_from_small_ones_before(tracked):
    table = tracked(rows="SELECT i, 'a' FROM generate_series(1, 20000) AS i")
    table.execute("UPDATE entry SET id = -1 WHERE id = 1")  # one row that only a join records: the plan for one row is the worst there is
    for number in range(1, 20):
        table.execute(f"UPDATE entry SET value = 'b' WHERE id = {number}; UPDATE entry SET value = 'c' WHERE id IN ({number}, {number + 1})")
    table.execute("SET statement_timeout = '20s'")  # a tenth of a second, and half a minute with the plan of small ones
    table.execute("UPDATE entry SET value = value || '.'")
    table.execute("SET statement_timeout = 0")
    assert replayed(table) == contents(table)


@pytest.mark.parametrize("capture", ["statement", "row"])
def test_random_statements_are_replayed(tracked, capture):
    table = tracked(rows="SELECT i, 'v' FROM generate_series(1, 5) AS i", capture=capture)
    choose = random.Random(20240501)
    for day in itertools.count():
        table.day(day)
        for _ in range(40):
            low, high = sorted(choose.choices(range(12), k=2))
            value = choose.choice("abc")
            statement = choose.choice((
                f"INSERT INTO entry SELECT i, '{value}' FROM generate_series({low}, {high}) AS i ON CONFLICT (id) DO UPDATE SET value = excluded.value || 'u'",
                f"INSERT INTO entry VALUES ({low}, '{value}') ON CONFLICT DO NOTHING",
                f"UPDATE entry SET value = '{value}' WHERE id BETWEEN {low} AND {high}",
                f"UPDATE entry SET id = id + 20 WHERE id = {low} AND NOT EXISTS (SELECT FROM entry AS e WHERE e.id = {low} + 20)",
                f"UPDATE entry SET id = id - 20 WHERE id = {low} + 20 AND NOT EXISTS (SELECT FROM entry AS e WHERE e.id = {low})",
                f"DELETE FROM entry WHERE id BETWEEN {low} AND {high}",
                "TRUNCATE entry" if choose.random() < 0.2 else "DELETE FROM entry WHERE id > 30",
            ))  # fmt: skip
            table.execute(statement)
        assert replayed(table) == contents(table)
        if day == 5:
            break
        if day % 2:
            table.seal_through(day)
            assert table.settled() == contents(table)


def test_no_error_of_capture_shows_a_value(tracked):
    table = tracked("id integer NOT NULL UNIQUE, value text", unit=["id"])
    table.execute("ALTER TABLE entry ALTER COLUMN id DROP NOT NULL")
    with pytest.raises(psycopg.errors.DatabaseError) as refused:
        table.execute("INSERT INTO entry VALUES (NULL, 'confidential')")
    assert refused.value.sqlstate == "DP003"
    assert "confidential" not in str(refused.value) + str(refused.value.diag.message_detail)
    table.execute("INSERT INTO entry VALUES (1, 'plain')")
    assert ops(table) == "I"


HOMONYMS = (
    "moment",
    "n",
    "o",
    "op",
    "xid",
    "mutated_at",
    "number",
    "new",
    "old",
    "tg_relid",
    "found",
    "event",
    "first_rows",
    "dbext_new",
    "t",
    "e",
)


def test_columns_called_like_what_the_capture_functions_use(tracked):
    """Also the unit, and a column that comes later."""
    columns = ", ".join(f"{name} text" for name in HOMONYMS if name != "moment")
    table = tracked(f"moment integer PRIMARY KEY, {columns}")
    table.execute("INSERT INTO entry (moment, n) VALUES (1, 'a'), (2, 'b')")
    table.execute(
        "UPDATE entry SET n = 'c', o = 'd' WHERE moment = 1; UPDATE entry SET found = 'e', moment = moment + 10; DELETE FROM entry WHERE moment = 12"
    )
    later = tracked("id integer PRIMARY KEY, value text", name="later")
    later.execute(
        "ALTER TABLE later ADD COLUMN moment timestamptz; INSERT INTO later VALUES (1, 'a', now()); UPDATE later SET value = 'b'; TRUNCATE later"
    )
    assert ops(later) == "IUT"
    table.seal_through(0)
    assert table.fetch("SELECT key_1, image_2, image_3 FROM {admission} WHERE present") == [(11, "c", "d")]
