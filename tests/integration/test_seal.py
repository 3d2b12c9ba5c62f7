"""Seals: every committed mutation falls into exactly one tick, whatever transactions and clocks do."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

ROWS = "VALUES (1, 'one'), (2, 'two'), (3, 'three')"


def contents(table) -> dict:
    return dict(table.fetch(f"SELECT id, value FROM {table.name}"))


def counts(table) -> list[tuple]:
    """Return (taken, late, mismatched) of every pass."""
    return table.fetch("SELECT taken, late, mismatched FROM dbext_private.seal ORDER BY seal_no")


def writer(table, day: int, time_of_day: str = "12:00"):
    """Open a session in which it is a certain time and nothing is committed by itself."""
    session = table.database.connect()
    now = table.day(day, time_of_day) or table.session.execute("SELECT current_setting('dbext.now')").fetchone()[0]
    table.set_now(now, session)
    session.autocommit = False
    return session


def test_a_late_commit_belongs_to_the_first_open_tick(tracked):
    table = tracked()
    late = writer(table, 0)
    late.execute("INSERT INTO entry VALUES (1, 'late')")
    table.execute("INSERT INTO entry VALUES (2, 'in time')")
    table.seal_through(0)
    late.commit()
    table.seal_through(3)
    assert table.changes() == [(0, 2, None, "in time"), (1, 1, None, "late")]
    assert counts(table) == [(1, 0, 0), (1, 1, 0)]


def test_one_transaction_over_several_ticks(tracked):
    table = tracked(rows=ROWS)
    long = writer(table, 0)
    long.execute("UPDATE entry SET value = 'a' WHERE id = 1")
    for day in (1, 2):
        table.seal_through(day)
    table.set_now(table.session.execute("SELECT current_setting('dbext.now')").fetchone()[0], long)
    long.execute("UPDATE entry SET value = 'b' WHERE id = 1")
    long.execute("UPDATE entry SET value = 'c' WHERE id = 2")
    long.commit()
    table.seal_through(4)
    assert [change for change in table.changes() if change[0] > 0] == [(3, 1, "one", "b"), (3, 2, "two", "c")]


def test_savepoints_and_prepared_transactions(tracked):
    table = tracked(rows=ROWS)
    waiting, prepared = writer(table, 0), writer(table, 0)
    waiting.execute("""SAVEPOINT a; UPDATE entry SET value = 'lost' WHERE id = 1; ROLLBACK TO a;
        SAVEPOINT b; UPDATE entry SET value = 'kept' WHERE id = 1; RELEASE b; SAVEPOINT c; INSERT INTO entry VALUES (10, 'sub')""")
    prepared.execute("UPDATE entry SET value = 'prepared' WHERE id = 2; PREPARE TRANSACTION 'p'")
    prepared.autocommit = False
    table.seal_through(0)
    waiting.commit()
    table.seal_through(1)
    assert [change for change in table.changes() if change[0] == 1] == [(1, 1, "one", "kept"), (1, 10, None, "sub")]
    table.seal_through(2)
    table.execute("COMMIT PREPARED 'p'")
    table.seal_through(3)
    assert table.changes()[-1] == (3, 2, "two", "prepared")
    assert [taken for taken, _, _ in counts(table)] == [3, 2, 0, 1]


def test_mutations_on_a_boundary_belong_to_the_tick_it_ends(tracked):
    table = tracked(zone="Asia/Taipei")
    for number, (day, moment) in enumerate([(0, "23:59:59.999999"), (1, "00:00"), (1, "00:00:00.000001"), (2, "00:00"), (2, "12:00")]):
        table.day(day, moment)
        table.execute(f"INSERT INTO entry VALUES ({number}, 'x')")
    table.day(4, "00:00")
    assert table.seal() == 3
    assert [(day, key) for day, key, _, _ in table.changes()] == [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4)]


def test_a_tick_is_closed_as_soon_as_its_boundary_has_passed(tracked):
    table = tracked()
    table.day(0, "23:59:59.999999")
    assert table.seal() == -1
    table.day(1, "00:00")
    assert table.seal() == 0


def test_sealing_again_does_nothing(tracked):
    table = tracked(rows=ROWS)
    table.seal_through(0)
    before = table.fetch("SELECT * FROM dbext_private.seal_head")
    assert table.seal() == 0
    assert table.fetch("SELECT * FROM dbext_private.seal_head") == before
    table.day(0)
    assert table.seal() == 0
    assert len(counts(table)) == 1


@pytest.mark.parametrize(("zone", "day", "hours"), [("Europe/Berlin", 27, 23), ("Europe/Berlin", 237, 25), ("Asia/Beirut", 27, 23)])
def test_days_of_other_lengths(tracked, zone, day, hours):
    """2020-03-29 and 2020-10-25 in Berlin; 2020-03-29 in Beirut, which has no midnight."""
    table = tracked(zone=zone)
    first, last = table.database.fetch(
        f"SELECT dbext_private.table_tick_end(1, {table.first + day - 1}), dbext_private.table_tick_end(1, {table.first + day})"
    )[0]
    assert (last - first).total_seconds() == hours * 3600
    for number, (moment, offset) in enumerate([(first, 0), (first, 1), (last, 0), (last, 1)]):
        table.execute("SELECT set_config('dbext.now', (%s::timestamptz + %s * interval '1 microsecond')::text, false)", (moment, offset))
        table.execute(f"INSERT INTO entry VALUES ({number}, 'x')")
    table.seal_through(day + 2)
    assert [(tick, key) for tick, key, _, _ in table.changes()] == [(day - 1, 0), (day, 1), (day, 2), (day + 1, 3)]


def test_many_ticks_in_one_pass_are_the_same_as_one_by_one(tracked):
    """Also with late commits, truncation, and ticks in which nothing happens."""
    tables = [tracked(name=name, rows=ROWS) for name in ("daily", "rarely")]
    for table in tables:
        table.execute(
            f"SELECT dp_add_constraint('{table.name}', 'any', max_mutations => 3, active_within => '4 days', at_limit => 'leave')"
        )
    script = {
        0: "UPDATE {0} SET value = value || '0'; INSERT INTO {0} VALUES (4, 'four')",
        1: "DELETE FROM {0} WHERE id = 2",
        2: "TRUNCATE {0}; INSERT INTO {0} VALUES (1, 'again'), (3, 'anew'), (5, 'five')",
        3: "UPDATE {0} SET value = value || '3'",
        6: "INSERT INTO {0} VALUES (6, 'six'), (2, 'back')",
        7: "UPDATE {0} SET value = 'end'; DELETE FROM {0} WHERE id = 5",
    }
    for day in range(12):
        for table in tables:
            table.day(day)
            table.execute(script.get(day, "SELECT 1").format(table.name))
        tables[0].seal_through(day)
    tables[1].seal_through(11)
    daily, rarely = (table.changes() for table in tables)
    assert daily == rarely
    assert (4, 5) not in {(day, key) for day, key, _, _ in daily}
    assert [change for change in daily if change[1] == 6] == [(6, 6, None, "six"), (7, 6, "six", "end"), (10, 6, "end", None)]


@pytest.mark.parametrize(
    ("options", "loosened"),
    [({}, "key_1 = 6"), ({"unit": ["person"], "rows_per_unit": 2}, "key_2 = 3")],
    ids=["entries of one row", "units of two rows"],
)
def test_truncations_in_one_pass(tracked, options, loosened):
    """Also of a unit that is settled as there although it is gone: once loosened, its constraint lets it go when the table is emptied again."""
    tables = []
    for name in ("daily", "rarely"):
        table = tracked(
            "id integer PRIMARY KEY, person integer NOT NULL, value text",
            name=name,
            rows="SELECT i, i / 2, 'x' FROM generate_series(1, 6) AS i",
            **options,
        )
        table.execute(f"SELECT dp_add_constraint('{name}', 'few', max_mutations => 1, applies_to => $$person = 3$$)")
        table.execute(f"SELECT dp_add_constraint('{name}', 'any', max_mutations => 9)")
        table.seal_through(0)
        table.execute(f"DELETE FROM {name} WHERE id = 6")
        table.seal_through(1)
        table.execute(f"SELECT dp_alter_constraint('{name}', 'few', max_mutations => 3)")
        tables.append(table)
    script = {
        2: "UPDATE {0} SET value = 'y' WHERE id < 3",
        3: "INSERT INTO {0} VALUES (7, 4, 'y'); TRUNCATE {0}; INSERT INTO {0} VALUES (1, 0, 'z'), (8, 1, 'z')",
        4: "TRUNCATE {0}",
        6: "INSERT INTO {0} VALUES (2, 1, 'w'), (3, 1, 'w'), (4, 1, 'w'); TRUNCATE {0}; INSERT INTO {0} VALUES (2, 1, 'v')",
        7: "UPDATE {0} SET value = 'u'; TRUNCATE {0}; TRUNCATE {0}; INSERT INTO {0} VALUES (5, 2, 't')",
    }
    for day in range(2, 9):
        for table in tables:
            table.day(day)
            table.execute(script.get(day, "SELECT 1").format(table.name))
        tables[0].seal_through(day)
    tables[1].seal_through(8)
    passes = "SELECT count(*) FROM dbext_private.seal GROUP BY table_id ORDER BY table_id"
    assert tables[0].fetch(passes) == [(9,), (3,)]
    images = "SELECT tick, c.* FROM {change} AS c ORDER BY 1, to_jsonb(c)::text"
    daily, rarely = (table.fetch(images) for table in tables)
    assert daily == rarely
    assert {row[0] - tables[0].first for row in daily} == {0, 2, 3, 4, 6, 7}
    assert tables[1].fetch(f"SELECT tick FROM {{change}} WHERE {loosened} AND NOT new_present") == [(tables[1].first + 3,)]


def test_more_ticks_than_one_pass_takes(tracked):
    table = tracked(tick="1 minute")
    table.execute("INSERT INTO entry VALUES (1, 'one')")
    table.day(20)
    assert table.session.execute(f"SELECT dbext_private.seal_table({table.number})").fetchone()[0]["more"] is True
    assert table.seal() == 20 * 24 * 60
    assert len(counts(table)) == 3


# Clocks that are set back. dbext.now plays the clock.


def test_a_mutation_after_one_that_is_not_due_waits_for_it(tracked):
    table = tracked(rows=ROWS)
    table.day(1, "00:05")
    table.execute("UPDATE entry SET value = 'first' WHERE id = 1")
    table.day(0, "23:00")
    table.execute("UPDATE entry SET value = 'second' WHERE id = 1; UPDATE entry SET value = 'free' WHERE id = 2")
    table.day(1, "00:10")
    assert table.seal() == 0
    assert table.settled() == {1: "one", 2: "free", 3: "three"}
    assert table.fetch("SELECT taken_by FROM {deferred}") == [(None,)]
    table.day(1, "13:00")
    table.execute("UPDATE entry SET value = 'third' WHERE id = 3")
    table.seal_through(1)
    assert [change for change in table.changes() if change[0] == 1] == [(1, 1, "one", "second"), (1, 3, "three", "third")]
    assert table.fetch("SELECT taken_by FROM {deferred}") == [(2,)]
    assert sum(taken for taken, _, _ in counts(table)) == 7
    table.seal_through(3)
    assert counts(table)[-1] == (0, 0, 0)


def test_ticks_never_run_backwards_for_an_entry(tracked):
    """Sealed together, the later mutation is not put into an earlier tick than the one before it."""
    table = tracked(rows=ROWS)
    table.day(2)
    table.execute("UPDATE entry SET value = 'first' WHERE id = 1")
    table.day(1)
    table.execute("UPDATE entry SET value = 'second' WHERE id = 1; UPDATE entry SET value = 'free' WHERE id = 2")
    table.seal_through(3)
    assert [change for change in table.changes() if change[0] > 0] == [(1, 2, "two", "free"), (2, 1, "one", "second")]


def test_ticks_never_run_backwards_for_a_row_of_a_unit(tracked):
    table = tracked(
        "id integer PRIMARY KEY, person integer NOT NULL, value text",
        rows="VALUES (1, 7, 'one'), (2, 7, 'two')",
        unit=["person"],
        rows_per_unit=2,
    )
    table.day(2)
    table.execute("UPDATE entry SET value = 'first' WHERE id = 1")
    table.day(1)
    table.execute("UPDATE entry SET value = 'second' WHERE id = 1; UPDATE entry SET value = 'free' WHERE id = 2")
    table.seal_through(3)
    images = table.fetch("SELECT tick, new_3 FROM {change} ORDER BY tick")
    assert [(tick - table.first, values) for tick, values in images] == [(0, ["one", "two"]), (1, ["one", "free"]), (2, ["second", "free"])]


@pytest.mark.parametrize("truncation_waits", [False, True])
def test_a_truncation_takes_part_in_that_order(tracked, truncation_waits):
    table = tracked(rows=ROWS)
    table.day(1, "00:05")
    table.execute("TRUNCATE entry" if truncation_waits else "UPDATE entry SET value = 'first' WHERE id = 1")
    table.day(0, "23:00")
    table.execute("SELECT 1" if truncation_waits else "TRUNCATE entry")
    table.execute("INSERT INTO entry VALUES (1, 'again'), (9, 'new')")
    table.day(1, "00:10")
    assert table.seal() == 0
    assert table.settled() == {1: "one", 2: "two", 3: "three"}
    table.seal_through(1)
    assert table.settled() == {1: "again", 9: "new"}
    assert {day for day, *_ in table.changes()} == {0, 1}
    assert [mismatched for _, _, mismatched in counts(table)] == [0, 0]


# Where and when it may run.


def refusal(session, table) -> str:
    with pytest.raises(psycopg.Error) as caught:
        session.execute(f"SELECT dbext_private.seal_table({table.number})")
    return caught.value.sqlstate


def test_a_seal_is_the_first_thing_its_transaction_does(tracked):
    table = tracked(rows=ROWS)
    session = writer(table, 3)
    session.execute("UPDATE entry SET value = 'own'")
    assert refusal(session, table) == "DP031"


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_seal_wants_read_committed(tracked, level):
    table = tracked(rows=ROWS)
    session = writer(table, 3)
    session.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
    assert refusal(session, table) == "DP031"


@pytest.mark.parametrize("column", ["system_identifier", "database_oid", "timeline"])
def test_a_seal_elsewhere_is_refused_until_a_superuser_accepts_it(tracked, column):
    table = tracked(rows=ROWS)
    table.execute(f"UPDATE dbext_private.cluster_identity SET {column} = '1'")
    table.day(1)
    assert refusal(table.session, table) == "DP031"
    admin = table.database.create_role("dbext_admin", name="admin")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        table.database.connect(admin).execute("SELECT dp_confirm_upgrade()")
    table.execute("SELECT dp_confirm_upgrade()")
    assert table.seal() == 0
    assert table.settled() == contents(table)


def test_only_an_admin_seals(tracked):
    table = tracked()
    analyst = table.database.create_role("dbext_analyst", name="analyst")
    assert refusal(table.database.connect(analyst), table) == "42501"
    admin = table.database.connect(table.database.create_role("dbext_admin", name="admin"))
    table.day(1)
    table.set_now(table.session.execute("SELECT current_setting('dbext.now')").fetchone()[0], admin)
    assert table.seal(admin) == 0


def test_two_seals_at_once(tracked):
    table = tracked(rows=ROWS)
    first, second = writer(table, 1), writer(table, 1)
    first.execute(f"SELECT dbext_private.seal_table({table.number})")
    answers = []
    waiting = threading.Thread(
        target=lambda: answers.append(second.execute(f"SELECT dbext_private.seal_table({table.number})").fetchone()[0])
    )
    waiting.start()
    time.sleep(0.2)
    assert answers == []
    first.commit()
    waiting.join(20)
    second.commit()
    assert answers == [{"sealed": False, "tick": table.first, "more": False}]
    assert counts(table) == [(3, 0, 0)]


@pytest.mark.slow
def test_every_row_once_under_load(tracked):
    """Writers with savepoints and prepared transactions, all on the same few rows, against a sealer that never rests."""
    table = tracked(tick="1 second", real_time=True)
    table.execute("INSERT INTO entry SELECT i, '0' FROM generate_series(1, 30) AS i")
    stop = threading.Event()

    def write(number: int) -> None:
        session = table.database.connect()
        turn = 0
        while not stop.is_set():
            turn += 1
            try:
                session.execute(f"""BEGIN; INSERT INTO entry VALUES ({turn % 7 + 31}, 'n') ON CONFLICT (id) DO UPDATE SET value = entry.value || 'u';
                    SAVEPOINT s; UPDATE entry SET value = '{number}/{turn}' WHERE id = {(turn * number) % 30 + 1};
                    {"ROLLBACK TO" if turn % 3 else "RELEASE"} s; DELETE FROM entry WHERE id = {(turn + number) % 7 + 31}""")
                session.execute("SELECT pg_sleep(random() * 0.05)")
                if turn % 5:
                    session.execute("COMMIT")
                else:
                    session.execute(f"PREPARE TRANSACTION 'g{number}-{turn}'")
                    session.execute("SELECT pg_sleep(random() * 0.3)")
                    session.execute(f"COMMIT PREPARED 'g{number}-{turn}'")
            except psycopg.errors.DeadlockDetected:
                session.execute("ROLLBACK")

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    sealer = table.database.connect()
    until, latest = time.monotonic() + 6, time.monotonic() + 120
    while time.monotonic() < until or (not enough(table) and time.monotonic() < latest):
        table.seal(sealer)
    stop.set()
    for thread in threads:
        thread.join(30)
    time.sleep(1.1)
    table.seal(sealer)
    recorded = table.fetch("SELECT count(*) FROM {log}")[0][0]
    assert enough(table)
    assert sum(taken for taken, _, _ in counts(table)) == recorded
    assert sum(mismatched for _, _, mismatched in counts(table)) == 0
    assert table.settled() == contents(table)


def enough(table) -> bool:
    """Whether there was something to seal, more than once."""
    return table.fetch("SELECT count(*) FROM {log}")[0][0] > 100 and len(counts(table)) >= 5
