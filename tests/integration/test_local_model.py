"""Releases of the local model, end to end: a fixed roster reports, only reports are kept, and what they cost is in the ledger."""

import math
import statistics

import psycopg
import pytest

from dbext.privacy.audit_bound import epsilon_lower_bound
from tests.chance import ALARM, SIGMAS, fewest

DAILY = "SELECT count(*) FROM cases WHERE status = 'open' AND dp_time > now() - INTERVAL '1 day'"
OPEN = "SELECT count(*) FROM cases WHERE status = 'open'"
BY_COUNTY = "SELECT county, count(*) FROM cases WHERE status = 'open' GROUP BY county"
KEYS = "VALUES ('A'), ('B')"
#: An epsilon at which nearly every report is true.
LOUD = 200


def roster(number, first=1):
    return "VALUES " + ", ".join(f"({n})" for n in range(first, first + number))


def locally(cases, name, text, members=40, **options):
    return cases.declare(name, text, model="local", roster=roster(members), **options)


@pytest.fixture
def loud(cases):
    cases.constrain(max_mutations=4)
    cases.budget(1000)
    return cases


def history(cases):
    """Three days: entries open, move, close and leave; number 90 is in no roster."""
    cases.insert((1, "A", "open"), (2, "A", "open"), (3, "B", "shut"), (90, "A", "open"))
    cases.day(1)
    cases.session.execute("UPDATE cases SET county = 'B' WHERE id = 1; UPDATE cases SET status = 'open' WHERE id = 3")
    cases.insert((4, "Z", "open"))
    cases.day(2)
    cases.session.execute("UPDATE cases SET status = 'shut' WHERE id = 2; DELETE FROM cases WHERE id = 4")
    cases.day(3)
    cases.publish()


#: Net changes of open cases of the roster, by day.
NET = (2, 2, -2)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (DAILY, {"every": "1 day"}, [2, 2, -2]),
        (DAILY.replace("1 day", "2 days"), {"every": "1 day"}, [2, 4, 0]),
        (DAILY.replace("1 day", "3 days"), {"levels": "{1 day, 2 days}"}, [2, 4, 2]),
        (OPEN, {"every": "1 day", "measure": "net", "horizon": 5}, [2, 4, 2]),
        (OPEN, {"every": "1 day", "horizon": 5}, [2, 4, 2]),
        (f"{OPEN} AND dp_time <= now() - INTERVAL '1 day'", {"every": "1 day", "horizon": 5}, [0, 2, 4]),
        (f"{OPEN} AND dp_time > '2020-01-01' AND dp_time <= '2020-01-03'", {}, [4]),
        (f"{OPEN} AND dp_time <= '2020-01-03'", {}, [4]),
    ],
)
def test_reports_add_up_to_what_happened(loud, text, options, expected):
    locally(loud, "one", text, epsilon=LOUD * 4, **options)
    history(loud)
    measure = loud.database.value("SELECT measure FROM dbext.release_status")
    shown = [value for (value,) in loud.database.fetch(f"SELECT {measure} FROM dp_release.one ORDER BY release_no")]
    assert shown == pytest.approx(expected, abs=0.01)


def test_categories_of_a_state(loud):
    locally(loud, "one", BY_COUNTY, every="1 day", horizon=4, groups=KEYS, epsilon=LOUD)
    history(loud)
    shown = loud.database.fetch("SELECT release_no, county, state FROM dp_release.one ORDER BY 1, 2")
    assert [(number, county) for number, county, _ in shown] == [(n, county) for n in (1, 2, 3) for county in ("A", "B")]
    assert [value for *_, value in shown] == pytest.approx([2, 0, 1, 2, 0, 2], abs=0.01)


