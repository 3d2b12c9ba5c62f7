"""Ranges and restated histories of releases with several figures: against what happened, against published rows, and with their noise."""

from __future__ import annotations

import datetime as dt
import statistics

import psycopg
import pytest

from tests.chance import FAR, SIGMAS, fewest
from tests.integration.test_figures import DAYS, KEYS, LOUD, declare, entering, live, people, totals, value
from tests.integration.tracked import DAY_ZERO

__all__ = ["people"]

SEVERAL = (
    "SELECT county, count(*) AS n, sum(income) AS money, count(age) AS known, avg(age) AS mean_age, var_pop(age) AS spread, "
    "stddev(age) AS deviation FROM people{window} GROUP BY county"
)
DAILY = " WHERE dp_time > now() - INTERVAL '1 day'"
NAMES = ["n", "money", "known", "mean_age", "spread", "deviation"]


def stats(people, release, start, end):
    """(figure, county) -> value, std_error, lower_95, upper_95, nodes."""
    sql = "SELECT figure, group_key[1], value, std_error, lower_95, upper_95, nodes FROM dp_range_stats(%s, %s, %s)"
    return {(figure, county): row for figure, county, *row in people.session.execute(sql, (release, start, end)).fetchall()}


def day(number):
    """The moment at which a day begins."""
    return f"{DAY_ZERO + dt.timedelta(days=number)}"


def test_ranges_of_several_figures_hold_what_happened_in_them(people):
    """Noise is next to nothing: every figure of every range is what one computes from those who entered on its days."""
    people.execute("SELECT dp_alter_constraint('people', 'any', max_mutations => 4)")
    declare(people, "one", SEVERAL.format(window=DAILY), measure="entered", groups=KEYS)
    ends = [{}, *live(people, slots=3)]
    people.execute("CALL dp_publish()")
    for start, end in [(0, 1), (0, DAYS), (2, 5)]:
        made = stats(people, "one", day(start + 1), day(end + 1))
        assert {name for name, _ in made} == set(NAMES)
        for county in "AB":
            came = [county_of(number, ends, county) for number in range(start + 1, end + 1)]
            ages = [age for one in came for age in one["age"]]
            exact = {"n": sum(one["n"] for one in came), "money": sum(one["money"] for one in came), "known": len(ages)}
            for name, figure in exact.items():
                assert made[name, county][0] == pytest.approx(figure, abs=1e-6), (name, start, end)
            if len(ages) > 1:
                assert made["mean_age", county][0] == pytest.approx(statistics.fmean(ages), abs=1e-6)
                assert made["spread", county][0] == pytest.approx(statistics.pvariance(ages), abs=1e-6)
                assert made["deviation", county][0] == pytest.approx(statistics.stdev(ages), abs=1e-6)
            assert all(lower <= shown <= upper for shown, _, lower, upper, _ in (made[name, county] for name in NAMES))
            assert made["mean_age", county][4] == 2 * (end - start)


def county_of(number, ends, county):
    """Those who entered a group's three statistics on a day: how many, their money, their known ages."""
    came = [row for key, row in ends[number].items() if row["county"] == county and key not in ends[number - 1]]
    money, ages = (
        entering(ends, number, lambda row, name=name: None if value(name, row) is None else (row["county"], value(name, row)))
        for name in ("income", "age")
    )
    return {
        "n": len(came),
        "money": sum(amount for group, amount in money if group == county),
        "age": [age for group, age in ages if group == county],
    }


