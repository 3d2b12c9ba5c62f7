"""The audit of a live installation: it passes what is right, and finds whatever would make a claim void. Each harm is rolled back."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
import pytest

from tests.conftest import TEMPLATE, create_database
from tests.integration.conftest import Cases
from tests.integration.test_cluster_changes import dump_and_restore

KEYS = "VALUES ('A'), ('B'), ('C')"
RECENT = "SELECT county, count(*) FROM cases WHERE status = 'open' AND dp_time > now() - INTERVAL '{} days' GROUP BY county"
TOTAL = "SELECT county, count(*) FROM cases WHERE status = 'open' GROUP BY county"
DAYS = 12


def live(cases):
    """Declare releases of every family and live through some days of them."""
    cases.constrain(max_mutations=3)
    cases.budget(20, "1e-6")
    cases.day(1)
    cases.declare("daily", RECENT.format(1), every="1 day", measure="entered", epsilon=1, groups=KEYS)
    cases.declare("week", RECENT.format(7), every="1 day", measure="net", epsilon=2, groups=KEYS)
    cases.declare("total", TOTAL, every="1 day", measure="state", horizon=30, epsilon=2, groups=KEYS)
    cases.declare("plain", "SELECT count(*) FROM cases", every="1 day", measure="state", horizon=30, epsilon=1)
    cases.declare("renewed", TOTAL, every="1 day", measure="state", horizon=5, at_horizon="renew", epsilon=1, groups=KEYS)
    cases.declare("pure", RECENT.format(3), every="1 day", measure="net", epsilon=1, groups=KEYS, noise="laplace")
    cases.session.execute("SELECT dp_bounds('cases', 'id', 0, 2000, 10)")
    figures = RECENT.format(1).replace("count(*)", "count(*) AS n, sum(id) AS total, avg(id) AS mean")
    cases.declare("figures", figures, every="1 day", measure="entered", epsilon=1, groups=KEYS)
    cases.declare("gone", RECENT.format(2), every="2 days", measure="left", epsilon=1, groups=KEYS)
    for day in range(1, DAYS):
        cases.day(day)
        cases.insert(*[(100 * day + n, "ABC"[n % 3], "open") for n in range(20)])
        cases.session.execute("UPDATE cases SET status = 'shut' WHERE id / 100 = %s AND id %% 4 = 0", (day - 2,))
        cases.session.execute("UPDATE cases SET county = 'C' WHERE id / 100 = %s AND id %% 5 = 0", (day - 1,))
        if day % 3 == 0:
            cases.publish()
    cases.day(DAYS)
    cases.publish()
    cases.session.execute("SELECT dp_drop_release('gone')")
    cases.ask(cases.midnight(1), cases.midnight(5), epsilon="0.1")
    cases.ask(None, cases.midnight(6), measure="state", predicate="county = 'A'", epsilon="0.1")
    cases.ask(cases.midnight(1), cases.midnight(4), epsilon="0.1", noise="laplace")


@pytest.fixture(scope="module")
def lived(cluster):
    database = create_database(cluster, TEMPLATE)
    cases = Cases(database)
    try:
        live(cases)
        yield cases
    finally:
        database.close()


@contextmanager
def harmed(cases, *harms):
    """Do harm in a transaction that is rolled back, and yield the findings of an audit inside."""
    connection = cases.session
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        for harm in harms:
            connection.execute(harm)
        yield connection.execute('SELECT a."check", a.subject, a.verdict, a.detail FROM dp_audit() AS a').fetchall()
    finally:
        connection.execute("ROLLBACK")


def failed(found):
    return {(check, subject) for check, subject, verdict, _ in found if verdict == "failed"}


def test_an_untouched_installation_passes(lived):
    with harmed(lived) as found:
        assert failed(found) == set(), [row for row in found if row[2] == "failed"]
        assert [row for row in found if row[2] == "warning"] == []
    checks = {check for check, *_ in found}
    assert {"published values", "nodes drawn once", "exact sums", "noise variance", "noise law", "rows traced to charges"} <= checks
    seen = {subject for check, subject, *_ in found if check == "noise variance"}
    assert seen == {"daily", "week", "total", "plain", "renewed", "pure", "gone", "figures, stream 1", "figures, stream 2"}


LEDGER_OPEN = "ALTER TABLE dbext_private.ledger DISABLE TRIGGER ledger_append_only"
ADDS_IN = "UPDATE dbext_private.ledger SET charges = (SELECT jsonb_agg(c || '{{\"pure\": {0}}}') FROM jsonb_array_elements(charges) AS c) WHERE kind <> 'budget' AND charges <> '[]' AND {1}"
NODE_OF = "release_id = (SELECT release_id FROM dbext_private.release WHERE name = '{}')"

HARMS = {
    "a published value": (["UPDATE dp_release.daily SET entered = entered + 1 WHERE release_no = 3 AND county = 'A'"], {("published values", "daily")}),
    "a published interval": (["UPDATE dp_release.week SET upper_95 = upper_95 + 1 WHERE release_no = 3"], {("published values", "week")}),
    "a published mean": (["UPDATE dp_release.figures SET mean = mean + 1 WHERE release_no = 3 AND county = 'A'"], {("published values", "figures")}),
    "a published row that is gone": (["DELETE FROM dp_release.total WHERE release_no = 2 AND county = 'B'"], {("published values", "total")}),
    "a row of a period that was never published": (
        ["INSERT INTO dp_release.plain SELECT window_end + interval '90 days', window_start, state, std_error, lower_95, upper_95, 99, 'ok' FROM dp_release.plain WHERE release_no = 1"],
        {("published values", "plain")},
    ),
    "a release table that is gone": (["DROP TABLE dp_release.plain CASCADE"], {("published values", "plain")}),
    "a node": ([f"UPDATE dbext_private.node SET noisy[1] = noisy[1] + 2 WHERE {NODE_OF.format('daily')} AND node_no = 2"], {("nodes drawn once", "daily"), ("published values", "daily")}),
    "a node drawn again, though nothing else tells": ([f"UPDATE dbext_private.node SET noisy = noisy WHERE {NODE_OF.format('total')} AND node_no = 2"], {("nodes drawn once", "total")}),
    "a node that is gone": ([f"DELETE FROM dbext_private.node WHERE {NODE_OF.format('week')} AND node_no = 4"], {("nodes drawn once", "week"), ("published values", "week")}),
    "an exact sum": (["UPDATE dbext_private.tick_sum SET sums[2] = sums[2] + 40 WHERE tick = (SELECT max(tick) FROM dbext_private.tick_sum) AND " + NODE_OF.format("daily")], {("exact sums", "daily")}),
    "a change in a closed tick": (["DELETE FROM dbext_private.change_1 WHERE ctid = (SELECT min(ctid) FROM dbext_private.change_1 WHERE new_present AND tick > (SELECT first_tick + 3 FROM dbext_private.tracked_table))"], {("exact sums", name) for name in ("daily", "week", "total", "plain")}),
    "a charge that was deleted": ([LEDGER_OPEN, f"DELETE FROM dbext_private.ledger WHERE kind = 'publish' AND {NODE_OF.format('daily')}"], {("rows traced to charges", "daily"), ("budgets are not reset", "ledger")}),
    "one of several charges that was deleted": ([LEDGER_OPEN, f"DELETE FROM dbext_private.ledger WHERE ledger_no = (SELECT min(ledger_no) FROM dbext_private.ledger WHERE kind = 'publish' AND {NODE_OF.format('total')})"], {("rows traced to charges", "total"), ("budgets are not reset", "ledger")}),
    "a reservation that was deleted": ([LEDGER_OPEN, f"DELETE FROM dbext_private.ledger WHERE kind = 'reserve' AND {NODE_OF.format('week')}"], {("rows traced to charges", "week"), ("budgets are not reset", "ledger")}),
    "an answer that is not charged": ([LEDGER_OPEN, "DELETE FROM dbext_private.ledger WHERE kind = 'question'"], {("answers traced to charges", "questions"), ("budgets are not reset", "ledger")}),
    "less noise than was charged": (["UPDATE dbext_private.release SET plan = jsonb_set(plan, '{plan,noise}', '{\"kind\": \"discrete_laplace\", \"scale\": \"1/8\"}') WHERE name = 'daily'"], {("rows traced to charges", "daily"), ("noise variance", "daily"), ("noise law", "daily"), ("published values", "daily")}),
    "a release that is charged in rho instead of epsilon": ([LEDGER_OPEN, ADDS_IN.format("false", NODE_OF.format("pure"))], {("rows traced to charges", "pure")}),
    "an answer that is charged in rho instead of epsilon": ([LEDGER_OPEN, ADDS_IN.format("false", "question_id IN (SELECT question_id FROM dbext_private.question WHERE pure)")], {("answers traced to charges", "questions")}),
    "a later epoch in epsilon instead of rho": ([LEDGER_OPEN, ADDS_IN.format("true", "ledger_no = (SELECT max(ledger_no) FROM dbext_private.ledger WHERE kind = 'reserve' AND " + NODE_OF.format("renewed") + ")")], {("rows traced to charges", "renewed")}),
    "Gaussian noise that is charged in epsilon": ([LEDGER_OPEN, ADDS_IN.format("true", NODE_OF.format("week"))], {("rows traced to charges", "week"), ("budget holds", "public.cases")}),
    "a budget that was raised behind the ledger's back": (["UPDATE dbext_private.budget SET epsilon = 99"], {("budget reset", "public.cases")}),
    "more spent than the budget holds": (["UPDATE dbext_private.budget SET epsilon = 0.001"], {("budget reset", "public.cases"), ("budget holds", "public.cases")}),
    "limits that were lifted": (["UPDATE dbext_private.entry_type SET loosest_max_mutations = NULL, max_mutations = NULL"], {("bounded contribution", "public.cases"), ("budget holds", "public.cases")}),
    "an entry beyond its limits": (["INSERT INTO dbext_private.change_1 SELECT c.* FROM (SELECT * FROM dbext_private.change_1 WHERE new_present ORDER BY tick DESC LIMIT 1) AS c, generate_series(1, 3)"], {("bounded contribution", "public.cases")}),
    "a view on exact sums": (["CREATE VIEW leak AS SELECT * FROM dbext_private.tick_sum"], {("exact sums are private", "schema dbext_private")}),
    "a grant on exact sums": (["GRANT SELECT ON dbext_private.change_1 TO dbext_reader"], {("exact sums are private", "schema dbext_private")}),
    "a trigger that copies": (["CREATE FUNCTION copying() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'", "CREATE TRIGGER copying AFTER INSERT ON dbext_private.tick_sum EXECUTE FUNCTION copying()"], {("exact sums are private", "schema dbext_private")}),
    "a function that acts as dbext_owner": (["CREATE FUNCTION peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM dbext_private.tick_sum'", "ALTER FUNCTION peek() OWNER TO dbext_owner"], {("exact sums are private", "schema dbext_private")}),
    "a publication of everything": (["CREATE PUBLICATION everything FOR ALL TABLES"], {("exact sums are private", "schema dbext_private")}),
    "nodes that may be drawn twice": (["ALTER TABLE dbext_private.node DROP CONSTRAINT node_drawn_once"], {("noise is not redrawn", "database")}),
    "a database that was restored": (["UPDATE dbext_private.cluster_identity SET timeline = 'another'"], {("noise is not redrawn", "database")}),
    "a tick that no seal closed": (["DELETE FROM dbext_private.seal WHERE seal_no = 2"], {("late data", "public.cases")}),
    "a delta above the acceptable one": (["SELECT dp_accept_delta('cases', 1e-9)"], {("acceptable delta", "public.cases")}),
    "decisions that need more": (["SELECT dp_set_tolerance('week', 0.5)"], {("decision tolerance", "week")}),
}  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_what_makes_a_claim_void_is_found(lived, harm):
    statements, expected = HARMS[harm]
    with harmed(lived, *statements) as found:
        seen = failed(found)
    assert expected <= seen, [row for row in found if row[2] != "passed"]


def test_more_noise_on_paper_than_was_drawn_is_found(lived):
    """Plan, reservation and charge agree on more noise than was drawn: the variance is off, and so is what is published."""
    plan = "UPDATE dbext_private.release SET plan = jsonb_set(jsonb_set(plan, '{plan,noise,sigma_squared}', '\"1000000\"'), '{plan,charges,0,noise,sigma_squared}', '\"1000000\"') WHERE name = 'total'"
    charges = f"UPDATE dbext_private.ledger SET charges = jsonb_set(charges, '{{0,noise,sigma_squared}}', '\"1000000\"') WHERE {NODE_OF.format('total')}"
    with harmed(lived, LEDGER_OPEN, plan, charges) as found:
        assert {("noise variance", "total"), ("published values", "total")} <= failed(found)


def test_less_charged_than_a_life_loses_is_found_in_either_unit(lived):
    """The ledger says that noise was wider than it was, in one unit or the other: a life shows it."""
    with harmed(lived) as found:
        (detail,) = (detail for check, *_, detail in found if check == "ledger against lives")
    assert "of epsilon, the ledger says" in detail
    assert "of rho, the ledger says" in detail
    for parameter, pure in (("scale", "true"), ("sigma_squared", "false")):
        wider = f"jsonb_set(c, '{{noise,{parameter}}}', '\"1000000000000000\"', false)"
        charges = f"UPDATE dbext_private.ledger SET charges = (SELECT jsonb_agg(CASE c ->> 'pure' WHEN '{pure}' THEN {wider} ELSE c END) FROM jsonb_array_elements(charges) AS c) WHERE kind <> 'budget' AND charges <> '[]'"
        with harmed(lived, LEDGER_OPEN, charges) as found:
            assert ("ledger against lives", "public.cases") in failed(found)


def test_a_sufficient_tolerance_and_delta_pass(lived):
    with harmed(lived, "SELECT dp_accept_delta('cases', 1e-6)", "SELECT dp_set_tolerance('week', 10000)") as found:
        assert failed(found) == set()
    assert ("decision tolerance", "week") in {(check, subject) for check, subject, *_ in found}


def test_what_was_forgotten_is_not_asked_for(lived, empty_database):
    """In a copy: mutations are forgotten for good, and not in the transaction of an audit."""
    dump_and_restore(lived.database.cluster, lived.database.name, empty_database.name)
    copy = empty_database.superuser
    copy.execute("SELECT dp_confirm_upgrade()")
    copy.execute("SELECT set_config('dbext.now', %s, false)", lived.session.execute("SELECT current_setting('dbext.now')").fetchone())
    copy.execute("SELECT dp_retain('cases', keep => '4 days')")
    found = audited(copy)
    assert failed(found) == set(), [row for row in found if row[2] == "failed"]
    assert {detail for check, _, _, detail in found if check == "exact sums"} >= {"all are those of the settled images, as far back as single changes are kept"}
    copy.execute(HARMS["an exact sum"][0][0])
    assert ("exact sums", "daily") in failed(audited(copy))


def audited(connection):
    """Audit a database and leave nothing behind; returns (check, subject, verdict, detail)."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        return connection.execute('SELECT a."check", a.subject, a.verdict, a.detail FROM dp_audit() AS a').fetchall()
    finally:
        connection.execute("ROLLBACK")