@pytest.mark.parametrize("options", [{"every": "1 day"}, {"levels": "{1 day, 2 days}"}])
def test_ranges_are_put_together_from_reports(loud, options):
    locally(loud, "one", DAILY, epsilon=LOUD * 4, **options)
    history(loud)
    for start in range(3):
        for end in range(start + 1, 4):
            found = loud.database.value("SELECT dp_range('one', %s, %s)", (f"2020-01-0{start + 1}", f"2020-01-0{end + 1}"))
            assert found == pytest.approx(sum(NET[start:end]), abs=0.01)
    with pytest.raises(psycopg.Error, match="not published yet"):
        loud.database.value("SELECT dp_range('one', '2020-01-01', '2020-01-06')")


def test_a_range_of_states_is_a_difference(loud):
    locally(loud, "one", BY_COUNTY, every="1 day", horizon=4, groups=KEYS, epsilon=LOUD)
    history(loud)
    assert loud.database.value("SELECT dp_range('one', NULL, '2020-01-04'::text, 'B')") == pytest.approx(2, abs=0.01)
    assert loud.database.value("SELECT dp_range('one', '2020-01-02', '2020-01-04', 'A')") == pytest.approx(-2, abs=0.01)


def reports(database, release="one"):
    sql = """SELECT node_no, reports FROM dbext_private.report JOIN dbext_private.release USING (release_id)
        WHERE name = %s ORDER BY node_no"""
    return dict(database.fetch(sql, (release,)))


def test_only_randomised_reports_are_kept_and_everybody_reports(loud):
    locally(loud, "one", DAILY, members=500, every="1 day", epsilon=4)
    history(loud)
    database = loud.database
    stored = reports(database)
    assert {number: len(one) for number, one in stored.items()} == {1: 500, 2: 500, 3: 500}
    assert all(set(one) == {0, 1, 2} for one in stored.values())
    assert database.value("SELECT count(*) FROM dbext_private.tick_sum") == 0
    nodes = dict(database.fetch("SELECT node_no, noisy FROM dbext_private.node"))
    assert {number: [one.count(1), one.count(2)] for number, one in stored.items()} == {
        n: [int(v) for v in noisy] for n, noisy in nodes.items()
    }


def test_who_reports_does_not_say_who_exists(loud):
    """Members with and without a row, changed or not, are asked alike: the same numbers of reports, at the same times, in the same place."""
    locally(loud, "one", DAILY, members=30, every="1 day", epsilon=1)
    loud.day(1)
    loud.publish()
    empty = {number: len(one) for number, one in reports(loud.database).items()}
    loud.insert(*[(n, "A", "open") for n in range(1, 20)])
    loud.day(2)
    loud.publish()
    assert {number: len(one) for number, one in reports(loud.database).items()} == {**empty, 2: 30}


def test_publishing_again_draws_nothing_anew(loud):
    locally(loud, "one", DAILY, every="1 day", epsilon=1)
    history(loud)
    before = (reports(loud.database), loud.database.fetch("SELECT * FROM dp_release.one ORDER BY 1"))
    loud.publish()
    assert (reports(loud.database), loud.database.fetch("SELECT * FROM dp_release.one ORDER BY 1")) == before
    with pytest.raises(psycopg.errors.UniqueViolation, match="report_drawn_once"):
        loud.session.execute("INSERT INTO dbext_private.report SELECT * FROM dbext_private.report LIMIT 1")


def test_nothing_is_answered_before_its_charge_is_committed(loud):
    """Rolled back after the draw: nothing is left, and what is drawn anew was never seen."""
    locally(loud, "one", DAILY, every="1 day", epsilon=1)
    loud.day(2)
    number = loud.database.value("SELECT table_id FROM dbext_private.tracked_table")
    release = loud.database.value("SELECT release_id FROM dbext_private.release")
    loud.session.execute("SELECT dbext_private.seal_table(%s)", (number,))
    loud.session.execute("BEGIN")
    assert loud.session.execute("SELECT dbext_private.draw_release(%s)", (release,)).fetchone() == (2,)
    assert loud.session.execute("SELECT dbext_private.publish_release(%s)", (release,)).fetchone() == (0,)
    assert loud.session.execute("SELECT count(*) FROM dp_release.one").fetchone() == (0,)
    loud.session.execute("ROLLBACK")
    assert reports(loud.database) == {}
    assert loud.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'publish'") == 0
    loud.publish()
    assert loud.database.value("SELECT count(*) FROM dp_release.one") == 2
    assert loud.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'publish'") == 1


