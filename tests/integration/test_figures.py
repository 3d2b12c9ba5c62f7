"""Sums, means, variances and windows of their own, through SQL: against what the source table says, and with their noise measured."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from itertools import pairwise

import psycopg
import pytest

from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import charge_from_json
from dbext.privacy.constraint import Constraint, EntryType
from tests.chance import SIGMAS

COLUMNS = "id integer PRIMARY KEY, county text, age integer, income numeric, score double precision, seats smallint NOT NULL DEFAULT 1"
KEYS = "VALUES ('A'), ('B')"
#: Lifetime epsilon at which Laplace noise is zero but for a chance of 1e-4 in all tests together: bounds lie few steps of the grid apart.
#: Rounded Gaussian noise is not that quiet at any budget.
LOUD = 900
DAYS = 6
BOUNDS = {"age": (18, 90, 18), "income": (-250, 1000, 250), "score": (-1, 1, 0.5), "seats": (0, 5, 1)}


@pytest.fixture
def people(tracked):
    """A table with columns of every kind of number, bounds on them, entries that change at most seven times, and a large budget."""
    made = tracked(COLUMNS, name="people")
    made.execute("SELECT dp_add_constraint('people', 'any', max_mutations => 7)")
    made.execute("SELECT dp_set_budget('people', 1000)")
    for column, figures in BOUNDS.items():
        made.execute("SELECT dp_bounds('people', %s, %s::numeric, %s::numeric, %s::numeric)", (column, *figures))
    return made


def declare(people, name, text, **options):
    options = {"every": "1 day", "epsilon": LOUD, "horizon": 16} | options
    named = "".join(f", {option} => %s" for option in options)
    return people.session.execute(f"SELECT dp_create_release(%s, %s{named})", [name, text, *options.values()]).fetchone()[0]


def live(people, slots=6):
    """Write six days of random changes, with NULL, NaN, infinities and values beyond all bounds; return the table as each day ends.

    No entry changes more than `slots` times, so that all changes are admitted.
    """
    chance, ends, used = random.Random(slots), [], Counter()
    for day in range(1, DAYS + 1):
        people.day(day)
        for number in range(30):
            age = chance.choice([None, 17, 26, 27, 44, 45, 89, 90, 91, 2_000_000_000, -3])
            income = chance.choice([None, "NaN", "125", "-124.999", "999.9", "1e300", "-777", "375.01"])
            score = chance.choice([None, "NaN", "Infinity", "-Infinity", "0.25", "-0.12345", "7"])
            row = (chance.choice("AB"), age, income, score, chance.randint(0, 9), number)
            action = chance.random()
            if used[number] == slots or action < 0.2:
                continue
            if action < 0.4:
                done = people.session.execute("DELETE FROM people WHERE id = %s", (number,)).rowcount
            elif action < 0.7:
                text = "UPDATE people SET county = %s, age = %s, income = %s, score = %s, seats = %s WHERE id = %s"
                done = people.session.execute(text, row).rowcount
            else:
                text = "INSERT INTO people (county, age, income, score, seats, id) VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
                done = people.session.execute(text, row).rowcount
            used[number] += done
        ends.append({row["id"]: row for (row,) in people.session.execute("SELECT to_jsonb(p) FROM people AS p").fetchall()})
    people.day(DAYS + 1)
    return ends


def value(column, row):
    """What an entry adds, in units of the column; None if its value is not known. Halves go away from zero."""
    low, high, grid = BOUNDS[column]
    known = row[column]
    if known is None or known == "NaN":
        return None
    clamped = min(max(float(known), low), high)
    return math.copysign(math.floor(abs(clamped) / grid + 0.5), clamped) * grid


def totals(rows, column):
    return sum(value(column, row) or 0 for row in rows)


def series(people, release, *columns):
    names = ", ".join(columns)
    return people.database.fetch(f"SELECT {names} FROM dp_release.{release} ORDER BY release_no, 1")


@pytest.mark.parametrize("column", ["age", "income", "score", "seats"])
def test_a_state_sums_what_is_there_clamped_and_rounded(people, column):
    declare(people, "one", f"SELECT sum({column}) FROM people")
    ends = live(people)
    people.execute("CALL dp_publish()")
    published = [total for (total,) in series(people, "one", "sum")]
    assert published == [pytest.approx(totals(rows.values(), column), abs=1e-6) for rows in ends]


@pytest.mark.parametrize("measure", ["state", "net"])
def test_squares_are_summed_like_values(people, measure):
    """The squares of what is clamped and rounded: scores are -1 to 1 by halves, so that an entry adds 0, 0.25 or 1."""
    window = "" if measure == "state" else " WHERE dp_time > now() - INTERVAL '1 day'"
    declare(people, "one", f"SELECT sum((score) * people.score) FROM people{window}", measure=measure)
    ends = live(people)
    people.execute("CALL dp_publish()")
    squares = [0, *(sum((value("score", row) or 0) ** 2 for row in rows.values()) for rows in ends)]
    expected = squares[1:] if measure == "state" else [after - before for before, after in pairwise(squares)]
    assert [total for (total,) in series(people, "one", "sum")] == [pytest.approx(total, abs=1e-6) for total in expected]
    assert people.database.value("SELECT col_description('dp_release.one'::regclass, a.attnum) FROM pg_attribute AS a"
        " WHERE (a.attrelid, a.attname) = ('dp_release.one'::regclass, 'sum')").startswith("Noisy sum of squares of score, clamped to [-1, 1],")


@pytest.mark.parametrize(("measure", "days"), [("net", 1), ("net", 3), ("entered", 1), ("entered", 2), ("left", 2)])
def test_windows_sum_what_happened_in_them(people, measure, days):
    """By group: a move takes a value from one and gives another to the other; `entered` counts values at entering, not later changes."""
    text = f"SELECT county, sum(age) FROM people WHERE seats < 7 AND dp_time > now() - INTERVAL '{days} days' GROUP BY county"
    people.execute("SELECT dp_alter_constraint('people', 'any', max_mutations => 4)")
    declare(people, "one", text, measure=measure, groups=KEYS)
    ends = [{}, *live(people, slots=3)]
    people.execute("CALL dp_publish()")
    for number, county, shown in series(people, "one", "release_no", "county", "sum"):
        expected = 0
        for day in range(max(number - days, 0), number):
            before, after = counted(ends[day]), counted(ends[day + 1])
            for key in before.keys() | after.keys():
                old, new = before.get(key), after.get(key)
                if measure == "net":
                    expected += (new[1] if new and new[0] == county else 0) - (old[1] if old and old[0] == county else 0)
                elif measure == "entered" and new and not old:
                    expected += new[1] * (new[0] == county)
                elif measure == "left" and old and not new:
                    expected += old[1] * (old[0] == county)
        assert shown == expected, (number, county)


def counted(rows):
    """The entries that the statistic sees: (county, value)."""
    return {key: (row["county"], value("age", row)) for key, row in rows.items() if row["seats"] < 7 and value("age", row) is not None}


def entering(ends, number, what):
    """The values of entries that have one at the end of a day and had none before."""
    before, after = ends[number - 1], ends[number]
    return [what(row) for key, row in after.items() if what(row) is not None and (key not in before or what(before[key]) is None)]


def test_several_figures_in_one_release_table(people):
    people.execute("SELECT dp_alter_constraint('people', 'any', max_mutations => 2)")
    text = """
        SELECT count(*) AS n, count(*) FILTER (WHERE seats > 3) AS many, sum(age) AS age_sum, avg(age) AS mean_age, variance(age),
               var_pop(age), stddev(age) AS deviation, count(DISTINCT id) AS ids
        FROM people WHERE dp_time > now() - INTERVAL '1 day'"""
    said = declare(people, "one", text, measure="entered")
    assert "reserves epsilon 900" in said
    ends = [{}, *live(people, slots=1)]
    people.execute("CALL dp_publish()")
    rows = series(people, "one", "release_no", "n", "many", "age_sum", "mean_age", "variance", "var_pop", "deviation", "ids")
    assert len(rows) == DAYS
    for number, n, many, age_sum, mean_age, variance, var_pop, deviation, ids in rows:
        came = [new for key, new in ends[number].items() if key not in ends[number - 1]]
        assert (n, ids) == (len(came), len(came))
        assert many == entering(ends, number, lambda row: row["seats"] > 3 or None).count(True)
        ages = entering(ends, number, lambda row: value("age", row))
        assert age_sum == sum(ages)
        assert mean_age == pytest.approx(statistics.mean(ages) if ages else 54)
        if len(ages) > 1:
            assert (variance, deviation) == pytest.approx((statistics.variance(ages), statistics.stdev(ages)))
            assert var_pop == pytest.approx(statistics.pvariance(ages))
    names = people.database.fetch(
        "SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'dp_release.one'::regclass AND attnum > 0"
    )[0][0]
    assert names[:6] == ["window_end", "window_start", "n", "n_std_error", "n_lower_95", "n_upper_95"]
    assert people.database.value("SELECT bool_and(mean_age BETWEEN mean_age_lower_95 AND mean_age_upper_95) FROM dp_release.one")
    assert people.database.value("SELECT count(*) FROM dp_release.one_rounded") == len(rows)


def test_windows_of_their_own_are_read_from_one_stream(people):
    windows = ", ".join(f"count(*) FILTER (WHERE dp_time > now() - INTERVAL '{days} days') AS d{days}" for days in (1, 2, 4))
    declare(people, "one", f"SELECT {windows} FROM people", measure="entered")
    ends = [{}, *live(people)]
    people.execute("CALL dp_publish()")
    came = [0, *(len(after.keys() - before.keys()) for before, after in pairwise(ends))]
    expected = [tuple(sum(came[max(day - days, 0) + 1 : day + 1]) for days in (1, 2, 4)) for day in range(1, DAYS + 1)]
    assert series(people, "one", "d1", "d2", "d4") == expected
    assert people.database.value("SELECT count(DISTINCT stream_no) FROM dbext_private.node") == 1
    assert people.database.value("SELECT bool_and(window_end - window_start = INTERVAL '4 days') FROM dp_release.one")


def test_shared_windows_publish_under_a_gaussian_budget(people):
    """The encoder's rows are drawn once; every window is within its own stated error of the truth, and they agree with each other."""
    people.execute("SELECT dp_set_budget('people', 1000, 0.5)")
    windows = ", ".join(f"count(*) FILTER (WHERE dp_time > now() - INTERVAL '{days} days') AS d{days}" for days in (7, 14, 28))
    assert "shared_windows" in declare(people, "one", f"SELECT {windows} FROM people", measure="net", epsilon=20, horizon=60)
    ends = [{}, *live(people)]
    people.execute("CALL dp_publish()")
    rows = series(people, "one", "release_no", "d7", "d7_std_error", "d14", "d14_std_error", "d28", "d28_std_error")
    assert len(rows) == DAYS
    for number, *shown in rows:
        for noisy, error in zip(shown[::2], shown[1::2], strict=True):
            assert 0.1 < error < 10
            assert abs(noisy - len(ends[number])) < SIGMAS * error
    drawn = people.database.fetch("SELECT stream_no, count(*) FROM dbext_private.node GROUP BY 1")
    assert drawn == [(1, 27 + DAYS)]


