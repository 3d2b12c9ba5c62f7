"""Units of several rows through everything that happens to a table: what is refused, schemas that change, re-bases, retention, restores."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.test_cluster_changes import dump_and_restore
from tests.integration.tracked import Tracked

COLUMNS = "id integer PRIMARY KEY, patient integer NOT NULL, ward text, cost integer"
START = "VALUES (1, 1, 'A', 10), (2, 1, 'B', 20), (3, 1, 'A', 30), (4, 2, 'B', 40)"


@pytest.fixture
def visits(tracked):
    """Visits (id, patient, ward, cost), of which two of a patient count."""
    made = tracked(COLUMNS, name="visits", rows=START, unit=["patient"], rows_per_unit=2)
    made.execute("SELECT dp_add_constraint('visits', 'any', max_mutations => 20)")
    made.execute("SELECT dp_set_budget('visits', 900)")
    made.execute("SELECT dp_bounds('visits', 'cost', 0, 100)")
    return made


def settled(visits, columns=("1", "3", "4")):
    """Settled images: rows of each unit, by their columns."""
    listed = ", ".join(f"image_{one}" for one in columns)
    return {
        unit: list(zip(*image, strict=True)) for unit, *image in visits.fetch(f"SELECT key_2, {listed} FROM {{admission}} WHERE present")
    }


def refused(visits, sql, *params):
    with pytest.raises(psycopg.Error) as caught:
        visits.session.execute(sql, params or None)
    return caught.value.sqlstate, f"{caught.value.diag.message_primary} {caught.value.diag.message_hint or ''}"


UNFIT = {
    "no number": ("id integer PRIMARY KEY, patient integer NOT NULL", "unit => '{patient}', rows_per_unit => 0", "DP001", "between 1 and 1000"),
    "no unit": ("id integer PRIMARY KEY, patient integer NOT NULL", "rows_per_unit => 2", "DP001", "no unit is named"),
    "no primary key": ("id integer UNIQUE NOT NULL, patient integer NOT NULL", "unit => '{patient}', rows_per_unit => 2", "DP003", "no primary key"),
    "a unit of one row": ("id integer, patient integer, PRIMARY KEY (id, patient)", "unit => '{patient, id}', rows_per_unit => 2", "DP001", "one row"),
    "a deferrable key": ("id integer PRIMARY KEY DEFERRABLE, patient integer NOT NULL", "unit => '{patient}', rows_per_unit => 2", "DP003", "primary key"),
    "documents": ("id integer PRIMARY KEY, patient integer NOT NULL, note jsonb", "unit => '{patient}', rows_per_unit => 2", "DP003", "note"),
    "arrays": ("id integer PRIMARY KEY, patient integer NOT NULL, marks integer[]", "unit => '{patient}', rows_per_unit => 2", "DP003", "marks"),
    "bytes": ("id integer PRIMARY KEY, patient integer NOT NULL, scan bytea", "unit => '{patient}', rows_per_unit => 2", "DP003", "scan"),
    "many values": (
        f"id integer PRIMARY KEY, patient integer NOT NULL, {', '.join(f'c{n} integer' for n in range(9))}",
        "unit => '{patient}', rows_per_unit => 600", "DP003", "5000",
    ),
    "wide": (f"id integer PRIMARY KEY, patient integer NOT NULL, {', '.join(f'c{n} boolean' for n in range(200))}", "unit => '{patient}', rows_per_unit => 2", "DP003", "too many"),
    "not unique": ("id integer PRIMARY KEY, patient integer NOT NULL", "unit => '{patient}'", "DP003", "rows_per_unit => 10"),
}  # fmt: skip


def test_what_cannot_be_tracked_leaves_nothing_behind(database):
    for name, (columns, arguments, state, word) in UNFIT.items():
        database.execute(f"CREATE TABLE visits ({columns})")
        with pytest.raises(psycopg.Error) as caught:
            database.execute(f"SELECT dp_track('visits', {arguments})")
        assert caught.value.sqlstate == state, name
        assert word in f"{caught.value.diag.message_primary} {caught.value.diag.message_hint}", name
        assert database.fetch("SELECT tgname FROM pg_trigger WHERE tgrelid = 'visits'::regclass AND NOT tgisinternal") == [], name
        database.execute("DROP TABLE visits")
    assert database.fetch("SELECT FROM dbext_private.tracked_table") == []
    assert database.fetch("SELECT relname FROM pg_class WHERE relname ~ '^(log|row|change|admission|deferred)_[0-9]+$'") == []


def test_what_is_protected_is_said(visits):
    said = "all rows of public.visits that share (patient), of which the first 2 by primary key count"
    assert visits.database.value("SELECT DISTINCT protects FROM dbext.budget_status") == said
    visits.execute("SELECT dp_untrack('visits')")
    assert f"Protected: {said}." in visits.track(unit=["patient"], rows_per_unit=2)


def test_a_null_unit_is_refused(visits, tracked):
    with pytest.raises(psycopg.Error, match="may be NULL"):
        tracked("id integer PRIMARY KEY, patient integer", name="calls", unit=["patient"], rows_per_unit=2)
    visits.execute("ALTER TABLE visits ALTER patient DROP NOT NULL")
    for statement in ("INSERT INTO visits VALUES (9, NULL)", "UPDATE visits SET patient = NULL"):
        state, message = refused(visits, statement)
        assert (state, "privacy unit is NULL" in message) == ("DP003", True)


REFUSED = {
    "entered rows": ("SELECT count(*) FROM visits WHERE dp_time > now() - INTERVAL '1 day'", "measure => 'entered'", "count(DISTINCT"),
    "left sums": ("SELECT sum(cost) FROM visits WHERE dp_time > now() - INTERVAL '1 day'", "measure => 'left'", "entry is a unit"),
    "units by ward": ("SELECT ward, count(DISTINCT patient) FROM visits WHERE dp_time > now() - INTERVAL '1 day' GROUP BY ward", "measure => 'entered', groups => $$VALUES ('A')$$", "several groups"),
    "units in bins": ("SELECT width_bucket(cost, 0, 9, 3) AS b, count(DISTINCT patient) FROM visits WHERE dp_time > now() - INTERVAL '1 day' GROUP BY b", "measure => 'left'", "several groups"),
    "sums of the unit": ("SELECT sum(patient) FROM visits", "horizon => 9", "privacy unit"),
    "distinct rows": ("SELECT count(DISTINCT id) FROM visits", "horizon => 9", "count(DISTINCT patient)"),
    "keys of the data": ("SELECT ward, count(*) FROM visits GROUP BY ward", "horizon => 9, key_delta => 1e-9", "units of several rows"),
    "local model": ("SELECT count(*) FROM visits WHERE dp_time > now() - INTERVAL '1 day'", "model => 'local', roster => 'VALUES (1)'", "unit of several rows"),
}  # fmt: skip


def test_figures_that_are_not_proven_are_refused(visits):
    for name, (text, options, word) in REFUSED.items():
        state, message = refused(visits, f"SELECT dp_create_release('r', %s, every => '1 day', epsilon => 1, {options})", text)
        assert state in ("DP003", "DP010"), name
        assert word in message, name
    assert visits.database.fetch("SELECT FROM dbext_private.ledger WHERE kind = 'reserve'") == []
    assert refused(visits, "SELECT dp_set_process('visits', 'ward', dwell => '{3, 4}')")[0] == "DP003"


def test_noise_is_as_wide_as_what_a_unit_may_add(visits):
    sql = "SELECT min(mean_std_error) FROM dp_plan_release('r', %s, every => '1 day', epsilon => 1, horizon => 9)"
    figures = ("count(DISTINCT patient)", "count(*)", "sum(cost)")
    people, rows, cost = (visits.session.execute(sql, (f"SELECT {figure} FROM visits",)).fetchone()[0] for figure in figures)
    binned = sql.replace("'r', %s", "'r', 'SELECT width_bucket(cost, 0, 100, 2) AS b, ' || %s || ' FROM visits GROUP BY b'")
    by_bin = [visits.session.execute(binned, (figure,)).fetchone()[0] for figure in figures[:2]]
    assert by_bin[0] == by_bin[1]
    assert rows == pytest.approx(2 * people, rel=0.05)
    assert cost == pytest.approx(200 * people, rel=0.05)


def test_groups_of_the_units_own_columns_count_units(tracked):
    table = tracked(
        "id integer PRIMARY KEY, clinic text NOT NULL, patient integer NOT NULL", name="visits", unit=["clinic", "patient"], rows_per_unit=2,
        rows="VALUES (1, 'x', 1), (2, 'x', 1), (3, 'x', 2), (4, 'y', 1), (5, 'y', 1), (6, 'y', 1)",
    )  # fmt: skip
    table.execute("SELECT dp_add_constraint('visits', 'any', max_mutations => 3)")
    table.execute("SELECT dp_set_budget('visits', 900)")
    for name, figure in (("people", "count(DISTINCT (clinic, patient))"), ("visits", "count(*)")):
        text = f"SELECT clinic, {figure} FROM visits GROUP BY clinic"
        table.session.execute(
            "SELECT dp_create_release(%s, %s, every => '1 day', epsilon => 1, horizon => 9, groups => $$VALUES ('x'), ('y')$$)",
            (name, text),
        )
    table.day(2)
    table.execute("CALL dp_publish()")
    sums = table.database.fetch(
        "SELECT r.name, s.sums FROM dbext_private.tick_sum AS s JOIN dbext_private.release AS r USING (release_id) ORDER BY 1"
    )
    assert sums == [("people", [2, 1]), ("visits", [3, 2])]


def test_questions_count_units_and_sum_rows(visits):
    visits.day(1)
    visits.execute("INSERT INTO visits VALUES (5, 3, 'A', 50), (6, 3, 'A', 250), (7, 3, 'A', 7)")
    visits.seal_through(1)
    ask = "SELECT round(%s)"
    count = "dp_window_count('visits', {}, '2020-03-04', epsilon => 100{})"
    assert visits.database.value(ask % count.format("NULL", ", measure => 'state'")) == 3
    assert visits.database.value(ask % count.format("NULL", ", measure => 'state', predicate => $$ward = 'A'$$")) == 2
    assert visits.database.value(ask % count.format("'2020-03-03'", ", measure => 'entered', predicate => $$cost > 10$$")) == 1
    total = visits.database.value("SELECT (dp_window_sum('visits', 'cost', NULL, '2020-03-04', measure => 'state', epsilon => 500)).value")
    assert abs(total - (10 + 20 + 40 + 50 + 100)) < 20
    charges = visits.database.fetch("SELECT charges FROM dbext_private.ledger WHERE kind = 'question' ORDER BY ledger_no")
    assert [charge[0]["values"] for (charge,) in charges] == [[0, 1], [0, 1], [0, 1], [0, 200]]
    state, _ = refused(visits, "SELECT dp_window_sum('visits', 'cost', '2020-03-03', '2020-03-04', measure => 'entered', epsilon => 1)")
    assert state == "DP003"
    assert refused(visits, "SELECT dp_window_sum('visits', 'patient', '2020-03-03', '2020-03-04', epsilon => 1)")[0] == "DP001"


def test_values_beyond_all_measure_stop_nothing(tracked):
    table = tracked(
        "id text PRIMARY KEY, patient integer NOT NULL, note text, amount numeric NOT NULL",
        name="visits",
        unit=["patient"],
        rows_per_unit=50,
    )
    table.execute("SELECT dp_add_constraint('visits', 'any', max_mutations => 9)")
    table.execute("SELECT dp_set_budget('visits', 900)")
    table.execute("SELECT dp_bounds('visits', 'amount', 0, 10)")
    table.execute(
        "SELECT dp_create_release('r', 'SELECT count(note) AS n, avg(amount) AS mean, count(*) FILTER (WHERE note LIKE ''%%y'') AS y FROM visits', every => '1 day', epsilon => 9, horizon => 9)"
    )
    table.execute(
        "INSERT INTO visits SELECT repeat('k', 20000) || i, 1, repeat('y', 3000000), repeat('9', 100000)::numeric FROM generate_series(1, 50) AS i"
    )
    table.execute("INSERT INTO visits VALUES ('a', 1, 'y', 5)")
    table.day(2)
    table.execute("CALL dp_publish()")
    (image,) = table.fetch("SELECT image_1, image_3, image_4 FROM {admission}")
    assert [(column[0], set(column[1:])) for column in image] == [("a", {None}), ("y", {None}), (5, {None})]
    assert table.database.value("SELECT count(*) FROM dp_release.r") == 1


def test_blanks_that_values_are_padded_with_count_in_their_length(tracked):
    """A hundred values of char(10485760) are a gigabyte, however short: no array holds them, and no seal would ever succeed again."""
    table = tracked(
        "id integer PRIMARY KEY, patient integer NOT NULL, wide char(20000), narrow char(20)", name="visits", unit=["patient"], rows_per_unit=50
    )
    table.execute("INSERT INTO visits SELECT i, 1, 'a', 'b' FROM generate_series(1, 3) AS i")
    table.seal_through(0)
    assert table.fetch("SELECT image_3, image_4 FROM {admission}") == [([None] * 3, ["b".ljust(20)] * 3)]


def test_the_schema_changes(visits):
    visits.seal_through(0)
    visits.day(1)
    visits.execute(
        "ALTER TABLE visits RENAME patient TO person; ALTER TABLE visits RENAME ward TO place; ALTER TABLE visits RENAME TO calls"
    )
    visits.execute("INSERT INTO calls VALUES (0, 2, 'C', 1)")
    visits.seal_through(1)
    assert settled(visits) == {1: [(1, "A", 10), (2, "B", 20)], 2: [(0, "C", 1), (4, "B", 40)]}
    assert visits.events() == []
    visits.day(2)
    visits.execute("ALTER TABLE calls DROP COLUMN place; UPDATE calls SET cost = 2 WHERE id = 0; DELETE FROM calls WHERE id = 1")
    visits.seal_through(2)
    assert settled(visits) == {1: [(2, "B", 20), (3, "A", 30)], 2: [(0, None, 2), (4, "B", 40)]}
    visits.day(3)
    visits.execute("ALTER TABLE calls ALTER cost TYPE bigint, ALTER person TYPE bigint")
    visits.name = "calls"
    visits.track(unit=["person"], rows_per_unit=2)
    visits.execute("INSERT INTO calls VALUES (9, 5000000000, 6000000000)")
    visits.seal_through(3)
    assert settled(visits) == {1: [(2, None, 20), (3, None, 30)], 2: [(0, None, 2), (4, None, 40)], 5000000000: [(9, None, 6000000000)]}
    visits.day(4)
    visits.execute("ALTER TABLE calls ALTER id TYPE bigint")
    visits.execute("INSERT INTO calls VALUES (10, 2, 1)")
    assert [text for _, end, kind, text in visits.events() if kind == "column" and end is None and "id" in text]
    visits.track(unit=["person"], rows_per_unit=2)
    visits.execute("DELETE FROM calls WHERE id IN (0, 2)")
    visits.seal_through(4)
    assert settled(visits) == {1: [(3, None, 30)], 2: [(4, None, 40), (10, None, 1)], 5000000000: [(9, None, 6000000000)]}
    visits.execute("ALTER TABLE calls DROP CONSTRAINT visits_pkey")
    assert [kind for _, end, kind, _ in visits.events() if end is None and kind == "unit"]


def test_columns_are_not_added_and_arguments_stay(visits):
    visits.execute("ALTER TABLE visits ADD age integer")
    state, message = refused(visits, "SELECT dp_track('visits', unit => '{patient}', rows_per_unit => 2, columns => '{ward, cost, age}')")
    assert (state, "first tracked" in message) == ("DP003", True)
    visits.execute("SELECT dp_untrack('visits')")
    for arguments in ("unit => '{patient}', rows_per_unit => 3", "unit => '{patient, ward}', rows_per_unit => 2", "unit => '{id}'"):
        assert refused(visits, f"SELECT dp_track('visits', {arguments})")[0] == "DP003"
    visits.execute("SELECT dp_track('visits', unit => '{patient}', rows_per_unit => 2)")


def test_what_nothing_left_about_is_tracked_anew(tracked):
    table = tracked(COLUMNS, name="visits", rows=START, unit=["patient"], rows_per_unit=2)
    table.seal_through(0)
    table.execute("SELECT dp_untrack('visits')")
    table.track(unit=["patient"], rows_per_unit=1)
    table.day(1)
    table.seal_through(1)
    assert settled(table) == {1: [(1, "A", 10)], 2: [(4, "B", 40)]}
    table.execute("SELECT dp_untrack('visits')")
    table.track()
    assert table.database.fetch("SELECT to_regclass('dbext_private.row_%s')", (table.number,)) == [(None,)]


def test_a_table_made_again_goes_on(visits):
    visits.seal_through(0)
    visits.day(1)
    visits.execute(f"DROP TABLE visits; CREATE TABLE visits ({COLUMNS}); INSERT INTO visits VALUES (1, 1, 'A', 10), (9, 2, 'B', 40)")
    visits.track(unit=["patient"], rows_per_unit=2)
    visits.seal_through(1)
    assert settled(visits) == {1: [(1, "A", 10)], 2: [(9, "B", 40)]}
    assert visits.fetch("SELECT slots FROM {admission}") == [(2,), (2,)]


def test_what_goes_unseen_is_made_good(visits):
    visits.seal_through(0)
    visits.day(1)
    visits.execute("SELECT dp_untrack('visits')")
    visits.execute("DELETE FROM visits WHERE id = 1; UPDATE visits SET patient = 7 WHERE id = 4; INSERT INTO visits VALUES (8, 1, 'X', 0)")
    visits.execute("SELECT dp_track('visits', unit => '{patient}', rows_per_unit => 2)")
    visits.seal_through(1)
    assert settled(visits) == {1: [(2, "B", 20), (3, "A", 30)], 7: [(4, "B", 40)]}
    visits.day(2)
    visits.execute(
        "SET session_replication_role = replica; ALTER TABLE visits DISABLE TRIGGER ALL; UPDATE visits SET cost = 1 WHERE id = 2"
    )
    visits.execute("RESET session_replication_role; ALTER TABLE visits ENABLE TRIGGER ALL")
    assert visits.fetch("SELECT * FROM dp_recount('visits')") == [(0, 0, 1)]
    before = visits.fetch("SELECT count(*)::integer FROM {change}")
    visits.execute("SELECT dp_rebase('visits')")
    assert visits.fetch("SELECT * FROM dp_recount('visits')") == [(0, 0, 0)]
    visits.seal_through(2)
    assert settled(visits) == {1: [(2, "B", 1), (3, "A", 30)], 7: [(4, "B", 40)]}
    assert visits.fetch("SELECT count(*)::integer FROM {change}") == [(before[0][0] + 1,)]


def test_old_mutations_are_forgotten(visits):
    for day in range(6):
        visits.day(day)
        visits.execute(f"INSERT INTO visits VALUES ({-day - 1}, {day % 2 + 1}, 'D', {day}); DELETE FROM visits WHERE id = {day + 1}")
        visits.seal_through(day)
    now = settled(visits)
    visits.execute("SELECT dp_retain('visits', '2 days')")
    changes = visits.fetch("SELECT key_2, old_present, new_1 FROM {change} WHERE tick <= %d ORDER BY 1" % (visits.first + 3))  # noqa: UP031 braces stand for tables
    assert [(unit, old) for unit, old, _ in changes] == [(1, False), (2, False)]
    visits.day(7)
    visits.execute("DELETE FROM visits WHERE id = -5")
    visits.seal_through(7)
    assert settled(visits)[2] == now[2]
    assert settled(visits)[1] != now[1]


def test_a_restored_database_goes_on(visits, empty_database):
    visits.seal_through(0)
    visits.day(1)
    visits.execute("DELETE FROM visits WHERE id = 1")
    dump_and_restore(visits.database.cluster, visits.database.name, empty_database.name)
    restored = object.__new__(Tracked)
    restored.__dict__.update(visits.__dict__, database=empty_database, session=empty_database.superuser)
    restored.execute("SELECT dp_confirm_upgrade()")
    restored.day(1)
    restored.execute("UPDATE visits SET patient = 2 WHERE id = 2")
    restored.seal_through(1)
    assert settled(restored) == {1: [(3, "A", 30)], 2: [(2, "B", 20), (4, "B", 40)]}


def test_an_audit_finds_nothing_wrong_and_notices_wrong_sums(visits):
    for name, figure in (("rows", "count(*)"), ("people", "count(DISTINCT patient)"), ("costs", "sum(cost)")):
        visits.session.execute(
            "SELECT dp_create_release(%s, %s, every => '1 day', epsilon => 9, horizon => 9)", (name, f"SELECT {figure} FROM visits")
        )
    visits.day(1)
    visits.execute("DELETE FROM visits WHERE id = 2")
    visits.day(2)
    visits.execute("CALL dp_publish()")
    visits.execute("SELECT dp_window_sum('visits', 'cost', '2020-03-02', '2020-03-04', epsilon => 3)")
    assert verdicts(visits) == set()
    visits.execute(
        "UPDATE dbext_private.tick_sum SET sums = '{9}' WHERE release_id = 1 AND tick = (SELECT max(tick) FROM dbext_private.tick_sum)"
    )
    assert "rows" in {where for where, _ in verdicts(visits)}


def verdicts(visits):
    """(subject, check) of what an audit finds wrong."""
    with visits.database.connect(autocommit=False) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        found = connection.execute('SELECT a.subject, a."check", a.verdict, a.detail FROM dp_audit() AS a').fetchall()
        connection.rollback()
    return {(subject, check) for subject, check, verdict, _ in found if verdict == "failed"}
