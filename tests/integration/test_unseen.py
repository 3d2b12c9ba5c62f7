"""What no trigger sees: noticed at the next seal, told to administrators, marked by schema or by them, and made good by dp_rebase."""

from __future__ import annotations

import psycopg
import pytest

ROWS = "VALUES (1, 'one'), (2, 'two'), (3, 'three')"


@pytest.fixture
def table(tracked):
    made = tracked(rows=ROWS)
    made.seal_through(0)
    return made


def unseen(table, sql: str) -> None:
    """Change the table with its triggers out of the way, and put them back."""
    table.execute("ALTER EVENT TRIGGER dbext_follow_command DISABLE; ALTER TABLE entry DISABLE TRIGGER ALL")
    table.execute(sql)
    for event in ("insert", "update", "delete", "truncate"):
        table.execute(f'ALTER TABLE entry ENABLE ALWAYS TRIGGER "00_dbext_{event}"')
    table.execute("ALTER EVENT TRIGGER dbext_follow_command ENABLE ALWAYS")


def contents(table) -> dict:
    return dict(table.fetch("SELECT id, value FROM entry"))


def recount(table) -> tuple:
    return table.fetch("SELECT * FROM dp_recount('entry')")[0]


def checks(table) -> list[tuple]:
    return table.fetch("SELECT recorded, rewritten, mismatched, finding FROM dbext.capture_check ORDER BY seal_no")


UNSEEN = "UPDATE entry SET value = 'unseen' WHERE id = 1; DELETE FROM entry WHERE id = 2; INSERT INTO entry VALUES (4, 'new')"


def test_a_rebase_is_one_ordinary_mutation_per_entry_that_differs(table):
    """Whatever happened to the entry unseen."""
    unseen(table, UNSEEN)
    assert recount(table) == (1, 1, 1)
    table.execute("UPDATE entry SET value = 'seen' WHERE id = 3")
    table.day(1)
    table.execute("SELECT dp_rebase('entry')")
    assert recount(table) == (0, 0, 0)
    table.execute("UPDATE entry SET value = 'later' WHERE id = 4")
    table.seal_through(1)
    assert table.changes()[3:] == [(1, 1, "one", "unseen"), (1, 2, "two", None), (1, 3, "three", "seen"), (1, 4, None, "later")]
    assert table.settled() == contents(table)
    assert dict(table.fetch("SELECT key_1, slots FROM {admission}")) == {1: 2, 2: 2, 3: 2, 4: 1}
    assert table.fetch("SELECT bool_or(baseline) FROM {change} WHERE tick > " + str(table.first)) == [(False,)]
    assert table.fetch("SELECT sum(mismatched) FROM dbext_private.seal") == [(0,)]
    assert [(begin, end, kind) for begin, end, kind, _ in table.events()] == [(1, 1, "rebased")]
    # Log and ledger go on: nothing recorded before was taken away.
    assert table.fetch("SELECT count(*) FROM {log} WHERE op = 'B'") == [(3,)]


def test_a_rebase_spends_slots_and_freezes_like_any_mutation(tracked):
    table = tracked(rows=ROWS)
    table.execute("SELECT dp_add_constraint('entry', 'any', max_mutations => 2)")
    table.seal_through(0)
    unseen(table, UNSEEN)
    table.execute("SELECT dp_rebase('entry')")
    table.seal_through(1)
    assert table.settled() == {1: "one", 3: "three", 4: "new"}
    assert table.fetch("SELECT key_1, slots, frozen FROM {admission} ORDER BY key_1") == [
        (1, 1, True),
        (2, 2, False),
        (3, 1, False),
        (4, 1, False),
    ]


def test_a_rebase_before_anything_was_sealed_is_a_baseline(tracked):
    table = tracked(rows=ROWS)
    unseen(table, UNSEEN)
    table.execute("SELECT dp_rebase('entry')")
    table.seal_through(0)
    assert table.settled() == contents(table)
    assert {day for day, *_ in table.changes()} == {0}


