"""`dbext doctor` as it is run by hand and by monitoring: what it prints, what it changes, how it ends."""

import json

import pytest

from tests.acceptance.conftest import declare_tickets


@pytest.fixture
def sound(make_cluster, open_database):
    """A server that survives crashes, with a published release and people to read it."""
    database = open_database(make_cluster(durable=True))
    declare_tickets(database)
    for kind in ("reader", "analyst"):
        database.create_role(f"dbext_{kind}", name=kind)
    database.execute("CALL dp_publish()")
    return database


def findings(done):
    return {(one["severity"], one["check"]) for one in json.loads(done.stdout)}


def test_it_finds_rehearses_fixes_and_is_content(dbext, sound):
    found = dbext("doctor", "--dsn", sound.dsn(), "--format", "json")
    assert found.returncode == 1
    assert {("warning", "sizes"), ("warning", "log_position"), ("warning", "database_statistics")} <= findings(found)
    assert all(one["role"] for one in json.loads(found.stdout) if one["check"] == "sizes")
    rehearsed = dbext("doctor", "--dsn", sound.dsn(), "--dry-run", "--format", "json")
    assert "would run: REVOKE EXECUTE ON FUNCTION pg_catalog.pg_database_size" in rehearsed.stderr
    assert findings(rehearsed) == findings(found)
    fixed = dbext("doctor", "--dsn", sound.dsn(), "--fix")
    assert "running: REVOKE EXECUTE ON FUNCTION pg_catalog.pg_database_size" in fixed.stderr
    assert "0 errors, 0 warnings" in fixed.stderr
    assert fixed.returncode == 0
    again = dbext("doctor", "--dsn", sound.dsn(), "--format", "json")
    assert again.returncode == 0
    assert {severity for severity, _ in findings(again)} <= {"note"}


def test_it_looks_through_the_eyes_of_those_whose_credentials_it_is_given(dbext, tickets):
    reader, analyst = tickets.create_role("dbext_reader", name="reader"), tickets.create_role("dbext_analyst", name="analyst")
    given = ("--reader-dsn", tickets.dsn(reader), "--analyst-dsn", tickets.dsn(analyst))
    done = dbext("doctor", "--dsn", tickets.dsn(), *given, "--format", "json")
    assert {one["role"] for one in json.loads(done.stdout) if one["role"]} == {reader, analyst}
    assert "secret" not in done.stdout + done.stderr


def test_others_than_superusers_are_sent_away(dbext, tickets):
    admin = tickets.create_role("dbext_admin", name="admin")
    done = dbext("doctor", "--dsn", tickets.dsn(admin))
    assert (done.returncode, done.stdout) == (1, "")
    assert "connect as a superuser" in done.stderr
    assert dbext("doctor", "--dsn", tickets.dsn(), "--reader-dsn", tickets.dsn()).returncode == 1


def test_the_table_says_what_and_standard_error_says_why(dbext, tickets):
    done = dbext("doctor", "--dsn", tickets.dsn())
    assert done.returncode == 1
    assert "durability" in done.stdout
    assert "durability: A crash could take back charges" in done.stderr
    assert "fix: ALTER SYSTEM SET fsync = on" in done.stderr
    warnings = [line for line in done.stdout.splitlines() if line.split()[:1] == ["warning"]]
    assert f" {len(warnings)} warnings" in done.stderr
    (sizes,) = [line for line in done.stdout.splitlines() if " sizes " in line]
    assert "dbext_reader, dbext_analyst" in sizes
    closing = "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_database_size"
    assert f"fix (safe): {closing}" in done.stderr
    rehearsed = dbext("doctor", "--dsn", tickets.dsn(), "--dry-run")
    assert rehearsed.stderr.count(closing) == 1
    assert f"would run: {closing}" in rehearsed.stderr
