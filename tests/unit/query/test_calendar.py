from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument, DbextError
from dbext.privacy.grid import MonthGrid, RegularGrid, first_of_month
from dbext.query.calendar import MICROSECONDS_PER_HOUR, Span, Tick, parse_span, tick_from_span, whole_ticks
from dbext.query.periods import Width, grid_for, width_of

DAY, WEEK, HOUR, MONTH = Tick("day", 1), Tick("day", 7), Tick("fixed", MICROSECONDS_PER_HOUR), Tick("month", 1)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("14 days", Span(days=14)),
        (" 1 DAY ", Span(days=1)),
        ("2 weeks", Span(days=14)),
        ("1 year 6 months", Span(months=18)),
        ("1 mon 2 days", Span(1, 2)),
        ("36 hours", Span(microseconds=36 * MICROSECONDS_PER_HOUR)),
        ("24:00", Span(microseconds=24 * MICROSECONDS_PER_HOUR)),
        ("1 day 00:30:15", Span(days=1, microseconds=(30 * 60 + 15) * 1_000_000)),
        ("15 min", Span(microseconds=15 * 60 * 1_000_000)),
        ("250 milliseconds", Span(microseconds=250_000)),
    ],
)
def test_interval_literals(text, span):
    assert parse_span(text) == span


@pytest.mark.parametrize(
    "text",
    [
        "",
        "14",
        "-1 days",
        "+1 day",
        "1.5 days",
        "P14D",
        "1 day ago",
        "1 century",
        "0 days",
        "1 m",
        "1e2 days",
        "one day",
        "1 day,",
        "9999999 days",
        "٣ days",
    ],
)
def test_other_intervals_are_refused(text):
    with pytest.raises(BadArgument):
        parse_span(text)


@given(st.integers(0, 500), st.integers(0, 9000), st.integers(0, 10**13))
def test_text_of_a_span_reads_back(months, days, microseconds):
    if months or days or microseconds:
        span = Span(months, days, microseconds)
        assert parse_span(span.text) == span
        assert Span.from_json(span.to_json()) == span


@given(st.text(max_size=40))
def test_any_text_is_a_span_or_refused(text):
    with contextlib.suppress(DbextError):
        parse_span(text)


@pytest.mark.parametrize(
    ("span", "tick", "ticks"),
    [
        (Span(days=14), DAY, 14),
        (Span(days=14), WEEK, 2),
        (Span(microseconds=36 * MICROSECONDS_PER_HOUR), HOUR, 36),
        (Span(months=18), MONTH, 18),
        (Span(months=18), Tick("month", 3), 6),
    ],
)
def test_whole_ticks(span, tick, ticks):
    assert whole_ticks(span, tick, "the window") == ticks


@pytest.mark.parametrize(
    ("span", "tick", "message", "hint"),
    [
        (Span(days=10), WEEK, "the window of 10 days is not a multiple of the tick of 7 days", "7 days and 14 days"),
        (Span(days=1), WEEK, "the window of 1 day is shorter than the tick of 7 days", "Nothing shorter"),
        (Span(microseconds=90 * 60 * 10**6), HOUR, "not a multiple", "1 hour and 2 hours"),
        (Span(days=1), HOUR, "cannot be counted in ticks of 1 hour", "A local day may last 23 or 25 hours: write '24 hours'."),
        (Span(months=1), HOUR, "cannot be counted", "Track the table with tick => '1 day'."),
        (Span(microseconds=48 * MICROSECONDS_PER_HOUR), DAY, "cannot be counted in ticks of 1 day", "Write '2 days'."),
        (Span(microseconds=MICROSECONDS_PER_HOUR), DAY, "cannot be counted", "a tick of hours"),
        (Span(months=1), DAY, "cannot be counted", "tick => '1 month'"),
        (Span(days=30), MONTH, "cannot be counted in ticks of 1 month", "tick => '1 day'"),
        (Span(1, 1), MONTH, "cannot be counted", "Write months"),
    ],
)
def test_spans_that_do_not_fit_name_the_alternative(span, tick, message, hint):
    with pytest.raises(BadArgument, match=message) as caught:
        whole_ticks(span, tick, "the window")
    assert hint in caught.value.hint


def test_ticks_have_one_unit():
    assert tick_from_span(Span(days=1)) == DAY
    assert tick_from_span(Span(microseconds=MICROSECONDS_PER_HOUR)) == HOUR
    assert tick_from_span(Span(months=1)) == MONTH
    with pytest.raises(BadArgument, match="mix units"):
        tick_from_span(Span(1, 1))
    with pytest.raises(BadArgument):
        Tick("week", 1)
    with pytest.raises(BadArgument):
        Tick("day", 0)


def test_weeks_start_on_mondays_and_months_on_the_first():
    assert grid_for(Span(days=7), DAY, 5700) == RegularGrid(5698, 7)
    grid = grid_for(Span(months=1), DAY, 5700)
    assert grid == MonthGrid(187, 1)
    assert grid.end(0) == first_of_month(187) <= 5700 < grid.end(1)
    assert grid_for(Span(months=3), DAY, 5700).first_month % 3 == 0


def test_a_start_of_ones_own_shifts_the_periods():
    assert grid_for(Span(days=7), DAY, 5700, aligned=False) == RegularGrid(5700, 7)
    assert grid_for(Span(months=3), DAY, first_of_month(187), aligned=False) == MonthGrid(187, 3)
    with pytest.raises(BadArgument, match="first of a month"):
        grid_for(Span(months=1), DAY, 5700, aligned=False)


@given(st.integers(-3000, 9000), st.integers(-3000, 9000), st.sampled_from([Span(days=1), Span(days=7), Span(months=1), Span(months=5)]))
def test_period_1_is_the_aligned_one_that_holds_the_start_but_not_the_baseline(start, first_tick, every):
    grid = grid_for(every, DAY, start, first_tick=first_tick)
    assert grid.end(0) >= first_tick
    assert grid.end(0) <= max(start, first_tick) + 31 * 5
    assert grid.end(0) <= start < grid.end(1) or grid.end(-1) < first_tick


def test_widths():
    assert width_of(Span(days=14), RegularGrid(0, 1), DAY, 0) == Width(ticks=14)
    assert width_of(Span(days=14), RegularGrid(0, 1), DAY, 3) == Width(ticks=11)
    assert width_of(Span(months=6), MonthGrid(0, 3), DAY, 0) == Width(steps=2)
    assert width_of(Span(days=14), MonthGrid(0, 1), DAY, 0) == Width(ticks=14)
    assert Width(ticks=28).within_period(MonthGrid(0, 1))
    assert not Width(ticks=29).within_period(MonthGrid(0, 1))
    assert Width(steps=1).within_period(MonthGrid(0, 3))
    for span, grid, age in [
        (Span(months=4), MonthGrid(0, 3), 0),
        (Span(months=3), MonthGrid(0, 3), 1),
        (Span(days=2), RegularGrid(0, 1), 2),
    ]:
        with pytest.raises(BadArgument):
            width_of(span, grid, DAY, age)


@pytest.mark.parametrize(
    ("text", "said"), [("-1 days", "active_within is not understood"), ("0 days", "active_within must be longer than nothing")]
)
def test_a_refusal_names_what_was_read(text, said):
    with pytest.raises(BadArgument, match=said):
        parse_span(text, "active_within")
