"""What CREATE EXTENSION makes, read back from the catalog: owners, rights, search paths, comments."""

from __future__ import annotations

import pytest

#: Everything below is about members of the extension.
MEMBERS = """
    FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
    WHERE d.deptype = 'e' AND e.extname = 'dbext'
"""
FUNCTIONS = f"""
    FROM pg_proc p JOIN pg_roles o ON o.oid = p.proowner JOIN pg_language l ON l.oid = p.prolang
    WHERE p.oid IN (SELECT d.objid {MEMBERS} AND d.classid = 'pg_proc'::regclass)
"""
#: Functions that run as a superuser: the one that reads where the packages are and imports them, the one that opens second sessions, and
#: three that read partitions and make their triggers, on behalf of roles that may create partitions and nothing else.
SUPERUSER_OWNED = {"boot", "in_second_session", "hold_name", "hold_types", "log_partition", "adopt_partition", "release_partition"}


def test_definer_functions_have_a_fixed_search_path(database):
    loose = database.fetch(
        f"""
        SELECT p.oid::regprocedure::text {FUNCTIONS} AND p.prosecdef
        AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)
        """
    )
    assert loose == []


def test_nothing_acts_as_superuser_without_a_reason(database):
    """Event triggers fire for whatever table is altered, so their functions need a superuser's rights; see above for the others."""
    rows = database.fetch(
        f"SELECT DISTINCT p.proname {FUNCTIONS} AND o.rolsuper AND p.prosecdef AND p.prorettype <> 'event_trigger'::regtype"
    )
    assert {name for (name,) in rows} <= SUPERUSER_OWNED


def test_private_functions_are_nobodys_to_execute(database):
    open_to_all = database.fetch(
        f"""
        SELECT p.oid::regprocedure::text {FUNCTIONS} AND p.pronamespace = 'dbext_private'::regnamespace
        AND has_function_privilege('public', p.oid, 'EXECUTE') AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
        """
    )
    assert open_to_all == []


def test_nothing_claims_to_be_immutable_that_reads_tables(database):
    assert database.fetch(f"SELECT p.oid::regprocedure::text {FUNCTIONS} AND p.provolatile = 'i' AND l.lanname <> 'sql'") == []


@pytest.mark.parametrize("role", ["public", "dbext_reader", "dbext_analyst"])
def test_private_tables_cannot_be_read(database, role):
    readable = database.fetch(
        """
        SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'dbext_private'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p')
        AND (has_table_privilege(%(role)s, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')
             OR has_any_column_privilege(%(role)s, c.oid, 'SELECT'))
        """,
        {"role": role},
    )
    assert readable == []


def test_every_object_is_commented(database):
    bare = database.fetch(
        f"""
        SELECT pg_describe_object(d.classid, d.objid, 0) {MEMBERS}
        AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_namespace'::regclass, 'pg_event_trigger'::regclass)
        AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = d.objid AND d.classid = 'pg_class'::regclass AND c.relkind IN ('S', 'c', 'i'))
        AND NOT EXISTS (SELECT FROM pg_description x WHERE x.objoid = d.objid AND x.classoid = d.classid AND x.objsubid = 0)
        """
    )
    assert bare == []


def test_every_catalog_table_is_dumped_but_this_servers_row_what_is_worked_out_anew_and_what_is_always_empty(database):
    missing = database.fetch(
        f"""
        SELECT c.relname FROM pg_class c, pg_extension x WHERE x.extname = 'dbext' AND c.relkind IN ('r', 'S')
        AND c.oid IN (SELECT d.objid {MEMBERS} AND d.classid = 'pg_class'::regclass) AND NOT c.oid = ANY (x.extconfig)
        """
    )
    assert {name for (name,) in missing} == {"runtime", "loss_bound", "open_reservation", "only_a_superuser_drops_dbext"}


def test_the_extension_can_be_dropped_and_made_again(database):
    database.execute("DROP EXTENSION dbext CASCADE")
    database.execute("CREATE EXTENSION dbext CASCADE")
    assert database.value("SELECT count(*) FROM dbext.tracked_table") == 0


def test_it_can_be_created_in_a_schema_of_its_own(empty_database):
    empty_database.execute("CREATE SCHEMA privacy")
    empty_database.execute("CREATE EXTENSION dbext SCHEMA privacy CASCADE")
    assert empty_database.value("SELECT count(*) FROM pg_proc WHERE proname = 'dp_track' AND pronamespace = 'privacy'::regnamespace") == 1
    empty_database.execute("CREATE TABLE ticket (id bigint PRIMARY KEY, line text)")
    empty_database.execute("SELECT privacy.dp_track('ticket')")


def test_two_databases_of_one_cluster_share_its_roles(database, empty_database):
    empty_database.execute("CREATE EXTENSION dbext CASCADE")
    assert database.value("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'dbext\\_%%' AND NOT rolcanlogin") >= 4
