"""Age-dependent privacy through SQL: stated models, figures beside epsilon, the curve, the planner; and that no budget grows by it."""

from __future__ import annotations

import json

import psycopg
import pytest

DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
AGED = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '4 days' AND dp_time <= now() - INTERVAL '3 days'"
SYMMETRIC = "SELECT dp_set_process('cases', 'status', dwell => '{10,10}')"


def risks(cases):
    columns = "release, epsilon, output_loss, every, age, kept, peak, bounded, reason"
    return {row[0]: row[1:] for row in cases.database.fetch(f"SELECT {columns} FROM dbext.age_risk WHERE column_name = 'status'")}


@pytest.fixture
def modelled(ready):
    ready.declare("fresh", DAILY, every="1 day", measure="net", epsilon="0.3")
    ready.declare("aged", AGED, every="1 day", measure="net", epsilon="0.3")
    ready.session.execute(SYMMETRIC)
    return ready


def test_figures_stand_beside_epsilon(modelled):
    found = risks(modelled)
    fresh, aged = found["fresh"], found["aged"]
    assert [float(row[0]) for row in (fresh, aged)] == [0.3, 0.3]
    assert [row[2:4] for row in (fresh, aged)] == [(1, 0), (1, 3)]
    assert fresh[4] == pytest.approx(0.8)
    assert 0 < aged[5] < fresh[5] <= 2 * 0.3 + 1e-9
    assert (fresh[6], aged[6]) == (True, True)
    assert "limits on changes" in fresh[7]


def test_all_releases_and_answers_of_a_table_together(modelled):
    single, total = risks(modelled), risks(modelled)[None]
    assert total[0] is None
    assert max(single["fresh"][5], single["aged"][5]) < total[5] <= single["fresh"][1] * 2 * 3 + single["aged"][1] * 2 * 3
    modelled.day(2)
    modelled.publish()
    modelled.ask(modelled.midnight(0), modelled.midnight(1), epsilon="0.5")
    assert risks(modelled)[None][5] > total[5]
    assert risks(modelled)["fresh"] == single["fresh"]


def test_explain_shows_them_with_the_plan(modelled):
    rows = modelled.database.fetch("SELECT chosen, age_dependent FROM dp_explain_release('aged')")
    ((told,),) = [row[1:] for row in rows if row[0]]
    assert all(other is None for chosen, other in rows if not chosen)
    assert [(one["column_name"], one["age"]) for one in told] == [("status", 3)]
    assert told[0]["peak"] == pytest.approx(risks(modelled)["aged"][5])
    modelled.session.execute("SELECT dp_set_process('cases', 'status')")
    assert modelled.database.fetch("SELECT age_dependent FROM dp_explain_release('aged') WHERE chosen") == [(None,)]
    assert risks(modelled) == {}


def test_the_curve_over_time(modelled):
    rows = modelled.database.fetch("SELECT moment, age, risk, published FROM dp_risk_curve('aged', ticks => 8)")
    assert [row[1:] for row in rows[:1]] == [(None, 0, False)]
    assert [row[1] for row in rows[1:]] == [3] * 7
    assert all(row[3] for row in rows[1:])
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)
    assert max(row[2] for row in rows) <= risks(modelled)["aged"][5] + 1e-12
    late = modelled.database.fetch("SELECT moment, age, risk FROM dp_risk_curve('aged', ticks => 8, late => 5)")
    assert [row[1] for row in late[1:]] == [8] * 7
    assert all(one[2] < other[2] for one, other in zip(late[1:], rows[1:], strict=True))


def test_the_worst_type_counts_and_every_type_needs_a_model(cases):
    cases.session.execute("SELECT dp_add_constraint('cases', 'quick', applies_to => $$county = 'A'$$, max_mutations => 2)")
    cases.constrain(max_mutations=2)
    cases.budget(10)
    cases.declare("fresh", DAILY, every="1 day", measure="net", epsilon="0.3")
    cases.session.execute("SELECT dp_set_process('cases', 'status', dwell => '{2,2}', entry_type => 'quick')")
    assert risks(cases)["fresh"][4:] == (None, None, None, "no model is stated for some entry types, so that nothing ages for them")
    cases.session.execute("SELECT dp_set_process('cases', 'status', transition => '{{0.95,0.05},{0.05,0.95}}')")
    assert risks(cases)["fresh"][4] == pytest.approx(0.9)


def test_gaussian_noise_has_no_figure(cases):
    cases.constrain(max_mutations=6)
    cases.budget(10, "1e-6")
    cases.declare("total", "SELECT count(*) FROM cases", every="1 day", measure="state", horizon=60, epsilon="0.5")
    cases.session.execute(SYMMETRIC)
    assert risks(cases)["total"][1:7] == (None,) * 6
    assert "pure loss only" in risks(cases)["total"][7]
    with pytest.raises(psycopg.errors.Error, match="pure loss only"):
        cases.session.execute("SELECT * FROM dp_risk_curve('total')")


