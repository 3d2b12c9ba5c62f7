"""Who may do what, as a table; and what a right on the source table still decides."""

import psycopg
import pytest

from tests.integration.refusals import refused

NOBODY, READER, ANALYST, ADMIN = "nobody", "reader", "analyst", "admin"
DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', epsilon => 1)"

#: Public functions, and the least role that may call each.
PUBLIC_FUNCTIONS = {
    "dp_track": ADMIN,
    "dp_untrack": ADMIN,
    "dp_recount": ADMIN,
    "dp_rebase": ADMIN,
    "dp_mark": ADMIN,
    "dp_retain": ADMIN,
    "dp_add_constraint": ADMIN,
    "dp_alter_constraint": ADMIN,
    "dp_set_budget": ADMIN,
    "dp_mark_public": ADMIN,
    "dp_set_allowance": ADMIN,
    "dp_grant": ADMIN,
    "dp_revoke": ADMIN,
    "dp_bounds": ADMIN,
    "dp_publish": ADMIN,
    "dp_publish_to": ADMIN,
    "dp_require_witness": ADMIN,
    "dp_confirm_upgrade": None,
    "dp_confirm_restore": None,
    "dp_create_release": ANALYST,
    "dp_plan_release": ANALYST,
    "dp_explain_release": ANALYST,
    "dp_drop_release": ANALYST,
    "dp_range": READER,
    "dp_range_stats": READER,
    "dp_restated": READER,
    "dp_accept_delta": ADMIN,
    "dp_audit": ADMIN,
    "dp_set_process": ADMIN,
    "dp_risk_curve": ANALYST,
    "dp_plan_ageing": ANALYST,
    "dp_set_tolerance": ANALYST,
    "dp_window_count": ANALYST,
    "dp_window_stats": ANALYST,
    "dp_window_sum": ANALYST,
}
#: What roles other than dbext_owner may execute of the private schema. Everything else there is closed.
PRIVATE_FUNCTIONS = {
    READER: {"public_moment", "public_subject", "public_span", "budget_figures", "budget_uses", "age_risks", "allowance_figures", "visible_grants"},
    ADMIN: {
        "record_public_column",
        "sealable_tables",
        "due_releases",
        "table_label",
        "draw_release",
        "publish_release",
        "note_release_error",
        "own_lineage",
        "targeted_releases",
        "release_structure",
        "note_delivered",
        "knows_ledger",
        "unknown_rows",
        "accepted_rows",
        "rows_to_witness",
        "note_behind",
        "vouch",
        "was_witnessed",
    },
}
RANK = [NOBODY, READER, ANALYST, ADMIN]


@pytest.fixture
def people(database):
    return {
        NOBODY: database.create_role(name="nobody"),
        READER: database.create_role("dbext_reader", name="reader"),
        ANALYST: database.create_role("dbext_analyst", name="analyst"),
        ADMIN: database.create_role("dbext_admin", name="admin"),
    }


def executable(database, role, schema):
    sql = """SELECT DISTINCT p.proname FROM pg_proc AS p WHERE p.pronamespace = %s::regnamespace
        AND EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'dbext' WHERE d.objid = p.oid)
        AND has_function_privilege(%s, p.oid, 'EXECUTE')"""
    return {name for (name,) in database.fetch(sql, (schema, role))}


def test_each_role_may_call_exactly_what_the_table_says(database, people):
    for person, role in people.items():
        expected = {name for name, least in PUBLIC_FUNCTIONS.items() if least and RANK.index(least) <= RANK.index(person)}
        assert executable(database, role, "public") == expected, person


def test_the_private_schema_is_closed_but_for_named_functions(database, people):
    assert executable(database, people[NOBODY], "dbext_private") == set()
    readable = PRIVATE_FUNCTIONS[READER]
    assert executable(database, people[READER], "dbext_private") == readable
    assert executable(database, people[ANALYST], "dbext_private") == readable
    assert executable(database, people[ADMIN], "dbext_private") >= readable | PRIVATE_FUNCTIONS[ADMIN]
    for name in ("run", "call", "boot", "in_second_session", "answer_question", "ask", "canonical_literal"):
        assert name not in executable(database, people[ADMIN], "dbext_private")


def test_nobody_but_the_owner_touches_private_tables(database, people, ready):
    sql = """SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'dbext_private'::regnamespace AND CASE
        WHEN c.relkind = 'S' THEN has_sequence_privilege(%(role)s, c.oid, 'USAGE, SELECT, UPDATE')
        WHEN c.relkind IN ('r', 'v') THEN has_any_column_privilege(%(role)s, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
            OR has_table_privilege(%(role)s, c.oid, 'DELETE, TRUNCATE, TRIGGER')
        ELSE false END"""
    for role in people.values():
        assert database.fetch(sql, {"role": role}) == []


