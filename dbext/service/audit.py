"""Audit a live installation: what was published, what was charged, and what the claims rest on. Reads everything, changes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from dbext.database import audit as facts
from dbext.database import catalog, ledger, releases, rights
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported
from dbext.service import audit_claims, audit_ledger, audit_local, audit_transcript
from dbext.service.audit_finding import FAILED, Finding
from dbext.service.audited import audited as audited_release
from dbext.service.local_publish import is_local
from dbext.service.numbers import delta_from, plain


def audit(session: Session) -> list[dict[str, Any]]:
    """Run every check, note how it ended, and return the findings. All of them must see one state of the database."""
    who = rights.require_admin(session)
    if session.fetch(rights.SQL["isolation"])[0]["isolation"] == "read committed":
        raise NotSupported(
            "an audit must see one state of the database",
            hint='BEGIN ISOLATION LEVEL REPEATABLE READ first, or use "dbext audit".',
        )
    found = [asdict(one) for one in _findings(session)]
    facts.record(session, who.name, found, passed=all(one["verdict"] != FAILED for one in found))
    return found


def _findings(session: Session) -> Iterator[Finding]:
    tables = {one.table_id: one for one in facts.all_tables(session)}
    everything = facts.all_releases(session)
    declared = [one for one in everything if not is_local(one[0])]
    audited = [audited_release(release, tables[release.table_id]) for release, _ in declared]
    for one in audited:
        yield from audit_transcript.findings(session, one)
    for one in audited:
        yield audit_ledger.release_findings(session, one)
    for release in (one for one, _ in everything if is_local(one)):
        yield from audit_local.findings(session, release, tables[release.table_id])
    yield audit_ledger.question_findings(session)
    yield from audit_ledger.budget_findings(session, audited)
    charged = {one.table_id for one, _ in everything} | {row["table_id"] for row in facts.questions(session)}
    for table in tables.values():
        yield from audit_claims.table_findings(session, table, charged=table.table_id in charged)
    yield from audit_claims.home_findings(session)
    yield from audit_claims.delta_findings(session)
    yield from audit_claims.tolerance_findings(audited, [tolerance for _, tolerance in declared])


def accept_delta(session: Session, *, tbl: int, delta: str | None) -> str:
    """Declare the largest delta that is acceptable for a table's budget."""
    who = rights.require_admin(session)
    if delta is None:
        raise BadArgument("delta is missing", hint="SELECT dp_accept_delta('cases', 1e-6);")
    accepted = plain(delta_from(delta))
    table = catalog.tracked_by_regclass(session, str(tbl))
    budget = ledger.read_budget(session, ledger.budget_id_of(session, table.table_id, table.shown_name))
    facts.accept_delta(session, budget.budget_id, accepted, who.name)
    return f'a delta of at most {accepted} is acceptable for budget "{budget.name}"'


def set_tolerance(session: Session, *, release: str | None, tolerance: str | None) -> str:
    """State how large an error the decisions taken from a release can bear. For whoever declared it, or an administrator."""
    who = rights.require_analyst(session)
    found = releases.by_name(session, release)
    rights.require_declarer(who, found.name, found.created_by)
    try:
        value = Decimal(tolerance or "")
    except ArithmeticError as fault:
        raise BadArgument("tolerance must be a number", hint="SELECT dp_set_tolerance('confirmed_14d', 50);") from fault
    if not (value.is_finite() and value > 0):
        raise BadArgument("tolerance must be a positive number")
    facts.state_tolerance(session, found.release_id, plain(value), who.name)
    return f"decisions taken from release {found.name} bear an error of {plain(value)}"
