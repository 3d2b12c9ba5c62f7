"""Questions: what they return, what they cost, and what is refused."""

import json
from decimal import Decimal
from fractions import Fraction

import psycopg
import pytest

from tests.integration.refusals import refused


@pytest.fixture
def told(ready):
    """Three sealed days: day 0 holds three insertions, day 1 a move and a closing, day 2 a deletion and an insertion."""
    ready.insert((1, "A", "open"), (2, "A", "open"), (3, "B", "shut"))
    ready.day(1)
    ready.session.execute("UPDATE cases SET county = 'B' WHERE id = 1; UPDATE cases SET status = 'shut' WHERE id = 2")
    ready.day(2)
    ready.session.execute("DELETE FROM cases WHERE id = 1")
    ready.insert((4, "C", "open"))
    ready.day(3)
    ready.publish()
    return ready


@pytest.fixture
def loud(told):
    """A budget so large that answers are exact."""
    told.budget(1000)
    return told


EXACT = [
    ("2020-01-01", "2020-01-04", {}, 3),
    ("2020-01-02", "2020-01-03", {}, 0),
    ("2020-01-01", "2020-01-02", {"predicate": "status = 'open'"}, 2),
    ("2020-01-02", "2020-01-04", {"predicate": "status = 'open'"}, -1),
    ("2020-01-01", "2020-01-04", {"predicate": "status = 'open'", "measure": "entered"}, 3),
    ("2020-01-01", "2020-01-04", {"predicate": "status = 'open'", "measure": "left"}, 2),
    ("2020-01-02", "2020-01-03", {"predicate": "county = 'B'", "measure": "entered"}, 1),
    (None, "2020-01-03", {"predicate": "status = 'open'", "measure": "state"}, 1),
    ("-infinity", "2020-01-04", {"measure": "state"}, 3),
]


def test_answers_count_what_they_say(loud):
    """At an epsilon of 60 noise is zero but for a chance of exp(-30)."""
    for start, end, options, expected in EXACT:
        assert loud.ask(start, end, epsilon=60, **options) == expected, (start, end, options)


def test_an_answer_comes_with_its_error_window_and_price(told):
    sql = "SELECT * FROM dp_window_stats('cases', '2020-01-01 05:00', '2020-01-02 07:00', epsilon => 0.5)"
    cursor = told.session.execute(sql)
    assert [column.name for column in cursor.description] == [
        "value", "std_error", "lower_95", "upper_95", "window_start", "window_end", "epsilon", "remembered",
    ]  # fmt: skip
    value, std_error, lower, upper, *_ = first = cursor.fetchone()
    assert told.session.execute(sql).fetchone() == (*first[:-1], True)
    assert first[-1] is False
    assert lower < value < upper
    assert upper - lower < 6 * std_error
    bounds = "SELECT window_start = '2020-01-01 00:00+08', window_end = '2020-01-03 00:00+08' FROM (" + sql + ") AS s"
    assert told.database.fetch(bounds) == [(True, True)]


def test_moments_and_texts_mean_the_same_window(told):
    first = told.ask("2020-01-01", "2020-01-03", epsilon="0.5")
    again = "SELECT dp_window_count('cases', timestamptz '2019-12-31 16:00+00', timestamptz '2020-01-02 16:00+00', epsilon => 0.5)"
    assert told.database.value(again) == first
    assert told.database.value("SELECT count(*) FROM dbext_private.question") == 1


def left(told):
    return told.database.value('SELECT "left" FROM dbext.budget_status')


def test_a_question_is_charged_once_and_remembered(told):
    first = told.ask("2020-01-01", "2020-01-02", epsilon=1, predicate="status = 'open' AND county = 'A'")
    assert left(told) == 9
    for same in ("county='A' and status='open'", "(status = 'open') AND ((county = 'A'))"):
        assert told.ask("2020-01-01", "2020-01-02", epsilon=1, predicate=same) == first
        assert told.ask("2020-01-01", "2020-01-02", epsilon="0.4", predicate=same) == first
    assert left(told) == 9
    told.ask("2020-01-01", "2020-01-02", epsilon="1.5", predicate="status = 'open' AND county = 'A'")
    assert left(told) == 7.5


def test_the_best_remembered_answer_is_returned(told):
    told.ask("2020-01-01", "2020-01-02", epsilon="0.001")
    best = told.ask("2020-01-01", "2020-01-02", epsilon=2)
    assert told.ask("2020-01-01", "2020-01-02", epsilon="0.001") == best


def test_questions_about_windows_that_an_entry_cannot_both_touch_cost_the_dearest(cases):
    cases.constrain(max_mutations=1)
    cases.budget(1)
    cases.day(3)
    cases.publish()
    for day in (1, 2, 3):
        cases.ask(f"2020-01-0{day}", f"2020-01-0{day + 1}", epsilon=1)
    assert cases.database.fetch('SELECT spent, "left" FROM dbext.budget_status') == [(1, 0)]


