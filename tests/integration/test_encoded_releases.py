"""Releases whose noise is put on encoder rows, or is stored by itself: through SQL, on the numbers that the database really holds."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from dbext.control.database import PsycopgSession
from dbext.database import catalog, releases
from dbext.mechanisms.registry import mechanism_from_json
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import charge_from_json
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import epsilon_of
from dbext.query.plan import plan_from_json
from dbext.service import noising
from dbext.service.due import due_of
from dbext.service.noising import answers, exact_nodes
from tests.chance import FAR, SIGMAS, fewest
from tests.integration.test_buffered_releases import keep_few
from tests.integration.whitened import mean_square

KEYS = "VALUES ('A'), ('B'), ('C')"
TOTAL = "SELECT county, count(*) FROM cases WHERE status = 'open' GROUP BY county"
WINDOW = "SELECT county, count(*) FROM cases WHERE status = 'open' AND dp_time > now() - INTERVAL '7 days' GROUP BY county"
MANY = 3_000
#: Lifetime epsilons with little noise, by delta; where even more is allowed, Laplace noise on plain sums wins.
LOUD = {"1e-6": 3, "0": 3}

#: name -> declaration, options, limits of the default type, delta: each is what the planner chooses.
CHOICES = {
    "square_root": (TOTAL, {"measure": "state", "horizon": 12}, {"max_mutations": 4}, "1e-6"),
    "weighted_square_root": (TOTAL, {"measure": "net", "horizon": 12}, {"max_mutations": 1}, "1e-6"),
    "buffered": (TOTAL, {"measure": "state", "horizon": 5000}, {"max_mutations": 4}, "1e-6"),
    "sliding_root": (WINDOW, {"measure": "net"}, {"max_mutations": 2}, "1e-6"),
    "signed_tree": (TOTAL, {"measure": "state", "horizon": 60}, {"max_mutations": 4}, "0"),
    "plain_sums": (TOTAL, {"measure": "net", "horizon": 5}, {"max_mutations": 2}, "0"),
}


@pytest.fixture
def limited(cases):
    def prepare(mechanism, epsilon=1000):
        cases.constrain(**CHOICES[mechanism][2])
        cases.budget(epsilon, CHOICES[mechanism][3])
        return cases

    return prepare


def declare(cases, name, mechanism, epsilon, keys=KEYS):
    text, options, _, _ = CHOICES[mechanism]
    if mechanism == "buffered":
        keep_few(cases, 3 * 7)
    said = cases.declare(name, text, every="1 day", epsilon=epsilon, groups=keys, **options)
    assert f"mechanism {mechanism};" in said


def history(cases, mechanism):
    """Write a week in which entries come, move, and leave (as often as the limits admit)."""
    again = mechanism not in ("weighted_square_root", "buffered")
    for day in range(7):
        if day:
            cases.day(day)
        cases.insert(*[(1000 * day + n, "AABC"[n % 4], "open") for n in range(100 * (day + 2))])
        if again and day > 1:
            cases.session.execute("DELETE FROM cases WHERE id / 1000 = %s AND id %% 3 = 0", (day - 2,))
            cases.session.execute("UPDATE cases SET county = 'C' WHERE id / 1000 = %s AND id %% 5 = 0", (day - 1,))
        yield day
    cases.day(7)


def truth(database, measure, width):
    """The exact figure of every published window and county, from the settled images."""
    rows = database.fetch(
        "SELECT d.day, k.county, (SELECT count(*) FILTER (WHERE c.new_present AND c.new_3 = 'open' AND c.new_2 = k.county)"
        " - count(*) FILTER (WHERE c.old_present AND c.old_3 = 'open' AND c.old_2 = k.county)"
        " FROM dbext_private.change_1 AS c, dbext_private.tracked_table AS t WHERE t.table_id = 1"
        " AND c.tick <= t.first_tick + d.day AND (%s::integer IS NULL OR c.tick > t.first_tick + d.day - %s::integer))"
        " FROM generate_series(1, 7) AS d(day), (VALUES ('A'), ('B'), ('C')) AS k(county) ORDER BY 1, 2",
        (width, width),
    )
    assert measure in ("state", "net")
    return [value for _, _, value in rows]


@pytest.mark.parametrize("mechanism", CHOICES)
def test_with_next_to_no_noise_the_truth_is_published(limited, mechanism):
    cases = limited(mechanism)
    declare(cases, "one", mechanism, LOUD[CHOICES[mechanism][3]])
    for _ in history(cases, mechanism):
        pass
    cases.publish()
    _, options, _, _ = CHOICES[mechanism]
    measure, width = options["measure"], 7 if mechanism == "sliding_root" else None
    rows = cases.database.fetch(f"SELECT release_no, county, {measure}, std_error, lower_95, upper_95 FROM dp_release.one ORDER BY 1, 2")
    assert len(rows) == (15 if mechanism == "plain_sums" else 21)
    exact = truth(cases.database, measure, width)
    assert max(map(abs, exact)) > 100
    gaussian = CHOICES[mechanism][3] != "0"
    for row, value in zip(rows, exact, strict=False):
        assert abs(row[2] - value) <= (SIGMAS if gaussian else FAR) * row[3] + 1e-6
        assert row[3] < 60
        assert row[4] <= row[2] <= row[5]


@pytest.mark.parametrize("mechanism", CHOICES)
def test_catching_up_equals_publishing_day_by_day(limited, mechanism):
    cases = limited(mechanism)
    for name in ("each", "late"):
        declare(cases, name, mechanism, LOUD[CHOICES[mechanism][3]])
    cases.session.execute("UPDATE dbext_private.release SET state = 'finished' WHERE name = 'late'")
    for _ in history(cases, mechanism):
        cases.publish()
    cases.session.execute("UPDATE dbext_private.release SET state = 'active' WHERE name = 'late'")
    cases.publish()
    measure = CHOICES[mechanism][1]["measure"]
    structure = "SELECT window_start, window_end, county, release_no, std_error, status FROM dp_release.{} ORDER BY 2, 3"
    assert cases.database.fetch(structure.format("each")) == cases.database.fetch(structure.format("late"))
    pairs = cases.database.fetch(
        f"SELECT e.{measure} - l.{measure}, e.std_error FROM dp_release.each AS e JOIN dp_release.late AS l USING (window_end, county)"
    )
    assert pairs
    assert all(abs(gap) <= 2 * FAR * error + 1e-6 for gap, error in pairs)
    numbers = "SELECT array_agg(node_no ORDER BY node_no) FROM dbext_private.node GROUP BY release_id"
    assert len(set(map(str, cases.database.fetch(numbers)))) == 1
    charges = "SELECT DISTINCT ON (release_id) charges FROM dbext_private.ledger WHERE kind = 'publish' ORDER BY release_id, ledger_no DESC"
    assert len(set(map(str, cases.database.fetch(charges)))) == 1


@pytest.mark.parametrize("mechanism", ["square_root", "weighted_square_root", "sliding_root", "signed_tree"])
def test_published_errors_are_the_predicted_ones(limited, mechanism):
    """3,000 cells without entries: what is published is noise. Both its size and its coverage are those that the table states.

    The mean square of 24,000 figures deviates by 0.9%, if their noise is Laplace noise by 1.4%: the limits are 6.6 deviations away.
    """
    cases = limited(mechanism, epsilon=10)
    cases.session.execute("CREATE TABLE county (name text); SELECT dp_mark_public('county', 'name')")
    cases.session.execute("INSERT INTO county SELECT 'c' || n FROM generate_series(1, %s) AS n", (MANY,))
    declare(cases, "one", mechanism, 2, "SELECT name FROM county")
    cases.day(8)
    cases.publish()
    measure = CHOICES[mechanism][1]["measure"]
    plan = plan_from_json(cases.database.value("SELECT plan -> 'plan' FROM dbext_private.release"))
    rows = cases.database.fetch(
        f"SELECT release_no, array_agg({measure}::float8 ORDER BY county), avg({measure}), min(std_error), max(std_error),"
        f" sum((lower_95 <= 0 AND upper_95 >= 0)::int) FROM dp_release.one GROUP BY 1 ORDER BY 1"
    )
    assert [number for number, *_ in rows] == list(range(1, 9))
    ratio = mean_square(plan, np.array([figures for _, figures, *_ in rows]))
    assert 0.905 < ratio < 1.095
    assert not 0.905 < 0.81 * ratio < 1.095, "a scale of 0.9 would be seen"
    assert not 0.905 < 1.21 * ratio < 1.095, "and one of 1.1"
    assert all(least == most == pytest.approx(plan.std_error(number)) for number, _, _, least, most, _ in rows)
    assert all(abs(float(mean)) < SIGMAS * error / MANY**0.5 for _, _, mean, error, *_ in rows)
    assert all(fewest(MANY, 0.95) <= covered < 0.985 * MANY for *_, covered in rows)
    assert cases.database.value("SELECT bool_and(v = trunc(v)) FROM dbext_private.node AS n, unnest(n.noisy) AS v")


def test_stored_rows_are_the_exact_encoder_times_the_counts_plus_noise_of_the_stated_sigma(limited):
    """Recomputed from the changes: what is left of every stored number is noise; a row encoded with another's weights is seen."""
    cases = limited("square_root")
    declare(cases, "one", "square_root", LOUD["1e-6"])
    for _ in history(cases, "square_root"):
        cases.publish()
    plan = plan_from_json(cases.database.value("SELECT plan -> 'plan' FROM dbext_private.release"))
    mechanism = mechanism_from_json(plan.mechanism.to_json())
    first = cases.database.value("SELECT min(tick) FROM dbext_private.tick_sum")
    sums = dict(cases.database.fetch("SELECT tick, sums FROM dbext_private.tick_sum"))
    stored = {
        number: [int(value) for value in noisy] for number, noisy in cases.database.fetch("SELECT node_no, noisy FROM dbext_private.node")
    }
    counts = {}
    for period in range(1, 7):
        for leaf in mechanism.leaves(period):
            counts[leaf.number] = [
                sum(cells[cell] for tick, cells in sums.items() if (leaf.start is None or leaf.start < tick) and tick <= leaf.end)
                for cell in range(3)
            ]
    assert first is not None
    rows = [row for period in range(1, 7) for row in mechanism.rows(period)]
    assert sorted(stored) == sorted(row.number for row in rows)
    sigma = float(plan.noise.sigma_squared) ** 0.5
    left = [
        stored[row.number][cell] - sum(weight * counts[leaf][cell] for leaf, weight in row.weights) for row in rows for cell in range(3)
    ]
    assert max(map(abs, left)) < SIGMAS * sigma
    wrong = [
        stored[row.number][0] - sum(weight * counts[leaf][0] for leaf, weight in rows[n - 1].weights) for n, row in enumerate(rows) if n
    ]
    assert max(map(abs, wrong)) > 20 * sigma


