"""What a role may ask about a table without reading it, and how much of the budget it may take."""

import threading

import psycopg
import pytest

from tests.integration.refusals import refused

ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => {})"
DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
DECLARE = f"SELECT dp_create_release('{{}}', $${DAILY}$$, '1 day', epsilon => {{}})"


@pytest.fixture
def ann(told):
    """An analyst who may read nothing."""
    return told.database.create_role("dbext_analyst", name="ann")


@pytest.fixture
def bob(told):
    return told.database.create_role("dbext_analyst", name="bob")


def test_an_analyst_asks_about_what_was_granted_and_reads_nothing(told, ann):
    with told.database.connect(ann) as connection:
        assert "dp_grant" in refused(connection, "DP005", ASK.format("status = 'open'", 1))
        told.session.execute("SELECT dp_grant('cases', %s, '{status,id}')", (ann,))
        connection.execute(ASK.format("status = 'open'", 1))
        connection.execute(DECLARE.format("one", 1))
        assert "county" in refused(connection, "DP005", ASK.format("county = 'A'", 1))
        refused(connection, "42501", "SELECT status FROM cases")
        assert connection.execute("TABLE dbext.table_grant").fetchall() == [("public.cases", ann, ["id", "status"])]
        told.session.execute("SELECT dp_grant('cases', %s)", (ann,))
        connection.execute(ASK.format("county = 'A'", 1))
        told.session.execute("SELECT dp_revoke('cases', %s)", (ann,))
        refused(connection, "DP005", ASK.format("county = 'A'", 1))
        refused(connection, "DP002", DECLARE.format("two", 1))


def test_a_grant_to_a_group_is_its_members(told, ann, bob):
    group = told.database.create_role(name="group", options="NOLOGIN")
    told.session.execute(f"GRANT {group} TO {ann}")
    told.session.execute("SELECT dp_grant('cases', %s)", (group,))
    with told.database.connect(ann) as member, told.database.connect(bob) as other:
        member.execute(ASK.format("id = 1", 1))
        refused(other, "DP005", ASK.format("id = 1", 1))
        assert other.execute("TABLE dbext.table_grant").fetchall() == []


def test_only_the_tables_owner_grants_and_only_existing_things(told, ann):
    admin = told.database.create_role("dbext_admin", name="admin")
    with told.database.connect(admin) as connection:
        told.session.execute(f"GRANT SELECT ON cases TO {admin}")
        refused(connection, "DP005", f"SELECT dp_grant('cases', '{ann}')")
        refused(connection, "DP005", f"SELECT dp_revoke('cases', '{ann}')")
        told.session.execute(f"ALTER TABLE cases OWNER TO {admin}")
        connection.execute(f"SELECT dp_grant('cases', '{ann}')")
    with told.database.connect(ann) as connection:
        refused(connection, "42501", f"SELECT dp_grant('cases', '{ann}')")
    refused(told.session, "DP002", "SELECT dp_grant('cases', 'nobody_of_this_name')")
    refused(told.session, "DP002", f"SELECT dp_grant('cases', '{ann}', '{{nothing}}')")
    refused(told.session, "DP001", f"SELECT dp_grant('cases', '{ann}', '{{}}')")
    refused(told.session, "DP002", "SELECT dp_revoke('cases', 'nobody_of_this_name')")


def test_a_grant_gives_an_administrator_no_right_to_change_anything(told):
    admin = told.database.create_role("dbext_admin", name="admin")
    told.session.execute("SELECT dp_grant('cases', %s)", (admin,))
    with told.database.connect(admin) as connection:
        connection.execute(ASK.format("id = 1", 1))
        refused(connection, "DP005", "SELECT dp_set_budget('cases', epsilon => 20)")
        refused(connection, "DP005", f"SELECT dp_set_allowance('cases', '{admin}', 20)")


def test_a_role_spends_within_its_allowance_exactly(told, ann, bob):
    for role in (ann, bob):
        told.session.execute("SELECT dp_grant('cases', %s)", (role,))
    told.session.execute("SELECT dp_set_allowance('cases', %s, 2)", (ann,))
    with told.database.connect(ann) as connection, told.database.connect(bob) as other:
        connection.execute(ASK.format("id = 1", 1))
        connection.execute(DECLARE.format("one", "0.75"))
        said = refused(connection, "DP020", ASK.format("id = 2", "0.3"))
        assert "allowance" in said
        assert "spent or reserved 1.75, asked 0.3, left 0.25" in said
        refused(connection, "DP020", DECLARE.format("two", "0.3"))
        connection.execute(ASK.format("id = 2", "0.25"))
        assert connection.execute("TABLE dbext.allowance").fetchall() == [("public.cases", ann, 2, 2, 0, 0, 0)]
        connection.execute(ASK.format("id = 1", 1))
        other.execute(ASK.format("id = 3", 5))
        assert other.execute("TABLE dbext.allowance").fetchall() == []
        connection.execute("SELECT dp_drop_release('one')")
        connection.execute(ASK.format("id = 4", "0.75"))
        refused(connection, "DP020", ASK.format("id = 5", "0.01"))
        told.session.execute("SELECT dp_set_allowance('cases', %s, NULL)", (ann,))
        connection.execute(ASK.format("id = 5", "0.01"))
    assert told.database.fetch("TABLE dbext.allowance") == []


