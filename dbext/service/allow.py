"""Let roles ask about a table, and say how much of its budget each of them may take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dbext.database import allowances, catalog, ledger, rights
from dbext.database.allowances import Allowance
from dbext.database.catalog import TrackedTable
from dbext.database.identifiers import shown
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.errors import AllowanceExceeded, BadArgument, NotPermitted, UnknownObject
from dbext.privacy.charge import Charge
from dbext.service.budget import table_loss
from dbext.service.numbers import epsilon_from, plain, rounded_down, rounded_up

EXAMPLE = "dp_set_allowance('cases', 'ann', epsilon => 0.5)"


def set_allowance(session: Session, *, tbl: int, role_name: str | None, epsilon: str | None) -> str:
    """Set what an entry of a table may lose to all that a role asks and declares; without epsilon only the budget limits it again.

    Less than is spent already is allowed: then nothing more is.
    """
    rights.require_admin(session)
    table = catalog.tracked_by_regclass(session, str(tbl))
    rights.require_select(session, table.table_id, table.shown_name)
    if epsilon is None:
        if not allowances.end_allowance(session, table.table_id, role_name or ""):
            raise UnknownObject(f"role {shown(role_name or '')} has no allowance on table {table.shown_name}")
        return f"role {shown(role_name)} has no allowance of its own on table {table.shown_name} any more"
    name = _existing(session, role_name)
    figure = "0" if Decimal(epsilon) == 0 else plain(epsilon_from(epsilon, EXAMPLE))
    allowances.set_allowance(session, table.table_id, name, figure)
    whom = "each analyst without an allowance of his own" if name == "dbext_analyst" else f"role {shown(name)}"
    return f"{whom} may spend epsilon {figure} on table {table.shown_name}, within its budget"


def _existing(session: Session, role_name: str | None) -> str:
    if not role_name or not allowances.role_exists(session, role_name):
        raise UnknownObject(f"there is no role {shown(role_name or '')}")
    return role_name


def require_allowed(session: Session, budget: Budget, table: TrackedTable, charges: Sequence[Charge], asked: str, role_name: str) -> None:
    """Refuse charges that a role's allowance cannot take. Under the budget's lock, like the budget's own check."""
    allowed = allowances.allowance_of(session, table.table_id, role_name)
    if allowed is None:
        return
    before = allowances.charges_of(session, table.table_id, role_name)
    if not table_loss(session, table.table_id, [*before, *charges], pure=budget.pure).fits(Fraction(allowed), budget.delta):
        spent = _epsilon(session, table.table_id, before, budget)
        left = rounded_down(Decimal(allowed) - spent)
        raise AllowanceExceeded(role_name, table.shown_name, spent=rounded_up(spent), asked=asked, left=left)


def _epsilon(session: Session, table_id: int, charges: Sequence[Charge], budget: Budget) -> Decimal:
    return table_loss(session, table_id, charges, pure=budget.pure).epsilon(budget.delta)


def allowance_status(session: Session) -> list[dict[str, Any]]:
    """Return the allowances with what was spent: all of them to administrators, to others their own."""
    who = rights.caller(session)
    if not who.admitted:
        return []
    return list(_figures(session, [one for one in allowances.allowances(session) if who.admin or one.role_name == who.name]))


def _figures(session: Session, rows: Sequence[Allowance]) -> Iterator[dict[str, Any]]:
    for one in rows:
        spent = Decimal(0)
        if one.budget_id is not None:
            budget = ledger.read_budget(session, one.budget_id)
            spent = _epsilon(session, one.table_id, allowances.charges_of(session, one.table_id, one.role_name), budget)
        left = rounded_down(Decimal(one.epsilon) - spent)
        yield {"table_id": one.table_id, "role_name": one.role_name, "epsilon": one.epsilon, "spent": rounded_up(spent), "left": left}


def grant(session: Session, *, tbl: int, role_name: str | None, columns: list[str] | None) -> str:
    """Let a role ask about a table without SELECT on it: about these columns (None: all), and no others."""
    table = _owned(session, tbl)
    name = _existing(session, role_name)
    known = {one.name: one.position for one in catalog.columns(session, table.table_id)}
    unknown = [one for one in columns or () if one not in known]
    if unknown:
        raise UnknownObject(f"table {table.shown_name} records no column {shown(str(unknown[0]))}")
    if columns is not None and not columns:
        raise BadArgument("the list of columns is empty", hint="Leave it out to grant all of them.")
    allowances.grant(session, table.table_id, name, None if columns is None else [known[one] for one in columns])
    what = "" if columns is None else f", columns {', '.join(shown(one) for one in columns)}"
    return f"role {shown(name)} may ask about table {table.shown_name}{what}, through dbext alone"


def revoke(session: Session, *, tbl: int, role_name: str | None) -> str:
    """Take back what `grant` gave. Releases that the role declared go on."""
    table = _owned(session, tbl)
    if not allowances.revoke(session, table.table_id, role_name or ""):
        raise UnknownObject(f"role {shown(role_name or '')} was granted nothing on table {table.shown_name}")
    return f"role {shown(role_name)} may ask about table {table.shown_name} only if it may SELECT from it"


def _owned(session: Session, tbl: int) -> TrackedTable:
    rights.require_admin(session)
    table = catalog.tracked_by_regclass(session, str(tbl))
    if not allowances.owns(session, table.table_id):
        raise NotPermitted(f"only the owner of {table.shown_name} who is a member of dbext_admin may do this")
    return table
