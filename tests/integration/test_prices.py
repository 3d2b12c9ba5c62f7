"""Prices in epsilon and in rho in one budget: what is taken, what adds up with what, and what everything that reads prices makes of it."""

from __future__ import annotations

import json
import threading
from fractions import Fraction

import psycopg
import pytest

from dbext.privacy.conversion import budget_picos, epsilon_of_both
from dbext.privacy.pico import PICOS
from tests.integration.refusals import refused

DELTA = Fraction(1, 10**6)
DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
ASK = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $${}$$, epsilon => {}{})"
LAPLACE, GAUSSIAN = ", noise => 'laplace'", ", noise => 'gaussian'"


@pytest.fixture
def told(cases):
    """Entries of one mutation, a budget of (2, 1e-6), and five sealed days."""
    cases.constrain(max_mutations=1)
    cases.budget(2, "1e-6")
    cases.insert((1, "A", "open"))
    cases.day(5)
    cases.publish()
    return cases


def taken(told):
    return float(told.database.value("SELECT spent + reserved FROM dbext.budget_status"))


def units(told):
    return told.database.fetch("SELECT name, adds_in FROM dbext.budget_use ORDER BY name")


def rho(epsilon):
    return budget_picos(Fraction(epsilon), DELTA)


def test_four_in_epsilon_fill_what_holds_thirteen_in_rho(told):
    for n in range(4):
        told.session.execute(ASK.format(f"id = {n}", "0.5", LAPLACE))
    assert taken(told) == 2
    assert {unit for _, unit in units(told)} == {"epsilon"}
    for noise in (LAPLACE, GAUSSIAN, ""):
        assert "spent or reserved 2, asked 0.01, left 0" in refused(told.session, "DP020", ASK.format("id = 9", "0.01", noise))


def test_thirteen_in_rho(told):
    for n in range(13):
        told.session.execute(ASK.format(f"id = {n}", "0.5", ""))
    assert {unit for _, unit in units(told)} == {"rho"}
    assert 1.9 < taken(told) <= 2
    refused(told.session, "DP020", ASK.format("id = 13", "0.5", ""))
    refused(told.session, "DP020", ASK.format("id = 13", "0.5", LAPLACE))


