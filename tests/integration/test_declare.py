"""Declarations: what is refused and why, what a release table looks like, what a drop gives back."""

import psycopg
import pytest

DAILY = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'"
BY_COUNTY = "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"
KEYS = "VALUES ('A'), ('B')"


def refused(connection, sqlstate, sql, params=None):
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql, params)
    assert caught.value.sqlstate == sqlstate, (params, str(caught.value))
    return str(caught.value)


def declare_refused(cases, sqlstate, text, name="one", **options):
    options = {"every": "1 day", "epsilon": 1, **options}
    named = "".join(f", {option} => %s" for option in options)
    said = refused(cases.session, sqlstate, f"SELECT dp_create_release(%s, %s{named})", [name, text, *options.values()])
    assert cases.database.value("SELECT count(*) FROM dbext_private.release") == 0
    assert cases.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind <> 'budget'") == 0
    return said


def test_names_that_are_no_identifiers_are_refused(ready):
    for name in ("", "Upper", "1st", "a b", 'q"', "a.b", "a;b", "x" * 49, "é", "a$b", None):
        declare_refused(ready, "DP001", DAILY, name=name)
    ready.declare("x" * 48, DAILY, every="1 day", epsilon=1)


def test_names_that_are_taken_are_refused(ready):
    ready.declare("daily", DAILY, every="1 day", epsilon=1)
    ready.declare("other_rounded", DAILY, every="1 day", epsilon=1)
    for name in ("daily", "daily_rounded", "other"):
        refused(ready.session, "DP004", "SELECT dp_create_release(%s, %s, '1 day', epsilon => 1)", (name, DAILY))