@pytest.mark.parametrize("mechanism", ["square_root", "sliding_root", "signed_tree"])
def test_the_ledger_states_what_was_drawn_and_a_drop_keeps_it(limited, mechanism):
    cases = limited(mechanism, epsilon=10)
    declare(cases, "one", mechanism, 2)
    cases.day(2)
    cases.publish()
    plan = plan_from_json(cases.database.value("SELECT plan -> 'plan' FROM dbext_private.release"))
    delta = Fraction(CHOICES[mechanism][3])
    types = [EntryType(1, "any", Constraint(**CHOICES[mechanism][2]))]

    def recomputed(charges):
        return epsilon_of(max(worst_case_loss(charges, types, delta == 0).values()), delta)

    def ledger(kind):
        text = cases.database.value(
            "SELECT charges::text FROM dbext_private.ledger WHERE kind = %s ORDER BY ledger_no DESC LIMIT 1", (kind,)
        )
        return [charge_from_json(charge) for charge in json.loads(text)]

    assert ledger("reserve") == list(plan.charges)
    assert ledger("publish") == [charge.through(2) for charge in plan.charges]
    assert recomputed(plan.charges) <= 2
    status = "SELECT spent, reserved FROM dbext.budget_status"
    spent, reserved = cases.database.fetch(status)[0]
    assert float(spent) == pytest.approx(float(recomputed(ledger("publish"))), rel=1e-5)
    assert float(reserved) + float(spent) == pytest.approx(float(recomputed(plan.charges)), rel=1e-5)
    cases.session.execute("SELECT dp_drop_release('one')")
    assert ledger("return") == ledger("publish")
    spent_after, reserved_after = cases.database.fetch(status)[0]
    assert float(spent_after) == pytest.approx(float(spent), rel=1e-5)
    assert float(reserved_after) == 0
    assert cases.database.value("SELECT count(*) FROM dbext_private.node") > 0