def test_a_refused_question_says_what_is_left_and_costs_nothing(told):
    told.ask("2020-01-01", "2020-01-02", epsilon=8)
    sql = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-03', epsilon => 2.5)"
    with pytest.raises(psycopg.Error) as caught:
        told.session.execute(sql)
    assert caught.value.sqlstate == "DP020"
    assert "spent or reserved 8, asked 2.5, left 2" in caught.value.diag.message_primary
    assert "smaller epsilon" in caught.value.diag.message_hint
    assert told.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'question'") == 1
    assert left(told) == 2
    told.ask("2020-01-01", "2020-01-03", epsilon=2)


def test_epsilon_outside_its_range_is_refused(told):
    for epsilon in ("0", "-1", "'NaN'", "'Infinity'", "1001", "NULL", "1e-13"):
        refused(told.session, "DP001", f"SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', epsilon => {epsilon})")


NO_QUESTIONS = [
    ("DP030", "2020-01-01", "2020-01-05", "net"),
    ("DP030", "2020-01-01", "2020-01-04 00:00:01", "net"),
    ("DP030", "2020-01-01", "2999-01-01", "net"),
    ("DP001", "2020-01-01", "infinity", "net"),
    ("DP001", "2020-01-03", "2020-01-02", "net"),
    ("DP001", "2020-01-02", "2020-01-02", "net"),
    ("DP001", "2019-01-01", "2020-01-02", "net"),
    ("DP001", "yesterday evening", "2020-01-02", "net"),
    ("DP001", "2020-01-01", None, "net"),
    ("DP001", None, "2020-01-02", "entered"),
    ("DP001", "-infinity", "2020-01-02", "net"),
    ("DP001", "2020-01-01", "2020-01-02", "state"),
    ("DP001", None, "2019-01-02", "state"),
    ("DP001", "2020-01-01", "2020-01-02", "median"),
    ("DP001", "2020-01-01", "2020-01-02", None),
]


def test_windows_and_measures_that_make_no_question_are_refused(told):
    sql = "SELECT dp_window_count('cases', %s::text, %s::text, measure => %s, epsilon => 1)"
    for sqlstate, *arguments in NO_QUESTIONS:
        refused(told.session, sqlstate, sql, arguments)
    assert left(told) == 10


def test_a_window_that_is_not_over_is_not_for_sealing(told):
    sql = "SELECT dp_window_count('cases', '2020-01-01', %s::text, epsilon => 1)"
    assert "HINT:  That moment is still to come" in refused(told.session, "DP030", sql, ["2020-01-05"])
    told.day(4)
    assert "HINT:  CALL dp_publish() seals." in refused(told.session, "DP030", sql, ["2020-01-05"])


def test_predicates_outside_the_allow_list_are_refused(told):
    for predicate in (
        "mine(status)", "status::int = 1", "1 / id > 0", "id = (SELECT 1)", "random() < 1", "now() > reported", "generate_series(1, 2) = 1",
        "colour = 1", "true; DROP TABLE cases", "status = 'a' OR", "", "pg_sleep(1) IS NULL", "status ~ 'a'", "reported = 'never'",
    ):  # fmt: skip
        refused(
            told.session,
            "DP010",
            "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => %s, epsilon => 1)",
            (predicate,),
        )
    assert left(told) == 10


def test_a_table_without_budget_or_tracking_is_refused(cases):
    cases.day(2)
    cases.publish()
    refused(cases.session, "DP002", "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', epsilon => 1)")
    cases.session.execute("CREATE TABLE other (id int PRIMARY KEY)")
    refused(cases.session, "DP002", "SELECT dp_window_count('other', '2020-01-01', '2020-01-02', epsilon => 1)")
    refused(cases.session, "42P01", "SELECT dp_window_count('nothing', '2020-01-01', '2020-01-02', epsilon => 1)")


def test_no_value_of_the_table_or_the_question_reaches_a_message(told):
    text = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => 'reported = ''secret''', epsilon => 1)"
    said = refused(told.session, "DP010", text)
    assert "secret" not in said


def test_settings_of_the_caller_do_not_change_what_a_question_means(told):
    sql = "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', predicate => $$reported > '2020-01-02'$$, epsilon => 1)"
    first = told.database.value(sql)
    for setting in ("datestyle = 'SQL, DMY'", "timezone = 'America/New_York'", "transform_null_equals = on", "standard_conforming_strings = off",
                    "extra_float_digits = -10", "search_path = ''", "intervalstyle = 'iso_8601'"):  # fmt: skip
        with told.database.connect() as connection:
            connection.execute(f"SET {setting}")
            assert connection.execute(sql.replace("dp_window", "public.dp_window").replace("'cases'", "'public.cases'")).fetchone() == (
                first,
            )
    assert left(told) == 9