def test_reports_that_were_committed_are_published_later_as_they_are(loud):
    """As after a crash between the two transactions: what was drawn is answered from, and nothing is drawn again."""
    locally(loud, "one", DAILY, members=60, every="1 day", epsilon=1)
    loud.day(2)
    number = loud.database.value("SELECT table_id FROM dbext_private.tracked_table")
    release = loud.database.value("SELECT release_id FROM dbext_private.release")
    loud.session.execute("SELECT dbext_private.seal_table(%s)", (number,))
    loud.session.execute("SELECT dbext_private.draw_release(%s)", (release,))
    drawn = reports(loud.database)
    loud.publish()
    assert reports(loud.database) == drawn
    numerator, _, denominator = loud.database.value("SELECT plan #>> '{plan,response,epsilon}' FROM dbext_private.release").partition("/")
    odds = math.exp(int(numerator) / int(denominator or 1))
    scale = (odds + 2) / (odds - 1)
    shown = [value for (value,) in loud.database.fetch("SELECT net FROM dp_release.one ORDER BY release_no")]
    assert shown == pytest.approx([scale * (one.count(1) - one.count(2)) for one in drawn.values()], rel=1e-6)


@pytest.mark.parametrize(
    ("limits", "text", "options", "reports_of_one"),
    [
        ({"max_mutations": 2}, DAILY, {"every": "1 day"}, 4),
        ({"active_within": "7 days"}, DAILY, {"every": "1 day"}, 16),
        ({"max_mutations": 2}, DAILY.replace("1 day", "3 days"), {"every": "3 days"}, 4),
        ({"max_mutations": 2}, DAILY, {"levels": "{1 day, 7 days}"}, 8),
        ({"max_mutations": 2}, DAILY, {"every": "1 day", "horizon": 3}, 3),
        ({"max_mutations": 2}, OPEN, {"every": "1 day", "horizon": 12}, 12),
    ],
)
def test_two_entries_pay_for_whatever_either_touches(cases, limits, text, options, reports_of_one):
    """Losses of the local model: twice those of one entry, and never more than all there is."""
    cases.constrain(**limits)
    cases.budget(2)
    locally(cases, "one", text, epsilon=2, **options)
    plan = cases.database.value("SELECT plan -> 'plan' -> 'response' FROM dbext_private.release")
    numerator, _, denominator = plan["epsilon"].partition("/")
    assert int(numerator) / int(denominator or 1) == pytest.approx(2 / reports_of_one, rel=1e-5)
    assert float(cases.database.value('SELECT "left" FROM dbext.budget_status')) == pytest.approx(0, abs=1e-5)
    with pytest.raises(psycopg.Error, match="cannot take this"):
        cases.declare("more", DAILY, every="1 day", epsilon="0.001")


def test_local_and_central_releases_share_a_budget(cases):
    cases.constrain(max_mutations=2)
    cases.budget(3)
    locally(cases, "local", DAILY, every="1 day", epsilon=1)
    cases.declare("central", DAILY, every="1 day", epsilon=2)
    cases.insert((1, "A", "open"))
    cases.day(3)
    cases.publish()
    spent, left = cases.database.fetch('SELECT spent, "left" FROM dbext.budget_status')[0]
    # Three reports of a quarter each have left, which is less than the four that two entries can touch for ever.
    assert float(spent) == pytest.approx(2.75, abs=1e-4)
    assert float(left) == pytest.approx(0, abs=1e-4)
    cases.session.execute("SELECT dp_drop_release('local')")
    spent, left = cases.database.fetch('SELECT spent, "left" FROM dbext.budget_status')[0]
    assert float(spent) == pytest.approx(2.75, abs=1e-4)
    assert float(left) == pytest.approx(0.25, abs=1e-4)


