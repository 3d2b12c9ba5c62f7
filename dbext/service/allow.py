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
from dbext.errors import AllowanceExceeded, BadArgument, KeyAllowanceExceeded, NotPermitted, UnknownObject
from dbext.privacy.charge import Charge
from dbext.privacy.key_checks import KeyChecks
from dbext.service.budget import table_loss
from dbext.service.key_delta import key_delta_of
from dbext.service.numbers import delta_from, epsilon_from, plain, rounded_down, rounded_up, significant_up

EXAMPLE = "dp_set_allowance('cases', 'ann', epsilon => 0.5)"


def set_allowance(session: Session, *, tbl: int, role_name: str | None, epsilon: str | None, key_delta: str | None = None) -> str:
    """Set what an entry of a table may lose to all that a role asks and declares; without epsilon only the budget limits it again.

    `key_delta` is what its group keys taken from the data may cost of the budget's. Less than is spent already is allowed: then nothing
    more is.
    """
    rights.require_admin(session)
    rights.require_home(session)
    table = catalog.tracked_by_regclass(session, str(tbl))
    rights.require_select(session, table.table_id, table.shown_name)
    if epsilon is None:
        if key_delta is not None:
            raise BadArgument("key_delta goes with an epsilon: without one there is no allowance")
        if not allowances.end_allowance(session, table.table_id, role_name or ""):
            raise UnknownObject(f"role {shown(role_name or '')} has no allowance on table {table.shown_name}")
        return f"role {shown(role_name)} has no allowance of its own on table {table.shown_name} any more"
    name = _existing(session, role_name)
    figure = "0" if Decimal(epsilon) == 0 else plain(epsilon_from(epsilon, EXAMPLE))
    delta = None if key_delta is None else plain(delta_from(key_delta, "key_delta"))
    allowances.note_role(session, name)
    delta = allowances.set_allowance(session, table.table_id, name, figure, delta)
    keys = "" if Decimal(delta) == 0 else f" and key_delta {plain(Decimal(delta))}"
    whom = "each analyst without an allowance of his own" if name == "dbext_analyst" else f"role {shown(name)}"
    return f"{whom} may spend epsilon {figure}{keys} on table {table.shown_name}, within its budget"


def _existing(session: Session, role_name: str | None) -> str:
    if not role_name or not allowances.role_exists(session, role_name):
        raise UnknownObject(f"there is no role {shown(role_name or '')}")
    return role_name


def require_allowed(
    session: Session,
    budget: Budget,
    table: TrackedTable,
    charges: Sequence[Charge],
    asked: str,
    role_name: str,
    checks: Sequence[KeyChecks] = (),
) -> None:
    """Refuse charges, and checks of keys, that a role's allowance cannot take. Under the budget's lock, like the budget's own check.

    The role is remembered by what it is called now: its next name has spent the same.
    """
    allowances.note_role(session, role_name)
    allowed = allowances.allowance_of(session, table.table_id, role_name)
    if allowed is None:
        return
    before = allowances.spent_by(session, table.table_id, role_name)
    if not table_loss(session, table.table_id, [*before.charges, *charges], pure=budget.pure).fits(Fraction(allowed.epsilon), budget.delta):
        spent = _epsilon(session, table.table_id, before.charges, budget)
        left = rounded_down(Decimal(allowed.epsilon) - spent)
        raise AllowanceExceeded(role_name, table.shown_name, spent=rounded_up(spent), asked=asked, left=left)
    needed = key_delta_of(session, table.table_id, [*before.checks, *checks], budget) if checks else Fraction(0)
    if needed > Fraction(allowed.key_delta):
        raise KeyAllowanceExceeded(role_name, table.shown_name, needed=significant_up(needed), key_delta=f"{float(allowed.key_delta):g}")


def _epsilon(session: Session, table_id: int, charges: Sequence[Charge], budget: Budget) -> Decimal:
    return table_loss(session, table_id, charges, pure=budget.pure).epsilon(budget.delta)


def allowance_status(session: Session) -> list[dict[str, Any]]:
    """Return the allowances with what was spent: all of them to administrators, to others their own."""
    who = rights.caller(session)
    if not who.admitted:
        return []
    return list(_figures(session, [one for one in allowances.allowances(session, who.name) if who.admin or one.own]))


def _figures(session: Session, rows: Sequence[Allowance]) -> Iterator[dict[str, Any]]:
    for one in rows:
        spent, keys = Decimal(0), Fraction(0)
        if one.budget_id is not None:
            budget = ledger.read_budget(session, one.budget_id)
            known = allowances.spent_by(session, one.table_id, one.role_name)
            spent = _epsilon(session, one.table_id, known.charges, budget)
            keys = key_delta_of(session, one.table_id, known.checks, budget)
        yield {
            "table_id": one.table_id,
            "role_name": one.role_name,
            "epsilon": one.epsilon,
            "spent": rounded_up(spent),
            "left": rounded_down(Decimal(one.epsilon) - spent),
            "key_delta": one.key_delta,
            "key_delta_spent": significant_up(keys) if keys else "0",
        }


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
