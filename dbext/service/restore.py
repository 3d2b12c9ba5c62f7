"""Accept that the ledger has lost rows: what they say has left is charged again.

The lost history and the present one are two lives of the same people: whoever changed k times in the one may change k times in the other.
So what was lost is never priced together with what is charged here; its worst case is added.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from dbext.database import catalog, ledger, rights
from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.errors import BadArgument, BudgetExceeded, NotPermitted
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.key_checks import KeyChecks, key_checks_from_json
from dbext.service.budget import as_decimal, committed_loss, holds, table_loss
from dbext.service.key_delta import require_key_delta
from dbext.service.numbers import rounded_down, rounded_up

SQL = statements("witness")


def confirm_restore(session: Session, *, lost: list[dict[str, Any]] | None) -> str:
    """Charge lost rows again, once each, and let publication go on; refused, with nothing changed, while a budget cannot take them."""
    if not session.fetch(SQL["is_superuser"])[0]["superuser"]:
        raise NotPermitted("only a superuser may accept that charges were lost")
    rights.require_read_committed(session)
    rights.require_same_cluster(session)
    rows = _fresh(session, lost)
    charged, unknown = 0, set()
    for name, (charges, checks) in _by_table(rows).items():
        found = session.fetch(SQL["table_named"], *name)
        if found:
            _charge(session, found[0]["table_id"], charges, checks)
            charged += 1
        elif charges:
            unknown.add(".".join(name))
    session.execute(SQL["accept"], [row["mark"] for row in rows])
    session.execute(SQL["trust_again"])
    return _said(len(rows), charged, unknown) + _also_lost({row["kind"] for row in rows})


def _fresh(session: Session, lost: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the lost rows that were not accepted before."""
    if not isinstance(lost, list) or not all(isinstance(row, dict) and {"mark", "kind", "table", "charges"} <= row.keys() for row in lost):
        raise BadArgument("lost is the list that a witness holds", hint="Run dbext accept-restore: it finds the rows and calls this.")
    known = {row["fingerprint"] for row in session.fetch(SQL["accepted"], [row["mark"] for row in lost])}
    return [row for row in lost if row["mark"] not in known]


def _by_table(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], tuple[list[Charge], list[KeyChecks]]]:
    """Return what had left of each table: every question, what was lost before, and the last that each release had published in all.

    Group keys taken from the data may have been shown, and the same ones are looked at again with fresh noise.
    """
    published = {row["release_id"]: row for row in sorted(rows, key=lambda row: row["number"]) if row["kind"] == "publish"}
    found: dict[tuple[str, str], tuple[list[Charge], list[KeyChecks]]] = defaultdict(lambda: ([], []))
    for row in rows:
        if row["kind"] in ("question", "lost") or published.get(row["release_id"]) is row:
            charges, checks = found[tuple(row["table"])]
            charges += [charge_from_json(charge) for charge in row["charges"]]
            checks += [key_checks_from_json(one) for one in row.get("key_checks", ())]
    return found


def _charge(session: Session, table_id: int, charges: Sequence[Charge], checks: Sequence[KeyChecks]) -> None:
    """Append one row for what a table has lost, if its budget can take it beside all that is spent and reserved."""
    table = catalog.tracked_table(session, table_id)
    budget = ledger.lock_budget_of(session, table_id, table.shown_name)
    committed, again = committed_loss(session, budget), table_loss(session, table_id, charges, pure=budget.pure)
    if not holds(budget, committed + again):
        spent = committed.epsilon(budget.delta)
        refusal = BudgetExceeded(
            budget.name,
            spent=rounded_up(spent),
            asked=rounded_up(again.epsilon(budget.delta)),
            left=rounded_down(as_decimal(budget.epsilon) - spent),
        )
        refusal.hint = "What was lost had left: raise the budget with dp_set_budget, or drop releases, before you accept the loss."
        raise refusal
    if checks:
        require_key_delta(session, budget, {table_id: checks})
    ledger.forget_loss_bounds(session, budget.budget_id)
    by = rights.caller(session).name
    ledger.append(session, "lost", budget.budget_id, recorded_by=by, table_id=table_id, charges=charges, key_checks=checks)


def _also_lost(kinds: set[str]) -> str:
    """Say what is gone beside charges: decisions of the DBA that nothing makes again by itself."""
    gone = [what for kind, what in (("budget", "changes of budgets"), ("reserve", "declarations"), ("return", "drops")) if kind in kinds]
    return f". Lost as well, and to be made again if they are wanted: {', '.join(gone)}" if gone else ""


def _said(rows: int, tables: int, unknown: set[str]) -> str:
    said = f"{rows} rows of the ledger are accepted as lost; what they charged to {tables} table(s) is charged again"
    if not unknown:
        return said
    names = ", ".join(sorted(unknown))
    return f"{said}. Not tracked here, so that nothing was charged: {names}. If they are tracked again, leave room in their budgets"
