"""Every check of the doctor: nothing is found before, the fault is found, and its fix puts it right."""

import os
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from dbext.control import doctor
from dbext.control.doctor_checks import AREAS, Eyes, checks
from dbext.control.doctor_outside import outside
from tests.documents import ROOT, tables

PAGE = ROOT / "docs" / "doctor.md"

CHECKS = {check.name: (area, check) for area in AREAS for check in checks(area)}
#: Channels that PostgreSQL opens by itself, so that there is nothing to provoke.
OPEN_BY_DEFAULT = {"row_counts", "database_statistics", "server_statistics", "sizes", "log_position"}
#: What no statement puts right.
NEVER_CLOSED = {"transaction_numbers", "no_witness"}
#: What goes wrong, as a superuser would do it; {reader} and {analyst} are logins, {gone} is a role that is dropped.
PROVOKED = {
    "event_triggers": "ALTER EVENT TRIGGER dbext_guard_2_hold DISABLE",
    "capture_triggers": 'ALTER TABLE cases DISABLE TRIGGER "00_dbext_update"',
    "capture_gaps": 'ALTER TABLE cases DISABLE TRIGGER "00_dbext_update"; ALTER TABLE cases ENABLE ALWAYS TRIGGER "00_dbext_update"',
    "mismatches": "UPDATE dbext_private.seal SET mismatched = 1",
    "seal_lag": "UPDATE dbext_private.seal_head SET tick = tick - 3, boundary = boundary - interval '3 days'",
    "missed_periods": "SELECT dp_create_release('late', $$SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'$$, '1 day', start => '2020-01-02', "
    "horizon => 2, epsilon => 0.1)",
    "data_keys": "UPDATE dbext_private.release SET plan = plan || '{{\"key_checks\": {{}}}}'",
    "clock_steps": "INSERT INTO dbext_private.seal SELECT table_id, seal_no + 1, first_tick, last_tick, boundary, snapshot, sealed_at - interval '1 day', 0, 0, 0 "
    "FROM dbext_private.seal ORDER BY seal_no DESC LIMIT 1",
    "delivery_lag": "UPDATE dbext_private.release SET target = 'elsewhere'",
    "witness": "INSERT INTO dbext_private.witness (behind_since) VALUES (now())",
    "other_cluster": "UPDATE dbext_private.cluster_identity SET timeline = 'elsewhere'",
    "no_constraint": "CREATE TABLE bare (id int PRIMARY KEY); SELECT dp_track('bare')",
    "no_budget": "CREATE TABLE bare (id int PRIMARY KEY); SELECT dp_track('bare')",
    "weak_budgets": "SELECT dp_set_budget('cases', epsilon => 10, delta => 0.01)",
    "spent_budgets": "SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', epsilon => 8.95)",
    "open_reservations": "BEGIN; SELECT dp_create_release('left', 'SELECT count(*) FROM cases', '1 day', horizon => 9, epsilon => 0.1); "
    "PREPARE TRANSACTION 'doctor_{pid}'",
    "role_makers": "ALTER ROLE {reader} CREATEROLE",
    "role_attributes": "ALTER ROLE dbext_reader LOGIN",
    "owner_members": "GRANT dbext_owner TO {reader}",
    "wide_members": "GRANT pg_read_all_stats TO {analyst}",
    "reads_source": "GRANT SELECT ON cases TO {analyst}",
    "open_source": "GRANT SELECT (county) ON cases TO PUBLIC",
    "private_grants": "GRANT SELECT (answer) ON dbext_private.question TO {analyst}; GRANT INSERT ON dbext_private.log_1 TO {reader}",
    "changed_grants": "GRANT EXECUTE ON FUNCTION dbext_private.run(text, text) TO PUBLIC; GRANT SELECT ON dbext.seal TO {reader}",
    "release_grants": "GRANT SELECT ON dp_release.daily TO {reader}",
    "foreign_objects": "CREATE FUNCTION dp_untrack(tbl text) RETURNS text LANGUAGE sql AS 'SELECT 1::text'",
    "leader_lock": "SELECT pg_advisory_lock(1684170104, 1)",
    "schema_owner": "GRANT CREATE ON SCHEMA public TO PUBLIC",
    "lost_grantees": "SELECT dp_grant('cases', '{gone}'), dp_set_allowance('cases', '{gone}', 1); DROP ROLE {gone}",
    "statement_statistics": "CREATE EXTENSION pg_stat_statements",
    "logged_statements": "ALTER ROLE {reader} SET log_statement = 'mod'",
    "logged_plans": "SET auto_explain.log_min_duration = 0",
    "function_tracking": "SET track_functions = 'all'",
    "replica_sessions": "ALTER ROLE {reader} SET session_replication_role = 'replica'",
    "function_statistics": "SET track_functions = 'all'; INSERT INTO cases VALUES (99, 'A', 'open'); RESET track_functions",
    "estimates": "ANALYZE dbext_private.change_1",
    "column_statistics": "GRANT SELECT ON cases TO {reader}; ANALYZE cases",
}
#: Settings that a fix changes for new sessions, and one that belongs to the whole server.
NEXT_SESSION = {"logged_plans", "function_tracking"}
OF_THE_SERVER = {"durability"}


