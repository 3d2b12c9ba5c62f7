"""Group keys taken from the data: hidden until enough entries have them, shown from then on, paid for by key_delta."""

from __future__ import annotations

import json

import psycopg
import pytest

COUNTS = "SELECT county, count(*) FROM cases GROUP BY county"
OPTIONS = {"every": "1 day", "epsilon": 19, "horizon": 20, "key_delta": "1e-6"}


@pytest.fixture
def keyed(cases):
    """A budget with room for keys; k = 3."""
    cases.constrain()
    cases.session.execute("SELECT dp_set_budget('cases', epsilon => 20, delta => 4e-6, key_delta => 2e-6)")
    return cases


def rows(cases, name: str = "counts") -> list[tuple]:
    return cases.session.execute(f"SELECT release_no, county, {name}.* FROM dp_release.{name} AS {name} ORDER BY 1, 2").fetchall()


def shown(cases, name: str = "counts") -> list[tuple]:
    return [row[:2] for row in rows(cases, name)]


def people(first: int, last: int, county: str) -> list[tuple]:
    return [(number, county, "confirmed") for number in range(first, last)]


def cells(cases) -> dict:
    return dict(cases.session.execute("SELECT key_values[1], shown_from FROM dbext_private.release_key").fetchall())


def make_thresholds_low(cases, tail: str) -> None:
    """Weaken every release: what is one in 10^16 happens at once."""
    cases.session.execute("UPDATE dbext_private.release SET plan = jsonb_set(plan, '{key_checks,tail}', to_jsonb(%s::text))", (tail,))


def test_a_key_of_many_entries_is_shown_and_stays_and_that_of_one_is_not(keyed):
    assert "one has rows from the first window on in which its noisy count is above" in keyed.declare("counts", COUNTS, **OPTIONS)
    keyed.insert(*people(0, 500, "many"), (9000, "alone", "confirmed"))
    for day in (1, 2):
        keyed.day(day)
        keyed.publish()
    keyed.insert(*people(1000, 1500, "later"))
    keyed.execute = keyed.session.execute
    keyed.session.execute("DELETE FROM cases WHERE county = 'many'")
    keyed.day(3)
    keyed.publish()
    assert shown(keyed) == [(1, "many"), (2, "many"), (3, "later"), (3, "many")]
    values = dict(keyed.session.execute("SELECT county, state FROM dp_release.counts WHERE release_no = 3").fetchall())
    assert abs(values["later"] - 500) < 60
    assert abs(values["many"]) < 60
    assert cells(keyed) == {None: None, "many": 1, "alone": None, "later": 3}


def test_periods_that_were_missed_are_decided_like_those_that_were_not(keyed):
    keyed.declare("counts", COUNTS, **OPTIONS)
    keyed.insert(*people(0, 400, "first"))
    keyed.day(2)
    keyed.insert(*people(1000, 1400, "second"))
    keyed.day(5)
    keyed.publish()
    assert shown(keyed) == [(1, "first"), (2, "first"), *[(day, key) for day in (3, 4, 5) for key in ("first", "second")]]


def test_every_node_has_every_cell_and_the_audit_finds_nothing(keyed):
    keyed.declare("counts", COUNTS, **OPTIONS)
    for day in range(6):
        keyed.insert(*people(1000 * day, 1000 * day + 300, f"county {day % 3}"), (9000 + day, f"alone {day}", "confirmed"))
        keyed.day(day + 1)
        keyed.publish()
    widths = keyed.session.execute("SELECT DISTINCT cardinality(noisy) FROM dbext_private.node").fetchall()
    assert widths == [(1 + 3 + 6,)]
    assert keyed.session.execute("SELECT DISTINCT cardinality(sums) FROM dbext_private.tick_sum").fetchall() == widths
    keyed.session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    found = keyed.session.execute("SELECT area, subject, verdict, detail FROM dp_audit()").fetchall()
    keyed.session.execute("COMMIT")
    assert [row for row in found if row[2] == "failed"] == []
    assert {row[1] for row in found} >= {"counts", "public.cases"}


def test_a_cell_whose_count_is_nought_is_never_looked_at(keyed):
    """Its noise passes a threshold this low every second time: what keeps it hidden is that nobody is in it."""
    keyed.declare("counts", COUNTS, **OPTIONS)
    keyed.insert(*[(n, f"gone {n}", "confirmed") for n in range(60)], *[(n, f"here {n}", "confirmed") for n in range(100, 160)])
    keyed.session.execute("UPDATE cases SET county = 'elsewhere' WHERE id < 60")
    keyed.day(1)
    make_thresholds_low(keyed, "1")
    keyed.publish()
    keyed.session.execute("INSERT INTO cases SELECT n, 'left ' || n, 'confirmed' FROM generate_series(200, 260) AS n")
    keyed.day(2)
    keyed.session.execute("DELETE FROM cases WHERE id >= 200")
    for day in (3, 4):
        keyed.day(day)
        keyed.publish()
    names = {county for _, county in shown(keyed)}
    assert any(name.startswith("here") for name in names)
    assert any(name.startswith("left") for name in names)  # while they were there: on the day before they left
    late = keyed.session.execute("SELECT count(*) FROM dbext_private.release_key WHERE key_values[1] LIKE 'left%' AND shown_from > 2").fetchone()
    assert late == (0,)


