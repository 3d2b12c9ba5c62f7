"""Nobody but a superuser gets rid of the ledger: not by dropping a schema, nor what he owns, nor through code that others run."""

import psycopg
import pytest

TRAPDOOR = """
CREATE FUNCTION public.helpful() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN DROP SCHEMA public CASCADE; END $$
"""


@pytest.fixture
def owner(ready):
    """A role that owns the database, schema public included, and nothing else."""
    role = ready.database.create_role(name="owner")
    ready.session.execute(f"ALTER DATABASE {ready.database.name} OWNER TO {role}; ALTER SCHEMA public OWNER TO {role}")
    return role


def ledger_rows(ready):
    return ready.database.value("SELECT count(*) FROM dbext_private.ledger")


def refused(connection, sql):
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    assert caught.value.sqlstate == "55006"
    assert "only_a_superuser_drops_dbext" in caught.value.diag.message_primary


DROPS = (
    "DROP SCHEMA public CASCADE",
    "SET CONSTRAINTS ALL IMMEDIATE; DROP SCHEMA public CASCADE",
    "SET session_authorization = DEFAULT; DROP SCHEMA public CASCADE",
    "DROP OWNED BY CURRENT_USER CASCADE",
    "DO $$ BEGIN EXECUTE 'DROP SCHEMA public CASCADE'; END $$",
    "SET dbext_guard.dropper = 'postgres'; DROP SCHEMA public CASCADE",
)


def test_the_owner_of_the_database_cannot_drop_the_ledger(ready, owner):
    before = ledger_rows(ready)
    for drop in DROPS:
        with ready.database.connect(owner) as connection:
            refused(connection, drop)
        assert ledger_rows(ready) == before, drop


def test_code_of_the_owner_that_a_superuser_runs_cannot_either(ready, owner):
    with ready.database.connect(owner) as connection:
        connection.execute(TRAPDOOR)
    refused(ready.session, "SELECT public.helpful()")
    ready.session.execute("SET session_replication_role = replica")
    refused(ready.session, "SELECT public.helpful()")


def test_without_its_guard_the_ledger_is_lost(ready, owner):
    """The same attack against a weakened build: the guard is what stops it."""
    ready.session.execute("ALTER EVENT TRIGGER dbext_guard_2_hold DISABLE")
    with ready.database.connect(owner) as connection:
        connection.execute(DROPS[0])
    assert ready.database.value("SELECT to_regclass('dbext_private.ledger')") is None


def test_other_schemas_are_dropped_as_ever(ready, owner):
    with ready.database.connect(owner, autocommit=False) as connection:
        connection.execute("CREATE SCHEMA one; CREATE TABLE one.t (); CREATE SCHEMA two")
        connection.execute("DROP SCHEMA one CASCADE")
        connection.execute("DROP SCHEMA two")
        connection.commit()
    with ready.database.connect(owner) as connection:
        connection.execute("CREATE SCHEMA three")
        connection.execute("DROP SCHEMA three")


@pytest.mark.parametrize("drop", ["DROP EXTENSION dbext CASCADE", "DROP SCHEMA public CASCADE"])
def test_a_superuser_may(ready, drop):
    ready.session.execute(drop)
    assert ready.database.value("SELECT to_regclass('dbext_private.ledger')") is None