@pytest.fixture
def clinic(ready):
    """A release that is published, a reader and an analyst who may not read the table."""
    database = ready.database
    ready.roles = {kind: database.create_role(f"dbext_{kind}", name=kind) for kind in ("reader", "analyst")}
    ready.roles["gone"] = database.create_role(name="gone")
    ready.insert((1, "A", "open"), (2, "B", "open"))
    ready.declare("daily", "SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '1 day'", every="1 day", horizon=3, epsilon=1)
    ready.session.execute("RESET dbext.now")
    ready.session.execute("CALL dp_publish()")
    if database.value("SELECT current_setting('server_version_num')::int >= 150000"):
        ready.session.execute("SELECT pg_stat_force_next_flush()")
    return ready


def look(clinic, name):
    """Return what one check finds, each way of looking in a session of its own that is as good as new."""
    area, check = CHECKS[name]
    administrator = Eyes(clinic.session, api="public")
    viewers = [administrator]
    if area == "channels":
        viewers = [Eyes(clinic.session, kind, clinic.roles[kind]) for kind in ("reader", "analyst")]
    return [one for viewer in viewers for one in doctor._run(check, viewer, administrator)]


def wait_for(clinic, name):
    """Cumulative statistics take a moment to be seen."""
    deadline = time.monotonic() + 60
    while not (found := look(clinic, name)) and time.monotonic() < deadline:
        clinic.session.execute("SELECT pg_stat_clear_snapshot()")
        time.sleep(0.05)
    return found


def provoke(clinic, name):
    session = clinic.database.connect() if name == "leader_lock" else clinic.session
    for statement in PROVOKED.get(name, "").format(pid=os.getpid(), **clinic.roles).split("; "):
        session.execute(statement or "SELECT")


def test_every_check_is_provoked_here():
    assert set(PROVOKED) | OPEN_BY_DEFAULT | NEVER_CLOSED | OF_THE_SERVER == set(CHECKS)


def test_the_page_has_every_check():
    rows = [row for found in tables(PAGE.read_text(encoding="utf-8")) if "check" in found[0] for row in found]
    listed = {row["check"].strip("`"): (row["severity"], row["fix"], row["why"].replace("\\|", "|")) for row in rows}
    stated = {name: (check.severity, "safe" if check.safe else "by hand", check.why) for name, (_, check) in CHECKS.items()}
    assert {name: said for name, said in listed.items() if name in CHECKS} == stated
    assert set(listed) - set(CHECKS) == {"package", "python_path", "second_session"}


def treat(clinic, name):
    """Provoke a fault that is not there, see it found, apply its fix and see it gone."""
    assert look(clinic, name) == [], name
    provoke(clinic, name)
    found = wait_for(clinic, name)
    assert found, name
    assert all(one.severity in ("error", "warning", "note") and one.why and one.what for one in found), name
    assert not any("could not be checked" in one.what for one in found), found
    fixes = dict.fromkeys(one.fix for one in found if one.fix)
    for fix in fixes:
        clinic.session.execute(fix)
    if name == "leader_lock":
        while look(clinic, name):
            time.sleep(0.02)
    if name in NEXT_SESSION:
        clinic.session.close()
        clinic.session = clinic.database.superuser
        clinic.session.execute("LOAD 'auto_explain'")
    assert name in WITHOUT_FIX or look(clinic, name) == [], name
    assert fixes or name in WITHOUT_FIX, name


#: Faults that no single statement undoes, and one that no other must have come before; each has a database of its own.
WITHOUT_FIX = {"clock_steps", "data_keys", "delivery_lag", "witness", "weak_budgets", "spent_budgets"}
ALONE = WITHOUT_FIX | {"mismatches"}
AREA_OF_FIXED = {area: sorted(name for name in PROVOKED if CHECKS[name][0] == area and name not in ALONE) for area in AREAS}


@pytest.mark.parametrize("area", AREAS)
def test_every_fault_is_found_and_its_fix_puts_it_right(clinic, area):
    clinic.session.execute("LOAD 'auto_explain'")
    modern = clinic.database.value("SELECT current_setting('server_version_num')::int >= 160000")
    for name in AREA_OF_FIXED[area]:
        if modern and name == "role_makers":
            continue
        treat(clinic, name)
        clinic.session.execute("DROP TABLE IF EXISTS bare; RESET dbext.now")
        clinic.session.execute("CALL dp_publish()")


@pytest.mark.parametrize("name", sorted(ALONE))
def test_a_fault_in_a_database_of_its_own_is_found(clinic, name):
    treat(clinic, name)


