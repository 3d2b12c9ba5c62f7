"""Averaging and differencing: the same question in other words is the same answer; another question is another charge."""

import statistics

import psycopg
import pytest

ROWS = 40
#: One question, spelt as differently as SQL allows.
RESPELT = (
    "county = 'A'",
    "COUNTY = 'A'",
    '"county" = \'A\'',
    "( county = 'A' )",
    "county IN ('A')",
    "county IN ('A', 'A')",
    "'A' = county",
    "county = 'A' AND county = 'A'",
    "county = 'A' OR county = 'A'",
    "NOT county <> 'A'",
    "NOT (NOT (county = 'A'))",
    "county /* again */ = 'A' -- and again",
    "county\n=\n'A'",
    "(county = 'A') IS TRUE",
)
#: Every one reaches over the same day, or less of it.
SAME_DAY = (
    ("2020-01-02", "2020-01-03"),
    ("2020-01-02 00:00+08", "2020-01-03 00:00+08"),
    ("2020-01-02 03:00", "2020-01-02 21:00"),
    ("2020-01-02 00:00:00.000001", "2020-01-03"),
    ("2020-01-01 16:00+00", "2020-01-02 16:00+00"),
    ("2020-01-02 11:59:59", "2020-01-02 12:00:01"),
)


@pytest.fixture
def town(ready):
    """Forty entries of county A and two of B, all of one day, in a budget that leaves room for many questions."""
    ready.session.execute("SELECT dp_set_budget('cases', epsilon => 900)")
    ready.day(1)
    ready.insert(*((number, "A" if number > 2 else "B", "open") for number in range(1, ROWS + 3)))
    ready.day(4)
    ready.publish()
    return ready


def ask(town, predicate, window=SAME_DAY[0], epsilon="0.05"):
    call = "SELECT dp_window_count('cases', %s, %s, predicate => %s, epsilon => %s::numeric)"
    return town.session.execute(call, (*window, predicate, epsilon)).fetchone()[0]


def spent(town):
    return town.database.value("SELECT spent FROM dbext.budget_status")


def forget(town):
    """Weaken the build: no question is recognised when it is asked again."""
    town.session.execute("""
        CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.measure := NEW.measure || NEW.question_id; RETURN NEW; END $$;
        CREATE TRIGGER forget BEFORE INSERT ON dbext_private.question FOR EACH ROW EXECUTE FUNCTION forget()""")


def test_a_question_in_other_words_has_the_answer_it_had(town):
    answers = {ask(town, predicate) for predicate in RESPELT}
    assert len(answers) == 1
    assert 0.0499 < spent(town) <= 0.05


def test_a_window_shifted_within_its_ticks_is_the_same_window(town):
    assert len({ask(town, "county = 'A'", window) for window in SAME_DAY}) == 1
    assert spent(town) <= 0.05


def test_against_a_build_that_forgets_averaging_works(town):
    forget(town)
    answers = [ask(town, predicate) for predicate in RESPELT for _ in range(4)]
    error = town.session.execute("SELECT std_error FROM dp_window_stats('cases', %s, %s, epsilon => 0.05)", SAME_DAY[0]).fetchone()[0]
    assert len(set(answers)) > len(answers) / 4
    assert abs(statistics.mean(answers) - ROWS) < error, "56 answers: 7.5 deviations of their mean"


def test_a_smaller_epsilon_is_answered_from_the_better_answer(town):
    better = ask(town, "county = 'A'", epsilon="0.5")
    assert {ask(town, "county = 'A'", epsilon=str(epsilon)) for epsilon in ("0.4", "0.1", "0.01")} == {better}
    assert spent(town) <= 0.5


