"""dp_restated: published windows estimated anew from what has been published since, at no charge and without touching a row."""

from __future__ import annotations

import pytest

TOTAL = "SELECT county, count(*) FROM cases WHERE status = 'open' GROUP BY county"
KEYS = "VALUES ('A'), ('B')"
BOTH = (
    "SELECT p.release_no, p.{0}::float8, p.std_error, r.value, r.std_error, p.window_start = r.window_start AND p.window_end = r.window_end"
    " FROM dp_release.one AS p JOIN dp_restated('one') AS r ON r.release_no = p.release_no AND r.group_key = ARRAY[p.county] ORDER BY 1, p.county"
)


def published(cases, text, days=20, delta="0", **options):
    cases.constrain(max_mutations=2)
    cases.budget(10, delta)
    cases.declare("one", text, epsilon=2, groups=KEYS, **options)
    for day in range(days):
        if day:
            cases.day(day)
        cases.insert(*[(100 * day + n, "AB"[n % 2], "open") for n in range(40)])
    cases.day(days)
    cases.publish()


def test_windows_of_several_levels_are_restated_with_less_error(cases):
    published(cases, TOTAL, levels=["1 day", "4 days", "12 days"], horizon=600)
    before = cases.database.fetch("SELECT * FROM dp_release.one ORDER BY 1, 3")
    ledger = cases.database.value("SELECT count(*) FROM dbext_private.ledger")
    rows = cases.database.fetch(BOTH.format("state"))
    assert len(rows) == 40
    assert all(same for *_, same in rows)
    assert all(restated <= error * (1 + 1e-9) for _, _, error, _, restated, _ in rows)
    assert sum(restated < 0.97 * error for _, _, error, _, restated, _ in rows) > 20
    for period, _, _, value, error, _ in rows:
        assert abs(value - 20 * period) <= 6 * error
    assert cases.database.fetch("SELECT * FROM dp_release.one ORDER BY 1, 3") == before
    assert cases.database.value("SELECT count(*) FROM dbext_private.ledger") == ledger
    assert cases.database.fetch(BOTH.format("state")) == rows, "the same numbers give the same estimates"


@pytest.mark.parametrize(("delta", "horizon"), [("1e-6", 30), ("0", 60)])
def test_where_later_numbers_say_nothing_the_history_stays(cases, delta, horizon):
    published(cases, TOTAL, delta=delta, every="1 day", horizon=horizon)
    for _, value, error, restated, error_then, same in cases.database.fetch(BOTH.format("state")):
        assert (restated, error_then, same) == (pytest.approx(value), pytest.approx(error), True)


def test_nothing_published_is_nothing_restated(ready):
    ready.declare("one", TOTAL, every="1 day", epsilon=1, groups=KEYS, horizon=5)
    assert ready.database.fetch("SELECT * FROM dp_restated('one')") == []


def test_only_readers_of_the_release_ask(ready):
    ready.declare("one", TOTAL, every="1 day", epsilon=1, groups=KEYS, horizon=5)
    stranger = ready.database.create_role("dbext_reader", admitted=False)
    with ready.database.connect(stranger) as connection, pytest.raises(Exception, match=r"permission|may not"):
        connection.execute("SELECT * FROM dp_restated('one')")
