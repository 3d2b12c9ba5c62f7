"""The owner of a tracked table, who is nobody else, wants his code to run with the rights of those who read his table."""

from __future__ import annotations

import contextlib
import threading
import time

import psycopg
import pytest

#: What tells who ran it, and casts, which PostgreSQL applies by itself where types differ.
EVIL = """
CREATE SCHEMA own; CREATE TABLE own.caught (who text); GRANT ALL ON SCHEMA own TO PUBLIC; GRANT ALL ON own.caught TO PUBLIC;
CREATE TYPE own.mine AS ENUM ('1', '2', '11');
CREATE FUNCTION own.number(own.mine) RETURNS integer LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO own.caught VALUES (current_user); RETURN 1; END $$;
CREATE FUNCTION own.word(own.mine) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO own.caught VALUES (current_user); RETURN 'x'; END $$;
CREATE FUNCTION own.constant(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM set_config('own.who', coalesce(current_setting('own.who', true), '') || current_user || ',', false); RETURN 1; END $$;
"""
PARTITIONED = "id integer PRIMARY KEY, value text) PARTITION BY RANGE (id"


class Owner:
    """A table of mallory's, who may create what he likes beside it."""

    def __init__(self, database, tracked, definition):
        self.database, self.table = database, tracked(definition)
        self.role = database.create_role(name="mallory")
        database.execute(f"GRANT CREATE ON DATABASE {database.name} TO {self.role}; GRANT CREATE ON SCHEMA public TO {self.role}")
        if "PARTITION" in definition:
            database.execute("CREATE TABLE a PARTITION OF entry FOR VALUES FROM (0) TO (10); CREATE TABLE b PARTITION OF entry FOR VALUES FROM (10) TO (20)")
            database.execute(f"ALTER TABLE a OWNER TO {self.role}; ALTER TABLE b OWNER TO {self.role}")
        database.execute(f"ALTER TABLE entry OWNER TO {self.role}; INSERT INTO entry VALUES (1, 'one'), (11, 'eleven')")
        self.session = self.connect()
        self.session.execute(EVIL)

    def connect(self, **options):
        return self.database.connect(self.role, **options)

    def callers(self) -> set[str]:
        """Who ran mallory's code."""
        return {who for (who,) in self.database.fetch("SELECT who FROM own.caught")}


@pytest.fixture
def owner(database, tracked):
    return lambda definition=PARTITIONED: Owner(database, tracked, definition)


@contextlib.contextmanager
def following_fails(made, holding: str):
    """Within, event triggers of mallory's session give up: another session holds what they wait for, as other DDL of his does."""
    with made.database.connect(autocommit=False) as other:
        other.execute(holding)
        made.session.execute("SET lock_timeout = '200ms'")
        yield
        made.session.execute("SET lock_timeout = 0")
        other.rollback()


def test_a_partition_is_not_let_go_unseen_and_given_types_with_casts(owner):
    """Unseen it would be copied into the log, by a superuser, when it is altered the next time: what cannot be followed fails."""
    made = owner()
    made.session.execute("CREATE CAST (own.mine AS integer) WITH FUNCTION own.number(own.mine) AS ASSIGNMENT")
    with following_fails(made, "ALTER TABLE b RENAME TO c"), pytest.raises(psycopg.errors.LockNotAvailable):
        made.session.execute("ALTER TABLE entry DETACH PARTITION a")
    made.session.execute("ALTER TABLE entry DETACH PARTITION a")
    made.session.execute("ALTER TABLE a DROP CONSTRAINT a_pkey, ALTER COLUMN id TYPE own.mine USING '1'::own.mine")
    assert made.callers() == set()


@pytest.mark.parametrize("home", [True, False], ids=["at home", "after a promotion"])
def test_a_column_retyped_unseen_is_not_cast_by_capture(owner, home):
    made = owner("id integer PRIMARY KEY, value text")
    made.session.execute("CREATE CAST (own.mine AS text) WITH FUNCTION own.word(own.mine) AS ASSIGNMENT; CREATE SCHEMA place; ALTER TABLE entry SET SCHEMA place")
    if not home:
        made.database.execute("UPDATE dbext_private.cluster_identity SET timeline = '000000FF'")
    retyped = "ALTER TABLE place.entry ALTER COLUMN value TYPE own.mine USING '1'::own.mine"
    with following_fails(made, "SELECT FROM dbext_private.tracked_table FOR UPDATE" if home else "SELECT"), pytest.raises(psycopg.Error) as refusal:
        made.session.execute(retyped)
    assert refusal.value.sqlstate == ("55P03" if home else "DP031")
    made.database.execute("SELECT dp_confirm_upgrade()")
    made.session.execute(retyped)
    made.session.execute("INSERT INTO place.entry VALUES (2, '2')")
    assert made.callers() == set()


