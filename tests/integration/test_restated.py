"""dp_restated: published windows estimated anew from what has been published since, at no charge and without touching a row."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from dbext.mechanisms.least_squares_tree import LeastSquaresTree
from dbext.privacy.noise import RoundedGaussian
from dbext.query.plan import plan_from_json
from tests.chance import FAR, SIGMAS

TOTAL = "SELECT county, count(*) FROM cases WHERE status = 'open' GROUP BY county"
KEYS = "VALUES ('A'), ('B')"
BOTH = (
    "SELECT p.release_no, p.{0}::float8, p.std_error, r.value, r.std_error, p.window_start = r.window_start AND p.window_end = r.window_end"
    " FROM dp_release.one AS p JOIN dp_restated('one') AS r ON r.release_no = p.release_no AND r.group_key = ARRAY[p.county] ORDER BY 1, p.county"
)


def published(cases, text, days=20, delta="0", **options):
    cases.constrain(max_mutations=2)
    cases.budget(10, delta)
    cases.declare("one", text, epsilon=2, groups=KEYS, **options)
    for day in range(days):
        if day:
            cases.day(day)
        cases.insert(*[(100 * day + n, "AB"[n % 2], "open") for n in range(40)])
    cases.day(days)
    cases.publish()


def test_windows_of_several_levels_are_restated_with_less_error(cases):
    published(cases, TOTAL, levels=["1 day", "4 days", "12 days"], horizon=600)
    before = cases.database.fetch("SELECT * FROM dp_release.one ORDER BY 1, 3")
    ledger = cases.database.value("SELECT count(*) FROM dbext_private.ledger")
    rows = cases.database.fetch(BOTH.format("state"))
    assert len(rows) == 40
    assert all(same for *_, same in rows)
    assert all(restated <= error * (1 + 1e-9) for _, _, error, _, restated, _ in rows)
    assert sum(restated < 0.97 * error for _, _, error, _, restated, _ in rows) > 20
    for period, _, _, value, error, _ in rows:
        assert abs(value - 20 * period) <= FAR * error
    assert cases.database.fetch("SELECT * FROM dp_release.one ORDER BY 1, 3") == before
    assert cases.database.value("SELECT count(*) FROM dbext_private.ledger") == ledger
    assert cases.database.fetch(BOTH.format("state")) == rows, "the same numbers give the same estimates"


@pytest.mark.parametrize(("delta", "horizon"), [("1e-6", 30), ("0", 60)])
def test_where_later_numbers_say_nothing_the_history_stays(cases, delta, horizon):
    published(cases, TOTAL, delta=delta, every="1 day", horizon=horizon)
    for _, value, error, restated, error_then, same in cases.database.fetch(BOTH.format("state")):
        assert (restated, error_then, same) == (pytest.approx(value), pytest.approx(error), True)


def test_nothing_published_is_nothing_restated(ready):
    ready.declare("one", TOTAL, every="1 day", epsilon=1, groups=KEYS, horizon=5)
    assert ready.database.fetch("SELECT * FROM dp_restated('one')") == []


def test_only_readers_of_the_release_ask(ready):
    ready.declare("one", TOTAL, every="1 day", epsilon=1, groups=KEYS, horizon=5)
    stranger = ready.database.create_role("dbext_reader", admitted=False)
    with ready.database.connect(stranger) as connection, pytest.raises(Exception, match=r"permission|may not"):
        connection.execute("SELECT * FROM dp_restated('one')")


def test_a_least_squares_tree_publishes_its_totals_and_restates_them_better(cases):
    """The planner never prefers one, so that a plan is exchanged before its first publication."""
    cases.constrain(max_mutations=2)
    cases.budget(10, "1e-6")
    cases.declare("one", TOTAL, epsilon=2, groups=KEYS, every="1 day", horizon=40)
    assert cases.database.value("SELECT count(*) FROM dp_explain_release('one') WHERE mechanism = 'least_squares_tree' AND NOT chosen") == 1
    plan = plan_from_json(cases.database.value("SELECT plan -> 'plan' FROM dbext_private.release"))
    tree = replace(plan, mechanism=LeastSquaresTree(plan.mechanism.grid, 40, True), noise=RoundedGaussian(Fraction(9)))
    changed = json.dumps(tree.to_json())
    cases.session.execute("UPDATE dbext_private.release SET plan = jsonb_set(plan, '{plan}', %s::jsonb)", (changed,))
    for day in range(20):
        if day:
            cases.day(day)
        cases.insert(*[(100 * day + n, "AB"[n % 2], "open") for n in range(40)])
    cases.day(20)
    cases.publish()
    rows = cases.database.fetch(BOTH.format("state"))
    assert len(rows) == 40
    for period, value, error, restated, error_then, _ in rows:
        assert error == pytest.approx(tree.std_error(period))
        assert abs(value - 20 * period) <= SIGMAS * error
        assert abs(restated - 20 * period) <= SIGMAS * error_then
        assert error_then <= error * (1 + 1e-9)
    assert sum(then < 0.9 * error for _, _, error, _, then, _ in rows) >= 10
