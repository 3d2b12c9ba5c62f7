"""The whole way in one test, for every major version of PostgreSQL: install, track, seal, publish, ask, drop. `make test-versions` runs it."""

from __future__ import annotations


def test_the_whole_way(database, ready):
    cases = ready
    cases.declare(
        "confirmed",
        "SELECT county, count(*) FROM cases WHERE status = 'confirmed' AND dp_time > now() - INTERVAL '1 day' GROUP BY county",
        every="1 day", measure="net", epsilon=5, groups="VALUES ('north'), ('south')",
    )  # fmt: skip
    cases.declare("present", "SELECT count(*) FROM cases WHERE status = 'confirmed'", every="1 day", horizon=8, epsilon=4)
    cases.insert(*((number, "north", "suspected") for number in range(40)))
    with cases.session.cursor().copy("COPY cases (id, county, status) FROM STDIN") as rows:
        rows.write("".join(f"{number}\tsouth\tconfirmed\n" for number in range(40, 100)))
    cases.day(1)
    cases.session.execute("UPDATE cases SET status = 'confirmed' WHERE id < 20")
    cases.session.execute("UPDATE cases SET status = 'confirmed' WHERE id = 20")
    cases.session.execute("INSERT INTO cases VALUES (21, 'north', 'confirmed') ON CONFLICT (id) DO UPDATE SET status = excluded.status")
    cases.session.execute("DELETE FROM cases WHERE id > 89")
    cases.session.execute("ALTER TABLE cases RENAME status TO state_of_the_case")
    cases.day(2)
    cases.session.execute("INSERT INTO cases VALUES (100, 'north', 'confirmed')")
    cases.day(3)
    cases.publish()
    ((number,),) = database.fetch("SELECT table_id FROM dbext_private.tracked_table")
    exact = "SELECT sum((new_present AND new_3 = 'confirmed')::integer - (old_present AND old_3 = 'confirmed')::integer) FROM dbext_private.change_{}"
    assert database.value(exact.format(number)) == 60 + 22 - 10 + 1
    assert database.value(f"SELECT count(*) FROM dbext_private.admission_{number} WHERE present") == 91
    rows = database.fetch("SELECT window_end, county, net FROM dp_release.confirmed ORDER BY window_end, county")
    assert len(rows) == 6
    assert abs(rows[1][2] - 60) < 40
    assert database.value("SELECT count(*) FROM dp_release.present") == 3
    asked = cases.ask(cases.midnight(0), cases.midnight(3), predicate="county = 'north'", epsilon=1)
    assert cases.ask(cases.midnight(0), cases.midnight(3), predicate="county = 'north'", epsilon=1) == asked
    assert database.value("SELECT count(*) FROM dbext.release_status") == 2
    for day in (3, 4, 6, 8):
        cases.day(day)
        cases.publish()
        said = database.value("SELECT dp_retain('cases', '1 day', segments => true)")
        cases.session.execute("UPDATE cases SET county = %s WHERE id = 1", (f"on day {day}",))
    assert said.endswith("Of 1 records in segments that went, 0 are needed and stay.")
    assert database.fetch("SELECT * FROM dp_recount('cases')") == [(0, 0, 0)]
    database.execute("SELECT dp_drop_release('confirmed')")
    database.execute("SELECT dp_untrack('cases')")
    database.execute("DROP EXTENSION dbext CASCADE")
    assert database.value("SELECT count(*) FROM cases") == 91
    assert database.fetch("SELECT evtname FROM pg_event_trigger") == []