def test_a_row_is_drawn_once_even_when_the_catalog_is_set_back(limited):
    cases = limited("square_root", epsilon=10)
    declare(cases, "one", "square_root", 1)
    cases.day(2)
    cases.publish()
    before = cases.database.fetch("SELECT * FROM dbext_private.node ORDER BY 2")
    cases.session.execute("UPDATE dbext_private.release SET next_period = 1, next_answer = 1, next_end = next_end - 2")
    cases.session.execute("TRUNCATE dp_release.one")
    cases.publish(failures=["one"])
    assert cases.database.fetch("SELECT * FROM dbext_private.node ORDER BY 2") == before


def test_values_of_encoded_releases_are_not_rounded_and_their_view_is(limited):
    cases = limited("square_root", epsilon=10)
    declare(cases, "one", "square_root", 1)
    cases.day(2)
    cases.publish()
    kinds = "SELECT attrelid::regclass::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attname = 'state' AND attrelid IN ('dp_release.one'::regclass, 'dp_release.one_rounded'::regclass) ORDER BY 1"
    assert cases.database.fetch(kinds) == [("dp_release.one", "double precision"), ("dp_release.one_rounded", "bigint")]
    chosen = cases.database.fetch("SELECT mechanism, noise FROM dp_explain_release('one') WHERE chosen")
    assert chosen[0][0] == "square_root"
    assert chosen[0][1].endswith("on encoder rows")
    assert cases.database.value("SELECT count(*) FROM dp_explain_release('one')") >= 4


