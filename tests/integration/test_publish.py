"""Publication: exact where noise is negligible, once where it is not, and never stopped by another release's failure."""

import re

import psycopg
import pytest

BY_COUNTY = "SELECT county, count(*) FROM cases WHERE status = 'open' AND dp_time > now() - INTERVAL '{width} days' GROUP BY county"
KEYS = "VALUES ('A'), ('B'), ('C')"
#: Lifetime epsilon at which noise is zero but for a chance of about exp(-50).
LOUD = 300


@pytest.fixture
def loud(cases):
    """A budget so large that releases show exact figures."""
    cases.constrain(max_mutations=5)
    cases.budget(1000)
    return cases


def history(cases):
    """Write three days: entries appear, move between counties, close and leave."""
    cases.insert((1, "A", "open"), (2, "A", "open"), (3, "B", "shut"))
    cases.day(1)
    cases.session.execute("UPDATE cases SET county = 'B' WHERE id = 1; UPDATE cases SET status = 'open' WHERE id = 3")
    cases.insert((4, "C", "open"), (5, "Z", "open"))
    cases.day(2)
    cases.session.execute("UPDATE cases SET status = 'shut' WHERE id = 2; DELETE FROM cases WHERE id = 4")
    cases.day(3)


def series(database, release, measure):
    rows = database.fetch(f"SELECT release_no, county, r.{measure} FROM dp_release.{release} AS r ORDER BY release_no, county")
    return {number: tuple(value for one, _, value in rows if one == number) for number, _, _ in rows}


@pytest.mark.parametrize(
    ("measure", "width", "expected"),
    [
        ("net", 1, {1: (2, 0, 0), 2: (-1, 2, 1), 3: (-1, 0, -1)}),
        ("entered", 1, {1: (2, 0, 0), 2: (0, 1, 1), 3: (0, 0, 0)}),
        ("left", 1, {1: (0, 0, 0), 2: (0, 0, 0), 3: (1, 0, 1)}),
        ("net", 2, {1: (2, 0, 0), 2: (1, 2, 1), 3: (-2, 2, 0)}),
        ("entered", 2, {1: (2, 0, 0), 2: (2, 1, 1), 3: (0, 1, 1)}),
    ],
)
def test_windows_hold_what_happened_in_them(loud, measure, width, expected):
    loud.declare("one", BY_COUNTY.format(width=width), every="1 day", measure=measure, epsilon=LOUD, groups=KEYS)
    history(loud)
    loud.publish()
    assert series(loud.database, "one", measure) == expected


def test_a_state_holds_what_is_there_baseline_included(database, cases):
    cases.insert((10, "A", "open"), (11, "C", "open"), (12, "C", "shut"))
    database.execute("SELECT dp_untrack('cases'); SELECT dp_track('cases', time_zone => 'Asia/Taipei')")
    cases.constrain(max_mutations=5)
    cases.budget(1000)
    cases.day(1)
    text = "SELECT county, count(*) FROM cases WHERE status = 'open' GROUP BY county"
    cases.declare("one", text, every="1 day", measure="state", epsilon=LOUD, groups=KEYS, horizon=8)
    cases.insert((1, "A", "open"))
    cases.day(2)
    cases.session.execute("DELETE FROM cases WHERE id = 11")
    cases.day(3)
    cases.publish()
    shown = series(database, "one", "state")
    assert list(shown.values())[-2:] == [(2, 0, 1), (2, 0, 0)]
    assert database.value("SELECT bool_and(window_start = '2019-12-31 00:00+08') FROM dp_release.one")


