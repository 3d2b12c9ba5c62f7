"""Bins through SQL: what an entry's bucket is, judged by PostgreSQL's own width_bucket; histograms, by recounting the source table."""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal
from itertools import product

import psycopg
import pytest

from dbext.control.database import PsycopgSession
from dbext.database.bins import bucket
from dbext.database.effects import GroupColumn, tick_effects_sql
from dbext.privacy.measure import Measure
from dbext.query.bins import Bins
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.predicate import ColumnRef, Compare, Literal
from dbext.service.bin_cuts import with_cuts
from tests.unit.query.tables import COLUMNS, column

COLUMN = {
    "int": column("v", 1, "pg_catalog.int4", "N", "integer"),
    "bigint": column("v", 1, "pg_catalog.int8", "N", "integer"),
    "numeric": column("v", 1, "pg_catalog.numeric", "N", "numeric"),
    "real": column("v", 1, "pg_catalog.float4", "N", "float"),
    "float8": column("v", 1, "pg_catalog.float8", "N", "float"),
}
EQUAL = [
    "0, 100, 20", "0, 49, 49", "100, 0, 20", "7, -13, 49", "0, 1, 3", "-0.3, 0.7, 10", "0.7, -0.3, 10", "1e3, 2e3, 499", "0, 0.1, 1",
    "-9007199254740992, 9007199254740992, 499", "3, 10, 1", "-1, 1, 7",
]  # fmt: skip
LISTED = ["0", "0, 18, 65, 80", "-1.5, 0.1, 0.3, 7", "-9007199254740992, 0.0000001, 9007199254740992"]
ODD = {
    "int": ["NULL", "'2147483647'", "'-2147483648'"],
    "bigint": ["NULL", "'9223372036854775807'", "'-9223372036854775808'", "'9007199254740993'"],
    "numeric": ["NULL", "'NaN'", "'Infinity'", "'-Infinity'", "'1e131000'", "'-1e131000'"],
    "real": ["NULL", "'NaN'", "'Infinity'", "'-Infinity'", "'3e38'", "'1e-45'", "'-0'"],
    "float8": ["NULL", "'NaN'", "'Infinity'", "'-Infinity'", "'1.7e308'", "'-5e-324'", "'-0'"],
}


def bins_of(kind, arguments, session):
    columns = (COLUMN[kind],)
    declaration = resolve(compile_declaration(f"SELECT width_bucket(v, {arguments}), count(*) FROM t GROUP BY 1"), columns)
    return with_cuts(session, declaration.bins[0])


def near(kind, bins, chance):
    """Values at the edges, and as near to them as their type allows."""
    found = []
    for edge in map(float, bins.edges):
        if kind in ("int", "bigint"):
            found += [math.floor(edge) + step for step in (-1, 0, 1, 2)]
        elif kind == "numeric":
            found += [round(Decimal(edge), 6) + step for step in (0, Decimal("1e-9"), -Decimal("1e-9"))]
        else:
            found += [edge, math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf), edge + chance.uniform(-1, 1) / 7]
    limit = 2**31 - 1 if kind == "int" else 2**62
    smallest = 1e-30 if kind == "real" else 0
    return [f"'{value}'" for value in found if abs(value) <= limit and (value == 0 or abs(value) > smallest)]


@pytest.mark.parametrize("kind", COLUMN)
def test_buckets_are_those_of_width_bucket(database, kind):
    """Values at all edges of all bins; where PostgreSQL refuses a value, NaN among equal bins, it has no bucket."""
    chance, session = random.Random(kind), PsycopgSession(database.superuser)
    equal = EQUAL if kind != "numeric" else [one for one in EQUAL if len(one) < 20]  # wider ones are rounded before PostgreSQL 17
    for arguments in [*equal, *(f"ARRAY[{listed}]" for listed in LISTED)]:
        bins = bins_of(kind, arguments, session)
        values = ", ".join(f"({value}::{kind})" for value in [*ODD[kind], *near(kind, bins, chance)])
        expected = "width_bucket(v, {0})" if not bins.equal else "CASE WHEN v::text <> 'NaN' THEN width_bucket(v, {0}) END"
        rows = database.fetch(f"SELECT v::text, {bucket(bins, 'v')}, {expected.format(arguments)} FROM (VALUES {values}) AS t(v)")
        assert [row for row in rows if row[1] != row[2]] == [], (kind, arguments)
        assert {row[1] for row in rows} - {None} <= set(range(bins.buckets))
        assert len({row[1] for row in rows}) > min(bins.buckets - 1, 3) or kind in ("int", "bigint")


