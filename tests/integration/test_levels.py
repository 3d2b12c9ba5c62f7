"""Hierarchical releases declared with levels, from the declaration to any range of time."""

import datetime as dt
import math
import random
from fractions import Fraction

import numpy as np
import psycopg
import pytest

from dbext.mechanisms.registry import mechanism_from_json
from dbext.privacy.audit_bound import epsilon_lower_bound
from dbext.privacy.noise import DiscreteLaplace
from dbext.privacy.noise_tests import spread
from tests.chance import ALARM

DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
#: The first day of `cases` histories.
DAY_ZERO = dt.date(2020, 1, 1)
MANY = 1_100


def day(number):
    return str(DAY_ZERO + dt.timedelta(days=number))


def weights(number):
    """Return how many entries come on a day: something that every range tells apart."""
    return (7 * number * number + 3 * number) % 5


def live(cases, days):
    """Let entries come for some days, and publish at the end of them all."""
    total = 0
    for number in range(days):
        cases.day(number)
        if weights(number):
            cases.insert(*[(total + n, "A", "open") for n in range(weights(number))])
        total += weights(number)
    cases.day(days)
    cases.publish()


def exact(first, last):
    return sum(weights(number) for number in range(first, last))


@pytest.fixture
def loud(cases):
    cases.constrain(max_mutations=2)
    cases.budget(1000)
    return cases


@pytest.mark.parametrize(
    ("text", "levels", "options"),
    [
        (DAILY, "{1 day, 7 days, 28 days}", {}),
        (DAILY, "{1 day, 7 days, 1 month}", {"ranges": "{30 days, 7 days}"}),
        (DAILY.replace("1 day", "10 days"), "{1 day, 5 days}", {"measure": "entered"}),
        ("SELECT count(*) FROM cases", "{1 day, 8 days}", {"measure": "net", "horizon": 60}),
        ("SELECT count(*) FROM cases", "{1 day, 8 days, 1 month}", {"measure": "state", "horizon": 90}),
    ],
)
def test_any_range_of_a_hierarchy_is_answered(loud, text, levels, options):
    loud.declare("one", text, levels=levels, epsilon=900, **options)
    live(loud, 45)
    for first, last in [(0, 1), (0, 45), (3, 40), (12, 33), (5, 13), (7, 44)]:
        assert loud.database.value("SELECT dp_range('one', %s, %s)", (day(first), day(last))) == pytest.approx(exact(first, last), abs=0.4)
    value = options.get("measure", "net")
    rows = loud.database.fetch(f"SELECT window_start, window_end, {value} FROM dp_release.one ORDER BY release_no")
    assert len(rows) == 45
    for start, end, shown in rows[9:]:
        first = 0 if value == "state" else (start.astimezone(dt.timezone(dt.timedelta(hours=8))).date() - DAY_ZERO).days
        last = (end.astimezone(dt.timezone(dt.timedelta(hours=8))).date() - DAY_ZERO).days
        assert shown == pytest.approx(exact(max(first, 0), last), abs=0.4)


def test_long_ranges_are_more_exact_than_sums_of_days_and_say_so(loud):
    loud.declare("days", DAILY, every="1 day", epsilon=1)
    loud.declare("levels", DAILY, levels="{1 day, 7 days, 28 days}", ranges="{84 days}", epsilon=1)
    live(loud, 100)
    error = "SELECT std_error, nodes FROM dp_range_stats(%s, %s, %s)"
    (plain, days), (hierarchy, blocks) = (loud.session.execute(error, (name, day(5), day(89))).fetchone() for name in ("days", "levels"))
    assert days == 84
    assert hierarchy < 0.75 * plain
    assert blocks > 3
    reasons = loud.database.fetch("SELECT mechanism, chosen, mean_std_error FROM dp_explain_release('levels') ORDER BY mean_std_error")
    assert [(mechanism, chosen) for mechanism, chosen, _ in reasons] == [("levelled_sums", True), ("levelled_sums", False)]