def test_the_price_of_all_figures_is_what_the_accountant_says(people):
    """What was asked for is what the ledger adds up to; each stream has its own charge, priced at its values."""
    declare(people, "one", "SELECT count(*) AS n, sum(age) AS total, avg(income) AS income FROM people", epsilon=2)
    used = people.database.value("SELECT epsilon FROM dbext.release_status WHERE release = 'one'")
    assert float(used) == 2
    charges = people.database.value("SELECT charges FROM dbext_private.ledger WHERE kind = 'reserve'")
    assert {tuple(charge["values"]) for charge in charges} == {(-2, 3), (0, 1), (1, 5)}
    made = [charge_from_json(charge) for charge in charges]
    spent = worst_case_loss(made, [EntryType(1, "any", Constraint(7))], pure=True)[1]
    assert 1.999 < spent / 10**12 <= 2
    rows = people.database.fetch("SELECT stream, sum(share) FROM dp_explain_release('one') WHERE chosen GROUP BY 1 ORDER BY 1")
    assert [name for name, _ in rows] == ["count", "count where income <> 'NaN' AND income IS NOT NULL", "sum of age", "sum of income"]
    assert sum(share for _, share in rows) == pytest.approx(1)


def test_an_audit_follows_every_stream_and_every_figure(people):
    """Nothing is found in what was published; a changed mean, a changed sum of a tick and a lost stream are."""
    windows = ", ".join(f"sum(income) FILTER (WHERE dp_time > now() - INTERVAL '{days} days') AS w{days}" for days in (1, 3))
    declare(
        people,
        "one",
        "SELECT county, count(*) AS n, sum(score) AS s, avg(age) AS a, stddev(age) AS d, sum(income * income) AS q FROM people GROUP BY county",
        groups=KEYS,
        epsilon=4,
    )
    declare(people, "two", f"SELECT {windows} FROM people", epsilon=4)
    people.execute("CALL dp_publish()")
    live(people)
    people.execute("CALL dp_publish()")
    harms = {
        "SELECT": set(),
        "UPDATE dp_release.one SET a = a + 1 WHERE release_no = 2": {"published values"},
        "UPDATE dp_release.one SET d_upper_95 = d_upper_95 + 1 WHERE release_no = 3": {"published values"},
        "UPDATE dp_release.one SET q = q + 62500 WHERE release_no = 2": {"published values"},
        "UPDATE dp_release.two SET w3 = w3 + 250 WHERE release_no = 4": {"published values"},
        "UPDATE dbext_private.tick_sum SET sums[1] = sums[1] + 1 WHERE stream_no = 2 AND tick = (SELECT max(tick) FROM dbext_private.tick_sum)": {
            "exact sums"
        },
        "DELETE FROM dbext_private.node WHERE stream_no = 3": {"nodes drawn once"},
    }
    for harm, checks in harms.items():
        people.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        people.execute(harm)
        found = people.session.execute(
            """SELECT a."check", a.subject, a.detail FROM dp_audit() AS a WHERE a.verdict = 'failed'"""
        ).fetchall()
        people.execute("ROLLBACK")
        seen = {check for check, *_ in found}
        assert checks <= seen, (harm, found)
        assert bool(checks) == bool(seen), (harm, found)


