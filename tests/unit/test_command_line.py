"""Formats, exit codes and messages of the command line, without a database."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from types import SimpleNamespace

import psycopg
import pytest

from dbext.control import cli, failures, output, worker
from dbext.control.failures import ExitCode
from dbext.control.output import Format
from dbext.control.publishing import Outcome, Publication
from dbext.errors import BadArgument, BudgetExceeded, DeclarationRefused, UnboundedLoss

MOMENT = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
ROWS = [
    {"release": "a", "epsilon": Decimal("0.5"), "due": MOMENT, "gone": None, "fine": True, "parts": {"x": [1, "é"]}},
    {"release": "b, c", "epsilon": Decimal(2), "due": None, "gone": None, "fine": False, "parts": None},
]
COLUMNS = list(ROWS[0])


def test_json_keeps_types(capsys):
    output.write(ROWS, COLUMNS, Format.JSON)
    first, second = json.loads(capsys.readouterr().out)
    assert first == {
        "release": "a",
        "epsilon": 0.5,
        "due": "2026-03-01T12:00:00+00:00",
        "gone": None,
        "fine": True,
        "parts": {"x": [1, "é"]},
    }
    assert second["epsilon"] == 2
    assert isinstance(second["epsilon"], int)


def test_csv_quotes_what_needs_it(capsys):
    output.write(ROWS, COLUMNS, Format.CSV)
    header, first, second = capsys.readouterr().out.splitlines()
    assert header == "release,epsilon,due,gone,fine,parts"
    assert first == 'a,0.5,2026-03-01 12:00:00+00:00,,yes,"{""x"": [1, ""é""]}"'
    assert second == '"b, c",2,,,no,'


def test_tables_are_not_folded_in_files(capsys):
    long = "x" * 300
    output.write([{"text": long, "markup": "[red]"}], ["text", "markup"], Format.TABLE)
    out = capsys.readouterr().out
    assert long in out
    assert "[red]" in out


def test_tables_round_and_write_objects_as_words(capsys):
    output.write([{"error": 12.345678901234, "by_type": {"local": 0.1234567891, "imported": 1}}], ["error", "by_type"], Format.TABLE)
    out = capsys.readouterr().out
    assert "12.3457 " in out
    assert "local 0.123457, imported 1" in out


@pytest.mark.parametrize(("form", "expected"), [(Format.JSON, "[]\n"), (Format.CSV, "a,b\n")])
def test_no_rows_are_still_a_result(capsys, form, expected):
    output.write([], ["a", "b"], form)
    assert capsys.readouterr().out == expected


class PrivacyRefusal(psycopg.Error):
    sqlstate = "DP020"


class Unbounded(psycopg.Error):
    sqlstate = "DP021"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BudgetExceeded("b", spent=1, asked=1, left=0), ExitCode.REFUSED),
        (UnboundedLoss("no bound"), ExitCode.REFUSED),
        (PrivacyRefusal(), ExitCode.REFUSED),
        (Unbounded(), ExitCode.REFUSED),
        (DeclarationRefused("not this"), ExitCode.FAILED),
        (BadArgument("no"), ExitCode.USAGE),
        (failures.CannotConnect("no"), ExitCode.CANNOT_CONNECT),
        (psycopg.OperationalError("gone"), ExitCode.CANNOT_CONNECT),
        (psycopg.errors.AdminShutdown("gone"), ExitCode.CANNOT_CONNECT),
        (psycopg.errors.InvalidPassword("no"), ExitCode.CANNOT_CONNECT),
        (psycopg.errors.UndefinedTable("no"), ExitCode.FAILED),
        (psycopg.errors.LockNotAvailable("busy"), ExitCode.FAILED),
        (OSError("disk"), ExitCode.FAILED),
    ],
)
def test_exit_codes(error, code):
    assert failures.exit_code(error) == code


def test_errors_are_message_detail_and_hint(capsys):
    failures.report(DeclarationRefused("no subqueries", position=7, hint="Use a group key list."))
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "error: no subqueries\ndetail: at character 7 of the text\nhint: Use a group key list.\n"


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["dbext", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code or 0


@pytest.mark.parametrize("arguments", [["no-such-command"], ["status", "--format", "xml"], ["explain"], ["status", "--dsn", "nonsense"]])
def test_mistakes_in_the_command_are_usage_errors(monkeypatch, capsys, arguments):
    assert run(monkeypatch, *arguments) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err


def test_the_version_is_printed(monkeypatch, capsys):
    assert run(monkeypatch, "--version") == ExitCode.DONE
    assert capsys.readouterr().out == "0.1.0\n"


def test_no_server_is_code_five_and_no_traceback(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("DBEXT_DSN", f"host={tmp_path} dbname=nothing")
    assert run(monkeypatch, "status") == ExitCode.CANNOT_CONNECT
    said = capsys.readouterr().err
    assert said.startswith("error: cannot connect")
    assert "Traceback" not in said


def test_the_option_wins_over_the_environment(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("DBEXT_DSN", "host=/from-environment")
    run(monkeypatch, "status", "--dsn", "host=/from-option")
    assert "/from-option" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("every", "due_in", "error", "least", "most"),
    [
        (7.0, 1, None, 7, 7),
        (None, 10, None, 9, 11),
        (None, -5, None, worker.GRACE, worker.GRACE),
        (None, 10_000, None, worker.LONGEST_WAIT, worker.LONGEST_WAIT),
        (None, None, None, worker.LONGEST_WAIT, worker.LONGEST_WAIT),
        (None, 1, "DP099", worker.LONGEST_WAIT, worker.LONGEST_WAIT),
    ],
)
def test_the_worker_waits_for_what_is_due_first(every, due_in, error, least, most):
    due = None if due_in is None else datetime.fromtimestamp(datetime.now(timezone.utc).timestamp() + due_in, timezone.utc)
    wait = worker.Worker("", every)._time_to_next(Outcome((Publication("r", 0, due, error),), ()))
    assert least <= wait <= most


def test_the_worker_logs_no_text_of_the_database():
    leak = psycopg.errors.InvalidTextRepresentation('invalid input syntax for type integer: "secret"')
    assert "secret" not in worker._without_data(leak)
    refused = SimpleNamespace(sqlstate="DP031", diag=SimpleNamespace(message_primary="seal refused"))
    assert worker.is_connection_loss(psycopg.OperationalError("x"))
    assert worker._without_data(refused) == "seal refused"