def test_only_a_superuser_changes_where_code_comes_from(database):
    assert database.fetch("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'runtime'") != [("dbext_owner",)]
    assert database.value("SELECT has_table_privilege('dbext_owner', 'dbext_private.runtime', 'INSERT, UPDATE, DELETE')") is False
    assert database.value("SELECT has_table_privilege('dbext_owner', 'dbext_private.runtime', 'SELECT')") is False
    assert database.value("SELECT has_function_privilege('dbext_owner', 'dblink_connect_u(text, text)', 'EXECUTE')") is False
    assert database.value("SELECT prosecdef AND pg_get_userbyid(proowner) <> 'dbext_owner' FROM pg_proc WHERE proname = 'boot'") is True


def test_every_definer_function_pins_its_search_path(database):
    sql = """SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid AND d.deptype = 'e'
        JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'dbext'
        WHERE p.prosecdef AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)"""
    assert database.fetch(sql) == []


def test_every_object_has_a_comment(database):
    sql = """SELECT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'dbext'
        WHERE d.deptype = 'e' AND obj_description(d.objid, d.classid::regclass::text::name) IS NULL
            AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_namespace'::regclass)
            AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = d.objid AND c.relkind IN ('S', 'i', 'c', 't'))"""
    assert database.fetch(sql) == []


def test_every_column_of_a_public_view_has_a_comment(database):
    sql = """SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'dbext'::regnamespace AND c.relkind IN ('v', 'c') AND col_description(c.oid, a.attnum) IS NULL"""
    assert database.fetch(sql) == []


def test_only_administrators_see_the_ledger_and_the_counts_of_seals(database, people):
    for view in ("dbext.ledger", "dbext.seal"):
        may = {person for person, role in people.items() if database.value("SELECT has_table_privilege(%s, %s, 'SELECT')", (role, view))}
        assert may == {ADMIN}


def test_an_analyst_needs_select_on_the_columns_he_asks_about(told, people):
    person = people[ANALYST]
    with told.database.connect(person) as connection:
        refused(connection, "DP005", ASK)
        refused(connection, "DP002", "SELECT dp_create_release('one', %s, '1 day', epsilon => 1)", (DAILY,))
        told.session.execute(f"GRANT SELECT (id, county) ON cases TO {person}")
        connection.execute(ASK)
        secret = ASK.replace("epsilon", "predicate => $$status = 'open'$$, epsilon")
        assert "status" in refused(connection, "DP005", secret)
        text = "SELECT status, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY status"
        refused(connection, "DP005", "SELECT dp_create_release('one', %s, '1 day', epsilon => 1, groups => 'VALUES (''open'')')", (text,))
        told.session.execute(f"GRANT SELECT ON cases TO {person}")
        connection.execute(secret)
        connection.execute("SELECT dp_create_release('one', %s, '1 day', epsilon => 1)", (DAILY,))
    asked_by = told.database.fetch("SELECT DISTINCT recorded_by FROM dbext_private.ledger WHERE kind <> 'budget'")
    assert asked_by == [(person,)]


def test_a_remembered_answer_needs_the_right_too(told, people):
    told.ask("2020-01-01", "2020-01-02", epsilon=1)
    with told.database.connect(people[ANALYST]) as connection:
        refused(connection, "DP005", ASK)


def test_set_role_decides_who_calls(told, people):
    told.session.execute(f"GRANT SELECT ON cases TO {people[ANALYST]}")
    with told.database.connect() as connection:
        connection.execute(f"SET ROLE {people[READER]}")
        refused(connection, "42501", ASK)
        connection.execute(f"SET ROLE {people[ANALYST]}")
        connection.execute(ASK)
        refused(connection, "42501", "SELECT dp_set_budget('cases', epsilon => 20)")
    assert told.database.value("SELECT asked_by FROM dbext_private.question") == people[ANALYST]


def test_an_analyst_drops_his_own_releases_only(told, people):
    told.declare("one", DAILY, every="1 day", epsilon=1)
    told.session.execute(f"GRANT SELECT ON cases TO {people[ANALYST]}")
    with told.database.connect(people[ANALYST]) as connection:
        refused(connection, "DP005", "SELECT dp_drop_release('one')")
        connection.execute("SELECT dp_create_release('two', %s, '1 day', epsilon => 1)", (DAILY,))
        connection.execute("SELECT dp_drop_release('two')")


