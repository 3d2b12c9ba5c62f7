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


def test_a_partition_let_go_unseen_is_given_types_with_casts(owner):
    """It is copied into the log, by a superuser, when it is altered the next time."""
    made = owner()
    made.session.execute("CREATE CAST (own.mine AS integer) WITH FUNCTION own.number(own.mine) AS ASSIGNMENT")
    with following_fails(made, "ALTER TABLE b RENAME TO c"):
        made.session.execute("ALTER TABLE entry DETACH PARTITION a")
    made.session.execute("ALTER TABLE a DROP CONSTRAINT a_pkey, ALTER COLUMN id TYPE own.mine USING '1'::own.mine")
    assert made.callers() == set()
    assert "partition" in {kind for _, _, kind, _ in made.table.events()}


@pytest.mark.parametrize("home", [True, False], ids=["at home", "after a promotion"])
def test_a_column_retyped_unseen_is_not_cast_by_capture(owner, home):
    made = owner("id integer PRIMARY KEY, value text")
    made.session.execute("CREATE CAST (own.mine AS text) WITH FUNCTION own.word(own.mine) AS ASSIGNMENT; CREATE SCHEMA place; ALTER TABLE entry SET SCHEMA place")
    if not home:
        made.database.execute("UPDATE dbext_private.cluster_identity SET timeline = '000000FF'")
    retyped = "ALTER TABLE place.entry ALTER COLUMN value TYPE own.mine USING '1'::own.mine"
    with following_fails(made, "SELECT FROM dbext_private.tracked_table FOR UPDATE" if home else "SELECT"), pytest.raises(psycopg.Error) as refusal:
        made.session.execute(retyped)
    assert refusal.value.sqlstate == "DP031"
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