def test_new_bounds_are_for_new_releases(people):
    """A release keeps the range it was calibrated for: an entry must not weigh more because somebody changed a bound."""
    declare(people, "old", "SELECT sum(age) FROM people")
    assert "releases that exist keep theirs" in people.session.execute("SELECT dp_bounds('people', 'age', 0, 1000000, 1)").fetchone()[0]
    declare(people, "new", "SELECT sum(age) FROM people", epsilon=90)
    people.day(1)
    people.execute("INSERT INTO people VALUES (1, 'A', 5000)")
    people.day(2)
    people.execute("CALL dp_publish()")
    assert series(people, "old", "sum") == [(90,)]
    content = people.database.value("SELECT plan FROM dbext_private.release WHERE name = 'new'")
    assert content["plan"]["values"] == [0, 1000000]


MANY = 4000


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_published_noise_has_the_stated_size(people, delta):
    """4,000 empty groups on eight days show nothing but noise, which is fresh every day: its variance, and how many intervals hold.

    The variance measured deviates by 0.8%, that of Laplace noise by 1.25%: limits are 7.6 deviations away, and see 0.9 or 1.1 of the scale.
    """
    people.execute("SELECT dp_set_budget('people', 1000, %s::numeric)", (delta,))
    keys = ", ".join(f"('g{n}')" for n in range(MANY))
    declare(
        people,
        "one",
        "SELECT county, count(*) AS n, sum(income) AS total, avg(income) AS mean FROM people "
        "WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county",
        measure="entered",
        groups=f"VALUES {keys}",
        epsilon=2,
    )
    people.day(8)
    people.execute("CALL dp_publish()")
    for name in ("n", "total"):
        rows = people.database.fetch(
            f"SELECT avg({name}::float8 ^ 2) / min({name}_std_error) ^ 2, avg(({name}_lower_95 <= 0 AND {name}_upper_95 >= 0)::int), count(DISTINCT {name}_std_error)"
            " FROM dp_release.one GROUP BY release_no"
        )
        ratio, covered = (float(sum(column) / len(rows)) for column in list(zip(*rows, strict=True))[:2])
        assert 0.905 < ratio < 1.095
        assert not 0.905 < 0.81 * ratio < 1.095
        assert not 0.905 < 1.21 * ratio < 1.095
        assert 0.94 < covered < 0.97
        assert {errors for *_, errors in rows} == {1}
    assert people.database.value(
        "SELECT bool_and(mean BETWEEN -250 AND 1000 AND mean_lower_95 >= -250 AND mean_upper_95 <= 1000) FROM dp_release.one"
    )
    stored = people.database.fetch("SELECT stream_no, count(*) FROM dbext_private.node GROUP BY 1 ORDER BY 1")
    assert len(stored) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("county", 0, 1), "cannot be summed"),
        (("nothing", 0, 1), "no tracked column"),
        (("age", 5, 5), "low must be below high"),
        (("age", 0, "NaN"), "finite"),
        (("age", 0, "Infinity"), "finite"),
        (("age", None, 1), "low is missing"),
        (("age", 0, 1, 0), "grid must be greater than 0"),
        (("age", 0, 1, 10), "coarser"),
        (("age", 0, 1e12), "overflow"),
        (("score", 0, 1, "0.0000000001"), "overflow"),
    ],
)
def test_bounds_that_are_refused(people, arguments, said):
    places = ", ".join(["%s"] + ["%s::text::numeric"] * (len(arguments) - 1))
    with pytest.raises(psycopg.Error, match=said):
        people.session.execute(f"SELECT dp_bounds('people', {places})", arguments)