def test_a_reader_sees_releases_and_public_views_and_nothing_else(told, people):
    told.declare("one", DAILY, every="1 day", epsilon=1)
    told.day(4)
    told.publish()
    with told.database.connect(people[READER]) as connection:
        for relation in ("dp_release.one", "dp_release.one_rounded", "dbext.release_status", "dbext.budget_status", "dbext.budget_use",
                         "dbext.tracked_table", "dbext.entry_type", "dbext.schema_event"):  # fmt: skip
            connection.execute(f"SELECT * FROM {relation}")
        assert connection.execute("SELECT count(*) FROM dp_release.one").fetchone() == (2,)
        for hidden in ("xmin", "ctid", "tableoid"):
            refused(connection, "42501", f"SELECT {hidden} FROM dp_release.one")
        refused(connection, "42501", "SELECT * FROM cases")
        refused(connection, "42501", "SELECT * FROM dbext_private.change_1")
        refused(connection, "42501", "INSERT INTO dp_release.one_rounded DEFAULT VALUES")
        refused(connection, "42501", "CALL dp_publish()")
    with told.database.connect(people[NOBODY]) as connection:
        refused(connection, "42501", "SELECT * FROM dp_release.one")
        refused(connection, "42501", "TABLE dbext.budget_status")


def test_members_of_another_database_have_no_rights_in_this_one(told, people):
    """Roles belong to the cluster: whoever was made for another database is not admitted here."""
    told.declare("one", DAILY, every="1 day", epsilon=1)
    told.day(4)
    told.publish()
    strangers = {role: told.database.create_role(role, admitted=False) for role in ("dbext_reader", "dbext_analyst", "dbext_admin")}
    attempts = ("SELECT * FROM dp_release.one", "TABLE dbext.budget_status", "TABLE dbext.ledger", "TABLE dbext.seal", "TABLE dbext.release_status")
    told.session.execute(f"GRANT SELECT ON cases TO {', '.join(strangers.values())}")
    for person in strangers.values():
        with told.database.connect(person) as connection:
            for attempt in attempts:
                refused(connection, "42501", attempt)
    with told.database.connect(strangers["dbext_analyst"]) as connection:
        assert "not admitted" in refused(connection, "DP005", ASK)
        refused(connection, "DP005", "SELECT dp_create_release('two', %s, '1 day', epsilon => 1)", (DAILY,))
        refused(connection, "DP005", "SELECT dp_drop_release('one')")
    with told.database.connect(strangers["dbext_admin"]) as connection:
        connection.execute("SET dbext.now = '2020-01-07 12:00+08'")
        connection.execute("CALL dp_publish()")
        for call in ("seal_table(1)", "draw_release(1)", "publish_release(1)"):
            refused(connection, "DP005", f"SELECT dbext_private.{call}")
        refused(connection, "DP005", "SELECT dp_set_budget('cases', epsilon => 20)")
        refused(connection, "DP005", "SELECT dp_add_constraint('cases', 'more', max_mutations => 9)")
        assert connection.execute("SELECT count(*) FROM dbext_private.budget_figures()").fetchone() == (0,)
        assert connection.execute("SELECT dbext_private.note_release_error(1, 'DP099')").fetchone() == (None,)
    assert told.database.fetch("SELECT published, status FROM dbext.release_status") == [(2, "waiting")]


def test_an_administrator_publishes_without_reading_the_table(told, people):
    told.declare("one", DAILY, every="1 day", epsilon=1)
    with told.database.connect(people[ADMIN]) as connection:
        connection.execute("SET dbext.now = '2020-01-05 12:00+08'")
        connection.execute("CALL dp_publish()")
        refused(connection, "42501", "SELECT * FROM cases")
        refused(connection, "DP005", "SELECT dp_set_budget('cases', epsilon => 20)")
    assert told.database.value("SELECT published FROM dbext.release_status") == 2


def test_a_new_table_of_an_old_name_brings_no_right_to_the_old_ones_history(told, people):
    person = people[ANALYST]
    told.session.execute(f"DROP TABLE cases; GRANT CREATE ON SCHEMA public TO {person}")
    with told.database.connect(person) as connection:
        connection.execute("CREATE TABLE cases (id integer PRIMARY KEY, county text, status text, reported date)")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(ASK)
        assert caught.value.sqlstate in ("DP002", "DP005")


def test_only_the_owner_of_a_table_marks_its_columns_public(told, people):
    told.session.execute("CREATE TABLE county (name text)")
    with told.database.connect(people[ADMIN]) as connection:
        refused(connection, "DP005", "SELECT dp_mark_public('county', 'name')")
        told.session.execute(f"ALTER TABLE county OWNER TO {people[ADMIN]}")
        connection.execute("SELECT dp_mark_public('county', 'name')")
    assert told.database.value("SELECT has_table_privilege('dbext_owner', 'county', 'SELECT')") is True