def test_a_safe_fix_is_a_statement():
    assert {name for name in WITHOUT_FIX if CHECKS[name][1].safe} == set()


def test_channels_that_postgresql_opens_are_found_by_reader_and_analyst_and_closed(clinic):
    people = {clinic.roles["reader"], clinic.roles["analyst"]}
    for name in sorted(OPEN_BY_DEFAULT):
        found = wait_for(clinic, name)
        assert {one.role for one in found} == people, name
        clinic.session.execute(found[0].fix)
        assert look(clinic, name) == [], name


def test_with_every_channel_closed_everything_goes_on(clinic):
    """Tracking, writing, sealing, publishing and asking need none of what was taken from PUBLIC."""
    for name in sorted(OPEN_BY_DEFAULT | {"function_statistics", "estimates"}):
        provoke(clinic, name)
        for one in wait_for(clinic, name):
            clinic.session.execute(one.fix)
    owner = clinic.database.create_role("dbext_admin", name="owner")
    clinic.session.execute(f"ALTER TABLE cases OWNER TO {owner}; GRANT CREATE ON SCHEMA public TO {owner}")
    clinic.session.execute("SELECT dp_grant('cases', %s)", (clinic.roles["analyst"],))
    with clinic.database.connect(owner) as connection:
        connection.execute("SET dbext.now = '2020-01-02 12:00+08'; CREATE TABLE visits (id int PRIMARY KEY)")
        connection.execute("SELECT dp_track('visits'), dp_add_constraint('visits', 'any', max_mutations => 2), dp_set_budget('visits', epsilon => 1)")
        connection.execute("INSERT INTO visits VALUES (1); UPDATE cases SET status = 'closed'; RESET dbext.now")
        connection.execute("CALL dp_publish()")
    with clinic.database.connect(clinic.roles["analyst"]) as connection:
        connection.execute("SELECT dp_window_count('cases', '2020-01-01', '2020-01-02', epsilon => 1)")
        connection.execute("SELECT * FROM dp_release.daily; TABLE dbext.release_status; TABLE dbext.budget_status")
    assert clinic.database.value("SELECT count(*) FROM dbext.release_status WHERE status LIKE 'failed%%'") == 0


def test_a_weak_server_is_found(clinic):
    """The test server itself survives no crash."""
    assert {one.subject for one in look(clinic, "durability")} == {"fsync", "full_page_writes"}


@pytest.mark.parametrize("name", sorted(NEVER_CLOSED))
def test_what_no_statement_puts_right_is_only_noted(clinic, name):
    assert {one.severity for one in look(clinic, name)} == {"note"}


def test_what_lies_outside_is_seen(clinic):
    administrator = Eyes(clinic.session, api="public")
    dsn = clinic.database.dsn()
    usual = {(one.check, one.subject, one.what) for one in outside(administrator, dsn)}
    assert {check for check, _, _ in usual} <= {"python_path"}
    parent = tempfile.TemporaryDirectory(dir="/tmp")
    open_folder = Path(parent.name) / "open"
    open_folder.mkdir()
    for folder, mode in ((open_folder, 0o777), (Path(parent.name), 0o755)):
        folder.chmod(mode)
    clinic.session.execute("UPDATE dbext_private.runtime SET python_path = %s, second_session = 'host=/nowhere'", (str(open_folder),))
    found = {(one.check, one.what.partition(":")[0]) for one in outside(administrator, dsn) if (one.check, one.subject, one.what) not in usual}
    assert ("python_path", "everybody may write it") in found
    parent.cleanup()
    assert ("second_session", "the server cannot reach itself with") in found


def test_a_package_of_another_version_is_seen(clinic):
    with clinic.database.connect() as connection:
        connection.execute("UPDATE dbext_private.runtime SET python_path = '/nowhere'")
        found = {one.check for one in outside(Eyes(connection, api="public"), clinic.database.dsn())}
    assert {"package", "python_path"} <= found


def test_what_cannot_be_checked_is_an_error_that_holds_no_data(clinic):
    clinic.session.execute("ALTER TABLE dbext_private.seal RENAME TO gone")
    (found,) = look(clinic, "mismatches")
    assert (found.severity, found.what) == ("error", "this could not be checked (SQLSTATE 42P01)")


def test_a_lost_connection_is_not_a_finding(clinic):
    clinic.session.close()
    with pytest.raises(psycopg.OperationalError):
        look(clinic, "mismatches")


def test_the_allowance_of_a_role_that_was_renamed_is_not_one_that_nobody_has(clinic):
    clinic.session.execute("SELECT dp_set_allowance('cases', %s, 1)", (clinic.roles["gone"],))
    clinic.session.execute(f"ALTER ROLE {clinic.roles['gone']} RENAME TO {clinic.roles['gone']}_away")
    try:
        assert look(clinic, "lost_grantees") == []
    finally:
        clinic.session.execute(f"ALTER ROLE {clinic.roles['gone']}_away RENAME TO {clinic.roles['gone']}")
