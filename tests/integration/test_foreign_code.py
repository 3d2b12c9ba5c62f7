"""Code that others wrote must not run with the rights of dbext_owner, wherever a value of their types is read or written."""

import threading
import time

import psycopg
import pytest

#: A cast that its type's owner wrote; run by dbext_owner it would show itself in table `caught`.
TRAP = """
CREATE TABLE caught (who text); GRANT ALL ON caught TO PUBLIC;
CREATE TYPE colour AS ENUM ('red', 'blue');
CREATE FUNCTION trap(text) RETURNS colour LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN 'red'; END $$;
CREATE FUNCTION trap(colour) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN 'red'; END $$;
CREATE CAST (text AS colour) WITH FUNCTION trap(text);
CREATE CAST (colour AS text) WITH FUNCTION trap(colour);
CREATE TABLE cars (id integer PRIMARY KEY, colour colour);
CREATE TABLE shade (name colour); INSERT INTO shade VALUES ('red'), ('blue');
"""


@pytest.fixture
def trapped(ready):
    ready.session.execute(TRAP)
    ready.day(-1)
    ready.session.execute(
        "SELECT dp_track('cars', time_zone => 'Asia/Taipei'); SELECT dp_add_constraint('cars', 'any', max_mutations => 2)"
    )
    ready.session.execute("SELECT dp_set_budget('cars', epsilon => 900); SELECT dp_mark_public('shade', 'name')")
    ready.day(0)
    ready.session.execute("INSERT INTO cars VALUES (1, 'blue'), (2, 'blue'), (3, 'red')")
    return ready


def test_the_trap_works(trapped):
    trapped.session.execute("SELECT 'red'::text::colour, 'red'::colour::text")
    assert trapped.database.value("SELECT count(*) FROM caught") == 2


def test_casts_of_a_types_owner_are_never_called(trapped):
    text = "SELECT colour, count(*) FROM cars WHERE colour = 'blue' AND dp_time > now() - INTERVAL '1 day' GROUP BY colour"
    for name, groups in (("one", None), ("two", "VALUES ('red'), ('blue')"), ("three", "SELECT name FROM shade")):
        trapped.declare(name, text, every="1 day", epsilon=200, groups=groups)
    trapped.day(1)
    trapped.publish()
    for name in ("one", "two", "three"):
        assert trapped.database.fetch(f"SELECT colour, net FROM dp_release.{name} ORDER BY colour") == [("red", 0), ("blue", 2)]
    asked = "SELECT dp_window_count('cars', '2020-01-01', '2020-01-02', predicate => $$colour IN ('red', 'blue')$$, epsilon => 60)"
    assert trapped.database.value(asked) == 3
    assert trapped.database.fetch("SELECT who FROM caught") == []


def test_a_domains_check_is_never_run_by_us(ready):
    ready.session.execute("""
        CREATE TABLE caught (who text); GRANT ALL ON caught TO PUBLIC;
        CREATE FUNCTION trap(text) RETURNS boolean LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN true; END $$;
        CREATE DOMAIN word AS text CHECK (trap(VALUE));
        CREATE TABLE notes (id integer PRIMARY KEY, kind word)""")
    ready.day(-1)
    ready.session.execute("SELECT dp_track('notes', time_zone => 'Asia/Taipei')")
    ready.session.execute("SELECT dp_add_constraint('notes', 'any', max_mutations => 2); SELECT dp_set_budget('notes', epsilon => 900)")
    ready.day(0)
    ready.session.execute("INSERT INTO notes VALUES (1, 'a')")
    ready.session.execute("DELETE FROM caught")
    text = "SELECT kind, count(*) FROM notes WHERE kind = 'a' AND dp_time > now() - INTERVAL '1 day' GROUP BY kind"
    ready.declare("one", text, every="1 day", epsilon=200, groups="VALUES ('a')")
    ready.day(1)
    ready.publish()
    assert ready.database.value("SELECT net FROM dp_release.one") == 1
    assert ready.database.fetch("SELECT who FROM caught") == []


SPY = """
CREATE TABLE caught (who text); GRANT ALL ON caught TO PUBLIC;
CREATE FUNCTION trap(text) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN true; END $$;
"""


@pytest.mark.parametrize(("kind", "key"), [("word[]", "{a}"), ("pair", "(a)")])
def test_a_check_inside_an_array_or_composite_is_never_run_by_us(ready, kind, key):
    ready.session.execute(SPY)
    ready.session.execute("CREATE DOMAIN word AS text CHECK (trap(VALUE)); CREATE TYPE pair AS (a word)")
    ready.session.execute(f"CREATE TABLE notes (id integer PRIMARY KEY, kind {kind})")
    ready.session.execute(
        "SELECT dp_track('notes', time_zone => 'Asia/Taipei'); SELECT dp_add_constraint('notes', 'any', max_mutations => 2)"
    )
    ready.session.execute("SELECT dp_set_budget('notes', epsilon => 9); DELETE FROM caught")
    text = "SELECT kind, count(*) FROM notes WHERE dp_time > now() - INTERVAL '1 day' GROUP BY kind"
    with pytest.raises(psycopg.Error) as caught:
        ready.declare("one", text, every="1 day", epsilon=1, groups=f"VALUES ('{key}')")
    assert caught.value.sqlstate in ("DP003", "DP010")
    assert ready.database.fetch("SELECT who FROM caught") == []


SWAPS = {
    "the table renamed": "ALTER TABLE keys.county RENAME TO old_county; CREATE VIEW keys.county AS SELECT name FROM keys.old_county WHERE trap(name)",
    "the schema renamed": "ALTER SCHEMA keys RENAME TO old_keys; CREATE SCHEMA keys; CREATE VIEW keys.county AS SELECT name FROM old_keys.county WHERE trap(name)",
    "the table made a view": """CREATE TABLE keys.other (name text); INSERT INTO keys.other VALUES ('A'); DELETE FROM keys.county;
        CREATE RULE "_RETURN" AS ON SELECT TO keys.county DO INSTEAD SELECT name FROM keys.other WHERE trap(name)""",
}


@pytest.mark.parametrize("swap", SWAPS)
def test_a_view_in_place_of_a_public_table_is_never_read(ready, swap):
    """Its owner swaps the table for a view while declarations read keys from it."""
    ready.session.execute(SPY)
    ready.session.execute(
        "CREATE SCHEMA keys; GRANT USAGE ON SCHEMA keys TO PUBLIC; CREATE TABLE keys.county (name text); INSERT INTO keys.county VALUES ('A')"
    )
    ready.session.execute("SELECT dp_mark_public('keys.county', 'name')")
    text = "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"
    outcome = ["none yet"]

    def declare():
        while outcome[-1] not in ("DP002", "DP003"):
            try:
                outcome.append(
                    ready.declare(f"r{len(outcome)}", text, every="1 day", epsilon="0.001", groups="SELECT name FROM keys.county")
                )
            except psycopg.Error as error:
                outcome.append(error.sqlstate)

    thread = threading.Thread(target=declare)
    with ready.database.connect(autocommit=False) as owner:
        grants = "GRANT USAGE ON SCHEMA keys TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA keys TO PUBLIC"
        try:
            owner.execute(f"{SWAPS[swap]}; {grants}")
        except psycopg.errors.WrongObjectType:
            pytest.skip("this PostgreSQL makes no views of tables")
        thread.start()
        time.sleep(0.5)
        owner.commit()
        thread.join()
    assert ready.database.fetch("SELECT who FROM caught") == []
