"""Quantiles through SQL: against percentile_disc of the source table where there is no noise, and how often their intervals hold it."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import product

import psycopg
import pytest

from dbext.control.database import PsycopgSession
from dbext.database.effects import GroupColumn, tick_effects_sql
from dbext.privacy.measure import Measure
from dbext.query.bounds import Bounds
from dbext.query.predicate import And, ColumnRef, Compare, Literal
from dbext.query.spread import Spread
from dbext.query.statistic import known
from tests.chance import fewest
from tests.unit.query.tables import column

COLUMNS = "id integer PRIMARY KEY, county text, age integer, score double precision"
DAYS = 4
COUNTIES = "ABCDEFGH"


@pytest.fixture
def people(tracked):
    made = tracked(COLUMNS, name="people")
    made.execute("SELECT dp_add_constraint('people', 'any', max_mutations => 4)")
    made.execute("SELECT dp_set_budget('people', 1000)")
    return made


def declare(people, name, text, **options):
    options = {"every": "1 day", "epsilon": 200, "horizon": 8} | options
    named = "".join(f", {option} => %s" for option in options)
    return people.session.execute(f"SELECT dp_create_release(%s, %s{named})", [name, text, *options.values()]).fetchone()[0]


def live(people):
    """Write random changes; return, for every day's end and county (None: all), PostgreSQL's own quantiles of rounded ages and scores."""
    chance, used, ends = random.Random(11), Counter(), []
    for day in range(1, DAYS + 1):
        people.day(day)
        for number in range(40):
            age = chance.choice([None, -3, 0, 2, 3, 17, 18, 44, 45, 46, 99, 100, 2**31 - 1])
            score = chance.choice([None, "NaN", "Infinity", "-Infinity", "0.25", "-0.2", "0.74", "1e300"])
            if used[number] == 3 or chance.random() < 0.3:
                continue
            if chance.random() < 0.2:
                used[number] += people.session.execute("DELETE FROM people WHERE id = %s", (number,)).rowcount
            else:
                text = (
                    "INSERT INTO people VALUES (%s, %s, %s, %s) "
                    "ON CONFLICT (id) DO UPDATE SET county = EXCLUDED.county, age = EXCLUDED.age, score = EXCLUDED.score"
                )
                used[number] += people.session.execute(text, (number, chance.choice("AB"), age, score)).rowcount
        ends.append({county: exact(people, county) for county in (None, "A", "B")})
    people.day(DAYS + 1)
    return ends


def exact(people, county):
    where = "" if county is None else f" WHERE county = '{county}'"
    plain = "CASE WHEN age IS NOT NULL THEN least(greatest(age, 0), 100) END"
    age = f"round(({plain})::numeric / 5) * 5"
    score = "CASE WHEN score <> 'NaN' THEN round(least(greatest(score, -1), 1)::numeric * 10) / 10 END"
    shares = "ARRAY[0.25, 0.5, 0.9]::float8[]"
    (row,) = people.session.execute(
        f"SELECT percentile_disc({shares}) WITHIN GROUP (ORDER BY {age}), percentile_disc({shares}) WITHIN GROUP (ORDER BY {score}), "
        f"percentile_disc({shares}) WITHIN GROUP (ORDER BY {plain}) FROM people{where}"
    ).fetchall()
    return [[None if value is None else float(value) for value in values] for values in row]


def test_without_noise_quantiles_are_those_of_the_rounded_values(people):
    """Of all and by county, with FILTER and beside a count; values beyond the bounds, NULL, NaN and infinities among them."""
    text = "percentile_disc(ARRAY[0.25, 0.5, 0.9]) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) AS age"
    declare(people, "ages", f"SELECT {text} FROM people")
    declare(people, "by_county", f"SELECT county, {text}, count(*) AS n FROM people GROUP BY county", groups="VALUES ('A'), ('B')", epsilon=400)
    people.execute("SELECT dp_bounds('people', 'score', -1, 1, 0.1)")
    declare(people, "scores", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY score) AS median FROM people")
    declare(people, "some", f"SELECT {text.replace(' AS', ' FILTER (WHERE id < 0) AS')} FROM people")
    ends = live(people)
    people.execute("CALL dp_publish()")
    for day, end in enumerate(ends, 1):
        names = "age_25, age_50, age_90"
        assert people.database.fetch(f"SELECT {names} FROM dp_release.ages WHERE release_no = {day}") == [tuple(end[None][0])]
        by_county = people.database.fetch(f"SELECT {names} FROM dp_release.by_county WHERE release_no = {day} ORDER BY county")
        assert by_county == [tuple(end["A"][0]), tuple(end["B"][0])]
        assert people.database.value(f"SELECT median FROM dp_release.scores WHERE release_no = {day}") == pytest.approx(end[None][1][1])
        assert people.database.fetch(f"SELECT {names} FROM dp_release.some WHERE release_no = {day}") == [(0, 0, 0)]
    # The interval holds what the values are before they are rounded, too.
    for number, lower, upper in people.database.fetch("SELECT release_no, age_50_lower_95, age_50_upper_95 FROM dp_release.ages"):
        assert lower <= ends[number - 1][None][2][1] <= upper


#: What an entry can be on a day: absent, of one of several ages in two groups, or in no cell.
STATES = [None, ("A", 5), ("A", 25), ("B", 999), ("B", None), (None, 25)]


@pytest.mark.parametrize("block", [1, 2])
def test_one_entry_moves_between_two_cells_at_most(people, block):
    """Every life of three days: the exact counts by value of one entry change by 2 at most, over any window, by 1 an event."""
    text = "SELECT county, percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 30, 10)) FROM people GROUP BY county"
    declare(people, "one", text, groups="VALUES ('A'), ('B')")
    release = people.database.value("SELECT release_id FROM dbext_private.release")
    county, age = column("county", 2, "pg_catalog.text", "S", "text"), ColumnRef("age", column("age", 3, "pg_catalog.int4", "N", "integer"))
    spread = Spread(age, Bounds(Fraction(0), Fraction(30), Fraction(10)), block)
    unit, session = ColumnRef("id", column("id", 1, "pg_catalog.int4", "N", "integer", is_unit=True)), PsycopgSession(people.session)
    lives = list(product(STATES, repeat=3))
    for day in range(3):
        people.day(day + 1)
        for number, states in enumerate(lives):
            people.execute("DELETE FROM people WHERE id = %s", (number,))
            if states[day] is not None:
                people.execute("INSERT INTO people (county, age, id) VALUES (%s, %s, %s)", (*states[day], number))
    people.seal_through(3)
    for measure in (Measure.NET, Measure.ENTERED, Measure.LEFT):
        seen = set()
        for number, states in enumerate(lives):
            only = And((Compare("=", unit, Literal(str(number), "number", cast="pg_catalog.int4")), *known(age)))
            sql = tick_effects_sql((people.number, 1), measure, only, (GroupColumn(county, "county"),), None, spread)
            days = {row["tick"] - people.first: row["array_agg"] for row in session.fetch(sql, release, 0, people.first + 9, 0)}
            effects = [days.get(day, [0] * 2 * spread.cells) for day in (1, 2, 3)]
            windows = [(a, b) for a in range(3) for b in range(a + 1, 4)] if measure is Measure.NET else [(a, a + 1) for a in range(3)]
            for first, last in windows:
                change = [sum(cells) for cells in zip(*effects[first:last], strict=True)]
                seen.add((sum(map(abs, change)), sum(value * value for value in change)))
            if measure is Measure.NET:
                assert cells_at_end(states, spread) == [sum(cells) for cells in zip(*effects, strict=True)]
        assert seen == ({(0, 0), (1, 1), (2, 2)} if measure is Measure.NET else {(0, 0), (1, 1)})


def cells_at_end(states, spread):
    found = [0] * 2 * spread.cells
    if states[-1] is not None and None not in states[-1]:
        county, age = states[-1]
        place = {5: 1, 25: 3, 999: 3}[age] // spread.block
        found["AB".index(county) * spread.cells + place] = 1
    return found


def test_quantiles_and_bins_of_units_of_several_rows_are_of_the_rows_that_count(tracked):
    """The first two visits of each patient; a patient is charged for both of them, in cells of their own choice."""
    visits = tracked("id integer PRIMARY KEY, patient text NOT NULL, cost integer", name="visits", unit=["patient"], rows_per_unit=2)
    visits.execute("SELECT dp_add_constraint('visits', 'any', max_mutations => 4)")
    visits.execute("SELECT dp_set_budget('visits', 1000)")
    text = "SELECT percentile_disc(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY dp_bounds(cost, 0, 100, 10)) AS cost FROM visits"
    declare(visits, "costs", text, epsilon=400)
    declare(visits, "bins", "SELECT width_bucket(cost, ARRAY[20, 60]) AS bin, count(*) FROM visits GROUP BY bin", epsilon=400)
    chance, ends = random.Random(3), []
    for day in (1, 2, 3):
        visits.day(day)
        visits.execute("DELETE FROM visits WHERE mod(id, 5) = %s", (day,))
        rows = [(100 * day + n, f"p{chance.randrange(15)}", chance.choice([None, -7, 4, 5, 38, 77, 900])) for n in range(20)]
        for row in rows:
            visits.execute("INSERT INTO visits VALUES (%s, %s, %s)", row)
        first = "SELECT cost FROM (SELECT cost, row_number() OVER (PARTITION BY patient ORDER BY id) AS n FROM visits) AS v WHERE n <= 2 AND cost IS NOT NULL"
        ends.append([value for (value,) in visits.database.fetch(first)])
    visits.day(4)
    visits.execute("CALL dp_publish()")
    for day, costs in enumerate(ends, 1):
        steps = sorted((min(max(cost, 0), 100) + 5) // 10 * 10 for cost in costs)
        expected = tuple(float(steps[-(-len(steps) // part) - 1]) for part in (4, 2))
        assert visits.database.fetch(f"SELECT cost_25, cost_50 FROM dp_release.costs WHERE release_no = {day}") == [expected]
        counts = Counter((cost >= 20) + (cost >= 60) for cost in costs)
        assert dict(visits.database.fetch(f"SELECT bin, state FROM dp_release.bins WHERE release_no = {day}")) == {n: counts[n] for n in range(3)}
    for plan in visits.database.fetch("SELECT plan -> 'plan' ->> 'grouped', plan -> 'plan' ->> 'values' FROM dbext_private.release"):
        assert plan == ("true", "[0, 2]")


@pytest.mark.parametrize("measure", ["entered", "left"])
def test_events_have_quantiles(people, measure):
    text = "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 50)) FROM people WHERE dp_time > now() - INTERVAL '1 day'"
    declare(people, "one", text, measure=measure)
    people.day(1)
    people.execute("INSERT INTO people SELECT n, 'A', n FROM generate_series(1, 99) AS n")
    people.day(2)
    people.execute("DELETE FROM people WHERE id > 80")
    people.day(3)
    people.execute("CALL dp_publish()")
    found = [value for (value,) in people.database.fetch("SELECT percentile_disc FROM dp_release.one ORDER BY release_no")]
    assert found == ([50, 0] if measure == "entered" else [0, 100])


@pytest.mark.parametrize(("delta", "blocks"), [(0, 2), (1e-6, 3)])
def test_intervals_hold_the_quantile_as_often_as_they_say(people, delta, blocks):
    """Publications at a small epsilon, of eight counties: the true median is in nearly all intervals, and they are no wider than they need
    to be. Ten windows of one county may share their noise: what counts are 120 counties of 15 releases, each right in 95% of all cases."""
    people.execute("SELECT dp_set_budget('people', 1000, %s::numeric)", (delta,))
    people.day(1)
    people.execute("INSERT INTO people SELECT n, chr(65 + n / 13 % 8), (n * n) % 97 FROM generate_series(1, 16000) AS n")
    for number in range(15):
        text = "SELECT county, percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 1)) AS median FROM people GROUP BY county"
        declare(people, f"r{number}", text, epsilon=3, groups="VALUES " + ", ".join(f"('{county}')" for county in COUNTIES), horizon=10)
    assert people.database.value("SELECT jsonb_array_length(plan -> 'publication' -> 'streams') FROM dbext_private.release LIMIT 1") == blocks
    people.day(11)
    people.execute("CALL dp_publish()")
    true = dict(people.database.fetch("SELECT county, percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people GROUP BY county"))
    ranks = {county: dict(people.database.fetch(f"SELECT age, count(*) FROM people WHERE county = '{county}' GROUP BY age")) for county in COUNTIES}
    held, widths, near, total = 0, 0.0, 0, 0
    for number in range(15):
        sql = f"SELECT county, median, lower_95, upper_95, rank_error FROM dp_release.r{number}"
        for county, value, lower, upper, rank in people.database.fetch(sql):
            held += lower <= true[county] <= upper
            widths += upper - lower
            counts, total = ranks[county], total + 1
            below, up_to = (sum(n for age, n in counts.items() if age < value + more) for more in (0, 1))
            near += max(sum(counts.values()) / 2 - up_to, below - sum(counts.values()) / 2, 0) <= rank
    assert total == 1200
    assert held >= 10 * fewest(120, 0.95)
    assert near >= 10 * fewest(120, 0.95)
    assert widths / total < 60


def test_an_empty_table_has_an_answer_as_wide_as_the_bounds(people):
    declare(people, "one", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 10, 60, 10)) AS median FROM people", epsilon="0.1")
    people.day(4)
    people.execute("CALL dp_publish()")
    rows = people.database.fetch("SELECT median, lower_95, upper_95, rank_error FROM dp_release.one")
    assert len(rows) == 3
    assert all(10 <= lower <= value <= upper <= 60 and rank > 0 for value, lower, upper, rank in rows)
    assert any((lower, upper) == (10, 60) for _, lower, upper, _ in rows)


def test_plan_and_columns_state_the_rank_error(people):
    text = "SELECT percentile_disc(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 1)) AS age, count(*) AS n FROM people"
    arguments = "every => '1 day', epsilon => 1, horizon => 30"
    rows = people.database.fetch(f"SELECT stream, chosen, mean_std_error, notes FROM dp_plan_release('x', '{text}', {arguments}) WHERE chosen")
    assert [stream for stream, *_ in rows] == ["count by blocks of 11 values of age", "count by age", "count"]
    assert "age_50: with 95% its rank is off by at most" in rows[0][3]
    assert "one of 101 values, from 0 to 100 by 1, counted in blocks of 11 and 1 values" in rows[0][3]
    assert "rank" not in (rows[2][3] or "")
    said = declare(people, "ages", text, epsilon=1, horizon=30)
    assert "note: age_50: with 95% its rank is off by at most" in said
    columns = dict(
        people.database.fetch(
            "SELECT a.attname, col_description(a.attrelid, a.attnum) FROM pg_attribute AS a "
            "WHERE a.attrelid = 'dp_release.ages'::regclass AND a.attname LIKE 'age_50%'"
        )
    )
    assert columns == {
        "age_50": "Quantile 0.5 of age of entries that satisfy the predicate at window_end; "
        "clamped to [0, 100], rounded to multiples of 1; worked out from noisy counts",
        "age_50_rank_error": "Number of entries by which the rank of the value may be off, with 95% confidence, for the noise of age_50",
        "age_50_lower_95": "Lower end of the 95% interval for the noise of age_50",
        "age_50_upper_95": "Upper end of the 95% interval for the noise of age_50",
    }
    view = people.database.fetch("SELECT attname FROM pg_attribute WHERE attrelid = 'dp_release.ages_rounded'::regclass AND attname LIKE '%error'")
    assert view == []


def test_an_audit_recomputes_quantiles(people):
    text = "SELECT county, percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 1)) AS median, count(*) FROM people GROUP BY county"
    declare(people, "ages", text, groups="VALUES ('A'), ('B')", epsilon=2)
    live(people)
    people.execute("CALL dp_publish()")
    assert audited(people) == []
    people.execute("UPDATE dp_release.ages SET median = 100 - median WHERE release_no = 2 AND county = 'B'")
    assert audited(people) == [("published values", "ages")]


def audited(people):
    with people.database.connect(autocommit=False) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return connection.execute("SELECT \"check\", subject FROM dp_audit() WHERE verdict = 'failed'").fetchall()


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people", {}, "has no bounds, so that a quantile"),
        ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 9, 1)) FROM people", {"max_error": 5}, "max_error is not for quantiles"),
        (
            "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 9, 1)) FROM people WHERE dp_time > now() - INTERVAL '1 day'",
            {},
            "of changes means nothing",
        ),
        (
            "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 9, 1)) FROM people",
            {"model": "local", "roster": "VALUES (1)"},
            "counts with count",
        ),
        (
            "SELECT county, percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 9, 1)) FROM people GROUP BY county",
            {"key_delta": "1e-9"},
            "releases of one count",
        ),
        (
            "SELECT width_bucket(score, 0, 1, 900) AS b, percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 999, 1)) FROM people GROUP BY b",
            {},
            "at most 100000 cells",
        ),
    ],
)
def test_what_quantiles_are_not_for(people, text, options, said):
    if "key_delta" in options:
        people.execute("SELECT dp_set_budget('people', 10, 0.000001, key_delta => 0.0000005)")
    with pytest.raises(psycopg.Error, match=said):
        declare(people, "one", text, **({"epsilon": 5} | options))


def test_ranges_and_restated_histories_are_of_counts(people):
    declare(people, "one", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 9, 1)) FROM people")
    people.day(2)
    people.execute("CALL dp_publish()")
    for call in ("dp_restated('one')", "dp_range_stats('one', '-infinity', '2020-03-03')"):
        with pytest.raises(psycopg.Error, match="is a quantile: ranges and restated"):
            people.execute(f"SELECT * FROM {call}")


def test_quantiles_beside_counts_levels_and_epochs(people):
    """A release with levels, and one whose horizon is renewed: the audit recomputes both; ranges are those of the counts alone."""
    quantile = "percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 20)) AS median, count(*) AS n FROM people"
    text = f"SELECT {quantile} WHERE dp_time > now() - INTERVAL '2 days'"
    declare(people, "blocks", text, measure="entered", levels="{1 day, 2 days}", epsilon=300)
    declare(people, "renewed", f"SELECT {quantile}", horizon=2, at_horizon="renew", epsilon=30)
    live(people)
    people.execute("CALL dp_publish()")
    assert people.database.value("SELECT count(*) FROM dp_release.renewed") == DAYS
    assert audited(people) == []
    (first, last) = people.database.fetch("SELECT min(window_start)::text, max(window_end)::text FROM dp_release.blocks")[0]
    found = people.database.fetch("SELECT DISTINCT figure FROM dp_range_stats('blocks', %s, %s)", (first, last))
    assert found == [("n",)]
    assert people.database.fetch("SELECT DISTINCT figure FROM dp_restated('renewed')") == [("n",)]