def test_a_range_of_one_period_is_what_was_published(people):
    declare(people, "one", SEVERAL.format(window=DAILY), measure="entered", groups=KEYS, epsilon=30)
    live(people)
    people.execute("CALL dp_publish()")
    for number in (1, 4):
        made = stats(people, "one", day(number), day(number + 1))
        for name in NAMES:
            rows = people.database.fetch(
                f"SELECT county, {name}::float8, {name}_std_error, {name}_lower_95::float8, {name}_upper_95::float8"
                f" FROM dp_release.one WHERE release_no = {number}"
            )
            for county, *published in rows:
                assert made[name, county][:4] == [pytest.approx(one, abs=1e-9) for one in published]
                assert people.database.value(
                    f"SELECT dp_range('one.{name}', '{day(number)}', '{day(number + 1)}', '{county}')"
                ) == pytest.approx(published[0], abs=1e-9)
    again = people.database.fetch("SELECT figure, release_no, group_key[1], value, std_error FROM dp_restated('one')")
    assert len(again) == len(NAMES) * DAYS * 2
    for figure, number, county, shown, error in again:
        (row,) = people.database.fetch(
            f"SELECT {figure}::float8, {figure}_std_error FROM dp_release.one WHERE release_no = {number} AND county = '{county}'"
        )
        assert (shown, error) == (pytest.approx(row[0], abs=1e-5), pytest.approx(row[1], abs=1e-5)), "roots of what cancels"


@pytest.mark.parametrize(("delta", "far"), [(0, FAR), (1e-6, SIGMAS)], ids=["laplace", "gaussian"])
def test_a_state_has_means_at_a_moment_and_changes_of_sums_over_a_range(people, delta, far):
    people.execute("SELECT dp_set_budget('people', 1000, %s::numeric)", (delta,))
    people.execute("SELECT dp_alter_constraint('people', 'any', max_mutations => 2)")
    declare(people, "one", SEVERAL.format(window=""), groups=KEYS, epsilon=LOUD)
    ends = live(people, slots=1)
    people.execute("CALL dp_publish()")
    now = stats(people, "one", None, day(5))
    change = stats(people, "one", day(3), day(5))
    assert {name for name, _ in change} == {"n", "money", "known"}

    def near(made, true, slack=0):
        return abs(made[0] - true) <= far * made[1] + slack

    for county in "AB":
        then, before = ({key: row for key, row in ends[number].items() if row["county"] == county} for number in (3, 1))
        ages = [value("age", row) for row in then.values() if value("age", row) is not None]
        assert near(now["n", county], len(then), slack=1), "a draw that is rarely not zero is then one whole"
        assert near(now["mean_age", county], statistics.fmean(ages), slack=10), "which moves a mean of five by 50 / 5"
        assert near(change["n", county], len(then) - len(before), slack=1)
        assert near(change["money", county], totals(then.values(), "income") - totals(before.values(), "income"))
    with pytest.raises(psycopg.Error, match="what changed in it") as refusal:
        people.database.value(f"SELECT dp_range('one.mean_age', '{day(3)}', '{day(5)}', 'A')")
    assert refusal.value.sqlstate == "DP003"


def test_windows_of_several_lengths_answer_the_same_ranges(people):
    """One stream of noise for both windows: a range is put together from its days, whichever window it is asked through."""
    text = "SELECT " + ", ".join(f"sum(age) FILTER (WHERE dp_time > now() - INTERVAL '{n} days') AS d{n}" for n in (2, 3)) + " FROM people"
    declare(people, "one", text, measure="entered")
    ends = [{}, *live(people)]
    people.execute("CALL dp_publish()")
    expected = sum(sum(entering(ends, number, lambda row: value("age", row))) for number in (2, 3, 4, 5))
    rows = people.database.fetch(f"SELECT figure, value FROM dp_range_stats('one', '{day(2)}', '{day(6)}')")
    assert rows == [("d2", pytest.approx(expected)), ("d3", pytest.approx(expected))]
    published = people.database.fetch("SELECT release_no, d2::float8, d3::float8 FROM dp_release.one ORDER BY 1")
    again = people.database.fetch("SELECT release_no, figure, value FROM dp_restated('one') ORDER BY 1, 2")
    assert again == [
        (number, name, pytest.approx(one)) for number, *both in published for name, one in zip(("d2", "d3"), both, strict=True)
    ]


GROUPS, PER_GROUP = 1600, 12