def test_a_release_that_someone_else_drops_stays_with_who_declared_it(told, ann):
    told.session.execute("SELECT dp_grant('cases', %s)", (ann,))
    told.session.execute("SELECT dp_set_allowance('cases', %s, 1)", (ann,))
    with told.database.connect(ann) as connection:
        connection.execute(DECLARE.format("one", 1).replace("'1 day',", "'1 day', start => '2020-01-02',"))
        told.day(6)
        told.publish()
        told.session.execute("SELECT dp_drop_release('one')")
        spent = told.database.value("SELECT spent FROM dbext.allowance")
        assert spent > 0
        refused(connection, "DP020", ASK.format("id = 1", 1 - spent + told.database.value("SELECT 0.001::numeric")))


def test_the_allowance_of_all_analysts_is_each_ones_own(told, ann, bob):
    for role in (ann, bob):
        told.session.execute("SELECT dp_grant('cases', %s)", (role,))
    told.session.execute("SELECT dp_set_allowance('cases', 'dbext_analyst', 1)")
    told.session.execute("SELECT dp_set_allowance('cases', %s, 2)", (bob,))
    with told.database.connect(ann) as connection, told.database.connect(bob) as other:
        connection.execute(ASK.format("id = 1", 1))
        refused(connection, "DP020", ASK.format("id = 2", "0.1"))
        other.execute(ASK.format("id = 3", 2))
        refused(other, "DP020", ASK.format("id = 4", "0.1"))
    told.session.execute(ASK.format("id = 5", 3))


def test_an_allowance_of_nothing_leaves_remembered_answers(told, ann):
    told.session.execute("SELECT dp_grant('cases', %s)", (ann,))
    told.session.execute("SELECT dp_set_allowance('cases', %s, 0)", (ann,))
    answer = told.session.execute(ASK.format("id = 1", 1)).fetchone()
    with told.database.connect(ann) as connection:
        assert connection.execute(ASK.format("id = 1", 1)).fetchone() == answer
        refused(connection, "DP020", ASK.format("id = 2", "0.1"))


def test_twenty_clients_of_one_role_cannot_pass_its_allowance(told, ann):
    told.session.execute("SELECT dp_grant('cases', %s)", (ann,))
    told.session.execute("SELECT dp_set_allowance('cases', %s, 3)", (ann,))
    outcomes, start = [], threading.Barrier(20)

    def client(number):
        with psycopg.connect(told.database.dsn(ann), autocommit=True) as connection:
            start.wait()
            try:
                outcomes.append(connection.execute(ASK.format(f"id = {number}", "0.5")).fetchone()[0])
            except psycopg.Error as error:
                outcomes.append(error.sqlstate)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("DP020") == 14
    assert told.database.fetch('SELECT spent, "left" FROM dbext.allowance') == [(3, 0)]


def test_a_role_made_again_has_spent_what_it_spent(told, ann):
    told.session.execute("SELECT dp_grant('cases', %s)", (ann,))
    told.session.execute("SELECT dp_set_allowance('cases', %s, 1)", (ann,))
    with told.database.connect(ann) as connection:
        connection.execute(ASK.format("id = 1", 1))
    told.session.execute(f"DROP OWNED BY {ann}; DROP ROLE {ann}; CREATE ROLE {ann} LOGIN IN ROLE dbext_analyst")
    told.session.execute(f"GRANT USAGE ON SCHEMA dbext, dp_release TO {ann}")
    with told.database.connect(ann) as connection:
        refused(connection, "DP020", ASK.format("id = 2", "0.1"))


def test_figures_are_checked(told, ann):
    refused(told.session, "DP001", f"SELECT dp_set_allowance('cases', '{ann}', -1)")
    refused(told.session, "DP001", f"SELECT dp_set_allowance('cases', '{ann}', 'NaN')")
    refused(told.session, "DP002", f"SELECT dp_set_allowance('cases', '{ann}', NULL)")
    refused(told.session, "DP002", "SELECT dp_set_allowance('cases', 'nobody_of_this_name', 1)")


