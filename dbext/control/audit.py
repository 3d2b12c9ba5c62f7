"""`dbext audit`: check a live installation, file a report, and tell monitoring how it ended."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbext.control.database import api_schema, connect, query
from dbext.control.failures import ExitCode
from dbext.control.output import Format, write
from dbext.control.steps import step

COLUMNS = ("verdict", "area", "check", "subject", "figure", "bound", "detail")
SHOWN = ("verdict", "check", "subject", "detail")
_MAY = "SELECT has_function_privilege(to_regprocedure(%s), 'EXECUTE')"
_LAST = "SELECT audit_no, audited_at, passed FROM dbext.audit_status ORDER BY audit_no DESC LIMIT 1"
_ABOUT = "SELECT current_database() AS database, version() AS server, clock_timestamp() AS audited_at, session_user::text AS audited_by"


@dataclass(frozen=True)
class Outcome:
    """An audit: its findings and what was audited."""

    findings: tuple[dict[str, Any], ...]
    about: dict[str, Any]

    @property
    def counts(self) -> Counter[str]:
        """Number of findings by verdict."""
        return Counter(one["verdict"] for one in self.findings)

    @property
    def failed(self) -> bool:
        """Whether any check failed."""
        return bool(self.counts["failed"])


def audit(dsn: str, form: Format, report: Path | None) -> ExitCode:
    """Audit, or show others than administrators how the last audit ended."""
    with connect(dsn) as connection:
        schema = api_schema(connection)
        (may,) = connection.execute(_MAY, [f"{schema.as_string(connection)}.dp_audit()"]).fetchone()
        if not may:
            return _last(connection, form)
        outcome = run(connection, schema)
    columns = SHOWN if form is Format.TABLE else COLUMNS
    write([{column: one[column] for column in columns} for one in outcome.findings], columns, form)
    if report is not None:
        _file(report, outcome)
    counts = outcome.counts
    step(f"{len(outcome.findings)} checks: {counts['passed']} passed, {counts['warning']} warnings, {counts['failed']} failed")
    return ExitCode.FAILED if outcome.failed else ExitCode.DONE


def run(connection: psycopg.Connection, schema: sql.Identifier) -> Outcome:
    """Run every check on one state of the database."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rows, _ = query(connection, sql.SQL("SELECT * FROM {}.dp_audit()").format(schema))
        about, _ = query(connection, _ABOUT)
    return Outcome(tuple(rows), about[0])


def _last(connection: psycopg.Connection, form: Format) -> ExitCode:
    """Show pass or fail: what the checks found is for administrators."""
    rows, columns = query(connection, _LAST)
    write(rows, columns, form)
    if not rows:
        step("this database was never audited")
        return ExitCode.NOTHING_TO_DO
    return ExitCode.DONE if rows[0]["passed"] else ExitCode.FAILED


def _file(report: Path, outcome: Outcome) -> None:
    """Write the report for its owner's eyes alone: figures of noise and cells are private."""
    from dbext.control.audit_page import page

    with open(report, "w", encoding="utf-8", opener=_private) as file:
        file.write(page(outcome.about, outcome.findings))
    step(f"report: {report}")


def _private(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor



def statistical(form: Format, runs: int) -> ExitCode:
    """Run experiments on neighbouring databases of a private server, and show what they prove beside what was claimed."""
    from dbext.control.statistical import experiments

    step(f"{runs} experiments of each kind on a private server")
    found = list(experiments(runs))
    columns = ("verdict", "kind", "limits", "mechanism", "delta", "figure", "claimed", "proven", "runs")
    rows = [{**asdict(one), "verdict": "passed" if one.holds else "failed"} for one in found]
    write([{column: row[column] for column in columns} for row in rows], columns, form)
    return ExitCode.DONE if all(one.holds for one in found) else ExitCode.FAILED
