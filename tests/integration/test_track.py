"""dp_track and dp_untrack: what they refuse, what they record, who may call them, and how tracking is taken up again."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

BAD_TABLES = {
    "a view": ("CREATE VIEW t AS SELECT 1 AS id", "DP003", "view"),
    "a materialised view": ("CREATE MATERIALIZED VIEW t AS SELECT 1 AS id", "DP003", "view"),
    "a foreign table": (
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE t (id integer) SERVER s",
        "DP003",
        "foreign",
    ),
    "a partitioned table with an unlogged partition": (
        "CREATE TABLE t (id integer PRIMARY KEY) PARTITION BY HASH (id); CREATE UNLOGGED TABLE p PARTITION OF t FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        "DP003",
        "unlogged",
    ),
    "a partition": (
        "CREATE TABLE p (id integer PRIMARY KEY) PARTITION BY HASH (id); CREATE TABLE t PARTITION OF p FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        "DP003",
        "partition",
    ),
    "an unlogged table": ("CREATE UNLOGGED TABLE t (id integer PRIMARY KEY)", "DP003", "unlogged"),
    "a temporary table": ("CREATE TEMPORARY TABLE t (id integer PRIMARY KEY)", "DP003", "temporary"),
    "a table with children": ("CREATE TABLE t (id integer PRIMARY KEY); CREATE TABLE c () INHERITS (t)", "DP003", "inheritance"),
    "a child": ("CREATE TABLE p (id integer); CREATE TABLE t (PRIMARY KEY (id)) INHERITS (p)", "DP003", "inheritance"),
    "no primary key": ("CREATE TABLE t (id integer NOT NULL UNIQUE)", "DP003", "no primary key"),
    "a deferrable key": ("CREATE TABLE t (id integer PRIMARY KEY DEFERRABLE)", "DP003", "unique key"),
    "a sequence": ("CREATE SEQUENCE t", "DP003", "not a table"),
}


def wait_until_blocked(session) -> None:
    """Return once some session waits for a lock."""
    deadline = time.monotonic() + 60
    while session.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def refused(session, sql: str, params=None) -> tuple[str, str]:
    """Run a statement that must be refused and return its SQLSTATE and message with hint."""
    with pytest.raises(psycopg.Error) as caught:
        session.execute(sql, params)
    return caught.value.sqlstate, f"{caught.value.diag.message_primary} {caught.value.diag.message_hint or ''}"


@pytest.mark.parametrize("name", BAD_TABLES)
def test_tables_that_cannot_be_tracked(database, name):
    definition, state, word = BAD_TABLES[name]
    database.execute(definition)
    found, message = refused(database.superuser, "SELECT dp_track('t')")
    assert (found, word in message) == (state, True), message
    assert database.fetch("SELECT table_id FROM dbext_private.tracked_table") == []


BAD_UNITS = {
    "an unknown column": ("{nothing}", "DP002"),
    "no column": ("{}", "DP001"),
    "a column that may be NULL": ("{maybe}", "DP003"),
    "a column that is not unique": ("{value}", "DP003"),
    "more than a unique key": ("{id,value}", "DP003"),
    "a partial index": ("{part}", "DP003"),
    "an index under another collation": ("{word}", "DP003"),
    "an index under another equality": ("{loose}", "DP003"),
    "a type without default equality": ("{place}", "DP003"),
}


@pytest.mark.parametrize("name", BAD_UNITS)
def test_units_that_identify_nothing(database, name):
    database.execute("""
        CREATE TABLE t (id integer PRIMARY KEY, value text NOT NULL, maybe integer UNIQUE, part integer NOT NULL, word text NOT NULL, loose text NOT NULL,
            place point NOT NULL);
        CREATE UNIQUE INDEX ON t (part) WHERE part > 0;
        CREATE UNIQUE INDEX ON t (word COLLATE "POSIX");
        CREATE UNIQUE INDEX ON t (loose text_pattern_ops)""")
    unit, state = BAD_UNITS[name]
    assert refused(database.superuser, "SELECT dp_track('t', unit => %s)", (unit,))[0] == state


BAD_ARGUMENTS = {
    "an unknown table": ("'nowhere'", "42P01"),
    "a system table": ("'pg_class'", "DP003"),
    "a table of this extension": ("'dbext_private.budget'", "DP003"),
    "an unknown tracked column": ("'t', columns => '{nothing}'", "DP002"),
    "a tick of nothing": ("'t', tick => '0'", "DP001"),
    "a negative tick": ("'t', tick => '-1 day'", "DP001"),
    "a tick of months and days": ("'t', tick => '1 month 1 day'", "DP001"),
    "a tick of days and hours": ("'t', tick => '1 day 1 hour'", "DP001"),
    "a tick of half a second": ("'t', tick => '0.5 seconds'", "DP001"),
    "a tick of a thousand years": ("'t', tick => '1000 years'", "DP001"),
    "an unknown time zone": ("'t', time_zone => 'Asia/Tapei'", "DP001"),
    "an offset as time zone": ("'t', time_zone => 'XYZ+3'", "DP001"),
    "an unknown way of capture": ("'t', capture => 'column'", "DP001"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_arguments_that_mean_nothing(database, name):
    arguments, state = BAD_ARGUMENTS[name]
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, value text)")
    assert refused(database.superuser, f"SELECT dp_track({arguments})")[0] == state


def test_a_table_of_another_extension(database):
    database.execute("CREATE TABLE t (id integer PRIMARY KEY); ALTER EXTENSION plpython3u ADD TABLE t")
    assert refused(database.superuser, "SELECT dp_track('t')")[0] == "DP003"


def test_tracking_twice(tracked):
    table = tracked()
    assert refused(table.session, "SELECT dp_track('entry')")[0] == "DP004"


def test_tracking_in_another_isolation_level(database):
    database.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    session = database.connect(autocommit=False)
    session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    assert refused(session, "SELECT dp_track('t')")[0] == "DP003"


def test_what_is_protected_is_said(tracked):
    table = tracked('"Case No" integer, value text, PRIMARY KEY ("Case No")')
    table.execute("SELECT dp_untrack('entry')")
    assert 'one row of public.entry, identified by ("Case No")' in table.track()


def test_a_unit_of_its_own_choice(tracked):
    table = tracked("id integer PRIMARY KEY, value text, person integer NOT NULL UNIQUE", unit=["person"])
    table.execute("INSERT INTO entry VALUES (1, 'one', 77)")
    assert table.fetch("SELECT key_3, new_1, new_2 FROM {log}") == [(77, 1, "one")]


def test_only_the_owner_who_is_an_admin_may_track(database):
    owner, other = database.create_role("dbext_admin", name="owner"), database.create_role("dbext_admin", name="other")
    stranger = database.create_role(name="stranger")
    database.execute(
        f"CREATE TABLE t (id integer PRIMARY KEY, value text); ALTER TABLE t OWNER TO {owner}; INSERT INTO t VALUES (1, 'one')"
    )
    database.execute(f"GRANT ALL ON t TO {other}; CREATE TABLE s (id integer PRIMARY KEY); ALTER TABLE s OWNER TO {stranger}")
    assert refused(database.connect(other), "SELECT dp_track('t')")[0] == "DP005"
    assert refused(database.connect(stranger), "SELECT dp_track('s')")[0] == "42501"
    session = database.connect(owner)
    session.execute("SELECT dp_track('t')")
    session.execute("INSERT INTO t VALUES (2, 'two')")
    assert database.fetch("SELECT op::text, key_1 FROM dbext_private.log_1 ORDER BY number") == [("B", 1), ("I", 2)]
    assert refused(database.connect(other), "SELECT dp_untrack('t')")[0] == "DP005"
    # The rights lent for the baseline are taken back.
    for attempt in (
        "INSERT INTO dbext_private.log_1 (op, key_1, mutated_at, xid) VALUES ('I', 3, now(), '9')",
        "SELECT * FROM dbext_private.log_1",
        "CREATE TRIGGER more AFTER TRUNCATE ON t EXECUTE FUNCTION dbext_private.capture_truncate_1()",
    ):
        assert refused(session, attempt)[0] == "42501"
    session.execute("SELECT dp_untrack('t')")


def test_row_security_of_the_owner(database):
    owner = database.create_role("dbext_admin", name="owner")
    database.execute(f"""CREATE TABLE t (id integer PRIMARY KEY); ALTER TABLE t OWNER TO {owner}; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
        INSERT INTO t VALUES (1)""")
    database.connect(owner).execute("SELECT dp_track('t')")
    assert database.value("SELECT count(*) FROM dbext_private.log_1") == 1
    database.connect(owner).execute("SELECT dp_untrack('t')")
    database.execute("ALTER TABLE t FORCE ROW LEVEL SECURITY")
    assert refused(database.connect(owner), "SELECT dp_track('t')")[0] == "DP003"


def test_types_in_a_schema_that_dbext_may_not_use(database):
    database.execute("CREATE SCHEMA apart; CREATE TYPE apart.mood AS ENUM ('a'); CREATE TABLE t (id integer PRIMARY KEY, value apart.mood)")
    state, message = refused(database.superuser, "SELECT dp_track('t')")
    assert (state, "GRANT USAGE ON SCHEMA apart TO dbext_owner" in message) == ("DP005", True)
    database.execute("GRANT USAGE ON SCHEMA apart TO dbext_owner")
    database.execute("SELECT dp_track('t')")
    database.execute("INSERT INTO t VALUES (1, 'a'); UPDATE t SET value = NULL")


def test_a_writer_that_was_at_work_is_in_the_baseline_and_a_later_one_in_the_log(database):
    """dp_track waits for the first; the second had its transaction number before dp_track, and writes after it."""
    database.execute("CREATE TABLE t (id integer PRIMARY KEY, value text); CREATE TABLE elsewhere (n integer)")
    early, late, tracker = database.connect(autocommit=False), database.connect(autocommit=False), database.connect()
    early.execute("INSERT INTO t VALUES (1, 'early')")
    late.execute("INSERT INTO elsewhere VALUES (1)")
    tracker.execute("SET lock_timeout = '100ms'")
    assert refused(tracker, "SELECT dp_track('t', tick => '1 second')")[0] == "55P03"
    early.commit()
    tracker.execute("SELECT dp_track('t', tick => '1 second')")
    tracker.execute("SELECT pg_sleep(1.1)")
    tracker.execute("SELECT dbext_private.seal_table(1)")
    late.execute("INSERT INTO t VALUES (2, 'late')")
    late.commit()
    tracker.execute("SELECT pg_sleep(1.1)")
    tracker.execute("SELECT dbext_private.seal_table(1)")
    assert database.fetch("SELECT baseline, key_1, new_2 FROM dbext_private.change_1 ORDER BY key_1") == [
        (True, 1, "early"),
        (False, 2, "late"),
    ]


def test_untracked_and_tracked_again(tracked):
    """Settled to current image is one ordinary mutation per changed entry; unchanged entries cost nothing."""
    table = tracked(rows="VALUES (1, 'same'), (2, 'changed'), (3, 'deleted')")
    table.execute("INSERT INTO entry VALUES (4, 'same')")
    table.seal_through(0)
    table.execute("SELECT dp_untrack('entry')")
    assert table.fetch("SELECT proname FROM pg_proc WHERE proname LIKE 'capture!_insert!_%' ESCAPE '!'") == []
    table.execute("DELETE FROM entry WHERE id = 3; UPDATE entry SET value = 'anew' WHERE id = 2; INSERT INTO entry VALUES (5, 'new')")
    table.seal_through(3)
    assert table.changes() == [(0, number, None, value) for number, value in ((1, "same"), (2, "changed"), (3, "deleted"), (4, "same"))]
    assert table.events() == [(1, None, "untracked", "tracking was ended by dp_untrack")]
    table.day(6)
    table.track()
    assert table.events() == [(1, 6, "untracked", "tracking was ended by dp_untrack")]
    table.execute("UPDATE entry SET value = 'later' WHERE id = 5")
    table.seal_through(6)
    assert table.changes()[4:] == [(6, 2, "changed", "anew"), (6, 3, "deleted", None), (6, 5, None, "later")]
    assert table.settled() == {1: "same", 2: "anew", 4: "same", 5: "later"}
    assert dict(table.fetch("SELECT key_1, slots FROM {admission}")) == {1: 1, 2: 2, 3: 2, 4: 1, 5: 1}
    assert table.fetch("SELECT DISTINCT baseline FROM {change} WHERE tick > " + str(table.first)) == [(False,)]
    assert table.fetch("SELECT sum(mismatched) FROM dbext_private.seal") == [(0,)]


def test_a_baseline_that_takes_longer_than_a_tick_is_a_baseline_all_the_same(tracked):
    """What was there at dp_track has not entered, whichever tick its record falls into."""
    table = tracked(rows="VALUES (1, 'one')")
    table.execute("UPDATE dbext_private.seal_head SET tick = tick - 1, boundary = boundary - interval '1 day'")
    table.execute("UPDATE dbext_private.tracked_table SET first_tick = first_tick - 1")
    table.seal_through(0)
    assert table.fetch("SELECT key_1, baseline FROM {change}") == [(1, True)]


def test_tracked_again_with_other_arguments(tracked):
    table = tracked("id integer PRIMARY KEY, value text, more text NOT NULL UNIQUE")
    table.execute("SELECT dp_set_budget('entry', 1); SELECT dp_untrack('entry')")
    for arguments in ("tick => '2 days'", "time_zone => 'Asia/Taipei'", "columns => '{value}'", "unit => '{more}'"):
        assert refused(table.session, f"SELECT dp_track('entry', {arguments})")[0] == "DP003"
    table.execute("ALTER TABLE entry ALTER COLUMN id TYPE numeric")
    assert refused(table.session, "SELECT dp_track('entry')")[0] == "DP003"


@pytest.mark.parametrize(
    "between", ["SELECT dp_untrack('entry')", "DROP TABLE entry; CREATE TABLE entry (id integer PRIMARY KEY, value text)"]
)
def test_what_never_had_a_budget_is_tracked_anew_with_other_arguments(tracked, between):
    """Nothing about it ever left: constraints, marks and run-time tables go, and a mistyped tick is not for ever."""
    table = tracked(rows="VALUES (1, 'one')")
    table.execute("SELECT dp_add_constraint('entry', 'any', active_within => '3 days')")
    table.seal_through(1)
    assert refused(table.session, "SELECT dp_track('entry', tick => '12 hours')")[0] == "DP004"
    table.execute(between)
    said = table.track(tick="12 hours")
    assert "a tick is 12 hours in time zone UTC" in said
    assert table.fetch("SELECT table_id, tick_kind, tracked FROM dbext_private.tracked_table") == [(table.number, "fixed", True)]
    for relation in ("entry_type", "schema_event", "seal"):
        assert table.fetch(f"SELECT count(*) FROM dbext_private.{relation} WHERE table_id = {table.number}") == [(0,)]
    assert table.fetch("SELECT count(*) FROM {admission}") == [(0,)]
    table.execute("INSERT INTO entry VALUES (2, 'two')")
    table.day(4)
    table.seal()
    assert table.settled()[2] == "two"


def test_what_has_a_budget_is_not_forgotten(tracked):
    table = tracked()
    table.execute("SELECT dp_set_budget('entry', 1); SELECT dp_untrack('entry')")
    assert "To begin anew" in str(refused(table.session, "SELECT dp_track('entry', tick => '12 hours')"))
    table.track()
    assert table.fetch("SELECT budget FROM dbext.tracked_table") == [("public.entry",)]


def test_tracked_again_without_a_column_that_is_gone(tracked):
    """Its mark stays open; a column that came later is not recorded."""
    table = tracked("id integer PRIMARY KEY, value text, more text, other text", rows="VALUES (1, 'a', 'b', 'c')")
    table.seal_through(0)
    table.execute("SELECT dp_untrack('entry')")
    table.execute(
        "ALTER TABLE entry DROP COLUMN more; ALTER TABLE entry ADD COLUMN later text; ALTER TABLE entry ALTER COLUMN other TYPE char(10)"
    )
    table.day(2)
    table.track()
    table.execute("UPDATE entry SET value = 'A', later = 'x', other = 'y'")
    table.seal_through(3)
    assert table.fetch("SELECT image_2, image_3, image_4 FROM {admission}") == [("A", None, None)]
    assert [(begin, end, kind) for begin, end, kind, _ in table.events()] == [(1, 2, "untracked"), (1, None, "column"), (1, None, "column")]
    # The column comes back.
    table.execute("SELECT dp_untrack('entry')")
    table.execute("ALTER TABLE entry ADD COLUMN more text DEFAULT 'B'")
    table.day(5)
    table.track()
    table.seal_through(6)
    assert table.fetch("SELECT image_2, image_3, image_4 FROM {admission}") == [("A", "B", None)]
    assert [text for _, end, kind, text in table.events() if end is None] == [
        'column "other" was dropped or given another type; it reads as NULL since'
    ]


def test_mutations_that_were_not_sealed_before_untracking_are_sealed_by_the_new_baseline(tracked):
    table = tracked(rows="VALUES (1, 'one')")
    table.execute("UPDATE entry SET value = 'two'; INSERT INTO entry VALUES (2, 'x')")
    table.execute("SELECT dp_untrack('entry')")
    table.execute("UPDATE entry SET value = 'three' WHERE id = 1; DELETE FROM entry WHERE id = 2")
    table.track()
    table.seal_through(0)
    assert table.changes() == [(0, 1, None, "three")]
    assert table.fetch("SELECT baseline FROM {change}") == [(True,)]


def test_untracking_what_is_not_tracked(tracked):
    table = tracked()
    table.execute("CREATE TABLE other (id integer)")
    assert refused(table.session, "SELECT dp_untrack('other')")[0] == "DP002"
    table.execute("SELECT dp_untrack('entry')")
    assert refused(table.session, "SELECT dp_untrack('entry')")[0] == "DP002"


def test_two_tables_of_one_name(database):
    database.execute("CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (id integer PRIMARY KEY); CREATE TABLE b.t (id text PRIMARY KEY)")
    database.execute("SELECT dp_track('a.t'), dp_track('b.t')")
    database.execute("INSERT INTO a.t VALUES (1); INSERT INTO b.t VALUES ('x')")
    assert database.fetch("SELECT key_1 FROM dbext_private.log_1") == [(1,)]
    assert database.fetch("SELECT key_1 FROM dbext_private.log_2") == [("x",)]


def test_only_an_admin_can_set_the_time(tracked, database):
    table = tracked()
    writer = database.create_role(name="writer")
    database.execute(f"GRANT INSERT ON entry TO {writer}")
    session = database.connect(writer)
    table.set_now("2001-01-01", session)
    session.execute("INSERT INTO entry VALUES (1, 'one')")
    table.set_now("not a time", session)
    session.execute("INSERT INTO entry VALUES (2, 'two')")
    table.set_now("3000-01-01")
    table.execute("INSERT INTO entry VALUES (3, 'three')")
    table.set_now("")
    table.execute("INSERT INTO entry VALUES (4, 'four')")
    assert table.fetch(
        "SELECT count(*) FROM {log} WHERE clock_timestamp() - mutated_at < interval '1 hour' AND mutated_at <= clock_timestamp()"
    ) == [(4,)]


def test_a_table_renamed_while_it_is_not_tracked_is_the_same_table(tracked):
    """Its ledger, entries and slots go on; a new table of the name it had is another one."""
    table = tracked(rows="VALUES (1, 'one')")
    table.execute("SELECT dp_set_budget('entry', 9); SELECT dp_untrack('entry')")
    table.execute("ALTER EVENT TRIGGER dbext_follow_command DISABLE")
    table.execute("ALTER TABLE entry RENAME TO renamed; ALTER TABLE renamed RENAME value TO content")
    table.execute("CREATE TABLE entry (id integer PRIMARY KEY, value text)")
    table.execute("SELECT dp_track('entry'), dp_track('renamed')")
    known = table.fetch("SELECT table_id, table_name, budget_id IS NULL FROM dbext_private.tracked_table ORDER BY table_id")
    assert known == [(table.number, "renamed", False), (table.number + 1, "entry", True)]
    table.execute("UPDATE renamed SET content = 'two'")
    table.seal_through(0)
    assert table.settled() == {1: "two"}
    table.execute("SELECT dp_untrack('renamed'); ALTER EVENT TRIGGER dbext_follow_command ENABLE; ALTER TABLE renamed RENAME TO again")
    assert table.fetch("SELECT table_name FROM dbext_private.tracked_table ORDER BY table_id") == [("again",), ("entry",)]


def test_a_table_of_the_name_of_one_that_is_gone_does_not_stand_in_the_way(tracked):
    table = tracked()
    table.execute("DROP TABLE entry; CREATE TABLE other (id integer PRIMARY KEY); SELECT dp_track('other')")
    table.execute("ALTER TABLE other RENAME TO entry; INSERT INTO entry VALUES (1)")
    assert table.fetch("SELECT table_name, tracked FROM dbext_private.tracked_table ORDER BY table_id") == [
        ("entry", False),
        ("entry", True),
    ]


def test_a_view_put_in_the_place_of_the_table_while_tracking_waits(database):
    """Whoever tracks runs no code of the table's owner."""
    owner = database.create_role(name="mallory")
    database.execute(f"CREATE SCHEMA play AUTHORIZATION {owner}; GRANT USAGE ON SCHEMA play TO PUBLIC")
    own = database.connect(owner)
    own.execute("CREATE TABLE play.t (id integer PRIMARY KEY, v text); CREATE TABLE play.seen (who text); GRANT ALL ON play.seen TO PUBLIC")
    own.execute(
        """CREATE FUNCTION play.evil() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO play.seen VALUES (current_user); RETURN 1; END $$"""
    )
    own.execute(
        "BEGIN; ALTER TABLE play.t RENAME TO t_old; CREATE VIEW play.t AS SELECT play.evil() AS id, 'x'::text AS v; GRANT SELECT ON play.t TO PUBLIC"
    )
    said = []
    waiting = threading.Thread(target=lambda: said.append(refused(database.superuser, "SELECT dp_track('play.t')")))
    waiting.start()
    wait_until_blocked(database.connect())
    own.execute("COMMIT")
    waiting.join(60)
    assert said[0][0] in ("DP031", "DP002", "DP003")
    assert own.execute("SELECT count(*) FROM play.seen").fetchone() == (0,)
    assert own.execute("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'play.t_old'::regclass").fetchone() == (0,)