MENDED = {
    "a trigger that is missing": ('DROP TRIGGER "00_dbext_update" ON entry', "trigger"),
    "triggers that are disabled": ("ALTER TABLE entry DISABLE TRIGGER ALL", "trigger"),
    "a trigger that misses replica sessions": ('ALTER TABLE entry ENABLE TRIGGER "00_dbext_update"', "trigger"),
    "values rewritten": ("ALTER TABLE entry ALTER COLUMN value TYPE text USING 'z'", "column"),
    "event triggers disabled": ("ALTER EVENT TRIGGER dbext_follow_rewrite DISABLE", "event trigger"),
    "event triggers that miss replica sessions": ("ALTER EVENT TRIGGER dbext_follow_command ENABLE", "event trigger"),
}


@pytest.mark.parametrize("name", MENDED)
def test_what_was_marked_is_mended_by_a_rebase(table, name):
    command, kind = MENDED[name]
    table.execute(command)
    table.execute("UPDATE entry SET value = 'x' WHERE id = 1")
    table.seal_through(1)
    marks = "SELECT DISTINCT kind FROM dbext.schema_event WHERE through_moment IS NULL"
    assert table.fetch(marks) == [(kind,)]
    table.execute("ALTER EVENT TRIGGER dbext_follow_rewrite ENABLE ALWAYS; ALTER EVENT TRIGGER dbext_follow_command ENABLE ALWAYS")
    table.execute("SELECT dp_rebase('entry')")
    assert table.fetch(marks) == []
    table.execute("DELETE FROM entry WHERE id = 2")
    table.seal_through(3)
    assert table.settled() == contents(table)


@pytest.mark.parametrize("first", ["value", "more"])
def test_keys_rewritten_beside_another_column_that_comes_first(tracked, first):
    """The unit is not the first altered column: capture ends, because one row would become two entries."""
    table = tracked("more text, value text, id integer PRIMARY KEY", rows="VALUES ('m', 'one', 1), ('m', 'two', 2)", columns=["value"])
    table.seal_through(0)
    table.execute(f"ALTER TABLE entry ALTER COLUMN {first} TYPE text USING 'x', ALTER COLUMN id TYPE integer USING id + 100")
    table.execute("UPDATE entry SET value = 'y'")
    table.seal_through(1)
    ((begin, end, kind, text),) = table.events()
    assert (begin, end, kind) == (1, None, "column")
    assert "identified entries" in text
    with pytest.raises(psycopg.Error) as refusal:
        table.execute("SELECT dp_rebase('entry')")
    assert refusal.value.sqlstate == "DP003"
    table.day(3)
    table.track()
    table.seal_through(3)
    assert sorted(table.fetch("SELECT key_2, image_1 FROM {admission} WHERE present")) == [(101, "y"), (102, "y")]


def test_keys_rewritten_before_a_column_that_stands_left_of_them(tracked):
    """What the catalog of older versions does not tell apart is marked all the same, and made good by recording anew."""
    table = tracked("value text, id integer PRIMARY KEY", rows="VALUES ('one', 1)")
    table.seal_through(0)
    table.execute("ALTER TABLE entry ALTER COLUMN id TYPE integer USING id + 100, ALTER COLUMN value TYPE text USING 'x'")
    assert [kind for _, _, kind, _ in table.events()] == ["column"]
    table.track(columns=["value"])
    table.seal_through(1)
    assert table.fetch("SELECT key_2, image_1 FROM {admission} WHERE present") == [(101, "x")]