def test_default_grids(people):
    said = {
        column: people.session.execute("SELECT dp_bounds('people', %s, %s::numeric, %s::numeric)", (column, low, high))
        .fetchone()[0]
        .split("multiples of ")[1]
        for column, low, high in (("age", 0, 100), ("income", 0, 20000), ("score", -0.5, 0.5))
    }
    assert {column: text.split(";")[0] for column, text in said.items()} == {"age": "1", "income": "1", "score": "0.0001"}
    rows = people.database.fetch("SELECT column_name, low, high, grid FROM dbext.column_bounds ORDER BY 1")
    assert [(name, float(low), float(high)) for name, low, high, _ in rows] == [
        ("age", 0, 100),
        ("income", 0, 20000),
        ("score", -0.5, 0.5),
        ("seats", 0, 5),
    ]


def test_a_column_of_a_wider_type_is_summed_on(people):
    """Taken up again as bigint: what no integer holds is clamped like everything beyond the bounds."""
    declare(people, "one", "SELECT sum(age) FROM people")
    people.day(1)
    people.execute("INSERT INTO people VALUES (1, 'A', 40)")
    people.day(2)
    people.execute("ALTER TABLE people ALTER COLUMN age TYPE bigint")
    people.track()
    people.execute("INSERT INTO people VALUES (2, 'A', 9000000000000000000), (3, 'A', -9000000000000000000), (4, 'A', NULL)")
    people.day(3)
    people.execute("CALL dp_publish()")
    assert series(people, "one", "sum") == [(36,), (36 + 90 + 18,)]