def test_dropping_gives_back_what_was_not_reported(cases):
    cases.constrain(max_mutations=2)
    cases.budget(1)
    locally(cases, "one", OPEN, every="1 day", horizon=10, epsilon=1, publish_reports=True)
    cases.day(3)
    cases.publish()
    cases.session.execute("SELECT dp_drop_release('one')")
    assert float(cases.database.value("SELECT spent FROM dbext.budget_status")) == pytest.approx(0.3, abs=1e-5)
    assert cases.database.value("SELECT to_regclass('dp_release.one_reports') IS NULL AND to_regclass('dp_release.one') IS NULL")


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_stated_errors_are_those_of_estimates(cases, delta):
    """Many weeks of a roster that is still: the spread of estimates is the stated standard error, and they are centred on the truth."""
    cases.constrain(max_mutations=2)
    cases.budget(6, delta)
    locally(cases, "one", DAILY, members=2500, every="1 day", epsilon=6)
    cases.insert(*[(n, "A", "open") for n in range(1, 801)])
    days = 420
    cases.day(days)
    cases.publish()
    rows = cases.database.fetch("SELECT net, std_error, lower_95, upper_95 FROM dp_release.one ORDER BY release_no")
    first, still = rows[0], rows[1:]
    assert abs(first[0] - 800) < SIGMAS * first[1]
    values = [value for value, *_ in still]
    stated = math.sqrt(statistics.fmean(error**2 for _, error, *_ in still))
    ratio = statistics.pvariance(values, mu=0) / stated**2
    assert 0.55 < ratio < 1.65, "419 draws: a chance of exp(-419 (0.65 - ln 1.65) / 2) = 3e-14 (Chernoff)"
    assert abs(statistics.fmean(values)) < SIGMAS * stated / math.sqrt(len(values))
    assert sum(low <= 0 <= high for _, _, low, high in still) >= fewest(len(still), 0.94)
    assert all((high - low) / 2 < 2.2 * error for _, error, low, high in still)


def test_stated_errors_of_categories_are_those_of_estimates(cases):
    """Nobody is in any of twelve categories on any of 350 days: 4,200 estimates of nothing."""
    cases.constrain(max_mutations=2)
    cases.budget(700)
    keys = "VALUES " + ", ".join(f"('k{n}')" for n in range(12))
    locally(cases, "one", BY_COUNTY, members=300, every="1 day", horizon=350, groups=keys, epsilon=700)
    cases.day(350)
    cases.publish()
    response = cases.database.value("SELECT plan -> 'plan' -> 'response' FROM dbext_private.release")
    assert response["categories"] == 13
    values = [value for (value,) in cases.database.fetch("SELECT state FROM dp_release.one")]
    keep = math.exp(2) / (math.exp(2) + 12)
    other = (1 - keep) / 12
    stated = 300 * other * (1 - other) / (keep - other) ** 2
    ratio = statistics.pvariance(values, mu=0) / stated
    assert 0.84 < ratio < 1.17, "a chance of exp(-4200 (0.17 - ln 1.17) / 2) = 1e-12 (Chernoff)"
    assert abs(statistics.fmean(values)) < SIGMAS * math.sqrt(stated / len(values))


def audited(cases):
    cases.session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    found = cases.database.fetch('SELECT a."check", a.subject, a.verdict, a.detail FROM dp_audit() AS a')
    cases.session.execute("ROLLBACK")
    return found