def test_without_groups_one_row_a_window(loud):
    loud.declare("one", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", epsilon=LOUD)
    history(loud)
    loud.publish()
    assert loud.database.fetch("SELECT release_no, net, status FROM dp_release.one ORDER BY 1") == [
        (1, 3, "ok"),
        (2, 2, "ok"),
        (3, -1, "ok"),
    ]


def test_window_ends_are_local_midnights(loud):
    loud.declare("one", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '2 days'", every="1 day", epsilon=1)
    loud.day(2)
    loud.publish()
    rows = loud.database.fetch(
        "SELECT window_start = %s, window_end = %s FROM dp_release.one WHERE release_no = 2", (loud.midnight(0), loud.midnight(2))
    )
    assert rows == [(True, True)]


def snapshot(database, *releases):
    parts = [database.fetch(f"SELECT * FROM dp_release.{name} ORDER BY window_end, 3") for name in releases]
    return parts, database.fetch("SELECT release_id, node_no, noisy FROM dbext_private.node ORDER BY 1, 2")


STRUCTURE = "SELECT window_start, window_end, county, release_no, std_error, round((upper_95 - lower_95)::numeric, 6), status FROM dp_release.{} ORDER BY 2, 3"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (BY_COUNTY.format(width=1), {"measure": "entered"}),
        (BY_COUNTY.format(width=3), {"measure": "net"}),
        ("SELECT county, count(*) FROM cases GROUP BY county", {"measure": "state", "horizon": 20}),
    ],
)
def test_catching_up_equals_publishing_day_by_day(loud, text, options):
    for name in ("each", "late"):
        loud.declare(name, text, every="1 day", epsilon=2, groups=KEYS, **options)
    late = loud.database.value("SELECT release_id FROM dbext_private.release WHERE name = 'late'")
    loud.session.execute("UPDATE dbext_private.release SET state = 'finished' WHERE name = 'late'")
    for day in range(1, 12):
        loud.insert((day, "A", "open"))
        loud.day(day)
        loud.publish()
    loud.session.execute("UPDATE dbext_private.release SET state = 'active' WHERE name = 'late'")
    loud.publish()
    assert loud.database.value("SELECT count(*) FROM dp_release.late") == 33
    assert loud.database.fetch(STRUCTURE.format("late")) == loud.database.fetch(STRUCTURE.format("each"))
    nodes = "SELECT array_agg(node_no ORDER BY node_no) FROM dbext_private.node GROUP BY release_id"
    assert len(set(map(str, loud.database.fetch(nodes)))) == 1
    charges = "SELECT DISTINCT ON (release_id) charges FROM dbext_private.ledger WHERE kind = 'publish' ORDER BY release_id, ledger_no DESC"
    assert len(set(map(str, loud.database.fetch(charges)))) == 1
    assert loud.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'publish' AND release_id = %s", (late,)) == 1


def test_publishing_twice_changes_nothing(ready):
    ready.declare("one", BY_COUNTY.format(width=2), every="1 day", epsilon=1, groups=KEYS)
    ready.day(3)
    ready.publish()
    before = snapshot(ready.database, "one"), ready.database.fetch("SELECT * FROM dbext_private.ledger ORDER BY 1")
    ready.publish()
    number = ready.database.value("SELECT release_id FROM dbext_private.release")
    ready.session.execute("SELECT dbext_private.draw_release(%s)", (number,))
    ready.session.execute("SELECT dbext_private.publish_release(%s)", (number,))
    assert (snapshot(ready.database, "one"), ready.database.fetch("SELECT * FROM dbext_private.ledger ORDER BY 1")) == before


def test_a_node_is_drawn_once_even_when_the_catalog_is_set_back(ready):
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.day(2)
    ready.publish()
    before = snapshot(ready.database, "one")
    ready.session.execute("UPDATE dbext_private.release SET next_period = 1, next_answer = 1, next_end = next_end - 2")
    ready.session.execute("TRUNCATE dp_release.one")
    ready.publish(failures=["one"])
    assert ready.database.value("SELECT last_error FROM dbext_private.release") == "DP099"
    assert snapshot(ready.database, "one")[1] == before[1]
    assert ready.database.value("SELECT status FROM dbext.release_status") == "failed with SQLSTATE DP099"