def test_row_counts_are_told_to_administrators_and_mark_nothing(table, database):
    unseen(table, "UPDATE entry SET value = 'unseen' WHERE id = 1")
    table.execute("UPDATE entry SET value = 'seen' WHERE id = 1")
    table.seal_through(1)
    recorded, rewritten, mismatched, finding = checks(table)[-1]
    assert (recorded, rewritten, mismatched, "changed unseen" in finding) == (1, False, 1, True)
    table.execute("VACUUM FULL entry")
    table.seal_through(2)
    recorded, rewritten, mismatched, finding = checks(table)[-1]
    assert (recorded, rewritten, mismatched, "dp_recount" in finding) == (0, True, 0, True)
    assert recount(table) == (0, 0, 0)
    table.seal_through(3)
    assert checks(table)[-1][:3] == (0, False, 0)
    assert table.fetch("SELECT count(*) FROM dbext.schema_event") == [(0,)]
    for role in ("dbext_reader", "dbext_analyst"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            database.connect(database.create_role(role)).execute("SELECT * FROM dbext.capture_check")


def test_rows_written_are_compared_with_rows_recorded(table):
    table.execute("SELECT pg_stat_force_next_flush()" if table.session.info.server_version >= 150000 else "SELECT pg_sleep(1)")
    table.seal_through(1)
    unseen(table, "UPDATE entry SET value = 'unseen'")
    table.execute("SELECT pg_stat_force_next_flush()" if table.session.info.server_version >= 150000 else "SELECT pg_sleep(1)")
    table.seal_through(2)
    assert table.fetch("SELECT recorded, written FROM dbext.capture_check ORDER BY seal_no DESC LIMIT 1") == [(0, 3)]


def test_an_administrator_may_mark(table, database):
    admin = database.connect(database.create_role("dbext_admin", name="admin"))
    assert "marked" in admin.execute("SELECT dp_mark('entry', 'a batch was loaded past the triggers')").fetchone()[0]
    assert table.events() == [(1, None, "reported", "a batch was loaded past the triggers")]
    for sql, state in (("SELECT dp_mark('entry', '')", "DP001"), ("SELECT dp_mark('pg_class', 'x')", "DP002")):
        with pytest.raises(psycopg.Error) as refusal:
            admin.execute(sql)
        assert refusal.value.sqlstate == state
    analyst = database.connect(database.create_role("dbext_analyst", name="analyst"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        analyst.execute("SELECT dp_mark('entry', 'x')")
    for call in ("dp_rebase('entry')", "dp_recount('entry')"):
        with pytest.raises(psycopg.Error) as refusal:
            admin.execute(f"SELECT {call}")
        assert refusal.value.sqlstate in ("DP005", "42501")
    table.execute("SELECT dp_rebase('entry')")
    assert [(begin, end, kind) for begin, end, kind, _ in table.events()] == [(1, 1, "reported"), (1, 1, "rebased")]


def test_a_recount_leaves_nothing_behind_and_knows_statements_that_nest(table):
    table.execute("""CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.value NOT LIKE '%!' THEN UPDATE entry SET value = value || '!' WHERE id = NEW.id; END IF; RETURN NULL; END $$;
        CREATE TRIGGER again AFTER INSERT OR UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION again()""")
    table.execute("UPDATE entry SET value = 'nested'; INSERT INTO entry VALUES (9, 'nested')")
    assert recount(table) == (0, 0, 0)
    assert table.fetch("SELECT relname FROM pg_class WHERE relname ~ '^recount_'") == []


def test_rebasing_partitions(tracked):
    """A dropped partition leaves a mark; its rows leave with the re-base."""
    table = tracked("id integer PRIMARY KEY, value text) PARTITION BY RANGE (id")
    table.execute(
        "CREATE TABLE a PARTITION OF entry FOR VALUES FROM (0) TO (10); CREATE TABLE b PARTITION OF entry FOR VALUES FROM (10) TO (20)"
    )
    table.execute("INSERT INTO entry VALUES (1, 'one'), (11, 'eleven')")
    table.seal_through(0)
    table.execute("DROP TABLE a")
    assert recount(table) == (1, 0, 0)
    table.execute("SELECT dp_rebase('entry')")
    table.execute("UPDATE b SET value = 'x'")
    table.seal_through(1)
    assert table.settled() == contents(table) == {11: "x"}
    assert [(begin, end, kind) for begin, end, kind, _ in table.events()] == [(1, 1, "partition"), (1, 1, "rebased")]


@pytest.mark.parametrize(("capture", "amiss"), [("statement", (1, 1, 0)), (None, (0, 0, 0))])
def test_a_merge_that_moves_rows_between_partitions_is_seen_by_triggers_of_rows(tracked, capture, amiss):
    """PostgreSQL gives such rows to no trigger of statements, and a re-base makes it good. Partitioned tables have triggers of rows by default."""
    table = tracked("id integer PRIMARY KEY, value text) PARTITION BY RANGE (id", capture=capture)
    if table.session.info.server_version < 150000:
        return
    table.execute("CREATE TABLE low PARTITION OF entry FOR VALUES FROM (0) TO (10); CREATE TABLE rest PARTITION OF entry DEFAULT")
    table.execute("INSERT INTO entry VALUES (1, 'one'), (2, 'two')")
    table.execute("MERGE INTO entry AS e USING (VALUES (1)) AS v (i) ON e.id = v.i WHEN MATCHED THEN UPDATE SET id = 14")
    assert recount(table) == amiss
    table.execute("SELECT dp_rebase('entry')")
    assert recount(table) == (0, 0, 0)