def test_each_level_is_drawn_with_its_own_noise_once(loud):
    """Counts of nothing in 1,100 groups: what is stored is noise alone. Of days, a scale that is off by a tenth is seen, of weeks one by a fifth."""
    keys = "VALUES " + ", ".join(f"('k{n}')" for n in range(MANY))
    text = "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"
    loud.declare("one", text, levels="{1 day, 7 days}", ranges="{4 days}", epsilon=1, groups=keys)
    loud.day(57)
    loud.publish()
    ((content,),) = loud.database.fetch("SELECT plan -> 'plan' FROM dbext_private.release")
    scale = [Fraction(content["noise"]["scale"]) * Fraction(one) for one in content["mechanism"]["factors"]]
    assert scale[1] > 1.2 * scale[0]
    stored = loud.database.fetch("SELECT node_no, noisy FROM dbext_private.node")
    for level, wrong in ((0, 1), (1, 2)):
        drawn = [float(value) for number, noisy in stored if number % 2 == level for value in noisy]
        assert len(drawn) >= 7 * MANY
        for factor in (1, Fraction(10 - wrong, 10), Fraction(10, 10 - wrong)):
            law = DiscreteLaplace(factor * scale[level])
            assert (spread(law, np.array(drawn)).log_chance > math.log(ALARM)) == (factor == 1), factor
    assert len({number for number, _ in stored}) == len(stored) == 57 + 7


def test_catching_up_equals_publishing_day_by_day(loud):
    for name in ("each", "late"):
        loud.declare(name, DAILY, levels="{1 day, 3 days, 9 days}", epsilon=400)
    late = loud.database.value("SELECT release_id FROM dbext_private.release WHERE name = 'late'")
    loud.execute = loud.session.execute
    loud.execute("UPDATE dbext_private.release SET state = 'finished' WHERE name = 'late'")
    for number in range(12):
        loud.insert((number, "A", "open"))
        loud.day(number + 1)
        loud.publish()
    loud.execute("UPDATE dbext_private.release SET state = 'active' WHERE name = 'late'")
    loud.publish()
    nodes = "SELECT node_no, noisy FROM dbext_private.node WHERE {} ORDER BY 1"
    assert loud.database.fetch(nodes.format(f"release_id <> {late}")) == loud.database.fetch(nodes.format(f"release_id = {late}"))
    charges = "SELECT charges FROM dbext_private.ledger WHERE kind = 'publish' AND release_id {} {} ORDER BY ledger_no DESC LIMIT 1"
    assert loud.database.fetch(charges.format("=", late)) == loud.database.fetch(charges.format("<>", late))


def test_what_is_published_is_charged_level_by_level(loud):
    """Dropped after ten days: one or two blocks of each level stay charged, and nothing of the reserve does."""
    loud.session.execute("SELECT dp_set_budget('cases', 1)")
    loud.declare("one", DAILY, levels="{1 day, 4 days, 16 days}", epsilon=1)
    live(loud, 10)
    reserved = loud.database.value("SELECT spent FROM dbext.budget_status")
    loud.session.execute("SELECT dp_drop_release('one')")
    spent, left = loud.database.fetch('SELECT spent, "left" FROM dbext.budget_status')[0]
    assert spent == reserved
    # Two mutations: two days and two blocks of four days are over, none of sixteen.
    assert float(spent) == pytest.approx(2 / 3, abs=1e-5)
    assert float(left) == pytest.approx(1 / 3, abs=1e-5)


def audited(cases):
    cases.session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    found = cases.database.fetch('SELECT a."check", a.subject, a.verdict, a.detail FROM dp_audit() AS a')
    cases.session.execute("COMMIT")
    return found


