"""dp_retain: old mutations go, and every sum that may still be asked for stays what it was."""

from __future__ import annotations

import random

import psycopg
import pytest

DAYS = 12


@pytest.fixture
def table(tracked):
    """A table with a history of some days, sealed."""
    made = tracked(rows="SELECT i, 'a' FROM generate_series(1, 20) AS i")
    choice = random.Random(7)
    for day in range(DAYS):
        made.day(day)
        for _ in range(6):
            key, value = choice.randrange(30), choice.choice("abc")
            made.execute(
                choice.choice(
                    (
                        f"INSERT INTO entry VALUES ({key}, '{value}') ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                        f"UPDATE entry SET value = '{value}' WHERE id = {key}",
                        f"DELETE FROM entry WHERE id = {key}",
                    )
                )
            )
        made.seal_through(day)
    return made


def states(table, first: int, last: int) -> list[tuple]:
    """Return what each day's end holds by value, added up from settled changes."""
    return [
        table.fetch(
            "SELECT value, sum(n)::integer FROM (SELECT tick, new_2 AS value, 1 AS n FROM {change} WHERE new_present UNION ALL"
            " SELECT tick, old_2, -1 FROM {change} WHERE old_present) AS s"
            f" WHERE tick <= {table.first + day} GROUP BY 1 HAVING sum(n) <> 0 ORDER BY 1"
        )
        for day in range(first, last + 1)
    ]


def entered(table, first: int) -> list[tuple]:
    return table.fetch("SELECT tick, key_1, old_2, new_2, baseline FROM {change} WHERE tick > " + str(table.first + first) + " ORDER BY 1, 2")


def test_sums_stay_what_they_were(table):
    before = states(table, 4, DAYS - 1), entered(table, 4), table.settled(), table.fetch("SELECT count(*) FROM {admission}")
    said = table.fetch(f"SELECT dp_retain('entry', '{DAYS - 5} days')")
    assert said == [("What changed in public.entry up to 2020-03-07 00:00:00+00 is forgotten one by one; windows begin there or later.",)]
    assert (states(table, 4, DAYS - 1), entered(table, 4), table.settled(), table.fetch("SELECT count(*) FROM {admission}")) == before
    assert table.fetch("SELECT key_1 FROM {log} WHERE mutated_at <= '2020-03-07 UTC' GROUP BY 1 HAVING count(*) > 1") == []
    assert table.fetch("SELECT * FROM dp_recount('entry')") == [(0, 0, 0)]
    folded = "SELECT count(*) = count(DISTINCT key_1) AND bool_and(new_present AND NOT old_present) FROM {change} WHERE tick <= "
    assert table.fetch(folded + str(table.first + 4)) == [(True,)]
    assert table.database.value("SELECT history_begins::text FROM dbext.tracked_table") == "2020-03-07 00:00:00+00"


def test_again_and_again_while_seals_go_on(table):
    for day in range(DAYS, DAYS + 6):
        table.day(day)
        table.execute(f"UPDATE entry SET value = 'day {day}' WHERE id % 3 = {day % 3}")
        table.execute(f"DELETE FROM entry WHERE id = {day}")
        table.seal_through(day)
        before = states(table, day - 2, day)
        table.execute("SELECT dp_retain('entry', '2 days')")
        assert states(table, day - 2, day) == before
    assert table.settled() == dict(table.fetch("SELECT id, value FROM entry"))
    assert table.fetch("SELECT sum(mismatched) FROM dbext_private.seal") == [(0,)]
    assert table.fetch("SELECT dp_retain('entry', '2 days')") == [("Nothing of public.entry is that old.",)]


def test_what_commits_late_is_not_forgotten(table):
    table.day(DAYS)
    late = table.database.connect(autocommit=False)
    table.set_now("2020-03-14 06:00 UTC", late)
    late.execute("INSERT INTO entry VALUES (77, 'late')")
    table.seal_through(DAYS + 3)
    table.execute("SELECT dp_retain('entry', '1 day')")
    late.commit()
    table.execute("SELECT dp_retain('entry', '0 days')")
    table.seal_through(DAYS + 4)
    assert [change for change in table.changes() if change[1] == 77] == [(DAYS + 4, 77, None, "late")]


