"""Every command against a real database: results, formats, exit codes, messages."""

from __future__ import annotations

import csv
import io
import json

import pytest


def test_publish_then_nothing_to_do(dbext, tickets):
    first = dbext("publish", "--dsn", tickets.dsn(), "--format", "json")
    assert first.returncode == 0, first.stderr
    (published,) = json.loads(first.stdout)
    assert published["release"] == "valid_now"
    assert published["periods"] in (4, 5)
    assert published["error"] is None
    assert tickets.value("SELECT count(*) FROM dp_release.valid_now") == published["periods"]
    second = dbext("publish", "--dsn", tickets.dsn(), "--format", "json")
    assert (second.returncode, json.loads(second.stdout)) == (4, [])
    assert "nothing is due" in second.stderr


def test_a_release_that_fails_is_reported_and_the_others_go_on(dbext, tickets):
    tickets.execute(
        """
        SELECT dp_create_release('broken', $$SELECT count(*) FROM ticket WHERE dp_time > now() - INTERVAL '1 day'$$,
            every => '1 day', measure => 'net', epsilon => 1, start => (CURRENT_DATE - 4)::text)
        """
    )
    tickets.execute("UPDATE dbext_private.release SET plan = '{}' WHERE name = 'broken'")
    done = dbext("publish", "--dsn", tickets.dsn(), "--format", "json")
    assert done.returncode == 1
    results = {row["release"]: row for row in json.loads(done.stdout)}
    assert results["broken"]["error"]
    assert results["valid_now"]["periods"] > 0


@pytest.mark.parametrize("command", ["status", "budget", "tables"])
def test_views_in_every_format(dbext, tickets, command):
    as_json = dbext(command, "--dsn", tickets.dsn(), "--format", "json")
    as_csv = dbext(command, "--dsn", tickets.dsn(), "--format", "csv")
    as_table = dbext(command, "--dsn", tickets.dsn())
    assert [as_json.returncode, as_csv.returncode, as_table.returncode] == [0, 0, 0], as_json.stderr
    assert [as_json.stderr, as_csv.stderr, as_table.stderr] == ["", "", ""]
    (row,) = json.loads(as_json.stdout)
    (record,) = csv.DictReader(io.StringIO(as_csv.stdout))
    assert list(row) == list(record)
    assert all(name in as_table.stdout for name in row if name not in ("created_by", "created_at", "declaration"))
    assert "declaration" not in as_table.stdout
    assert "ticket" in as_table.stdout


def test_explain_shows_the_candidates(dbext, tickets):
    done = dbext("explain", "valid_now", "--dsn", tickets.dsn(), "--format", "json")
    assert done.returncode == 0, done.stderr
    assert sum(row["chosen"] for row in json.loads(done.stdout)) == 1
    as_table = dbext("explain", "valid_now", "--dsn", tickets.dsn()).stdout
    assert "{" not in as_table


def test_an_audit_is_filed_and_tells_monitoring_how_it_ended(dbext, tickets, tmp_path):
    reader = tickets.create_role("dbext_reader")
    assert dbext("audit", "--dsn", tickets.dsn(reader)).returncode == 4
    assert dbext("publish", "--dsn", tickets.dsn()).returncode == 0
    page = tmp_path / "audit.html"
    passed = dbext("audit", "--dsn", tickets.dsn(), "--format", "json", "--report", str(page))
    assert passed.returncode == 0, passed.stdout
    findings = json.loads(passed.stdout)
    assert {row["verdict"] for row in findings} == {"passed"}
    assert f"{len(findings)} checks: {len(findings)} passed" in passed.stderr
    assert page.stat().st_mode & 0o777 == 0o600
    assert all(row["check"] in page.read_text() for row in findings)
    assert dbext("audit", "--dsn", tickets.dsn(reader)).returncode == 0
    tickets.execute("UPDATE dp_release.valid_now SET net = net + 1 WHERE release_no = 1")
    failed = dbext("audit", "--dsn", tickets.dsn(), "--report", str(page))
    assert (failed.returncode, "published values" in failed.stdout) == (1, True)
    assert "Checks failed" in page.read_text()
    last = dbext("audit", "--dsn", tickets.dsn(reader), "--format", "json")
    (shown,) = json.loads(last.stdout)
    assert (last.returncode, shown["passed"], set(shown)) == (1, False, {"audit_no", "audited_at", "passed"})


SIMULATED = """\
-- every: 1 day
-- measure: state
-- epsilon: 2
-- horizon: 30
-- max_mutations: 2
SELECT count(*) FROM ticket WHERE valid
"""


def test_simulate_needs_no_database(dbext, tmp_path):
    declaration, data, page = (tmp_path / name for name in ("total.sql", "data.csv", "page.html"))
    declaration.write_text(SIMULATED)
    data.write_text("day,all\n" + "".join(f"{day},{day % 5}\n" for day in range(30)))
    done = dbext("simulate", str(declaration), "--source", str(data), "--repetitions", "20", "--format", "json", "--report", str(page))
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["chosen"] for row in rows] == [True] + [False] * (len(rows) - 1)
    assert {"binary tree", "re-noised each period"} <= {row["method"] for row in rows}
    assert page.read_text().count("<polyline") == (1 + len(rows)) + 2 * len(rows), "errors beside zero, and a panel for each method"
    times = dbext("simulate", str(declaration), "--repetitions", "3", "--by-period", "--format", "json")
    assert len(json.loads(times.stdout)) == 30 * len(rows)
    data.write_text("day,all\n1,many\n")
    assert dbext("simulate", str(declaration), "--source", str(data)).returncode == 2
    absent = dbext("simulate", str(tmp_path / "absent.sql"))
    assert (absent.returncode, absent.stderr) == (1, f"error: {tmp_path / 'absent.sql'}: No such file or directory\n")