def test_an_audit_finds_every_level_as_it_should_be(loud):
    loud.declare("one", DAILY, levels="{1 day, 3 days, 1 month}", ranges="{9 days}", epsilon=2)
    loud.declare("now", "SELECT count(*) FROM cases", levels="{1 day, 4 days}", horizon=20, epsilon=2)
    live(loud, 16)
    found = audited(loud)
    assert [row for row in found if row[2] == "failed"] == []
    assert sum(check == "noise variance" for check, *_ in found) >= 4
    loud.session.execute("UPDATE dbext_private.node SET noisy = ARRAY[noisy[1] + 100000] WHERE node_no % 3 = 1")
    assert ("noise variance", "failed") in {(check, verdict) for check, _, verdict, _ in audited(loud)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"levels": "{7 days, 28 days}"}, "whole number of periods"),
        ({"levels": "{1 day, NULL}"}, "levels must be a list of intervals"),
        ({"levels": "{}"}, "levels must be a list of intervals"),
        ({"levels": "{1 day, -7 days}"}, "levels must be positive"),
        ({"levels": "{1 day, 7 days}", "every": "7 days"}, "first level must be the period"),
        ({"every": "1 day", "ranges": "{7 days}"}, "ranges are for a release with levels"),
    ],
)
def test_levels_that_make_no_sense_are_refused(loud, options, said):
    with pytest.raises(psycopg.Error, match=said) as refusal:
        loud.declare("one", DAILY.replace("1 day", "10 days"), epsilon=1, **options)
    assert refusal.value.sqlstate == "DP001"


def test_random_ranges_of_a_random_calendar_hierarchy(loud):
    loud.declare("one", DAILY, levels="{1 day, 7 days, 1 month, 1 year}", epsilon=900)
    live(loud, 45)
    loud.day(420)
    loud.publish()
    picked = random.Random(3)
    for _ in range(12):
        first, last = sorted(picked.sample(range(420), 2))
        found = loud.database.value("SELECT dp_range('one', %s, %s)", (day(first), day(last)))
        assert found == pytest.approx(exact(first, min(last, 45)), abs=0.4)


def proven_epsilon(cases, runs, comes, leaves):
    """Return what all nodes together prove: entries that come and leave on two ticks, seen in every block of every level that holds one.

    Keys k1 ... k<runs> have such an entry, as many more have none. The event is that all touched nodes lie on the entry's side.
    """
    release, content = cases.database.fetch("SELECT release_id, plan FROM dbext_private.release")[0]
    mechanism = mechanism_from_json(content["plan"]["mechanism"])
    nodes = [node for period in range(1, 10) for node in mechanism.nodes(period)]
    signs = {n.number: (n.start < comes <= n.end) - (n.start < leaves <= n.end) for n in nodes}
    stored = cases.database.fetch("SELECT node_no, noisy FROM dbext_private.node WHERE release_id = %s", (release,))
    touched = [[float(value) * signs[number] >= 1 for value in noisy] for number, noisy in stored if signs.get(number)]
    assert len(touched) == 6
    hits = [all(column) for column in zip(*touched, strict=True)]
    return [epsilon_lower_bound(sum(hits[:runs]), runs, sum(hits[runs:]), runs, confidence=sure) for sure in (1 - ALARM, 0.95)]


@pytest.mark.parametrize("harm", [False, True])
def test_all_levels_together_prove_no_more_than_the_claim_and_nearly_as_much(cases, harm):
    """Two mutations, three levels: six nodes at a sixth of the loss each. With noise a quarter as wide the claim is seen to be broken."""
    runs, claim = 6000, 3
    cases.constrain(max_mutations=2)
    cases.budget(claim)
    keys = "VALUES " + ", ".join(f"('k{n}')" for n in range(1, 2 * runs + 1))
    text = "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"
    cases.declare("one", text, levels="{1 day, 2 days, 4 days}", horizon=9, epsilon=claim, groups=keys)
    if harm:
        narrower = "jsonb_set(plan, '{plan,noise,scale}', to_jsonb('1/2'::text))"
        cases.session.execute(f"UPDATE dbext_private.release SET plan = {narrower}")
    cases.day(2)
    cases.session.execute(f"INSERT INTO cases SELECT n, 'k' || n, 'open' FROM generate_series(1, {runs}) AS n")
    cases.day(7)
    cases.session.execute("DELETE FROM cases")
    cases.day(9)
    cases.publish()
    first = cases.database.value("SELECT first_tick FROM dbext_private.tracked_table") + 1
    surely, likely = proven_epsilon(cases, runs, first + 2, first + 7)
    assert (surely > claim) if harm else (surely <= claim and likely > 0.4 * claim)