def test_rows_do_not_tell_in_which_order_keys_came(keyed):
    keyed.declare("counts", COUNTS, **OPTIONS)
    keyed.insert(*people(0, 400, "zebra"))
    keyed.day(1)
    keyed.publish()
    keyed.insert(*people(1000, 1400, "ant"), *people(2000, 2400, "mole"))
    keyed.day(2)
    keyed.publish()
    assert keyed.session.execute("SELECT county FROM dp_release.counts WHERE release_no = 2 ORDER BY ctid").fetchall() == [("ant",), ("mole",), ("zebra",)]


@pytest.mark.parametrize("measure", ["entered", "left", "net"])
def test_windows_show_keys_too(keyed, measure):
    text = COUNTS.replace("GROUP", "WHERE dp_time > now() - INTERVAL '2 days' GROUP")
    keyed.declare("counts", text, **OPTIONS, measure=measure)
    keyed.insert(*people(0, 400, "busy"), (9000, "alone", "confirmed"))
    keyed.day(1)
    keyed.session.execute("DELETE FROM cases WHERE county IN ('busy', 'alone')")
    keyed.day(2)
    keyed.publish()
    assert shown(keyed) == {"entered": [(1, "busy"), (2, "busy")], "net": [(1, "busy"), (2, "busy")], "left": [(2, "busy")]}[measure]


def test_a_pure_budget_pays_for_keys_alone(cases):
    cases.constrain()
    cases.session.execute("SELECT dp_set_budget('cases', epsilon => 20, delta => 1e-6, key_delta => 1e-6)")
    cases.declare("counts", COUNTS, **{**OPTIONS, "epsilon": 15})
    assert "Laplace" in cases.session.execute("SELECT noise FROM dp_explain_release('counts') WHERE chosen").fetchone()[0]
    cases.insert(*people(0, 400, "many"), (9000, "alone", "confirmed"))
    cases.day(1)
    cases.publish()
    assert shown(cases) == [(1, "many")]


def test_key_delta_is_spent_once_and_not_given_back(keyed):
    keyed.declare("first", COUNTS, **{**OPTIONS, "epsilon": 2})
    keyed.declare("second", COUNTS, **{**OPTIONS, "epsilon": 2})
    with pytest.raises(psycopg.Error, match="sets delta 2e-06 aside for group keys") as caught:
        keyed.declare("third", COUNTS, **{**OPTIONS, "epsilon": 2})
    assert caught.value.sqlstate == "DP020"
    keyed.session.execute("SELECT dp_drop_release('second')")
    with pytest.raises(psycopg.Error, match="aside for group keys"):
        keyed.declare("third", COUNTS, **{**OPTIONS, "epsilon": 2})
    with pytest.raises(psycopg.Error, match="aside for group keys"):
        keyed.session.execute("SELECT dp_set_budget('cases', epsilon => 20, key_delta => 1e-6)")
    with pytest.raises(psycopg.Error, match="aside for group keys"):  # a larger epsilon lifts what a chance amounts to
        keyed.session.execute("SELECT dp_set_budget('cases', epsilon => 21)")
    keyed.session.execute("SELECT dp_set_budget('cases', epsilon => 20, delta => 5e-6, key_delta => 3e-6)")
    keyed.declare("third", COUNTS, **{**OPTIONS, "epsilon": 2})


def test_a_declaration_that_was_rolled_back_leaves_its_key_delta(keyed):
    with keyed.database.connect(autocommit=False) as session:
        session.execute("SELECT set_config('dbext.now', current_setting('dbext.now', true), false)")
        session.execute("SELECT dp_create_release('gone', %s, every => '1 day', epsilon => 1, horizon => 5, key_delta => 2e-6)", (COUNTS,))
        session.rollback()
    keyed.declare("counts", COUNTS, **{**OPTIONS, "key_delta": "2e-6"})