def test_both_units_are_held_by_one_budget(told):
    """The sum of what adds in epsilon, beside what adds in rho: neither is left out, and neither is converted into the other."""
    told.session.execute(ASK.format("id = 1", "0.5", ""))
    told.declare("pure", DAILY, every="1 day", epsilon="0.75", noise="laplace", start="2020-01-01")
    told.declare("gauss", DAILY, every="1 day", epsilon="0.5", noise="gaussian", start="2020-01-01")
    both = epsilon_of_both(PICOS * 3 // 4, 2 * rho("0.5"), DELTA)
    assert float(both) > 0.75 + 0.5
    assert taken(told) == pytest.approx(float(both), abs=2e-6)
    assert units(told) == [("gauss", "rho"), ("pure", "epsilon"), ("question 1", "rho")]
    ledger = told.session.execute("SELECT kind, release, adds_in FROM dbext.ledger WHERE kind <> 'publish' ORDER BY ledger_no").fetchall()
    assert ledger == [("budget", None, None), ("question", None, "rho"), ("reserve", "pure", "epsilon"), ("reserve", "gauss", "rho")]
    shares = dict(told.database.fetch("SELECT name, share FROM dbext.budget_use"))
    assert float(shares["pure"]) == 0.375
    assert float(shares["gauss"]) == pytest.approx(rho("0.5") / rho(2), abs=1e-4)
    left = 2 - float(both)
    refused(told.session, "DP020", ASK.format("id = 2", left + 0.3, LAPLACE))
    told.session.execute("SELECT dp_drop_release('pure')")
    assert taken(told) < 1
    told.session.execute(ASK.format("id = 2", "1", LAPLACE))


def test_the_whole_of_an_untouched_budget_gets_what_errs_least(told):
    """One answer, or a narrow window: Laplace noise. A long total of entries that change often: Gaussian noise, in rho."""
    told.session.execute(ASK.format("id = 1", "2", ""))
    assert told.database.value("SELECT noise ->> 'kind' FROM dbext_private.question") == "discrete_laplace"
    assert units(told) == [("question 1", "epsilon")]
    other_day = "SELECT dp_window_count('cases', '2020-01-03', '2020-01-04', epsilon => 2)"
    told.session.execute(other_day)
    assert taken(told) == 2, "no entry of one mutation is in both windows"
    assert {unit for _, unit in units(told)} == {"epsilon"}
    refused(told.session, "DP020", ASK.format("id = 2", "2", ""))


def test_the_whole_for_a_release(told):
    said = told.declare("week", DAILY.replace("1 day", "7 days"), every="1 day", epsilon=2)
    assert "errs least" in said
    assert "mechanism disjoint_sums" in said
    assert units(told) == [("week", "epsilon")]
    told.session.execute("SELECT dp_drop_release('week')")
    told.session.execute(ASK.format("id = 1", "0.01", ""))
    told.session.execute("SELECT dp_set_budget('cases', epsilon => 4)")
    planned = "SELECT adds_in FROM dp_plan_release(NULL, %s, every => '1 day', epsilon => 4) WHERE chosen"
    assert told.session.execute(planned, (DAILY,)).fetchall() == [("rho",)], "something was charged before"


def test_a_long_total_for_the_whole_is_in_rho(cases):
    cases.constrain(max_mutations=4)
    cases.budget(2, "1e-6")
    cases.declare("total", "SELECT count(*) FROM cases", every="1 day", epsilon=2, horizon=1000)
    assert units(cases) == [("total", "rho")]


def test_a_plan_shows_both_units_and_what_they_cost(told):
    sql = "SELECT chosen, adds_in, reason, notes, mean_std_error, epsilon_by_type FROM dp_plan_release(NULL, %s, every => '1 day', epsilon => 0.5{})"
    rows = told.session.execute(sql.format(""), (DAILY,)).fetchall()
    (chosen,) = [row for row in rows if row[0]]
    other = min((row for row in rows if row[1] == "epsilon"), key=lambda row: row[4])
    assert chosen[1] == "rho"
    assert f"adds in epsilon, with noise => 'laplace': {other[4] / chosen[4]:.2f} times the error" == other[2]
    assert f"noise => 'laplace' would do with a mean standard error of {other[4]:.4g} instead of {chosen[4]:.4g}" in chosen[3]
    assert "4 such releases take epsilon 2, which holds 13 of those in rho" in chosen[3]
    assert [row[5] for row in (chosen, other)] == [{"any": pytest.approx(0.5)}] * 2
    rows = told.session.execute(sql.format(LAPLACE), (DAILY,)).fetchall()
    assert [(row[1], row[4]) for row in rows if row[0]] == [("epsilon", other[4])]
    assert {row[1] for row in rows} == {"epsilon", "rho"}
    rows = told.session.execute(sql.format(GAUSSIAN).replace("reason,", "noise,"), (DAILY,)).fetchall()
    assert all(row[2].startswith("rounded Gaussian") for row in rows)


def test_what_noise_can_be_asked_for(told):
    refused(told.session, "DP001", ASK.format("id = 1", "0.1", ", noise => 'loud'"))
    local = "SELECT dp_create_release('l', %s, '1 day', epsilon => 1, model => 'local', roster => 'VALUES (1), (2)', noise => 'laplace')"
    refused(told.session, "DP001", local, (DAILY,))
    told.budget(2, 0)
    assert "delta = 0" in refused(told.session, "DP001", ASK.format("id = 1", "0.1", GAUSSIAN))
    refused(told.session, "DP001", f"SELECT dp_create_release('g', $${DAILY}$$, '1 day', epsilon => 1{GAUSSIAN})")
    told.session.execute(ASK.format("id = 1", "0.1", LAPLACE))


def test_answers_are_remembered_by_the_noise_asked_for(told):
    def ask(noise):
        return told.session.execute(
            f"SELECT value, remembered FROM dp_window_stats('cases', '2020-01-01', '2020-01-02', epsilon => 0.2{noise})"
        ).fetchone()

    gaussian, _ = ask(GAUSSIAN)
    laplace, remembered = ask(LAPLACE)
    assert not remembered
    assert ask(LAPLACE) == (laplace, True)
    assert ask(GAUSSIAN) == (gaussian, True)
    assert ask("") == (laplace, True), "the more exact one"


def test_a_sum_at_a_price_in_epsilon(told):
    told.session.execute("SELECT dp_bounds('cases', 'id', 0, 100)")
    told.session.execute(f"SELECT dp_window_sum('cases', 'id', '2020-01-01', '2020-01-02', epsilon => 0.5{LAPLACE})")
    assert units(told) == [("question 1", "epsilon")]
    assert taken(told) == 0.5


def test_of_two_reservations_at_once_only_one_fits(told):
    """One in epsilon and one in rho, each more than half of the budget, at the same moment, again and again."""
    declare = f"SELECT dp_create_release('{{}}', $${DAILY}$$, '1 day', epsilon => 1.2{{}}, start => '2020-01-01')"
    for _ in range(5):
        outcomes, gate = {}, threading.Barrier(2)

        def run(name, noise, outcomes=outcomes, gate=gate):
            with told.database.connect() as session:
                gate.wait(30)
                try:
                    session.execute(declare.format(name, noise))
                    outcomes[name] = "done"
                except psycopg.Error as fault:
                    outcomes[name] = fault.sqlstate

        threads = [threading.Thread(target=run, args=one) for one in (("pure", LAPLACE), ("gauss", GAUSSIAN))]
        for one in threads:
            one.start()
        for one in threads:
            one.join(60)
        assert sorted(outcomes.values()) == ["DP020", "done"], outcomes
        (name,) = (name for name, outcome in outcomes.items() if outcome == "done")
        assert taken(told) == pytest.approx(1.2, abs=2e-6)
        told.session.execute("SELECT dp_drop_release(%s)", (name,))
    assert taken(told) == 0


def test_an_open_reservation_in_epsilon_counts_for_rho(told):
    with told.database.connect(autocommit=False) as declaring, told.database.connect() as asking:
        declaring.execute(f"SELECT dp_create_release('one', $${DAILY}$$, '1 day', epsilon => 1.5{LAPLACE}, start => '2020-01-01')")
        refused(asking, "DP020", ASK.format("id = 1", "1", GAUSSIAN))
        asking.execute(ASK.format("id = 2", "0.2", GAUSSIAN))
        refused(asking, "DP020", ASK.format("id = 3", "0.5", LAPLACE))
        declaring.rollback()
    told.session.execute(ASK.format("id = 1", "1", GAUSSIAN))


def test_the_whole_is_planned_anew_if_the_budget_is_not_untouched_any_more(told):
    """The reservation of a release that asks for everything waits for the budget; what it finds there leaves no room in epsilon."""
    outcome = []
    once = "SELECT count(*) FROM cases WHERE dp_time > '2020-01-01' AND dp_time <= '2020-01-02'"
    daily = f"SELECT dp_create_release('all', $${DAILY}$$, '1 day', epsilon => 2, start => '2020-01-03')"
    with told.database.connect(autocommit=False) as changing:
        changing.execute("SELECT dp_set_budget('cases', epsilon => 2)")
        changing.execute(f"SELECT dp_create_release('once', $${once}$$, epsilon => 1{GAUSSIAN})")
        thread = threading.Thread(target=lambda: outcome.append(told.database.connect().execute(daily).fetchone()[0]))
        thread.start()
        while not told.database.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'dbext'"):
            thread.join(0.02)
        changing.commit()
        thread.join(60)
    assert "reserves epsilon 2" in outcome[0]
    assert units(told) == [("all", "rho"), ("once", "rho")]


def test_an_allowance_holds_both_units(told):
    role = told.database.create_role("dbext_analyst", name="ann")
    told.session.execute(f"GRANT SELECT ON cases TO {role}")
    told.session.execute("SELECT dp_set_allowance('cases', %s, 1)", (role,))
    with told.database.connect(role) as ann:
        ann.execute(ASK.format("id = 1", "0.6", LAPLACE))
        assert "allowance" in refused(ann, "DP020", ASK.format("id = 2", "0.6", GAUSSIAN))
        ann.execute(ASK.format("id = 2", "0.2", GAUSSIAN))
        both = epsilon_of_both(PICOS * 6 // 10, rho("0.2"), DELTA)
        assert float(ann.execute("SELECT spent FROM dbext.allowance").fetchone()[0]) == pytest.approx(float(both), abs=2e-6)
        refused(ann, "DP020", ASK.format("id = 3", "0.3", LAPLACE))


def test_looser_limits_price_both_units_anew(told):
    told.declare("pure", DAILY, every="1 day", epsilon="0.5", noise="laplace")
    told.declare("gauss", DAILY, every="1 day", epsilon="0.3", noise="gaussian")
    told.session.execute("SELECT dp_alter_constraint('cases', 'any', max_mutations => 2)")
    (gauss,) = told.database.fetch("SELECT epsilon FROM dbext.budget_use WHERE name = 'gauss'")
    assert told.database.value("SELECT epsilon FROM dbext.budget_use WHERE name = 'pure'") == 1
    assert 0.3 < gauss[0] < 0.6
    refused(told.session, "DP020", "SELECT dp_alter_constraint('cases', 'any', max_mutations => 4)")


def test_lost_charges_keep_their_unit(told):
    told.session.execute(ASK.format("id = 1", "0.5", LAPLACE))
    told.session.execute(ASK.format("id = 2", "0.5", GAUSSIAN))
    rows = told.database.fetch("SELECT ledger_no, charges FROM dbext_private.ledger WHERE kind = 'question' ORDER BY 1")
    lost = [
        {"mark": f"{number:064x}", "kind": "question", "table": ["public", "cases"], "charges": charges, "number": number, "release_id": None}
        for number, charges in rows
    ]
    told.session.execute("SELECT dp_confirm_restore(%s)", (json.dumps(lost),))
    assert taken(told) == pytest.approx(float(epsilon_of_both(PICOS, 2 * rho("0.5"), DELTA)), abs=2e-6)
    assert told.database.value("SELECT adds_in FROM dbext.budget_use WHERE kind = 'lost history'") == "epsilon and rho"


def test_a_new_epoch_is_reserved_in_the_unit_of_the_first(cases):
    cases.constrain(max_mutations=1)
    cases.budget(2, "1e-6")
    total = "SELECT count(*) FROM cases"
    cases.declare("total", total, every="1 day", measure="net", horizon=3, at_horizon="renew", epsilon="0.5", noise="laplace")
    cases.day(8)
    cases.publish()
    assert cases.database.value("SELECT max(published) FROM dbext.release_status") >= 7
    charged = cases.database.fetch("SELECT DISTINCT charges -> 0 -> 'pure' FROM dbext_private.ledger WHERE kind IN ('reserve', 'publish')")
    assert charged == [(True,)]
    assert taken(cases) == 0.5


def test_a_tree_with_sections_passes_an_audit_all_along(told):
    """Half way through the horizon, and at the turn of a section: what was drawn is charged, block by block, with its own noise."""
    total = "SELECT count(*) FROM cases"
    told.declare("total", total, every="1 day", measure="net", horizon=64, epsilon=2, noise="laplace", start="2020-01-01")
    sections = told.database.value("SELECT plan -> 'plan' -> 'mechanism' -> 'sections' FROM dbext_private.release")
    assert len(sections) > 1
    for day in (10, 23, 37, 64):
        told.day(day)
        told.publish()
        told.session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        found = told.session.execute('SELECT a."check", a.detail FROM dp_audit() AS a WHERE a.verdict = \'failed\'').fetchall()
        told.session.execute("COMMIT")
        assert found == []