def test_planning_shows_every_stream_and_spends_nothing(people):
    rows = people.database.fetch(
        "SELECT stream, share, chosen, mean_std_error FROM dp_plan_release('x', 'SELECT count(*) AS n, sum(income) AS s FROM people', every => '1 day', horizon => 16, epsilon => 1)"
    )
    assert {stream for stream, *_ in rows} == {"count", "sum of income"}
    assert sum(chosen for *_, chosen, _ in rows) == 2
    errors = {stream: error for stream, _, chosen, error in rows if chosen}
    assert errors["sum of income"] / errors["count"] > 400
    assert json.dumps(rows)
    assert people.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'reserve'") == 0


def test_a_question_about_a_sum_is_charged_once_and_remembered(people):
    ends = [{}, *live(people)]
    people.execute("CALL dp_publish()")
    ask = "SELECT * FROM dp_window_sum('people', %s, %s, %s, predicate => %s, measure => %s, epsilon => %s)"
    first, last = "2020-03-03", "2020-03-09"
    (value_, error, lower, upper, *_, remembered) = people.session.execute(ask, ("age", first, last, None, "net", 90)).fetchone()
    assert value_ == totals(ends[DAYS].values(), "age")
    assert lower == upper == value_
    assert error < 0.01
    assert not remembered
    assert people.session.execute(ask, ("age", first, last, None, "net", 90)).fetchone()[-1]
    (charges,) = people.database.value("SELECT jsonb_agg(charges) FROM dbext_private.ledger WHERE kind = 'question'")
    assert [charge["values"] for charge in charges] == [[1, 5]]
    came = [new for key, new in ends[DAYS].items() if new["seats"] > 2]
    assert people.session.execute(ask, ("income", first, last, "seats > 2", "net", 90)).fetchone()[0] == totals(came, "income")
    people.execute("SELECT dp_bounds('people', 'age', 18, 36, 18)")
    narrow = people.session.execute(ask, ("age", first, last, None, "net", 90)).fetchone()
    assert (narrow[0], narrow[-1]) == (sum(min(value("age", row) or 0, 36) for row in ends[DAYS].values()), False)
    people.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert people.session.execute("SELECT count(*) FROM dp_audit() AS a WHERE a.verdict = 'failed'").fetchone() == (0,)
    people.execute("ROLLBACK")
    for column, said in (("county", "no bounds"), ("nothing", "no tracked column"), (None, "no tracked column")):
        with pytest.raises(psycopg.Error, match=said):
            people.session.execute(ask, (column, first, last, None, "net", 1))


