"""Budgets: their figures, joining and leaving, and the ledger that nobody rewrites."""

import pytest

from tests.integration.refusals import refused

DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"


def test_epsilon_and_delta_outside_their_ranges_are_refused(cases):
    for epsilon in ("0", "-1", "'NaN'", "'Infinity'", "1001", "0.0000000000001", "NULL"):
        refused(cases.session, "DP001", f"SELECT dp_set_budget('cases', epsilon => {epsilon})")
    for delta in ("1", "-0.1", "2", "'NaN'"):
        refused(cases.session, "DP001", f"SELECT dp_set_budget('cases', epsilon => 1, delta => {delta})")


def test_a_table_that_is_not_tracked_has_no_budget(database):
    database.execute("CREATE TABLE other (id int PRIMARY KEY)")
    refused(database.superuser, "DP002", "SELECT dp_set_budget('other', epsilon => 1)")


def test_a_table_that_is_not_tracked_any_more_gets_neither_budget_nor_release(ready):
    ready.session.execute("SELECT dp_untrack('cases')")
    refused(ready.session, "DP002", "SELECT dp_set_budget('cases', epsilon => 11)")
    said = refused(ready.session, "DP002", f"SELECT dp_create_release('daily', $${DAILY}$$, '1 day', epsilon => 1)")
    assert "not tracked any more" in said
    assert "dp_track" in said
    refused(ready.session, "DP002", f"SELECT dp_plan_release('daily', $${DAILY}$$, '1 day', epsilon => 1)")
    for view in ("budget_status", "tracked_table"):
        assert ready.database.value(f"SELECT protects FROM dbext.{view}").endswith("; not tracked now, nothing is captured")
    ready.session.execute("SELECT dp_track('cases', time_zone => 'Asia/Taipei')")
    ready.budget(11)
    assert ready.database.value("SELECT protects FROM dbext.budget_status") == "one row of public.cases, identified by (id)"


def test_a_budget_is_set_changed_and_recorded(cases):
    cases.budget(2)
    cases.budget(3, "1e-6")
    rows = cases.database.fetch('SELECT budget, table_name, epsilon, delta, spent, reserved, "left" FROM dbext.budget_status')
    assert [(name, table, str(epsilon), str(delta)) for name, table, epsilon, delta, *_ in rows] == [
        ("public.cases", "public.cases", "3", "0.000001")
    ]
    assert rows[0][4:] == (0, 0, 3)
    assert cases.database.fetch("SELECT kind, epsilon FROM dbext_private.ledger ORDER BY ledger_no") == [("budget", 2), ("budget", 3)]


def test_budget_status_says_what_is_protected(cases):
    cases.budget(2)
    assert cases.database.value("SELECT protects FROM dbext.budget_status") == "one row of public.cases, identified by (id)"


def test_a_budget_below_what_is_reserved_is_refused(ready):
    ready.declare("daily", DAILY, every="1 day", epsilon=2)
    said = refused(ready.session, "DP001", "SELECT dp_set_budget('cases', epsilon => 1.5)")
    assert "already spent or reserved" in said
    ready.budget("2")
    assert ready.database.fetch('SELECT spent, reserved, "left" FROM dbext.budget_status') == [(0, 2, 0)]


def test_a_delta_leaves_charges_in_epsilon_what_they_were(ready):
    """The unit of a charge is settled when it is made: chosen afterwards, by what was seen, it would be no bound."""
    ready.declare("daily", DAILY, every="1 day", epsilon=2)
    ready.budget(10, "1e-6")
    assert ready.database.value("SELECT reserved FROM dbext.budget_status") == 2
    assert ready.database.value("SELECT adds_in FROM dbext.budget_use") == "epsilon"
    refused(ready.session, "DP001", "SELECT dp_set_budget('cases', epsilon => 0.5, delta => 1e-9)")
    ready.budget(10, 0)
    assert ready.database.value("SELECT reserved FROM dbext.budget_status") == 2


def test_gaussian_charges_need_a_delta(ready):
    ready.budget(1, "1e-6")
    ready.declare("daily", "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days' GROUP BY county",
                  every="1 day", epsilon="0.5", groups="VALUES ('A'), ('B')")  # fmt: skip
    kind = ready.database.value("SELECT charges -> 0 -> 'noise' ->> 'kind' FROM dbext_private.ledger WHERE kind = 'reserve'")
    assert kind == "rounded_gaussian"
    refused(ready.session, "DP003", "SELECT dp_set_budget('cases', epsilon => 1, delta => 0)")
    ready.session.execute("SELECT dp_set_budget('cases', epsilon => 2)")
    assert [str(figure) for figure in ready.database.fetch("SELECT epsilon, delta FROM dbext.budget_status")[0]] == ["2", "0.000001"]