def test_reports_of_the_local_model_age_too(ready):
    """What all reports of an entry lose together against replacement is the release's own epsilon; one report loses its part."""
    ready.declare("reported", DAILY, every="1 day", measure="net", epsilon=3, model="local", roster="VALUES (1), (2), (3)")
    ready.session.execute(SYMMETRIC)
    epsilon, loss, every, age, _, peak, bounded, _ = risks(ready)["reported"]
    assert (every, age, bounded) == (1, 0, True)
    assert 0 < loss < peak <= float(epsilon)


def test_several_figures_of_one_release_lose_together(ready):
    ready.session.execute("SELECT dp_bounds('cases', 'id', 0, 100)")
    ready.declare("figures", DAILY.replace("count(*)", "count(*) AS n, sum(id) AS total"), every="1 day", measure="net", epsilon="0.3")
    ready.session.execute(SYMMETRIC)
    epsilon, loss, every, age, _, peak, bounded, _ = risks(ready)["figures"]
    assert (every, age, bounded) == (1, 0, True)
    assert 0.15 < loss <= peak <= 2 * float(epsilon) + 1e-9


def plans(cases, target):
    rows = cases.database.fetch("SELECT strategy, every, age, epsilon, error, peak FROM dp_plan_ageing('cases', 'status', %s, spread => 0.1)", (target,))
    return {row[0]: row[1:] for row in rows}


def test_age_and_noise_together_stay_accurate_where_noise_alone_does_not(modelled):
    targets = (1, 0.1, 0.01, 0.001)
    made = [plans(modelled, target) for target in targets]
    for one, target in zip(made, targets, strict=True):
        assert one["best"][3] <= min(one["noise only"][3], one["ageing only"][3])
        assert all(row[4] <= target * (1 + 1e-6) for row in one.values())
    assert [one["noise only"][1] for one in made] == [0, 0, 0, 0]
    assert made[-1]["noise only"][3] > 500 * made[0]["noise only"][3]
    assert made[-1]["best"][3] < 20 * made[0]["best"][3]
    assert made[-1]["best"][1] > made[0]["best"][1]


def test_no_model_enlarges_a_budget(modelled):
    """Whatever is stated, what is spent, reserved and left stays, and what did not fit does not fit."""
    figures = 'SELECT epsilon, spent, reserved, "left" FROM dbext.budget_status'
    before = modelled.database.fetch(figures)
    for dwell in ("{1.001,1.001}", "{2,2}", "{100000,3}"):
        modelled.session.execute("SELECT dp_set_process('cases', 'status', dwell => %s)", (dwell,))
        plans(modelled, 0.5)
        assert modelled.database.fetch(figures) == before
        with pytest.raises(psycopg.errors.Error) as refused:
            modelled.declare("more", DAILY, every="1 day", measure="net", epsilon="9.5")
        assert refused.value.sqlstate == "DP020"
    modelled.day(3)
    modelled.publish()
    assert modelled.database.value("SELECT jsonb_agg(charges) FROM dbext.ledger WHERE kind = 'reserve'")[0][0]["noise"]


@pytest.mark.parametrize(
    ("arguments", "state"),
    [
        ("'cases', 'nothing', dwell => '{2,2}'", "DP002"),
        ("'cases', 'status', dwell => '{2,2}', entry_type => 'nobody'", "DP002"),
        ("'cases', 'status', dwell => '{0.5,2}'", "DP001"),
        ("'cases', 'status', dwell => '{2,NULL}'", "DP001"),
        ("'cases', 'status', transition => '{{0.5,0.6},{0.5,0.5}}'", "DP001"),
        ("'cases', 'status', transition => '{{1,0},{0,1}}'", "DP001"),
        ("'cases', 'status', transition => '{0.5,0.5}'", "DP001"),
        ("'cases', 'status', transition => '{{0.5,0.5},{0.5,0.5}}', dwell => '{2,2}'", "DP001"),
        ("'cases', 'county'", "DP002"),
    ],
)
def test_models_that_are_refused(ready, arguments, state):
    with pytest.raises(psycopg.errors.Error) as refused:
        ready.session.execute(f"SELECT dp_set_process({arguments})")
    assert refused.value.sqlstate == state


def test_analysts_look_and_administrators_state(modelled):
    analyst = modelled.database.create_role("dbext_analyst")
    with modelled.database.connect(analyst) as connection:
        assert connection.execute("SELECT count(*) FROM dbext.age_risk").fetchone() == (3,)
        assert connection.execute("SELECT count(*) FROM dp_risk_curve('fresh')").fetchone() == (60,)
        assert connection.execute("SELECT count(*) FROM dp_plan_ageing('cases', 'status', 0.5)").fetchone()[0] >= 2
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(SYMMETRIC)


def test_several_columns_are_named(modelled):
    modelled.session.execute("SELECT dp_set_process('cases', 'county', dwell => '{50,50,50}')")
    assert modelled.database.value("SELECT count(*) FROM dbext.age_risk WHERE release = 'fresh'") == 2
    with pytest.raises(psycopg.errors.Error, match="several columns have a model"):
        modelled.session.execute("SELECT * FROM dp_risk_curve('fresh')")
    assert len(modelled.database.fetch("SELECT * FROM dp_risk_curve('fresh', 'county', 5)")) == 5
    assert json.dumps(modelled.database.value("SELECT jsonb_agg(column_name ORDER BY column_name) FROM dbext.age_risk WHERE release = 'aged'")) == '["county", "status"]'