def test_looser_limits_must_leave_thresholds_right(keyed):
    text = COUNTS.replace("GROUP", "WHERE dp_time > now() - INTERVAL '9 days' GROUP")
    keyed.declare("counts", text, **{**OPTIONS, "epsilon": 2}, measure="entered")
    with pytest.raises(psycopg.Error, match="aside for group keys"):
        keyed.session.execute("SELECT dp_alter_constraint('cases', 'any', max_mutations => 6)")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"horizon": None, "at_horizon": "renew"}, "a limited number of times"),
        ({"band": "simultaneous"}, "tells how many keys there are"),
        ({"groups": "VALUES ('a')"}, "not both"),
        ({"key_delta": "0"}, "above 0"),
        ({"key_delta": "1e-5"}, "aside for group keys"),
        ({"text": "SELECT count(*) FROM cases"}, "has none"),
        ({"text": "SELECT county, count(*) AS a, count(*) FILTER (WHERE status = 'x') AS b FROM cases GROUP BY county"}, "one count"),
    ],
)
def test_what_cannot_hide_its_keys_is_refused(keyed, change, why):
    options = {name: value for name, value in ({**OPTIONS, "epsilon": 2} | change).items() if value is not None}
    with pytest.raises(psycopg.Error, match=why):
        keyed.declare("counts", options.pop("text", COUNTS), **options)


def test_a_key_that_can_be_written_in_two_ways_is_refused(database):
    database.execute("CREATE TABLE paid (id integer PRIMARY KEY, price numeric, note text)")
    database.execute("SELECT dp_track('paid'), dp_add_constraint('paid', 'any', max_mutations => 2)")
    database.execute("SELECT dp_set_budget('paid', epsilon => 5, delta => 2e-6, key_delta => 1e-6)")
    with pytest.raises(psycopg.Error, match="written in several ways"):
        database.execute("SELECT dp_create_release('prices', 'SELECT price, count(*) FROM paid GROUP BY price', every => '1 day', epsilon => 1, horizon => 9, key_delta => 1e-6)")


@pytest.mark.parametrize(
    ("kind", "harm"),
    [
        ("integer", ["ALTER TABLE entry ALTER COLUMN value TYPE bigint", "SELECT dp_track('entry', time_zone => 'UTC')", "INSERT INTO entry VALUES (9000, 5000000000)"]),
        ("date", ["ALTER TABLE entry ALTER COLUMN value TYPE timestamp", "SELECT dp_track('entry', time_zone => 'UTC')", "INSERT INTO entry VALUES (9000, '2020-05-05 12:00')"]),
        ("text", ["INSERT INTO entry VALUES (9000, repeat('x', 268435456))"]),
        ("varchar(5000)", ["INSERT INTO entry VALUES (9000, repeat('y', 2500)), (9001, repeat('y', 2500)), (9002, repeat('y', 2500))"]),
    ],
)
def test_no_entry_can_stop_a_release(tracked, kind, harm):
    made = tracked(f"id integer PRIMARY KEY, value {kind}")
    made.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 3)")
    made.execute("SELECT dp_set_budget('entry', epsilon => 20, delta => 4e-6, key_delta => 2e-6)")
    text = "SELECT value, count(*) FROM entry GROUP BY value"
    made.execute("SELECT dp_create_release('counts', %s, every => '1 day', epsilon => 19, horizon => 20, key_delta => 1e-6)", (text,))
    value = {"integer": "7", "date": "DATE '2020-01-01'"}.get(kind, "'seven'")
    made.execute(f"INSERT INTO entry SELECT n, {value} FROM generate_series(1, 400) AS n")
    made.day(2)
    made.execute("CALL dp_publish()")
    for statement in harm:
        made.execute(statement)
    for day in (3, 4):
        made.day(day)
        made.execute("CALL dp_publish()")
    assert [row[0] for row in made.session.execute("SELECT release_no FROM dp_release.counts ORDER BY 1")] == [1, 2, 3]
    assert made.session.execute("SELECT count(*) FROM dbext_private.release_key").fetchone() == (2,)


def test_hidden_cells_are_not_told_by_ranges_or_histories(keyed):
    keyed.declare("counts", COUNTS, **OPTIONS)
    keyed.insert(*people(0, 400, "many"), (9000, "alone", "confirmed"))
    keyed.day(1)
    keyed.publish()
    for sql in ("SELECT * FROM dp_range_stats('counts', '-infinity', '2020-01-02')", "SELECT * FROM dp_restated('counts')"):
        with pytest.raises(psycopg.Error, match="some of its cells are hidden"):
            keyed.session.execute(sql)


def test_the_plan_and_the_ledger_say_what_was_set_aside(keyed):
    notes = keyed.session.execute(
        "SELECT notes FROM dp_plan_release('x', %s, every => '1 day', epsilon => 1, horizon => 5, key_delta => 1e-6) WHERE chosen", (COUNTS,)
    ).fetchone()[0]
    assert "keys are taken from the data" in notes
    keyed.declare("counts", COUNTS, **OPTIONS)
    ((checks,),) = keyed.session.execute("SELECT key_checks FROM dbext_private.ledger WHERE kind = 'reserve'").fetchall()
    assert json.loads(json.dumps(checks))[0]["checks"] == 20