def test_numerics_are_compared_exactly(database):
    """Also where some versions of PostgreSQL round the quotient up to the next bucket."""
    bins = bins_of("numeric", "0, 3, 9", PsycopgSession(database.superuser))
    values = {"0": 1, "-1e-16000": 0, "1e-16000": 1, "0.33333333333333333333333333333333": 1, "0.33333333333333333333333333333334": 2}
    for value, number in values.items():
        assert database.value(f"SELECT {bucket(bins, 'v')} FROM (VALUES ('{value}'::numeric)) AS t(v)") == number


def test_edges_are_those_that_values_are_compared_with(database):
    """The published ends of a bin hold exactly its values, also where PostgreSQL rounds (bin 49 of 49 begins with 49, not 48)."""
    session = PsycopgSession(database.superuser)
    for arguments in EQUAL[:5]:
        bins = bins_of("int", arguments, session)
        for number in range(bins.buckets):
            low, high = bins.limits(number)
            inside = [value for value in range(-30, 130) if (low is None or (value >= low if not bins.descending else value > low))
                      and (high is None or (value < high if not bins.descending else value <= high))]  # fmt: skip
            if inside:
                said = database.fetch(f"SELECT DISTINCT width_bucket(v, {arguments}) FROM unnest(%s::int[]) AS t(v)", (inside,))
                assert said == [(number,)]


@pytest.fixture
def people(tracked):
    made = tracked("id integer PRIMARY KEY, county text, age integer, score double precision, wealth numeric", name="people")
    made.execute("SELECT dp_add_constraint('people', 'any', max_mutations => 5)")
    made.execute("SELECT dp_set_budget('people', 1000)")
    return made


def declare(people, name, text, **options):
    """Declare a release, at an epsilon that leaves no noise but for a chance of exp(-30) for each cell."""
    options = {"every": "1 day", "epsilon": 500, "horizon": 8} | options
    named = "".join(f", {option} => %s" for option in options)
    return people.session.execute(f"SELECT dp_create_release(%s, %s{named})", [name, text, *options.values()]).fetchone()[0]


def live(people, days=4):
    """Write random changes; return the table as each day ends. No entry changes in more than four ticks."""
    chance, ends = random.Random(5), []
    for day in range(1, days + 1):
        people.day(day)
        for number in range(25):
            row = (chance.choice("AB"), chance.choice([None, -5, 0, 17, 18, 64, 65, 99, 100, 2**31 - 1]),
                   chance.choice([None, "NaN", "Infinity", "0.1", "0.3", "-7", "1.7e308"]), number)  # fmt: skip
            action = chance.random()
            if action < 0.3:
                continue
            if action < 0.45:
                people.session.execute("DELETE FROM people WHERE id = %s", (number,))
            else:
                text = (
                    "INSERT INTO people (county, age, score, id) VALUES (%s, %s, %s, %s) "
                    "ON CONFLICT (id) DO UPDATE SET county = EXCLUDED.county, age = EXCLUDED.age, score = EXCLUDED.score"
                )
                people.session.execute(text, row)
        ends.append(people.session.execute("SELECT county, age, score, id FROM people").fetchall())
    people.day(days + 1)
    return ends


def by_age(age):
    return None if age is None else sum(age >= edge for edge in (0, 18, 65, 80))


def test_a_histogram_counts_every_bin_of_every_window(people):
    """At an epsilon that leaves no noise: every bin, zeros included, with its ends."""
    declare(people, "ages", "SELECT width_bucket(age, ARRAY[0, 18, 65, 80]) AS bin, count(*) FROM people GROUP BY bin")
    ends = live(people)
    people.execute("CALL dp_publish()")
    rows = people.database.fetch("SELECT release_no, bin, bin_low, bin_high, state FROM dp_release.ages ORDER BY 1, 2")
    limits = [(-math.inf, 0), (0, 18), (18, 65), (65, 80), (80, math.inf)]
    expected = [
        (day, number, *limits[number], Counter(by_age(age) for _, age, _, _ in end)[number])
        for day, end in enumerate(ends, 1)
        for number in range(5)
    ]
    assert rows == expected
    assert any(total == 0 for *_, total in rows)
    rounded = people.database.fetch("SELECT release_no, bin, bin_low, bin_high, state FROM dp_release.ages_rounded ORDER BY 1, 2")
    assert rounded == expected