REFUSED = [
    ("DP002", "SELECT count(*) FROM nothing WHERE dp_time > now() - INTERVAL '1 day'"),
    ("DP002", "SELECT count(*) FROM pg_class WHERE dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT count(*) FROM cases WHERE colour = 'red' AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT count(*) FROM cases WHERE lower_all(status) = 'x' AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT count(*) FROM cases WHERE id::text = '1' AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT count(*) FROM cases WHERE 1 / id > 0 AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT count(*) FROM cases WHERE id IN (SELECT 1) AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT count(*) FROM cases WHERE random() < 0.5 AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT count(*) FROM cases WHERE generate_series(1, 2) = 1 AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT count(*) FROM cases WHERE reported > now() AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "SELECT county, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY county"),
    ("DP010", "SELECT count(*) FROM cases WHERE reported = 'never' AND dp_time > now() - INTERVAL '1 day'"),
    ("DP010", "DROP TABLE cases"),
    ("DP010", ""),
    ("DP001", None),
    ("DP001", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '36 hours'"),
]


def test_what_cannot_be_released_is_refused_and_costs_nothing(ready):
    for sqlstate, text in REFUSED:
        declare_refused(ready, sqlstate, text)


def test_arguments_outside_their_range_are_refused(ready):
    wrong = {
        "epsilon": ("0", "-1", "NaN", "Infinity", "1001", None),
        "every": ("1 hour", "36 hours", "-1 day", "0"),
        "horizon": (0, -1),
        "measure": ("median", ""),
        "max_error": ("-1", "0", "NaN", "Infinity", "1e19"),
        "max_errors": ("{}", "[]", "7", '{"net": "7"}', '{"net": -1}', '{"net": 0}', '{"other": 7}', '{"net": null}', '{"net": 1e400}'),
        "start": ("2020-01-05 00:00:01", "soon", "infinity", "2020-01-05 00:00+00", ""),
    }
    for option, values in wrong.items():
        for value in values:
            declare_refused(ready, "DP001", DAILY, **{option: value})


def test_intervals_reach_the_planner_in_all_their_parts(database):
    parts = database.value("SELECT dbext_private.span('1 year 2 mons 3 days 04:05:06.7')")
    assert parts == {"months": 14, "days": 3, "microseconds": ((4 * 60 + 5) * 60 + 6) * 10**6 + 700_000}
    assert database.value("SELECT dbext_private.span('-1 day')")["days"] == -1


def test_ticks_of_hours_are_published_every_so_many_hours(ready):
    ready.session.execute("CREATE TABLE visits (id integer PRIMARY KEY)")
    ready.session.execute("SELECT dp_track('visits', tick => '1 hour'); SELECT dp_add_constraint('visits', 'any', max_mutations => 1)")
    ready.session.execute("SELECT dp_set_budget('visits', epsilon => 1)")
    ready.declare("visits", "SELECT count(*) FROM visits WHERE dp_time > now() - INTERVAL '3 hours'", every="3 hours", epsilon=1)
    ready.day(0, hour=22)
    ready.publish()
    sql = "SELECT published, last_published, next_due - last_published FROM dbext.release_status WHERE release = 'visits'"
    assert [str(value) for value in ready.database.fetch(sql)[0]] == ["2", "2020-01-01 12:00:00+00:00", "3:00:00"]
    assert ready.database.value("SELECT tick FROM dbext.tracked_table WHERE table_name = 'public.visits'") == "1 hour"
    spans = ready.database.fetch("SELECT dbext_private.public_span('fixed', s::bigint * 1000000) FROM unnest(ARRAY[25200, 5400, 90]) AS s")
    assert spans == [("7 hours",), ("90 minutes",), ("90 seconds",)]


def test_what_the_plan_notes_is_said(ready):
    said = ready.declare("one", "SELECT count(*) FROM cases", every="1 day", epsilon=1)
    assert "\nnote: horizon 3653 periods by default" in said
    assert said.startswith("release dp_release.one: a running total, measure state, mechanism ")
    row = ready.database.fetch("SELECT kind, horizon, notes FROM dp_explain_release('one') WHERE chosen")[0]
    assert row[:2] == ("running_total", 3653)
    assert "by default" in row[2]


def test_times_before_the_history_are_refused(ready):
    declare_refused(ready, "DP001", DAILY, start="2019-12-30")
    fixed = "SELECT count(*) FROM cases WHERE dp_time > '2019-12-01' AND dp_time <= '2020-01-01'"
    said = declare_refused(ready, "DP001", fixed, every=None)
    assert "which begins at 2019-12-31 00:00:00 Asia/Taipei" in said


def test_a_start_is_read_in_the_zone_of_the_table(ready):
    ready.declare("one", DAILY, every="1 day", epsilon=1, start="2020-01-05")
    ready.declare("two", DAILY, every="1 day", epsilon=1, start="2020-01-04 16:00+00")
    due = ready.database.fetch("SELECT next_due = '2020-01-06 00:00+08' FROM dbext.release_status")
    assert due == [(True,), (True,)]


def test_group_keys_that_are_not_public_are_refused(ready):
    for sqlstate, groups in (
        ("DP010", "VALUES (NULL)"),
        ("DP010", "VALUES ()"),
        ("DP010", "SELECT county FROM cases WHERE true"),
        ("DP002", "SELECT county FROM cases"),
        ("DP010", "VALUES ('A', 'B')"),
    ):
        declare_refused(ready, sqlstate, BY_COUNTY, groups=groups)


def test_a_key_of_the_wrong_type_is_refused_without_its_value(ready):
    text = "SELECT reported, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY reported"
    said = declare_refused(ready, "DP001", text, groups="VALUES ('2020-01-01'), ('secret')")
    assert "secret" not in said


def test_keys_are_made_distinct_by_their_type(ready):
    text = "SELECT reported, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY reported"
    ready.declare("one", text, every="1 day", epsilon=1, groups="VALUES ('2020-01-02'), ('20200102'), ('2020-01-01')")
    assert ready.database.fetch("SELECT key_values FROM dbext_private.release_key ORDER BY cell") == [(["2020-01-02"],), (["2020-01-01"],)]


def test_keys_are_read_from_a_column_that_was_marked_public_and_frozen(ready):
    ready.session.execute("CREATE TABLE county (name text PRIMARY KEY); INSERT INTO county VALUES ('B'), ('A')")
    declare_refused(ready, "DP002", BY_COUNTY, groups="SELECT name FROM county")
    ready.session.execute("SELECT dp_mark_public('county', 'name')")
    ready.declare("one", BY_COUNTY, every="1 day", epsilon=1, groups="SELECT name FROM county")
    ready.session.execute("INSERT INTO county VALUES ('C')")
    ready.day(1)
    ready.publish()
    assert ready.database.fetch("SELECT DISTINCT county FROM dp_release.one ORDER BY 1") == [("A",), ("B",)]


def test_only_columns_of_tables_are_marked_public(ready):
    ready.session.execute("CREATE VIEW one AS SELECT 'A'::text AS name; CREATE MATERIALIZED VIEW two AS SELECT 'A'::text AS name")
    for relation in ("one", "two"):
        refused(ready.session, "DP003", f"SELECT dp_mark_public('{relation}', 'name')")
    refused(ready.session, "DP002", "SELECT dp_mark_public('cases', 'nothing')")


def test_an_enum_brings_its_own_keys(ready):
    ready.session.execute("CREATE TYPE colour AS ENUM ('red', 'blue')")
    ready.session.execute("CREATE TABLE cars (id int PRIMARY KEY, colour colour)")
    ready.day(-1)
    ready.session.execute(
        "SELECT dp_track('cars', time_zone => 'Asia/Taipei'); SELECT dp_add_constraint('cars', 'any', max_mutations => 1)"
    )
    ready.session.execute("SELECT dp_set_budget('cars', epsilon => 500)")
    ready.day(0)
    ready.declare(
        "cars", "SELECT colour, count(*) FROM cars WHERE dp_time > now() - INTERVAL '1 day' GROUP BY colour", every="1 day", epsilon=400
    )
    ready.session.execute("INSERT INTO cars VALUES (1, 'blue'), (2, 'blue'), (3, 'red'), (4, NULL)")
    ready.day(1)
    ready.publish()
    assert ready.database.fetch("SELECT c.colour::text, c.net FROM dp_release.cars AS c ORDER BY c.colour") == [("red", 1), ("blue", 2)]


def test_a_release_without_constraint_needs_a_horizon(cases):
    cases.budget(10)
    said = declare_refused(cases, "DP021", DAILY)
    assert "dp_add_constraint" in said
    cases.declare("one", DAILY, every="1 day", epsilon=1, horizon=5)


def test_a_release_needs_a_budget_that_holds_it(cases):
    cases.constrain()
    declare_refused(cases, "DP002", DAILY)
    cases.budget(1)
    said = declare_refused(cases, "DP020", DAILY, epsilon="1.5")
    assert "spent or reserved 0, asked 1.5, left 1" in said


def test_reservations_of_releases_add_up(ready):
    ready.declare("one", DAILY, every="1 day", epsilon=6)
    said = refused(ready.session, "DP020", "SELECT dp_create_release('two', %s, '1 day', epsilon => 5)", (DAILY,))
    assert "spent or reserved 6, asked 5, left 4" in said
    ready.declare("two", DAILY, every="1 day", epsilon=4)


def test_a_rollback_takes_a_declaration_back_as_a_whole(ready):
    with ready.database.connect(autocommit=False) as connection:
        connection.execute("SELECT set_config('dbext.now', '2020-01-01 12:00+08', false)")
        connection.execute("SELECT dp_create_release('one', %s, '1 day', epsilon => 6)", (DAILY,))
        connection.rollback()
    assert ready.database.fetch('SELECT reserved, "left" FROM dbext.budget_status') == [(0, 10)]
    assert ready.database.value("SELECT to_regclass('dp_release.one')") is None
    assert ready.database.value("SELECT count(*) FROM dbext.release_status") == 0


def columns_of(database, relation):
    sql = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
    return database.fetch(sql, (relation,))


def test_a_release_table_has_the_promised_shape(ready):
    ready.declare("one", BY_COUNTY, every="1 day", measure="entered", epsilon=1, groups=KEYS)
    assert columns_of(ready.database, "dp_release.one") == [
        ("window_end", "timestamp with time zone"),
        ("window_start", "timestamp with time zone"),
        ("county", "text"),
        ("entered", "bigint"),
        ("std_error", "double precision"),
        ("lower_95", "double precision"),
        ("upper_95", "double precision"),
        ("release_no", "bigint"),
        ("status", "text"),
    ]
    assert ready.database.value("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'dp_release.one'::regclass") == (
        "PRIMARY KEY (window_end, county)"
    )
    nullable = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'dp_release.one'::regclass AND attnum > 0 AND NOT attnotnull"
    assert ready.database.value(nullable) == 0
    silent = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'dp_release.one'::regclass AND attnum > 0 AND col_description(attrelid, attnum) IS NULL"
    assert ready.database.value(silent) == 0
    assert "GROUP BY county" in ready.database.value("SELECT obj_description('dp_release.one'::regclass)")


def test_a_group_column_that_has_a_name_of_ours_gets_another(ready):
    text = "SELECT status, count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day' GROUP BY status"
    ready.declare("one", text, every="1 day", epsilon=1, groups="VALUES ('open'), ('closed')")
    ready.day(1)
    ready.publish()
    assert ready.database.fetch("SELECT group_status, status FROM dp_release.one ORDER BY 1") == [("closed", "ok"), ("open", "ok")]


def test_labels_of_group_columns_never_meet(ready):
    ready.session.execute("CREATE TABLE odd (id integer PRIMARY KEY, state text, group_state text)")
    ready.session.execute("SELECT dp_track('odd', time_zone => 'Asia/Taipei'); SELECT dp_add_constraint('odd', 'any', max_mutations => 2)")
    ready.session.execute("SELECT dp_set_budget('odd', epsilon => 9)")
    text = "SELECT state, group_state, count(*) FROM odd GROUP BY state, group_state"
    ready.declare("one", text, every="1 day", epsilon=1, groups="VALUES ('a', 'b')", horizon=3)
    assert [name for name, _ in columns_of(ready.database, "dp_release.one")][2:5] == ["group_group_state", "group_state", "state"]


CASE_INSENSITIVE = "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"


@pytest.mark.parametrize(
    "kind",
    ["text COLLATE ci", "ci_text", "ci_text_2", 'text COLLATE ci -> text COLLATE "default"'],
)
def test_a_row_is_counted_under_one_key_however_its_collation_comes(ready, kind):
    """Keys that the column's own equality cannot tell apart are one key."""
    ready.session.execute(CASE_INSENSITIVE)
    ready.session.execute("CREATE DOMAIN ci_text AS text COLLATE ci; CREATE DOMAIN ci_text_2 AS ci_text")
    before, _, after = kind.partition(" -> ")
    ready.session.execute(f"CREATE TABLE notes (id integer PRIMARY KEY, kind {before})")
    ready.day(-1)
    ready.session.execute(
        "SELECT dp_track('notes', time_zone => 'Asia/Taipei'); SELECT dp_add_constraint('notes', 'any', max_mutations => 2)"
    )
    ready.session.execute("SELECT dp_set_budget('notes', epsilon => 900)")
    ready.day(0)
    if after:
        ready.session.execute(f"ALTER TABLE notes ALTER COLUMN kind TYPE {after}")
    keys = ", ".join(f"('{a}{b}{c}')" for a in "aA" for b in "bB" for c in "cC")
    text = "SELECT kind, count(*) FROM notes WHERE dp_time > now() - INTERVAL '1 day' GROUP BY kind"
    ready.declare("one", text, every="1 day", epsilon=800, groups=f"VALUES {keys}")
    ready.session.execute("INSERT INTO notes VALUES (1, 'abC'), (2, 'ABC')")
    ready.day(1)
    ready.publish()
    assert ready.database.value("SELECT sum(net) FROM dp_release.one") in (0, 2)


def test_explain_before_and_after_shows_candidates_and_spends_nothing(ready):
    text = "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days'"
    sql = "SELECT mechanism, noise, mean_std_error, worst_std_error, epsilon_by_type, chosen FROM dp_plan_release('x', %s, '1 day', epsilon => 1)"
    planned = ready.database.fetch(sql, (text,))
    assert {row[0] for row in planned} >= {"independent_windows", "disjoint_sums"}
    assert sum(row[-1] for row in planned) == 1
    assert all(0 < row[4]["any"] <= 1 and row[2] <= row[3] for row in planned)
    assert ready.database.value("SELECT count(*) FROM dbext_private.ledger WHERE kind <> 'budget'") == 0
    ready.declare("x", text, every="1 day", epsilon=1)
    explained = "SELECT mechanism, noise, mean_std_error, worst_std_error, epsilon_by_type, chosen FROM dp_explain_release('x')"
    assert ready.database.fetch(explained) == planned


def test_a_dropped_release_gives_back_only_what_was_not_published(cases):
    """Four mutations touch four days at 1.5 each, but only two days were published."""
    cases.constrain(max_mutations=4)
    cases.budget(10)
    cases.declare("one", DAILY, every="1 day", epsilon=6)
    cases.day(2)
    cases.publish()
    assert cases.database.fetch('SELECT spent, reserved, "left" FROM dbext.budget_status') == [(3, 3, 4)]
    cases.session.execute("SELECT dp_drop_release('one')")
    assert cases.database.fetch('SELECT spent, reserved, "left" FROM dbext.budget_status') == [(3, 0, 7)]
    assert cases.database.value("SELECT to_regclass('dp_release.one')") is None
    cases.declare("one", DAILY, every="1 day", epsilon=6)
    refused(cases.session, "DP002", "SELECT dp_drop_release('two')")


def test_a_release_dropped_before_its_first_period_costs_nothing(ready):
    ready.declare("one", DAILY, every="1 day", epsilon=6)
    ready.session.execute("SELECT dp_drop_release('one')")
    assert ready.database.fetch('SELECT spent, reserved, "left" FROM dbext.budget_status') == [(0, 0, 10)]


def test_a_view_of_someone_else_keeps_the_table_but_not_the_reservation(ready):
    ready.declare("one", DAILY, every="1 day", epsilon=6)
    ready.session.execute("CREATE VIEW mine AS SELECT * FROM dp_release.one")
    said = ready.session.execute("SELECT dp_drop_release('one')").fetchone()[0]
    assert "its table stays" in said
    assert ready.database.fetch('SELECT spent, reserved, "left" FROM dbext.budget_status') == [(0, 0, 10)]
    assert ready.database.value("SELECT count(*) FROM dp_release.one_rounded") == 0
    refused(ready.session, "DP004", "SELECT dp_create_release('one', %s, '1 day', epsilon => 6)", (DAILY,))


def test_max_error_finds_the_smallest_epsilon(ready):
    said = ready.declare("one", DAILY, every="1 day", max_error=100)
    assert "reserves epsilon 0.0" in said or "reserves epsilon 0.1" in said
    ready.day(1)
    ready.publish()
    assert ready.database.value("SELECT max(upper_95 - net) <= 100 FROM dp_release.one") is True