def test_a_release_that_needs_them_keeps_them(ready):
    ready.declare("daily", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", measure="net", epsilon=1)
    ready.insert((1, "north", "new"))
    ready.day(3)
    ((number,),) = ready.database.fetch("SELECT table_id FROM dbext_private.tracked_table")
    ready.session.execute(f"SELECT dbext_private.seal_table({number})")
    with pytest.raises(psycopg.Error, match="release daily still needs what changed after") as refused:
        ready.session.execute("SELECT dp_retain('cases', '1 day')")
    assert refused.value.sqlstate == "DP004"
    ready.publish()
    rows = ready.database.fetch("TABLE dp_release.daily")
    ready.session.execute("SELECT dp_retain('cases', '1 day')")
    ready.day(4)
    ready.publish()
    assert ready.database.fetch("SELECT * FROM dp_release.daily ORDER BY window_end LIMIT 3") == rows


def test_questions_reach_back_as_far_as_it_keeps(ready):
    ready.database.execute("SELECT dp_set_budget('cases', 1000)")
    for day in range(4):
        ready.day(day)
        ready.insert(*((10 * day + i, "north", "new") for i in range(day + 1)))
    ready.day(4)
    ready.publish()
    ready.session.execute("SELECT dp_retain('cases', '2 days')")
    assert ready.ask(ready.midnight(2), ready.midnight(4), epsilon=200) == 7
    assert ready.ask(None, ready.midnight(4), measure="state", epsilon=200) == 10
    with pytest.raises(psycopg.Error, match=r"begins before the history of table public\.cases, which begins at 2020-01-03") as refused:
        ready.ask(ready.midnight(1), ready.midnight(4), epsilon=1)
    assert refused.value.sqlstate == "DP001"
    ready.declare("present", "SELECT count(*) FROM cases", every="1 day", horizon=4, epsilon=500)
    ready.day(6)
    ready.publish()
    assert ready.database.fetch("SELECT state FROM dp_release.present") == [(10,), (10,)]


@pytest.mark.parametrize(
    ("call", "state"),
    [("dp_retain('other', '1 day')", "DP002"), ("dp_retain('entry', NULL)", "DP001"), ("dp_retain('entry', '-1 day')", "DP001")],
)
def test_refusals(tracked, call, state):
    table = tracked()
    table.execute("CREATE TABLE other ()")
    with pytest.raises(psycopg.Error) as refused:
        table.execute(f"SELECT {call}")
    assert refused.value.sqlstate == state


def test_only_an_admin_forgets(tracked):
    table = tracked()
    with table.database.connect(table.database.create_role("dbext_analyst")) as analyst, pytest.raises(psycopg.errors.InsufficientPrivilege):
        analyst.execute("SELECT dp_retain('entry', '1 day')")


def test_sizes_stay_bounded(tracked):
    """Every row changes every day, a week is kept, and vacuum comes round."""
    table = tracked(rows="SELECT i, 'a' FROM generate_series(1, 400) AS i")
    sizes = []
    for day in range(36):
        table.day(day)
        table.execute("UPDATE entry SET value = %s", (f"day {day}",))
        table.seal_through(day)
        table.execute("SELECT dp_retain('entry', '7 days')")
        for kind in ("log", "change", "admission", "deferred"):
            table.execute(f"VACUUM dbext_private.{kind}_{table.number}")
        sizes.append(table.fetch("SELECT pg_total_relation_size('{log}'), pg_total_relation_size('{change}'), pg_total_relation_size('{admission}')")[0])
    assert all(late <= 1.15 * early for early, late in zip(sizes[12], sizes[-1], strict=True)), sizes[12::4]
    assert table.fetch("SELECT count(*) FROM {log}")[0][0] <= 8 * 400


def test_a_truncation_is_forgotten_with_what_it_removed(table):
    table.day(DAYS)
    table.execute("TRUNCATE entry; INSERT INTO entry VALUES (3, 'new')")
    table.seal_through(DAYS + 2)
    table.execute("SELECT dp_retain('entry', '1 day')")
    assert table.fetch("SELECT op::text, key_1 FROM {log}") == [("T", None), ("I", 3)]
    assert table.fetch("SELECT key_1, new_2 FROM {change}") == [(3, "new")]
    assert table.fetch("SELECT * FROM dp_recount('entry')") == [(0, 0, 0)]
    table.seal_through(DAYS + 3)
    assert table.settled() == {3: "new"}