def test_a_restored_database_is_audited_once_it_is_accepted(lived, empty_database):
    dump_and_restore(lived.database.cluster, lived.database.name, empty_database.name)
    restored = empty_database.superuser
    assert failed(audited(restored)) == {("noise is not redrawn", "database")}
    restored.execute("SELECT dp_confirm_upgrade()")
    found = audited(restored)
    assert failed(found) == set(), [row for row in found if row[2] == "failed"]
    drawn_once = [detail for check, _, _, detail in found if check == "nodes drawn once"]
    assert drawn_once
    assert all("restored from a dump" in detail for detail in drawn_once)
    restored.execute("UPDATE dp_release.total SET state = state + 1 WHERE release_no = 1")
    assert failed(audited(restored)) == {("published values", "total")}


def test_a_promise_that_was_raised_is_told(lived):
    with harmed(lived) as found:
        assert "warning" not in {verdict for _, _, verdict, _ in found}
    raised = "INSERT INTO dbext_private.ledger (budget_id, kind, charges, epsilon, recorded_by) SELECT budget_id, 'budget', '{\"delta\": \"0.000001\"}', %s, 'x' FROM dbext_private.budget"
    with harmed(lived, raised.replace("%s", "0.001"), raised.replace("%s", "20")) as found:
        assert {(check, verdict) for check, _, verdict, _ in found if check == "budget reset"} == {("budget reset", "warning")}


def test_an_audit_sees_one_state_and_is_for_administrators(lived):
    with pytest.raises(psycopg.errors.Error, match="one state of the database"):
        lived.session.execute("SELECT * FROM dp_audit()")
    reader = lived.database.create_role("dbext_analyst")
    with lived.database.connect(reader) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM dp_audit()")
    with lived.database.connect(reader) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT * FROM dbext_private.audit")


def test_others_learn_whether_it_passed(lived):
    admin, reader = lived.database.create_role("dbext_admin"), lived.database.create_role("dbext_reader")
    with lived.database.connect(admin, autocommit=False) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert connection.execute("SELECT bool_and(verdict <> 'failed') FROM dp_audit()").fetchone() == (True,)
    with lived.database.connect(reader) as connection:
        assert connection.execute("SELECT passed FROM dbext.audit_status ORDER BY audit_no DESC LIMIT 1").fetchone() == (True,)