def test_delta_is_kept_when_left_out_and_a_large_one_is_remarked_on(cases):
    def said(arguments):
        return cases.session.execute(f"SELECT dp_set_budget('cases', {arguments})").fetchone()[0]

    assert said("epsilon => 1").endswith("epsilon 1, delta 0")
    assert said("epsilon => 1, delta => 1e-9").endswith("delta 0.000000001")
    assert said("epsilon => 2").endswith("epsilon 2, delta 0.000000001")
    assert said("epsilon => 2, delta => 0").endswith("delta 0")
    assert "no protection" in said("epsilon => 2, delta => 0.5")


def test_whoever_joins_without_a_delta_takes_that_of_the_budget(shared):
    shared.budget(20, "1e-6")
    said = shared.session.execute("SELECT dp_set_budget('visits', epsilon => 20, budget => 'public.cases')").fetchone()[0]
    assert said.endswith("epsilon 20, delta 0.000001")


@pytest.fixture
def shared(ready):
    """A second table that has spent from a budget of its own."""
    ready.session.execute("CREATE TABLE visits (id integer PRIMARY KEY, place text)")
    ready.session.execute("SELECT dp_track('visits')")
    ready.session.execute("SELECT dp_add_constraint('visits', 'any', max_mutations => 1)")
    ready.session.execute("SELECT dp_set_budget('visits', epsilon => 5)")
    ready.session.execute(
        "SELECT dp_create_release('v', 'SELECT count(*) FROM visits WHERE dp_time > now() - INTERVAL ''1 day''', '1 day', epsilon => 3)"
    )
    return ready


def test_losses_of_tables_that_share_a_budget_add_up(shared):
    shared.declare("daily", DAILY, every="1 day", epsilon=4)
    shared.session.execute("SELECT dp_set_budget('visits', epsilon => 10, budget => 'public.cases')")
    refused(shared.session, "DP001", "SELECT dp_set_budget('visits', epsilon => 6.5)")
    shared.session.execute("SELECT dp_set_budget('visits', epsilon => 8)")
    rows = shared.database.fetch('SELECT table_name, epsilon, reserved, "left" FROM dbext.budget_status ORDER BY table_name')
    assert rows == [("public.cases", 8, 7, 1), ("public.visits", 8, 7, 1)]


def test_a_budget_too_small_for_both_is_not_joined(shared):
    shared.declare("daily", DAILY, every="1 day", epsilon=8)
    refused(shared.session, "DP001", "SELECT dp_set_budget('visits', epsilon => 10, budget => 'public.cases')")
    assert shared.database.fetch("SELECT budget, epsilon FROM dbext.budget_status ORDER BY 1") == [
        ("public.cases", 10),
        ("public.visits", 5),
    ]


@pytest.mark.parametrize("figures", ["epsilon => 11", "epsilon => 9", "epsilon => 10, delta => 1e-6"])
def test_joining_does_not_change_what_others_were_promised(shared, figures):
    said = refused(shared.session, "DP001", f"SELECT dp_set_budget('visits', {figures}, budget => 'public.cases')")
    assert "epsilon => 10, delta => 0" in said


def test_a_table_that_spent_from_a_shared_budget_stays(shared):
    shared.session.execute("SELECT dp_set_budget('visits', epsilon => 10, budget => 'public.cases')")
    refused(shared.session, "DP003", "SELECT dp_set_budget('visits', epsilon => 10, budget => 'alone')")
    shared.session.execute("SELECT dp_set_budget('cases', epsilon => 8, budget => 'alone')")


def test_the_ledger_is_append_only(ready):
    changes = "UPDATE dbext_private.ledger SET epsilon = 0", "DELETE FROM dbext_private.ledger", "TRUNCATE dbext_private.ledger"
    for change in changes:
        refused(ready.session, "DP005", change)
    ready.session.execute("SET ROLE dbext_owner")
    for change in changes:
        refused(ready.session, "42501", change)


def test_raising_a_constraint_beyond_the_budget_is_refused(ready):
    ready.declare("daily", DAILY, every="1 day", epsilon=9)
    said = refused(ready.session, "DP020", "SELECT dp_alter_constraint('cases', 'any', max_mutations => 4)")
    assert "would need epsilon 17.999997" in said
    ready.session.execute("SELECT dp_alter_constraint('cases', 'any', max_mutations => 2)")


def test_a_charge_needs_read_committed(ready):
    for level in ("REPEATABLE READ", "SERIALIZABLE"):
        with ready.database.connect(autocommit=False) as connection:
            connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            refused(connection, "DP003", "SELECT dp_set_budget('cases', epsilon => 1)")
            connection.rollback()
            connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            refused(connection, "DP003", f"SELECT dp_create_release('daily', $${DAILY}$$, '1 day', epsilon => 1)")
            connection.rollback()