@pytest.mark.parametrize("options", [{"every": "1 day"}, {"levels": ["1 day", "2 days"], "every": None}])
def test_intervals_of_ranges_cover_the_truth(people, options):
    """Of 1,600 groups with twelve entries each, over a range of three days: as many intervals hold as are said to, and errors have their size.

    Two or three draws of Laplace noise make an error, so that the mean square of 1,600 deviates by 4.7%.
    """
    keys = ", ".join(f"('g{n}')" for n in range(GROUPS))
    wishes = {key: one for key, one in options.items() if one is not None}
    text = "SELECT county, count(*) AS n, sum(age) AS years, avg(age) AS mean FROM people" + DAILY + " GROUP BY county"
    named = "".join(f", {name} => %s" for name in ["measure", "groups", *wishes])
    people.session.execute(
        f"SELECT dp_create_release('one', %s, epsilon => 4, horizon => 8{named})", [text, "entered", f"VALUES {keys}", *wishes.values()]
    )
    for number in (1, 2, 3):
        people.day(number)
        people.session.execute(
            "INSERT INTO people SELECT %s * 100000 + n, 'g' || n %% %s, 18 + 18 * (n %% 3), 0, 0 FROM generate_series(1, %s) AS n",
            (number, GROUPS, GROUPS * PER_GROUP // 3),
        )
    people.day(5)
    people.execute("CALL dp_publish()")
    exact = {
        (figure, county): one
        for county, *figures in people.database.fetch(
            "SELECT county, count(*), sum(CASE age WHEN 18 THEN 18 WHEN 36 THEN 36 ELSE 54 END), avg(age) FROM people GROUP BY county"
        )
        for figure, one in zip(("n", "years", "mean"), map(float, figures), strict=True)
    }
    made = stats(people, "one", day(1), day(4))
    assert set(made) == set(exact)
    for figure in ("n", "years", "mean"):
        rows = [(made[figure, county], one) for (name, county), one in exact.items() if name == figure]
        assert sum(lower <= one <= upper for (_, _, lower, upper, _), one in rows) >= fewest(GROUPS, 0.95), figure
        if figure != "mean":
            widest = max((upper - lower) / 2 / error for (_, error, lower, upper, _), _ in rows)
            assert widest < 2.2 or "levels" in wishes, "weighted means of nodes have wider bounds than sums"
            ratio = statistics.fmean((shown - one) ** 2 / error**2 for (shown, error, *_), one in rows)
            assert 0.65 < ratio < 1.4


def test_what_is_not_said_is_refused(people):
    declare(people, "one", SEVERAL.format(window=DAILY), measure="entered", groups=KEYS)
    people.day(2)
    people.execute("CALL dp_publish()")
    for name, sqlstate, said in [
        ("one", "DP001", "has several figures"),
        ("one.median", "DP002", "has no figure median"),
        ("none.n", "DP002", "there is no release none"),
    ]:
        with pytest.raises(psycopg.Error, match=said) as refusal:
            people.database.value(f"SELECT dp_range('{name}', '{day(1)}', '{day(2)}', 'A')")
        assert refusal.value.sqlstate == sqlstate


def test_a_reader_of_one_column_asks_about_that_figure_alone(people):
    declare(people, "one", SEVERAL.format(window=DAILY), measure="entered", groups=KEYS)
    people.day(2)
    people.execute("CALL dp_publish()")
    people.execute("REVOKE SELECT ON dp_release.one FROM dbext_reader; GRANT SELECT (county, n) ON dp_release.one TO dbext_reader")
    reader = people.database.create_role("dbext_reader")
    with people.database.connect(reader) as connection:
        assert connection.execute(f"SELECT count(*) FROM dp_range_stats('one.n', '{day(1)}', '{day(2)}')").fetchone() == (2,)
        for asked in ("one", "one.mean_age"):
            with pytest.raises(psycopg.Error, match="may not read column") as refusal:
                connection.execute(f"SELECT * FROM dp_restated('{asked}')")
            connection.rollback()
            assert refusal.value.sqlstate == "DP005"