def test_an_audit_knows_what_honest_reports_look_like(loud):
    locally(loud, "one", DAILY, members=400, levels="{1 day, 2 days}", epsilon=8)
    locally(loud, "two", BY_COUNTY, members=400, every="1 day", horizon=6, groups=KEYS, epsilon=3)
    history(loud)
    found = audited(loud)
    assert [row for row in found if row[2] == "failed"] == []
    local = {(check, subject) for check, subject, *_ in found if subject in ("one", "two")}
    checks = ("reports drawn once", "reports follow their chances", "published values", "rows traced to charges")
    assert local == {(check, subject) for check in checks for subject in ("one", "two")}
    harms = {
        "reports drawn once": "DELETE FROM dbext_private.report WHERE node_no = 3",
        "reports follow their chances": "UPDATE dbext_private.report SET reports = array_fill(0::smallint, ARRAY[400])",
        "published values": "UPDATE dp_release.one SET net = net + 1 WHERE release_no = 2",
        "rows traced to charges": "UPDATE dbext_private.release SET next_period = 3 WHERE name = 'one'",
    }
    for check, harm in harms.items():
        loud.session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        loud.session.execute(harm)
        after = loud.database.fetch('SELECT a."check", a.verdict FROM dp_audit() AS a')
        loud.session.execute("ROLLBACK")
        assert (check, "failed") in after, check


def two_kinds_of_lives(cases, members):
    """Half the roster opens on day 0 and shuts on day 1, the other half does so on days 2 and 3."""
    half = members // 2
    cases.insert(*[(n, "A", "open") for n in range(1, half + 1)])
    cases.day(1)
    cases.session.execute("DELETE FROM cases")
    cases.day(2)
    cases.insert(*[(n, "A", "open") for n in range(half + 1, members + 1)])
    cases.day(3)
    cases.session.execute("DELETE FROM cases")
    cases.day(4)
    cases.publish()


def empirical_epsilon(cases, members):
    """Return what is told apart, at least: members whose four reports are those of the first kind of life, in either half."""
    rows = list(zip(*(reports(cases.database)[number] for number in (1, 2, 3, 4)), strict=True))
    half = members // 2
    first, second = ([tuple(one) == (1, 2, 0, 0) for one in part] for part in (rows[:half], rows[half:]))
    return [epsilon_lower_bound(sum(first), half, sum(second), half, confidence=sure) for sure in (1 - ALARM, 0.95)]


@pytest.mark.parametrize("harm", [1, 3])
def test_what_reports_tell_apart_is_within_the_claim_and_close_to_it(cases, harm):
    """Two lives with no window in common: each member is one run of the experiment. Reports at three times the epsilon would be noticed."""
    members, claim = 24_000 if harm == 1 else 12_000, 2
    cases.constrain(max_mutations=2)
    cases.budget(claim)
    locally(cases, "one", DAILY, members=members, every="1 day", epsilon=claim)
    if harm > 1:
        louder = "jsonb_set(plan, '{plan,response,epsilon}', to_jsonb('3/2'::text))"
        cases.session.execute(f"UPDATE dbext_private.release SET plan = {louder}")
    two_kinds_of_lives(cases, members)
    surely, likely = empirical_epsilon(cases, members)
    assert (surely > claim) if harm > 1 else (surely <= claim and likely > 0.35 * claim)