def test_one_failing_release_does_not_stop_the_others(ready):
    for name in ("one", "two", "three"):
        ready.declare(name, BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.session.execute("ALTER TABLE dp_release.two ADD CONSTRAINT nothing CHECK (false)")
    ready.day(1)
    ready.publish(failures=["two"])
    assert re.search(r"release two could not be published \(SQLSTATE DP099 in [a-z]+/[a-z_]+\.py, line \d+\)", ready.warnings[0])
    assert ready.database.fetch("SELECT release, published, status FROM dbext.release_status ORDER BY release") == [
        ("one", 1, "waiting"),
        ("three", 1, "waiting"),
        ("two", 0, "failed with SQLSTATE DP099"),
    ]
    ready.session.execute("ALTER TABLE dp_release.two DROP CONSTRAINT nothing")
    ready.publish()
    assert ready.database.value("SELECT status FROM dbext.release_status WHERE release = 'two'") == "waiting"


def test_rows_that_could_not_be_written_follow_from_the_nodes_that_were_drawn(ready):
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.session.execute("ALTER TABLE dp_release.one RENAME TO hidden")
    ready.day(1)
    ready.publish(failures=["one"])
    drawn = ready.database.fetch("SELECT node_no, noisy FROM dbext_private.node")
    assert ready.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'publish'") == 1
    ready.session.execute("ALTER TABLE dp_release.hidden RENAME TO one")
    ready.publish()
    assert [(1, [value for (value,) in ready.database.fetch("SELECT net FROM dp_release.one ORDER BY county")])] == drawn
    assert ready.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind = 'publish'") == 1


@pytest.mark.parametrize(
    ("harm", "undo"),
    [
        ("ALTER TABLE dp_release.one RENAME TO hidden", "ALTER TABLE dp_release.hidden RENAME TO one"),
        ("ALTER TABLE dp_release.one RENAME COLUMN net TO much", "ALTER TABLE dp_release.one RENAME COLUMN much TO net"),
        ("DROP TABLE dp_release.one CASCADE", None),
    ],
)
def test_a_release_table_that_somebody_took_away_is_said_and_may_come_back(ready, harm, undo):
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.day(1)
    ready.publish()
    ready.session.execute(harm)
    ready.day(2)
    ready.publish(failures=["one"])
    assert "(SQLSTATE DP002)" in ready.warnings[0]
    with pytest.raises(psycopg.Error, match="dropped or renamed by hand") as refusal:
        ready.session.execute("SELECT dp_range('one', %s, %s, 'A')", (ready.midnight(0), ready.midnight(1)))
    assert (refusal.value.sqlstate, "dp_drop_release('one')" in refusal.value.diag.message_hint) == ("DP002", True)
    if undo is None:
        ready.session.execute("SELECT dp_drop_release('one')")
        return
    ready.session.execute(undo)
    ready.publish()
    assert ready.database.value("SELECT count(*) FROM dp_release.one") == 6


@pytest.mark.parametrize("form", ["block", "message", "function"])
def test_answers_are_never_given_before_their_nodes_are_committed(ready, form):
    """Whoever could roll back after reading would have the noise drawn anew, again and again."""
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.day(1)
    ready.session.execute("SELECT dbext_private.seal_table(1)")
    steps = ("SELECT dbext_private.draw_release(1)", "SELECT dbext_private.publish_release(1)", "SELECT count(*) FROM dp_release.one")
    with ready.database.connect(autocommit=form != "block") as connection:
        if form == "block":
            *_, seen = (connection.execute(step).fetchone()[0] for step in steps)
            connection.rollback()
        elif form == "message":
            cursor = connection.execute("BEGIN; " + "; ".join(steps))
            while cursor.nextset():
                seen = cursor.fetchone()[0]
            connection.execute("ROLLBACK")
        else:
            body = "; ".join(step.replace("SELECT", "PERFORM", 1) for step in steps[:2])
            with pytest.raises(psycopg.errors.RaiseException) as caught:
                connection.execute(f"DO $$ BEGIN {body}; RAISE EXCEPTION '%', ({steps[2]}); END $$")
            seen = int(caught.value.diag.message_primary)
    assert seen == 0
    assert ready.database.value("SELECT count(*) FROM dbext_private.node") == 0
    ready.publish()
    assert ready.database.value("SELECT count(*) FROM dp_release.one") == 3


def test_answers_that_are_rolled_back_come_out_the_same(ready):
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.day(1)
    ready.session.execute("SELECT dbext_private.seal_table(1)")
    ready.session.execute("SELECT dbext_private.draw_release(1)")
    seen = []
    with ready.database.connect(autocommit=False) as connection:
        for _ in range(3):
            connection.execute("SELECT dbext_private.publish_release(1)")
            seen.append(connection.execute("SELECT net FROM dp_release.one ORDER BY county").fetchall())
            connection.rollback()
    ready.publish()
    seen.append(ready.database.fetch("SELECT net FROM dp_release.one ORDER BY county"))
    assert all(one == seen[0] for one in seen)


def test_a_release_ends_at_its_horizon(ready):
    ready.declare("one", "SELECT count(*) FROM cases", every="1 day", epsilon=1, horizon=3)
    ready.day(6)
    ready.publish()
    assert ready.database.fetch("SELECT published, horizon, status, next_due FROM dbext.release_status") == [
        (3, 3, "horizon reached", None)
    ]
    assert ready.database.value("SELECT count(*) FROM dp_release.one") == 3


def test_publish_is_refused_inside_a_transaction_block(ready):
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.day(1)
    with ready.database.connect(autocommit=False) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("CALL dp_publish()")
        assert caught.value.sqlstate == "2D000"
    assert ready.database.value("SELECT published FROM dbext.release_status") == 0


@pytest.mark.parametrize(
    "harm",
    ["ALTER TABLE cases DISABLE TRIGGER ALL", "ALTER TABLE cases DROP COLUMN status", "DROP TABLE cases"],
)
def test_windows_that_were_not_captured_are_marked(ready, harm):
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.day(1)
    ready.publish()
    ready.session.execute(harm)
    ready.day(3)
    ready.publish()
    rows = ready.database.fetch("SELECT DISTINCT release_no, status FROM dp_release.one ORDER BY 1")
    assert rows == [(1, "ok"), (2, "capture_gap"), (3, "capture_gap")]
    assert ready.database.value("SELECT capture_gap FROM dbext.release_status") is True


def test_the_rounded_view_clips_counts_and_keeps_changes(ready):
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", measure="entered", epsilon="0.1", groups=KEYS)
    ready.declare("two", BY_COUNTY.format(width=1), every="1 day", measure="net", epsilon="0.1", groups=KEYS)
    ready.day(40)
    ready.publish()
    assert ready.database.fetch("SELECT min(entered) >= 0, min(lower_95) >= 0 FROM dp_release.one_rounded") == [(True, True)]
    assert ready.database.value("SELECT min(net) < 0 FROM dp_release.two_rounded") is True


def test_every_key_is_published_for_every_window(ready):
    ready.declare("one", BY_COUNTY.format(width=1), every="1 day", epsilon=1, groups=KEYS)
    ready.day(4)
    ready.publish()
    assert ready.database.value("SELECT count(*) FROM dp_release.one") == 12


def test_settings_of_the_publisher_change_nothing(cases):
    for setting in ("array_nulls = off", "datestyle = 'SQL, DMY'", "intervalstyle = 'iso_8601'", "timezone = 'America/New_York'",
                    "standard_conforming_strings = off", "transform_null_equals = on", "extra_float_digits = -10", "search_path = ''"):  # fmt: skip
        cases.session.execute(f"SET {setting}")
    cases.session.execute("SELECT public.dp_add_constraint('public.cases', 'any', max_mutations => 5, active_within => '28 days')")
    cases.session.execute("SELECT public.dp_set_budget('public.cases', epsilon => 1000)")
    for name, text in (("one", "SELECT county, count(*) FROM public.cases WHERE status = 'o\\pen' GROUP BY county"),
                       ("two", "SELECT reported, count(*) FROM public.cases GROUP BY reported")):  # fmt: skip
        keys = "VALUES ('A'), ('B\\')" if name == "one" else "VALUES ('2020-01-02'), ('2020-02-01')"
        sql = "SELECT public.dp_create_release(%s, %s, '1 day', epsilon => 400, groups => %s, horizon => 3)"
        cases.session.execute(sql, (name, text, keys))
    cases.session.execute("INSERT INTO public.cases VALUES (1, 'A', %s, '2020-02-01'), (2, %s, %s, NULL)", ("o\\pen", "B\\", "o\\pen"))
    cases.day(1)
    cases.session.execute("CALL public.dp_publish()")
    assert cases.warnings == []
    with cases.database.connect() as plain:
        assert plain.execute("SELECT state FROM dp_release.one ORDER BY county").fetchall() == [(1,), (1,)]
        assert plain.execute("SELECT state FROM dp_release.two ORDER BY reported").fetchall() == [(0,), (1,)]


def test_a_release_stops_when_labels_are_renamed_and_goes_on_when_they_have_their_names_back(tracked, database):
    """Counts of two meanings do not telescope: one entry could move a node of a running total by two."""
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    table = tracked("id integer PRIMARY KEY, value mood")
    table.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 4)")
    table.execute("SELECT dp_set_budget('entry', 9)")
    release = "SELECT dp_create_release('r', $$ SELECT count(*) FROM entry WHERE value = 'sad' $$, every => '1 day', horizon => 9, epsilon => 1)"
    table.execute(release)
    swap = "ALTER TYPE mood RENAME VALUE 'sad' TO 'x'; ALTER TYPE mood RENAME VALUE 'glad' TO 'sad'; ALTER TYPE mood RENAME VALUE 'x' TO 'glad'"
    last = 0
    for day, change, goes_on in ((2, None, True), (3, swap, False), (4, swap, True), (5, "ALTER TYPE mood ADD VALUE 'glum'", True)):
        if change:
            table.execute(change)
        table.day(day)
        table.execute("CALL dp_publish()")
        ((published, error),) = table.fetch("SELECT (SELECT count(*) FROM dp_release.r), s.last_error FROM dbext_private.release AS s")
        assert (published != last) is goes_on
        assert error == (None if goes_on else "DP003")
        last = published