def second_session_says(told, **changes):
    """Run what the second session runs, with a request that another version of the facts might have led to."""
    question = {
        "table_id": 1,
        "start": told.database.value("SELECT first_tick FROM dbext_private.tracked_table"),
        "measure": "net",
        "predicate": "",
    }
    question["end"] = question["start"] + 1
    request = {"question": question, "predicate": None, "epsilon": "0.1", "delta": "0", "asked_by": "someone", "pure": True}
    request |= {"wish": [None, "0.1"], "settled": [None, False], **changes}
    request.setdefault("noise", {"kind": "discrete_laplace", "scale": "1/1000"})
    with told.database.connect() as connection:
        connection.execute("SET ROLE dbext_owner")
        connection.execute("SELECT dbext_private.answer_question(%s::jsonb)", (json.dumps(request),))
    return told.database.fetch(
        "SELECT charges -> 0 -> 'noise', epsilon FROM dbext_private.ledger WHERE kind = 'question' ORDER BY ledger_no DESC"
    )[0]


def test_noise_that_is_too_small_for_its_price_is_worked_out_anew(told):
    """The first session may have seen older constraints; the second prices the noise under those in force."""
    noise, epsilon = second_session_says(told)
    assert (float(epsilon), noise["kind"]) == (0.1, "discrete_laplace")
    assert Fraction(noise["scale"]) >= 10


def test_noise_meant_for_another_delta_is_worked_out_anew(told):
    noise, _ = second_session_says(told, noise={"kind": "rounded_gaussian", "sigma_squared": "1000000"}, delta="1/1000000")
    assert noise["kind"] == "discrete_laplace"


def test_errors_of_our_own_show_their_kind_and_place_and_no_data(told):
    told.session.execute("ALTER TABLE dbext_private.question ADD CONSTRAINT tiny CHECK (answer * 0 <> 0)")
    with pytest.raises(psycopg.Error) as caught:
        told.ask("2020-01-01", "2020-01-02", epsilon="0.1234567")
    diagnosis = caught.value.diag
    assert diagnosis.sqlstate == "DP099"
    assert "SQLSTATE 23514" in diagnosis.message_primary
    assert "database/" in diagnosis.message_detail
    said = " ".join(str(part) for part in (diagnosis.message_primary, diagnosis.message_detail, diagnosis.message_hint, diagnosis.context))
    for secret in ("Failing row", "0.1234567", "Traceback"):
        assert secret not in said
    assert left(told) == 10


def bound_and_exact(told):
    """Return the certified bound and the exact figure, both as epsilon of a pure budget."""
    picos = told.database.value("SELECT pure_picos FROM dbext_private.loss_bound WHERE table_id = 1")
    return picos / 10**12, told.database.value("SELECT spent + reserved FROM dbext.budget_status")


def test_the_quick_bound_is_never_below_the_exact_figure(told):
    text = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
    steps = [
        lambda: told.ask("2020-01-01", "2020-01-02", epsilon="0.5"),
        lambda: told.declare("one", text, every="1 day", epsilon=1),
        lambda: told.ask("2020-01-02", "2020-01-04", epsilon="0.7"),
        lambda: told.session.execute("SELECT dp_drop_release('one')"),
        lambda: told.ask("2020-01-01", "2020-01-04", epsilon="0.3", measure="entered"),
        lambda: told.session.execute("SELECT dp_alter_constraint('cases', 'any', max_mutations => 7)"),
        lambda: told.ask("2020-01-03", "2020-01-04", epsilon="0.2"),
        lambda: told.budget(10, "1e-6"),
        lambda: told.budget(10, 0),
        lambda: told.ask("2020-01-02", "2020-01-03", epsilon="0.1", measure="left"),
    ]
    asked = 0
    for step in steps:
        step()
        questions = told.database.value("SELECT count(*) FROM dbext_private.question")
        if questions > asked:
            bound, exact = bound_and_exact(told)
            assert bound >= exact - Decimal("0.000001")
        asked = questions


def test_the_quick_bound_does_not_outlive_its_terms(cases):
    """Four questions about different days cost an entry of one mutation 1 in all; of two, 2. The fifth would make it 4."""
    cases.constrain(max_mutations=1)
    cases.budget("3.5")
    cases.day(4)
    cases.publish()
    for day in (1, 2, 3, 4):
        cases.ask(f"2020-01-0{day}", f"2020-01-0{day + 1}", epsilon=1)
    assert cases.database.value("SELECT pure_picos FROM dbext_private.loss_bound") == 10**12
    cases.session.execute("SELECT dp_alter_constraint('cases', 'any', max_mutations => 2)")
    with pytest.raises(psycopg.Error) as caught:
        cases.ask("2020-01-01", "2020-01-05", epsilon=2, measure="entered")
    assert caught.value.sqlstate == "DP020"
    assert cases.database.value("SELECT spent FROM dbext.budget_status") == 2