def test_errors_of_several_figures_are_kept_in_units_of_their_columns(people):
    """Fractions are read as they are written; what is reserved is what the errors cost, and every published interval keeps its limit."""
    text = "SELECT county, count(age) AS n, sum(age) AS years, sum(income) AS money, avg(age) FROM people GROUP BY county"
    limits = {"n": "2.5", "years": "200", "money": "2500"}
    wishes = {"groups": KEYS, "epsilon": None, "max_errors": json.dumps({name: float(limit) for name, limit in limits.items()})}
    shown = people.session.execute(
        "SELECT stream, epsilon_by_type, reason FROM dp_plan_release('one', %s, '1 day', groups => %s, horizon => 16, max_errors => %s)"
        " WHERE chosen",
        (text, KEYS, wishes["max_errors"]),
    ).fetchall()
    assert [row[0] for row in shown] == ["count", "sum of age", "sum of income"]
    assert {row[2] for row in shown} == {"smallest epsilon for this error"}
    said = declare(people, "one", text, **wishes)
    reserved = float(said.partition("reserves epsilon ")[2].split()[0])
    assert reserved == pytest.approx(sum(row[1]["any"] for row in shown), rel=1e-6)
    assert float(people.database.value("SELECT reserved FROM dbext.budget_status")) == pytest.approx(reserved, rel=1e-6)
    live(people)
    people.execute("CALL dp_publish()")
    for name, limit in limits.items():
        reach = people.database.value(f"SELECT max({name}_upper_95 - {name}_lower_95) / 2 FROM dp_release.one")
        assert 0.5 * float(limit) <= reach <= float(limit)


def test_errors_of_figures_cost_no_more_than_is_allowed(people):
    text = "SELECT count(*) AS n, sum(age) AS years FROM people"
    with pytest.raises(psycopg.Error, match="max_errors need an epsilon of") as caught:
        declare(people, "one", text, epsilon=1, max_errors='{"n": 5, "years": 500}')
    assert caught.value.sqlstate == "DP001"
    assert people.database.value("SELECT count(*) FROM dbext.release_status") == 0