KEYED = "SELECT dp_create_release('{}', 'SELECT county, count(*) FROM cases GROUP BY county', '1 day', horizon => 5, epsilon => 1, key_delta => {})"


def test_an_allowance_holds_group_keys_of_the_data_too(told, ann, bob):
    """Whoever has an allowance takes none of the budget's key_delta unless it says so, and then no more than that."""
    told.session.execute("SELECT dp_set_budget('cases', epsilon => 9, delta => 4e-6, key_delta => 2e-6)")
    for role in (ann, bob):
        told.session.execute("SELECT dp_grant('cases', %s)", (role,))
    told.session.execute("SELECT dp_set_allowance('cases', %s, 5)", (ann,))
    with told.database.connect(ann) as connection, told.database.connect(bob) as other:
        assert "holds key_delta 0 " in refused(connection, "DP020", KEYED.format("one", "1e-6"))
        assert "and key_delta 0.000001 on table" in told.database.value("SELECT dp_set_allowance('cases', %s, 5, 1e-6)", (ann,))
        connection.execute(KEYED.format("one", "0.6e-6"))
        refused(connection, "DP020", KEYED.format("two", "0.6e-6"))
        connection.execute(KEYED.format("two", "0.3e-6"))
        ((delta, spent),) = connection.execute("SELECT key_delta, key_delta_spent FROM dbext.allowance").fetchall()
        assert float(delta) == 1e-6
        assert float(spent) == pytest.approx(0.9e-6, rel=1e-3)
        told.session.execute("SELECT dp_set_allowance('cases', %s, 4)", (ann,))
        assert float(told.database.value("SELECT key_delta FROM dbext.allowance")) == 1e-6, "it stays unless another one is said"
        other.execute(KEYED.format("three", "1e-6"))
        refused(other, "DP020", KEYED.format("four", "0.5e-6"))
    refused(told.session, "DP001", f"SELECT dp_set_allowance('cases', '{ann}', 4, -1)")
    refused(told.session, "DP001", f"SELECT dp_set_allowance('cases', '{ann}', NULL, 1e-6)")


def test_a_role_that_is_renamed_keeps_its_allowance_and_what_it_spent(told, ann):
    told.session.execute("SELECT dp_grant('cases', %s)", (ann,))
    told.session.execute("SELECT dp_set_allowance('cases', %s, 2)", (ann,))
    with told.database.connect(ann) as connection:
        connection.execute(ASK.format("id = 1", "1.5"))
    eve = f"{ann}_married"
    told.session.execute(f"ALTER ROLE {ann} RENAME TO {eve}")
    try:
        told.session.execute("SELECT dp_grant('cases', %s)", (eve,))
        with told.database.connect(eve) as connection:
            assert connection.execute("SELECT role_name, spent FROM dbext.allowance").fetchall() == [(ann, told.database.value("SELECT 1.5"))]
            assert "left 0.5" in refused(connection, "DP020", ASK.format("id = 2", 1))
            connection.execute(ASK.format("id = 2", "0.25"))
            told.session.execute("SELECT dp_set_allowance('cases', %s, 3)", (eve,))
            assert "spent or reserved 1.75" in refused(connection, "DP020", ASK.format("id = 3", 2))
            connection.execute(ASK.format("id = 3", "1.25"))
        told.session.execute("SELECT dp_set_allowance('cases', %s, NULL)", (eve,))
        assert told.database.fetch("TABLE dbext.allowance") == []
    finally:
        told.session.execute(f"ALTER ROLE {eve} RENAME TO {ann}")


def test_after_a_dump_names_alone_say_who_is_who(told, ann):
    """OIDs of another cluster mean other roles; what a role was called and spent stays known."""
    told.session.execute("SELECT dp_grant('cases', %s); ", (ann,))
    told.session.execute("SELECT dp_set_allowance('cases', %s, 2)", (ann,))
    known = "SELECT count(*) FILTER (WHERE role_oid IS NOT NULL), count(*) FROM dbext_private.role_identity"
    assert told.database.fetch(known) == [(1, 1)]
    told.session.execute("UPDATE dbext_private.role_identity SET role_oid = 10")
    told.session.execute("SELECT dp_confirm_upgrade()")
    assert told.database.fetch(known) == [(0, 1)]
    with told.database.connect(ann) as connection:
        connection.execute(ASK.format("id = 1", "1.5"))
        refused(connection, "DP020", ASK.format("id = 2", 1))
    assert told.database.fetch(known) == [(1, 1)]