def test_moves_between_bins_and_groups_are_counted_in_windows(people):
    text = (
        "SELECT county, width_bucket(score, -1, 1, 4), count(*) FROM people WHERE dp_time > now() - INTERVAL '1 day' "
        "GROUP BY county, width_bucket(score, -1, 1, 4)"
    )
    for measure in ("net", "entered", "left"):
        declare(people, f"scores_{measure}", text, measure=measure, groups="VALUES ('A'), ('B')", epsilon=330)
    ends = [[], *live(people)]
    people.execute("CALL dp_publish()")
    cell = {None: None, "nan": None, "inf": 5, "0.1": 3, "0.3": 3, "-7.0": 0, "1.7e+308": 5}
    for day in range(1, len(ends)):
        before, after = (
            Counter((county, cell[None if score is None else str(score)]) for county, _, score, _ in ends[n]) for n in (day - 1, day)
        )
        found = people.database.fetch("SELECT county, width_bucket, net FROM dp_release.scores_net WHERE release_no = %s", (day,))
        assert len(found) == 12
        assert {(county, number): total for county, number, total in found} == {
            (county, number): after[county, number] - before[county, number] for county in "AB" for number in range(6)
        }
        for measure, then, now in (("entered", ends[day - 1], ends[day]), ("left", ends[day], ends[day - 1])):
            there = {number for *_, number in then}
            events = Counter((county, cell[None if score is None else str(score)]) for county, _, score, number in now if number not in there)
            sql = f'SELECT county, width_bucket, "{measure}" FROM dp_release.scores_{measure} WHERE release_no = %s'
            found = people.database.fetch(sql, (day,))
            assert len(found) == 12
            assert all(events[county, number] == total for county, number, total in found)


#: What an entry can be on a day: absent, in one of three bins of two groups, or in none.
STATES = [None, ("A", 5), ("A", 15), ("B", 5), ("B", None), (None, 25)]


def test_one_entry_changes_what_is_charged_for_it(people):
    """Every life of three days, through groups and bins: exact sums of one entry change by 2 at most, over any window, by 1 an event."""
    group = GroupColumn(column("county", 2, "pg_catalog.text", "S", "text"), "county")
    reference = ColumnRef("age", column("age", 3, "pg_catalog.int4", "N", "integer"))
    groups = (group, GroupColumn(reference.column, "bin", bins=Bins(reference, ("10", "20"), label="bin", cuts=("10", "20"))))
    text = "SELECT county, width_bucket(age, ARRAY[10, 20]) AS bin, count(*) FROM people GROUP BY county, bin"
    declare(people, "both", text, groups="VALUES ('A'), ('B')")
    release = people.database.value("SELECT release_id FROM dbext_private.release")
    lives = list(product(STATES, repeat=3))
    session = PsycopgSession(people.database.superuser)
    for day in range(3):
        people.day(day + 1)
        for number, states in enumerate(lives):
            if states[day] is None:
                people.execute("DELETE FROM people WHERE id = %s", (number,))
            else:
                text = (
                    "INSERT INTO people (county, age, id) VALUES (%s, %s, %s) "
                    "ON CONFLICT (id) DO UPDATE SET county = EXCLUDED.county, age = EXCLUDED.age"
                )
                people.execute(text, (*states[day], number))
    people.seal_through(3)
    unit = ColumnRef("id", column("id", 1, "pg_catalog.int4", "N", "integer", is_unit=True))
    for measure in (Measure.NET, Measure.ENTERED, Measure.LEFT):
        seen = set()
        for number, states in enumerate(lives):
            only = Compare("=", unit, Literal(str(number), "number", cast="pg_catalog.int4"))
            effects_sql = tick_effects_sql((people.number, 1), measure, only, groups)
            rows = session.fetch(effects_sql, release, 0, people.first + 9, 0)
            days = {row["tick"] - people.first: row["array_agg"] for row in rows}
            effects = [days.get(day, [0] * 6) for day in (1, 2, 3)]
            windows = [(a, b) for a in range(3) for b in range(a + 1, 4)] if measure is Measure.NET else [(a, a + 1) for a in range(3)]
            for first, last in windows:
                change = [sum(cells) for cells in zip(*effects[first:last], strict=True)]
                seen.add((sum(map(abs, change)), sum(value * value for value in change)))
            assert cells_at_end(states) == [sum(cells) for cells in zip(*effects, strict=True)] or measure is not Measure.NET
        assert seen == ({(0, 0), (1, 1), (2, 2)} if measure is Measure.NET else {(0, 0), (1, 1)})