def test_names_hold_while_a_partition_is_read_as_superuser(owner):
    """Another schema of the same name would bring another table, whose indexes call what its owner likes."""
    made = owner()
    made.session.execute("CREATE SCHEMA place; ALTER TABLE a SET SCHEMA place; SET lock_timeout = '200ms'")
    with made.connect(autocommit=False) as other:
        other.execute("TRUNCATE place.a")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            made.session.execute("ALTER SCHEMA place RENAME TO elsewhere")
        other.rollback()
    made.session.execute("ALTER SCHEMA place RENAME TO elsewhere")


@pytest.mark.parametrize("call", ["dp_recount('entry')", "dp_rebase('entry')", "dp_track('entry')"])
def test_an_index_made_while_a_superuser_waits(owner, call):
    """What he reads the table for was asked before he had its lock."""
    made = owner("id integer PRIMARY KEY, value text")
    if "track" in call:
        made.database.execute("SELECT dp_untrack('entry')")
    outcome = []

    def run():
        with made.database.connect() as superuser:
            try:
                superuser.execute(f"SELECT {call}")
            except psycopg.Error as refusal:
                outcome.append(refusal.sqlstate)
            outcome.append(superuser.execute("SELECT current_setting('own.who', true)").fetchone()[0])

    with made.connect(autocommit=False) as other:
        other.execute("CREATE INDEX ON entry ((id + own.constant(1)))")
        thread = threading.Thread(target=run)
        thread.start()
        while not made.database.fetch("SELECT FROM pg_locks WHERE NOT granted AND relation = 'entry'::regclass"):
            time.sleep(0.01)
        other.commit()
        thread.join()
    assert outcome == ["DP005", None]


#: A schema of mallory's that a superuser put an extension into is renamed, and another one has its name, with a type and an operator like its.
SWAPPED = """
ALTER SCHEMA kinds RENAME TO old_kinds; CREATE SCHEMA kinds; GRANT USAGE ON SCHEMA kinds TO PUBLIC;
CREATE DOMAIN kinds.citext AS old_kinds.citext;
CREATE FUNCTION kinds.tell(old_kinds.citext, old_kinds.citext) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN RAISE WARNING 'run by %', current_user; RETURN true; END $$;
CREATE OPERATOR kinds.= (LEFTARG = old_kinds.citext, RIGHTARG = old_kinds.citext, FUNCTION = kinds.tell, MERGES, HASHES);
CREATE OPERATOR kinds.< (LEFTARG = old_kinds.citext, RIGHTARG = old_kinds.citext, FUNCTION = kinds.tell)
"""
CONSTRAIN = "SELECT dp_add_constraint('words', '{}', max_mutations => 3{})"


@pytest.mark.parametrize("where", ["predicate", "group", "entry type", "unit", "local"])
def test_another_operator_under_the_name_of_one_that_was_declared(owner, where):
    """Types and operators are named in what is kept of declarations; whoever owns their schema can rename it and put another in its place."""
    made = owner("id integer PRIMARY KEY, value text")
    said = []
    made.database.superuser.add_notice_handler(lambda notice: said.append(notice.message_primary))
    made.session.execute("CREATE SCHEMA kinds; GRANT USAGE ON SCHEMA kinds TO PUBLIC")
    made.database.execute("CREATE EXTENSION citext SCHEMA kinds")
    keyed = "word kinds.citext PRIMARY KEY, id integer" if where == "unit" else "id integer PRIMARY KEY, word kinds.citext"
    made.session.execute(f"CREATE TABLE words ({keyed})")
    made.database.execute("SELECT dp_track('words')")
    if where == "entry type":
        made.database.execute(CONSTRAIN.format("a", ", applies_to => $$word = 'a'$$"))
    made.database.execute(CONSTRAIN.format("any", "") + ", dp_set_budget('words', 9)")
    by_word = "SELECT word, count(*) FROM words GROUP BY word", ", groups => $$VALUES ('a')$$"
    text, options = {"predicate": ("SELECT count(*) FROM words WHERE word = 'a'", ""), "group": by_word}.get(where, ("SELECT count(*) FROM words", ""))
    if where == "local":
        text, options = by_word[0], by_word[1] + ", model => 'local', roster => 'VALUES (1)'"
    made.database.execute(f"SELECT dp_create_release('counts', %s, every => '1 day', epsilon => 1, horizon => 9{options})", (text,))
    made.table.execute("INSERT INTO words (id, word) VALUES (1, 'a'), (2, 'b')")
    made.session.execute(SWAPPED)
    made.table.execute("UPDATE words SET id = id + 10")
    made.table.day(2)
    made.database.execute("CALL dp_publish()")
    assert [one for one in said if one.startswith("run by")] == []