def test_overlapping_windows_and_complements_are_each_charged(town):
    """What differencing would cancel is noise that was drawn anew, and paid for."""
    windows = (("2020-01-01", "2020-01-03"), ("2020-01-01", "2020-01-02"), ("2020-01-02", "2020-01-03"))
    answers = [ask(town, "county = 'A'", window, "30") for window in windows]
    assert [round(answer) for answer in answers] == [ROWS, 0, ROWS]
    assert 89.9 < spent(town) <= 90  # an entry that changes on both days is in all three
    ask(town, "county = 'A'", windows[2], "30")
    assert spent(town) <= 90
    ask(town, "NOT county = 'A'", windows[2], "30")
    assert 119.9 < spent(town) <= 120
    ask(town, "county <> 'A'", windows[2], "30")
    assert spent(town) <= 120


DAILY = "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"


def release(town, name, groups, text=DAILY):
    return town.declare(name, text, every="1 day", epsilon=1, groups=groups, start="2020-01-01 00:00+08", horizon=3)


def test_lists_of_keys_that_single_out_one_are_each_charged(town):
    for number, groups in enumerate(("VALUES ('A'), ('B')", "VALUES ('A')", "VALUES ('B')")):
        before = town.database.value("SELECT reserved FROM dbext.budget_status")
        release(town, f"r{number}", groups)
        assert town.database.value("SELECT reserved FROM dbext.budget_status") - before > 0.99


@pytest.mark.parametrize("groups", ["VALUES ('A'), ('A'), ('A'), ('B')", "VALUES ('A'), (E'\\x41'), ('A'), (U&'\\0041')"])
def test_a_key_many_times_is_one_key(town, groups):
    try:
        release(town, "one", groups)
    except psycopg.Error as error:
        assert error.sqlstate in ("DP010", "DP001")  # noqa: PT017 - refusing it is right as well
        return
    town.publish()
    rows = town.database.fetch("SELECT county, count(*) FROM dp_release.one GROUP BY county ORDER BY county")
    assert rows in ([("A", 3)], [("A", 3), ("B", 3)])


@pytest.fixture
def insensitive(ready):
    """A table whose key column's collation knows no case: two to the ninth spellings are one key."""
    ready.session.execute("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    ready.session.execute("CREATE TABLE person (id integer PRIMARY KEY, name text COLLATE ci)")
    ready.day(-1)
    ready.session.execute("SELECT dp_track('person', time_zone => 'Asia/Taipei'), dp_add_constraint('person', 'any', max_mutations => 2)")
    ready.session.execute("SELECT dp_set_budget('person', epsilon => 9)")
    ready.day(0)
    ready.session.execute("INSERT INTO person SELECT n, 'abcdefghi' FROM generate_series(1, 3) AS n")
    return ready


def spellings():
    word = "abcdefghi"
    return ["".join(letter.upper() if mask >> place & 1 else letter for place, letter in enumerate(word)) for mask in range(2 ** len(word))]


def test_a_key_respelt_under_its_collation_is_one_cell(insensitive):
    """Otherwise each row would count in every spelling's cell, and their mean would have no noise."""
    keys = ", ".join(f"('{one}')" for one in spellings())
    text = "SELECT name, count(*) FROM person WHERE dp_time > now() - INTERVAL '1 day' GROUP BY name"
    insensitive.declare("one", text, every="1 day", epsilon=1, groups=f"VALUES {keys}")
    insensitive.day(1)
    insensitive.publish()
    assert insensitive.database.value("SELECT count(*) FROM dp_release.one") == 1


def test_against_cells_of_every_spelling_one_row_counts_in_all(insensitive):
    """The same keys compared as a weakened build would: distinct under one collation, met under another."""
    keys = ", ".join(f"('{one}')" for one in spellings())
    cells = f'SELECT DISTINCT v.key COLLATE "C" AS key FROM (VALUES {keys}) AS v(key)'
    met = f"SELECT k.key, count(p.id) AS met FROM ({cells}) AS k LEFT JOIN person AS p ON p.name = k.key COLLATE ci GROUP BY k.key"
    assert insensitive.database.fetch(f"SELECT count(*), avg(met) FROM ({met}) AS cells") == [(512, 3)]