def test_simulate_reads_a_private_table_for_administrators_alone_and_stores_nothing(dbext, tickets, tmp_path):
    declaration = tmp_path / "total.sql"
    declaration.write_text(SIMULATED)
    query = "SELECT 1, count(*) FROM ticket"
    analyst = tickets.create_role("dbext_analyst")
    tickets.execute(f"GRANT SELECT ON ticket TO {analyst}")
    arguments = ("simulate", str(declaration), "--repetitions", "2", "--query")
    refused = dbext(*arguments, query, "--dsn", tickets.dsn(analyst))
    assert (refused.returncode, "only a member of dbext_admin" in refused.stderr) == (1, True)
    assert dbext(*arguments, query, "--dsn", tickets.dsn()).returncode == 0
    writing = dbext(*arguments, "DELETE FROM ticket RETURNING 1, 1", "--dsn", tickets.dsn())
    assert (writing.returncode, tickets.value("SELECT count(*) FROM ticket")) == (1, 50)


def test_ageing_of_dwell_times_and_of_a_table(dbext, tickets):
    arguments = ("ageing", "--target", "0.1", "--format", "json")
    given = dbext(*arguments, "--dwell", "4,8")
    tickets.execute("SELECT dp_set_process('ticket', 'valid', dwell => '{4,8}')")
    stated = dbext(*arguments, "--table", "ticket", "--dsn", tickets.dsn())
    assert (given.returncode, stated.returncode) == (0, 0), stated.stderr
    assert json.loads(given.stdout) == json.loads(stated.stdout)
    assert [row["strategy"] for row in json.loads(given.stdout)] == ["best", "noise only", "ageing only"]
    assert dbext(*arguments).returncode == 2
    assert dbext(*arguments, "--dwell", "4,x").returncode == 2


def test_explain_of_an_unknown_release_is_an_error_with_a_message(dbext, tickets):
    done = dbext("explain", "nothing", "--dsn", tickets.dsn())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize("command", ["status", "publish", "worker"])
def test_a_database_without_the_extension(dbext, empty_database, command):
    done = dbext(command, *(["--once"] if command == "worker" else []), "--dsn", empty_database.dsn())
    assert done.returncode == 1
    assert "does not have the extension dbext" in done.stderr
    assert "hint: " in done.stderr


def test_a_database_that_does_not_exist(dbext, cluster):
    assert dbext("status", "--dsn", cluster.dsn("no_such_database")).returncode == 5


def test_a_role_without_rights(dbext, tickets):
    stranger = tickets.create_role()
    done = dbext("publish", "--dsn", tickets.dsn(stranger))
    assert (done.returncode, done.stdout) == (1, "")
    assert "permission denied" in done.stderr
    assert "hint: Members of dbext_reader may look" in done.stderr


def test_libpq_finds_the_database_by_itself(dbext, tickets, tmp_path):
    folder, port = str(tickets.cluster.socket_folder), "5432"
    by_variables = dbext("status", "--format", "csv", PGHOST=folder, PGPORT=port, PGUSER="postgres", PGDATABASE=tickets.name)
    services = tmp_path / "services"
    services.write_text(f"[tickets]\nhost={folder}\nport={port}\nuser=postgres\ndbname={tickets.name}\n")
    by_service = dbext("status", "--format", "csv", PGSERVICEFILE=str(services), PGSERVICE="tickets")
    by_environment = dbext("status", "--format", "csv", DBEXT_DSN=tickets.dsn())
    assert by_variables.returncode == by_service.returncode == by_environment.returncode == 0
    assert by_variables.stdout == by_service.stdout == by_environment.stdout


def test_the_option_wins(dbext, tickets):
    assert dbext("status", "--dsn", tickets.dsn(), DBEXT_DSN="host=/nowhere").returncode == 0


def test_a_url_is_a_connection_string_too(dbext, tickets):
    folder = str(tickets.cluster.socket_folder).replace("/", "%2F")
    assert dbext("status", "--dsn", f"postgresql://postgres@{folder}/{tickets.name}").returncode == 0


def test_another_version_is_refused(dbext, tickets):
    tickets.execute("UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'dbext'")
    done = dbext("status", "--dsn", tickets.dsn())
    assert done.returncode == 1
    assert "version 0.0.1" in done.stderr


@pytest.mark.parametrize("command", ["demo", "install", "publish", "worker", "explain", "status", "budget", "tables", "audit", "doctor", "simulate", "ageing"])
def test_every_command_explains_itself(dbext, command):
    done = dbext(command, "--help")
    assert done.returncode == 0
    assert "Usage: dbext" in done.stdout
