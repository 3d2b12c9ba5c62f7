"""Running totals that reach their horizon: the total goes on, what a new epoch costs is reserved before, and refused in time."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import charge_from_json
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import epsilon_of
from dbext.query.plan import plan_from_json
from tests.chance import FAR, SIGMAS

TOTAL = "SELECT county, count(*) FROM cases WHERE status = 'open' GROUP BY county"
KEYS = "VALUES ('A'), ('B')"
STATUS = "SELECT status, epoch, at_horizon, (horizon_end AT TIME ZONE 'Asia/Taipei')::date - '2020-01-01'::date, published FROM dbext.release_status"
#: name -> measure, most mutations, delta, horizon: each is what the planner chooses.
CHOICES = {
    "square_root": ("state", 4, "1e-6", 6),
    "weighted_square_root": ("net", 1, "1e-6", 6),
    "signed_tree": ("state", 4, "0", 60),
    "plain_sums": ("state", 4, "0", 3),
}


def renewing(cases, mechanism, epsilon, budget=1000):
    measure, most, delta, horizon = CHOICES[mechanism]
    cases.constrain(max_mutations=most)
    cases.budget(budget, delta)
    said = cases.declare("one", TOTAL, every="1 day", epsilon=epsilon, groups=KEYS, measure=measure, horizon=horizon, at_horizon="renew")
    assert f"mechanism {mechanism};" in said
    assert "a new epoch begins" in said
    return measure


def history(cases, days, publish_every=1):
    for day in range(days):
        if day:
            cases.day(day)
            if day % publish_every == 0:
                cases.publish()
        cases.insert(*[(1000 * day + n, "AB"[n % 2], "open") for n in range(100)])
    cases.day(days)
    cases.publish()


@pytest.mark.parametrize("publish_every", [1, 50], ids=["daily", "late"])
@pytest.mark.parametrize("mechanism", CHOICES)
def test_the_total_goes_on_through_three_epochs(cases, mechanism, publish_every):
    """Published totals are those of all days; each error covers the noise of the finished epochs, too."""
    measure = renewing(cases, mechanism, 3)
    horizon = CHOICES[mechanism][3]
    days = 2 * horizon + 2 if horizon < 10 else horizon + 3
    history(cases, days, publish_every)
    rows = cases.database.fetch(f"SELECT release_no, county, {measure}, std_error, lower_95, upper_95 FROM dp_release.one ORDER BY 1, 2")
    assert len(rows) == 2 * days
    plan = plan_from_json(cases.database.value("SELECT plan -> 'plan' FROM dbext_private.release"))
    for period, _, value, error, lower, upper in rows:
        assert error == pytest.approx(plan.std_error(period))
        assert abs(value - 50 * period) <= FAR * error
        assert lower < value < upper
    errors = {period: error for period, _, _, error, _, _ in rows}
    assert errors[horizon + 1] ** 2 > errors[horizon] ** 2, "the finished epoch's noise stays"
    assert errors[horizon + 1] ** 2 - errors[horizon] ** 2 <= errors[horizon] ** 2 * 1.5
    numbers = cases.database.fetch("SELECT count(*), count(DISTINCT node_no) FROM dbext_private.node")
    assert numbers[0][0] == numbers[0][1]


@pytest.mark.parametrize("mechanism", CHOICES)
def test_the_ledger_holds_what_every_epoch_costs(cases, mechanism):
    renewing(cases, mechanism, 2)
    horizon, delta = CHOICES[mechanism][3], Fraction(CHOICES[mechanism][2])
    history(cases, horizon + 2, 500)
    rows = cases.database.fetch("SELECT kind, charges::text FROM dbext_private.ledger WHERE release_id = 1 ORDER BY ledger_no")
    kinds = [kind for kind, _ in rows]
    assert kinds.count("reserve") == 2
    assert kinds.index("publish") > 1, "the second epoch is reserved before anything of it is drawn"
    reserved = [[charge_from_json(one) for one in json.loads(text)] for kind, text in rows if kind == "reserve"]
    (spent,) = ([charge_from_json(one) for one in json.loads(text)] for kind, text in rows if kind == "publish")
    assert spent == [*reserved[0], *(charge.through(2) for charge in reserved[1])] or mechanism == "signed_tree"
    types = [EntryType(1, "any", Constraint(CHOICES[mechanism][1]))]
    both = epsilon_of(max(worst_case_loss([*reserved[0], *reserved[1]], types, delta == 0).values()), delta)
    spent_now, reserved_now = cases.database.fetch("SELECT spent, reserved FROM dbext.budget_status")[0]
    assert float(spent_now + reserved_now) == pytest.approx(float(both), rel=1e-4)
    assert cases.database.fetch("SELECT kind, name FROM dbext.budget_use") == [("release", "one")]
    if CHOICES[mechanism][1] == 1:
        assert float(both) == pytest.approx(2, rel=1e-4), "one mutation lies in one epoch"
    cases.session.execute("SELECT dp_drop_release('one')")
    after = cases.database.fetch("SELECT spent, reserved FROM dbext.budget_status")[0]
    assert float(after[0]) == pytest.approx(float(spent_now), rel=1e-4)
    assert after[1] == 0


def test_renewal_is_announced_and_reserved_with_the_last_tenth(cases):
    renewing(cases, "signed_tree", 2)
    assert cases.database.fetch(STATUS) == [("waiting", 1, "next epoch not reserved yet", 60, 0)]
    cases.day(53)
    cases.publish()
    assert cases.database.fetch(STATUS) == [("waiting", 1, "next epoch not reserved yet", 60, 53)]
    cases.day(55)
    cases.publish()
    assert cases.database.fetch(STATUS) == [("waiting", 1, "next epoch reserved", 60, 55)]
    cases.day(61)
    cases.publish()
    assert cases.database.fetch(STATUS) == [("waiting", 2, "next epoch not reserved yet", 120, 61)]


def test_a_budget_that_does_not_allow_it_refuses_before_anything_is_published(cases):
    """Entries without limit pay for each epoch anew. The old epoch is published to its end, nothing after it; a larger budget resumes."""
    cases.budget("2.5", "1e-6")
    cases.declare("one", TOTAL, every="1 day", epsilon=2, groups=KEYS, horizon=10, at_horizon="renew")
    cases.day(9)
    cases.publish()
    assert cases.database.fetch(STATUS) == [("waiting", 1, "next epoch not reserved yet", 10, 9)]
    cases.day(12)
    cases.publish()
    assert cases.database.fetch(STATUS)[0][2:] == ("next epoch does not fit the budget", 20, 10)
    drawn = cases.database.fetch("SELECT count(*) FROM dbext_private.node")
    cases.publish(failures=["one"])
    assert cases.database.fetch("SELECT count(*) FROM dbext_private.node") == drawn
    status, epoch, at_horizon, *_ = cases.database.fetch(STATUS)[0]
    assert (status, epoch, at_horizon) == ("failed with SQLSTATE DP020", 2, "next epoch does not fit the budget")
    cases.budget(10, "1e-6")
    cases.publish()
    assert cases.database.fetch(STATUS) == [("waiting", 2, "next epoch not reserved yet", 20, 12)]


def test_a_stated_horizon_ends_and_the_default_one_goes_on(cases):
    cases.constrain(max_mutations=1)
    cases.budget(10, "1e-6")
    cases.declare("short", TOTAL, every="1 day", epsilon=1, groups=KEYS, horizon=2)
    cases.declare("long", TOTAL, every="1 day", epsilon=1, groups=KEYS)
    cases.declare("stops", TOTAL, every="1 day", epsilon=1, groups=KEYS, at_horizon="end")
    cases.day(4)
    cases.publish()
    found = cases.database.fetch("SELECT release, horizon, at_horizon, status FROM dbext.release_status ORDER BY release")
    assert found == [
        ("long", 3653, "next epoch not reserved yet", "waiting"),
        ("short", 2, "ends", "horizon reached"),
        ("stops", 3653, "ends", "waiting"),
    ]
    notes = cases.database.value("SELECT notes FROM dp_explain_release('long') WHERE chosen")
    assert "after 3653 periods a new epoch begins" in notes
    assert "through two epochs loses up to epsilon 1" in notes


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (TOTAL, {"at_horizon": "never"}),
        ("SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '7 days'", {"at_horizon": "renew"}),
    ],
)
def test_what_cannot_be_renewed_is_refused(ready, text, options):
    with pytest.raises(Exception, match="at_horizon"):
        ready.declare("one", text, every="1 day", epsilon=1, groups=KEYS if "GROUP" in text else None, **options)


def test_ranges_reach_over_epochs(cases):
    """dp_range takes differences of totals of two epochs."""
    renewing(cases, "square_root", 3)
    history(cases, 9, 50)
    value, error = cases.database.fetch(
        "SELECT value, std_error FROM dp_range_stats('one', '2020-01-04', '2020-01-09') ORDER BY value DESC LIMIT 1"
    )[0]
    assert abs(value - 250) <= SIGMAS * error