def test_a_type_that_changes_places_while_its_table_is_taken_up(owner):
    """Renaming a type waits for no lock on the tables that have columns of it. Here it happens just before the log is made."""
    made = owner("id integer PRIMARY KEY, value text")
    made.session.execute("CREATE TYPE own.mood AS ENUM ('1'); CREATE TABLE moods (id integer PRIMARY KEY, mood own.mood); INSERT INTO moods VALUES (1, '1')")
    made.session.execute("""CREATE FUNCTION own.other(own.mood) RETURNS own.mine LANGUAGE plpgsql AS
        $$ BEGIN RAISE WARNING 'run by %', current_user; RETURN '1'; END $$; CREATE CAST (own.mood AS own.mine) WITH FUNCTION own.other(own.mood) AS ASSIGNMENT""")
    made.database.execute("""CREATE FUNCTION swap() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
        IF to_regtype('own.first') IS NULL THEN ALTER TYPE own.mood RENAME TO first; ALTER TYPE own.mine RENAME TO mood; END IF; RETURN NULL; END $$;
        CREATE TRIGGER swap AFTER INSERT ON dbext_private.tracked_column EXECUTE FUNCTION swap()""")
    said = []
    made.database.superuser.add_notice_handler(lambda notice: said.append(notice.message_primary))
    with pytest.raises(psycopg.Error) as refusal:
        made.database.execute("SELECT dp_track('moods')")
    assert refusal.value.sqlstate == "DP031"
    assert [one for one in said if one.startswith("run by")] == []


#: Who has a type, an operator or their schema takes its name away, so that another can have it.
SWAPS = (
    "ALTER TYPE own.mood RENAME TO other",
    "ALTER TYPE own.mood SET SCHEMA public",
    "ALTER SCHEMA own RENAME TO elsewhere",
    "ALTER OPERATOR kinds.= (kinds.citext, kinds.citext) SET SCHEMA public",
    "ALTER OPERATOR kinds.< (kinds.citext, kinds.citext) SET SCHEMA public",
    "ALTER SCHEMA kinds RENAME TO elsewhere",
)
#: What composes statements that name them.
DECLARED = "'r', $$SELECT count(*) FROM words WHERE word = 'a'$$, every => '1 day', epsilon => 1, horizon => 9"
COMPOSED = {
    "plan": f"SELECT dp_plan_release({DECLARED})",
    "declare": f"SELECT dp_create_release({DECLARED})",
    "question": "SELECT dp_window_count('words', NULL, '2020-03-03', measure => 'state', predicate => $$word = 'a'$$, epsilon => 1)",
    "seal": "SELECT dbext_private.seal_table(2)",
    "track": "SELECT dp_track('more')",
    "recount": "SELECT dp_recount('words')",
    "rebase": "SELECT dp_rebase('words')",
}


@pytest.fixture
def words(owner):
    """Words of a type that an extension brought, and moods of a type of mallory's, one day on."""
    made = owner("id integer PRIMARY KEY, value text")
    made.session.execute("CREATE SCHEMA kinds; GRANT USAGE ON SCHEMA kinds TO PUBLIC; CREATE TYPE own.mood AS ENUM ('1', '2')")
    made.database.execute("CREATE EXTENSION citext SCHEMA kinds")
    made.session.execute("CREATE TABLE words (word kinds.citext PRIMARY KEY, mood own.mood); CREATE TABLE more (LIKE words INCLUDING ALL)")
    made.database.execute("SELECT dp_track('words')")
    made.database.execute(CONSTRAIN.format("any", "") + ", dp_set_budget('words', 9)")
    made.table.execute("INSERT INTO words VALUES ('a', '1')")
    made.table.day(1)
    made.table.execute("CALL dp_publish()")
    made.table.day(2)
    return made


def at_work(words):
    """A superuser's session at the same hour, whose transaction stays open."""
    session = words.database.connect(autocommit=False)
    words.table.set_now(words.table.session.execute("SHOW dbext.now").fetchone()[0], session)
    session.commit()
    return session


@pytest.mark.parametrize("composed", [one for one in COMPOSED if one != "question"])
def test_names_hold_while_statements_name_types_and_operators(words, composed):
    """From when they are looked up until whoever did so has ended his transaction nothing else can get their names."""
    with at_work(words) as session, words.database.connect() as other:
        session.execute(COMPOSED[composed])
        other.execute("SET lock_timeout = '100ms'")
        for swap in SWAPS:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute(swap)
        session.rollback()
        for swap in SWAPS:
            other.execute(f"BEGIN; {swap}; ROLLBACK")


@pytest.mark.parametrize("composed", [one for one in COMPOSED if one != "seal"])
def test_nobody_waits_for_who_renames_a_type(words, composed):
    """A seal does, as it waits for all DDL that follows the schema of its table."""
    with at_work(words) as session, words.database.connect(autocommit=False) as other:
        session.execute("SET lock_timeout = '5s'")
        session.commit()
        for swap in SWAPS:
            other.execute(swap)
            with pytest.raises(psycopg.Error, match="renamed or moved") as refusal:
                session.execute(COMPOSED[composed])
            assert refusal.value.sqlstate == "DP031"
            session.rollback()
            other.rollback()