def cells_at_end(states):
    if states[-1] is None or None in states[-1]:
        return [0] * 6
    county, age = states[-1]
    return [int((one, number) == (county, age // 10)) for one in "AB" for number in range(3)]


def test_no_value_can_stop_a_publication(people):
    """Values of every absurd kind, in a column that is given a wider type while the release lives, too."""
    people.execute("SELECT dp_alter_constraint('people', 'any', max_mutations => 2)")
    for number, (name, arguments) in enumerate([("age", "0, 100, 7"), ("age", "100, 0, 7"), ("score", "1, 0, 7"), ("wealth", "0, 1, 7")]):
        declare(people, f"h{number}", f"SELECT width_bucket({name}, {arguments}) AS bin, count(*) FROM people GROUP BY bin", epsilon=245)
    people.day(1)
    people.execute("INSERT INTO people (id, age) VALUES (1, 50), (2, 2147483647)")
    people.execute("ALTER TABLE people ALTER COLUMN age TYPE bigint")
    people.track()
    people.execute("INSERT INTO people (id, age) VALUES (3, 9223372036854775807), (4, -9223372036854775808), (5, NULL)")
    for number, value in enumerate(["NaN", "Infinity", "-Infinity", "1e131000", "-1e131000", "1e-16000"], 6):
        score = value if number < 9 else ("1.7e308", "-1.7e308", "5e-324")[number - 9]
        people.execute("INSERT INTO people (id, score, wealth) VALUES (%s, %s, %s)", (number, score, value))
    people.day(2)
    people.execute("CALL dp_publish()")
    totals = [people.database.value(f"SELECT sum(state) FROM dp_release.h{number} WHERE release_no = 1") for number in range(4)]
    assert totals == [4, 4, 5, 5]


def test_columns_say_what_a_bin_is(people):
    declare(people, "ages", "SELECT width_bucket(age, 100, 0, 3) AS bin, count(*) FROM people GROUP BY 1")
    said = dict(
        people.database.fetch(
            "SELECT a.attname, col_description(a.attrelid, a.attnum) FROM pg_attribute AS a "
            "WHERE a.attrelid = 'dp_release.ages'::regclass AND a.attname LIKE 'bin%'"
        )
    )
    assert said == {
        "bin": "Group key: number of the bin of age, from 0 (beyond the first edge) to 4; no bin holds NULL",
        "bin_low": "Lower end of the bin, excluded",
        "bin_high": "Upper end of the bin, included",
    }


def test_what_else_a_histogram_can_do(people):
    """Audit, ranges, restated histories and means by bin take bins for the group keys they are."""
    text = "SELECT width_bucket(age, 0, 100, 4) AS bin, count(*) FROM people WHERE dp_time > now() - INTERVAL '1 day' GROUP BY bin"
    declare(people, "ages", text, epsilon=900, levels="{1 day, 2 days}")
    people.execute("SELECT dp_bounds('people', 'score', -1, 1, 0.5)")
    declare(people, "means", "SELECT width_bucket(age, 0, 100, 4) AS bin, count(*), avg(score) FROM people GROUP BY bin", epsilon=100)
    live(people)
    people.execute("CALL dp_publish()")
    (first, last) = people.database.fetch("SELECT min(window_start), max(window_end) FROM dp_release.ages")[0]
    totals = dict(people.database.fetch("SELECT bin, sum(net) FROM dp_release.ages GROUP BY bin"))
    ranged = people.database.fetch("SELECT group_key, value FROM dp_range_stats('ages', %s, %s)", (str(first), str(last)))
    assert {int(key[0]): round(value) for key, value in ranged} == totals
    assert people.database.value("SELECT dp_range('ages', %s, %s, '1')::int", (str(first), str(last))) == totals[1]
    assert people.database.value("SELECT count(*) FROM dp_restated('ages')") == 4 * 6
    with people.database.connect(autocommit=False) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        found = connection.execute("SELECT subject, verdict FROM dp_audit()").fetchall()
    assert ("ages", "passed") in found
    assert [subject for subject, verdict in found if verdict == "failed"] == []
    assert people.database.value("SELECT count(*) FROM dp_release.means WHERE avg IS NULL OR bin_low IS NULL") == 0


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("SELECT width_bucket(age, 0, 9, 3) AS n, count(*) FROM people GROUP BY n", {"key_delta": "1e-9"}, "bins, which are public"),
        ("SELECT width_bucket(age, 0, 9, 3) AS n, count(*) FROM people GROUP BY n", {"groups": "VALUES (1)"}, "bins need none"),
        ("SELECT width_bucket(age, 0, 9, 3) AS state, count(*) FROM people GROUP BY 1", {}, "column state of its own"),
        (
            "SELECT county, width_bucket(age, 0, 9, 999) AS a, width_bucket(score, 0, 9, 999) AS b, count(*) FROM people GROUP BY 1, 2, 3",
            {"groups": "VALUES ('A')"},
            "at most 100000 cells",
        ),
        (
            "SELECT width_bucket(age, 0, 9, 3) AS n, count(*) FROM people GROUP BY n",
            {"model": "local", "roster": "VALUES (1)"},
            "local model groups by columns alone",
        ),
    ],
)
def test_what_bins_are_not_for(people, text, options, said):
    with pytest.raises(psycopg.Error, match=said):
        declare(people, "one", text, **options)


def test_other_columns_cannot_be_binned(people):
    assert any(one.base == "text" for one in COLUMNS)
    with pytest.raises(psycopg.Error, match="needs a column of numbers"):
        declare(people, "one", "SELECT width_bucket(county, 0, 9, 3) AS n, count(*) FROM people GROUP BY n")