def test_reports_are_published_under_pseudonyms(loud):
    locally(loud, "one", DAILY, members=200, every="1 day", epsilon=3, publish_reports=True)
    history(loud)
    database = loud.database
    shown = database.fetch("SELECT window_end, pseudonym, report FROM dp_release.one_reports")
    assert len(shown) == 600
    assert len({pseudonym for _, pseudonym, _ in shown}) == 200
    published = dict(database.fetch("SELECT release_no, count(*) FILTER (WHERE report = '1') FROM dp_release.one_reports GROUP BY 1"))
    assert published == {number: one.count(1) for number, one in reports(database).items()}
    reader = database.create_role("dbext_reader")
    with database.connect(reader) as session:
        assert session.execute("SELECT count(pseudonym) FROM dp_release.one_reports").fetchone() == (600,)
        for sql in (
            "SELECT * FROM dbext_private.report",
            "SELECT * FROM dbext_private.release_member",
            "SELECT xmin FROM dp_release.one_reports",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(sql)
    order = [
        pseudonym for (pseudonym,) in database.fetch("SELECT pseudonym FROM dp_release.one_reports WHERE release_no = 2 ORDER BY ctid")
    ]
    assert order == sorted(order), "rows lie in the order of pseudonyms, not of the roster"


def test_categories_are_published_by_their_keys(loud):
    locally(loud, "one", BY_COUNTY, every="1 day", horizon=3, groups=KEYS, epsilon=LOUD, publish_reports=True)
    history(loud)
    shown = loud.database.fetch("SELECT report, count(*) FROM dp_release.one_reports WHERE release_no = 2 GROUP BY 1 ORDER BY 1")
    assert shown == [("", 37), ("A", 1), ("B", 2)]


def test_a_roster_may_come_from_a_public_column(loud):
    loud.session.execute("CREATE TABLE person (id integer PRIMARY KEY); INSERT INTO person SELECT generate_series(1, 25)")
    loud.session.execute("SELECT dp_mark_public('person', 'id')")
    loud.declare("one", DAILY, model="local", roster="SELECT id FROM person", every="1 day", epsilon=1)
    loud.session.execute("INSERT INTO person VALUES (26)")
    loud.day(2)
    loud.publish()
    assert {len(one) for one in reports(loud.database).values()} == {25}


def test_plans_and_explanations(loud):
    sql = "SELECT mechanism, noise, chosen FROM dp_plan_release('x', %s, every => '1 day', epsilon => 4, model => 'local', roster => %s)"
    found = loud.session.execute(sql, (DAILY.replace("1 day", "7 days"), roster(9))).fetchall()
    assert {mechanism for mechanism, *_ in found} == {"independent_windows", "disjoint_sums"}
    assert all(noise.startswith("randomised response over 3 categories") for _, noise, _ in found)
    assert "local model, 40 members report their net change" in locally(loud, "one", DAILY, every="1 day", epsilon=1)
    assert loud.database.value("SELECT count(*) FROM dp_explain_release('one') WHERE chosen") == 1
    assert loud.database.fetch("SELECT release, kind, measure FROM dbext.release_status") == [("one", "disjoint", "net")]


@pytest.mark.parametrize(
    ("options", "sqlstate", "said"),
    [
        ({"roster": None}, "DP001", "needs a roster"),
        ({"measure": "entered"}, "DP001", "reports its net change or its state"),
        ({"max_error": 5}, "DP001", "not for the local model"),
        ({"max_errors": '{"net": 5}'}, "DP001", "not for the local model"),
        ({"text": OPEN}, "DP001", "need a horizon"),
        ({"text": OPEN, "measure": "net", "horizon": 5, "at_horizon": "renew"}, "DP001", "ends at its horizon"),
        ({"text": BY_COUNTY, "measure": "net", "groups": KEYS, "horizon": 5}, "DP001", "groups are the categories of a state"),
        ({"roster": "VALUES ('x')"}, "DP001", "not a value of its column"),
        ({"roster": "VALUES (1, 2)"}, "DP010", "has 1 value"),
        ({"roster": "SELECT id FROM cases"}, "DP002", "not marked public"),
        ({"text": BY_COUNTY, "horizon": 5, "key_delta": "0.000001"}, "DP003", "categories of a state are public"),
        ({"model": "global"}, "DP001", "model must be central or local"),
        ({"model": "central"}, "DP001", "are for the local model"),
    ],
)
def test_what_the_local_model_cannot_do_is_refused(loud, options, sqlstate, said):
    options = {"text": DAILY, "every": "1 day", "epsilon": 1, "model": "local", "roster": roster(5), **options}
    text = options.pop("text")
    with pytest.raises(psycopg.Error, match=said) as refusal:
        loud.declare("one", text, **options)
    assert refusal.value.sqlstate == sqlstate
    assert loud.database.value("SELECT count(*) FROM dbext_private.release") == 0


def test_endless_releases_need_constrained_entries(cases):
    cases.budget(10)
    with pytest.raises(psycopg.Error, match="nothing bounds the loss"):
        locally(cases, "one", DAILY, every="1 day", epsilon=1)


def test_an_analyst_needs_the_key_columns(loud, analyst):
    database = loud.database
    database.execute(f"REVOKE SELECT ON cases FROM {analyst}; GRANT SELECT (status) ON cases TO {analyst}")
    with database.connect(analyst) as session, pytest.raises(psycopg.Error, match="about column id"):
        session.execute(
            "SELECT dp_create_release('one', %s, every => '1 day', epsilon => 1, model => 'local', roster => %s)", (DAILY, roster(5))
        )


@pytest.mark.parametrize("options", [{"every": "1 day"}, {"levels": "{1 day, 4 days}"}])
def test_history_is_restated_from_all_reports(loud, options):
    locally(loud, "one", DAILY, members=200, epsilon=8, **options)
    history(loud)
    loud.day(8)
    loud.publish()
    rows = loud.database.fetch("SELECT release_no, value, std_error FROM dp_restated('one') ORDER BY 1")
    published = loud.database.fetch("SELECT release_no, net, std_error FROM dp_release.one ORDER BY 1")
    assert [number for number, *_ in rows] == [number for number, *_ in published]
    if "every" in options:
        assert [value for row in rows for value in row] == pytest.approx([value for row in published for value in row])
    else:
        assert sum(error for *_, error in rows) < 0.97 * sum(error for *_, error in published)


def test_old_changes_may_be_forgotten_once_no_report_needs_them(loud):
    locally(loud, "days", DAILY, every="1 day", epsilon=LOUD)
    locally(loud, "state", OPEN, every="1 day", horizon=9, epsilon=LOUD)
    history(loud)
    loud.session.execute("SELECT dp_retain('cases', '0 days')")
    loud.insert((5, "A", "open"))
    loud.day(4)
    loud.publish()
    assert loud.database.value("SELECT net FROM dp_release.days WHERE release_no = 4") == pytest.approx(1, abs=0.01)
    assert loud.database.value("SELECT state FROM dp_release.state WHERE release_no = 4") == pytest.approx(3, abs=0.01)
    failed = [row for row in audited(loud) if row[2] == "failed" and row[1] in ("days", "state")]
    assert failed == []
    locally(loud, "blocks", DAILY, levels="{1 day, 3 days}", epsilon=4)
    loud.day(10)
    loud.publish()
    with pytest.raises(psycopg.Error, match="release blocks still needs what changed"):
        loud.session.execute("SELECT dp_retain('cases', '0 days')")


def test_age_dependent_figures_know_reports(cases):
    cases.constrain(max_mutations=2)
    cases.budget(6)
    cases.session.execute("SELECT dp_set_process('cases', 'status', dwell => '{10,10}')")
    locally(cases, "days", DAILY, every="1 day", epsilon=2)
    locally(cases, "state", OPEN, every="1 day", horizon=4, epsilon=2)
    locally(cases, "tree", DAILY, levels="{1 day, 7 days}", epsilon=2)
    found = dict(cases.database.fetch("SELECT release, output_loss FROM dbext.age_risk WHERE release IS NOT NULL"))
    assert found == pytest.approx({"days": 0.5, "state": 0.5, "tree": 2.0}, rel=1e-4)
    assert cases.database.value("SELECT bool_and(bounded AND peak <= 2.0001) FROM dbext.age_risk WHERE release IS NOT NULL")
    assert cases.database.value("SELECT count(*) FROM dp_risk_curve('tree', ticks => 9)") == 9
    assert cases.database.value("SELECT age_dependent IS NOT NULL FROM dp_explain_release('days') WHERE chosen")