@pytest.mark.parametrize("mechanism", ["square_root", "signed_tree"])
def test_nothing_is_answered_from_rows_that_could_be_rolled_back(limited, mechanism):
    """Drawn and answered in one transaction: no row appears. Answered later, from what was committed, twice: the same rows."""
    cases = limited(mechanism, epsilon=10)
    declare(cases, "one", mechanism, 1)
    cases.day(2)
    cases.session.execute("SELECT dbext_private.seal_table(1)")
    with cases.session.transaction():
        assert cases.session.execute("SELECT dbext_private.draw_release(1)").fetchone() == (2,)
        assert cases.session.execute("SELECT dbext_private.publish_release(1)").fetchone() == (0,)
    seen = []
    for _ in range(2):
        with cases.session.transaction(force_rollback=True):
            assert cases.session.execute("SELECT dbext_private.publish_release(1)").fetchone() == (2,)
            seen.append(cases.session.execute("SELECT * FROM dp_release.one ORDER BY window_end, county").fetchall())
    assert seen[0] == seen[1]


def test_a_simultaneous_band_is_published_and_said(limited):
    """Three groups and twelve windows: each interval may miss one in 720 times. Its width is that of the plan, over every row."""
    cases = limited("square_root", epsilon=10)
    text, options, _, _ = CHOICES["square_root"]
    cases.declare("one", text, every="1 day", epsilon=1, groups=KEYS, band="simultaneous", **options)
    cases.day(3)
    cases.publish()
    plan = plan_from_json(cases.database.value("SELECT plan -> 'plan' FROM dbext_private.release"))
    widths = cases.database.fetch("SELECT release_no, state - lower_95, upper_95 - state, std_error FROM dp_release.one")
    assert len(widths) == 9
    for period, below, above, error in widths:
        assert below == pytest.approx(above) == pytest.approx(plan.half_width(period, 3))
        assert 3.1 < below / error < 3.3
    said = "SELECT col_description('dp_release.one'::regclass, attnum) FROM pg_attribute WHERE attrelid = 'dp_release.one'::regclass AND attname = 'upper_95'"
    assert "simultaneous" in cases.database.value(said)


@pytest.mark.parametrize("mechanism", ["square_root", "sliding_root"])
def test_rows_are_read_in_parts_that_memory_holds(limited, monkeypatch, mechanism):
    """The same exact rows and the same answers, up to rounding, when only two rows of three cells are held at a time."""
    cases = limited(mechanism)
    declare(cases, "one", mechanism, LOUD["1e-6"])
    for _ in history(cases, mechanism):
        pass
    cases.publish()
    session = PsycopgSession(cases.session)
    release = releases.lock(session, 1)
    due = due_of(release, catalog.tracked_table(session, release.table_id))
    whole = [exact_nodes(session, due.noisings[0], [3, 4, 7]), answers(session, due.noisings[0], due.plan.mechanism, range(1, 8))]
    monkeypatch.setattr(noising, "VALUES_IN_MEMORY", 6)
    parts = [exact_nodes(session, due.noisings[0], [3, 4, 7]), answers(session, due.noisings[0], due.plan.mechanism, range(1, 8))]
    assert parts[0] == whole[0]
    assert np.allclose(parts[1], whole[1], rtol=1e-12, atol=1e-6)
    assert answers(session, due.noisings[0], due.plan.mechanism, [5])[0] == parts[1][4], "an answer does not depend on what else is asked"