def test_the_steps_of_tracking_do_nothing_alone(tracked, database):
    table = tracked()
    role = database.create_role("dbext_admin", name="owner")
    database.execute(f"CREATE TABLE mine (id integer PRIMARY KEY); ALTER TABLE mine OWNER TO {role}; ALTER TABLE entry OWNER TO {role}")
    own = database.connect(role)
    begin = f"SELECT dbext_private.begin_tracking('mine'::regclass, '1 day', 'UTC', NULL, NULL, NULL, NULL, '{role}')"
    assert refused(own, begin)[0] == "DP031"
    own.execute("SELECT dp_untrack('entry')")
    assert refused(own, f"SELECT dbext_private.finish_tracking({table.number}, '{role}')")[0] == "DP031"
    with own.transaction():
        own.execute("LOCK TABLE entry IN SHARE ROW EXCLUSIVE MODE")
        with pytest.raises(psycopg.Error), own.transaction():
            own.execute(f"SELECT dbext_private.finish_tracking({table.number}, '{role}')")
        own.execute(f"SELECT dbext_private.begin_tracking('entry'::regclass, '1 day', 'UTC', NULL, NULL, NULL, NULL, '{role}')")
    own.execute("SELECT dp_track('entry')")
    assert refused(own, f"INSERT INTO dbext_private.log_{table.number} (op, mutated_at, xid) VALUES ('T', now(), '3')")[0] == "42501"
