"""What a role may ask about a table, and how much of its budget that may take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.privacy.charge import Charge, charge_from_json

SQL = statements("allowances")


@dataclass(frozen=True)
class Allowance:
    """What an entry of a table may lose to all that one role asks and declares; the budget is None while the table has none."""

    table_id: int
    role_name: str
    epsilon: str
    budget_id: int | None


def role_exists(session: Session, name: str) -> bool:
    """Whether the cluster has a role of this name."""
    return bool(session.fetch(SQL["role"], name))


def set_allowance(session: Session, table_id: int, role_name: str, epsilon: str) -> None:
    """Say what a role may spend on a table."""
    session.execute(SQL["set_allowance"], table_id, role_name, epsilon)


def end_allowance(session: Session, table_id: int, role_name: str) -> bool:
    """Remove an allowance; whether there was one."""
    return session.execute(SQL["end_allowance"], table_id, role_name) > 0


def allowance_of(session: Session, table_id: int, role_name: str) -> str | None:
    """Return the epsilon that a role may spend on a table, None if only the budget limits it."""
    rows = session.fetch(SQL["allowance_of"], table_id, role_name)
    return rows[0]["epsilon"] if rows else None


def charges_of(session: Session, table_id: int, role_name: str) -> list[Charge]:
    """Return all that a role has asked and declared about a table, reservations included."""
    rows = session.fetch(SQL["charges_of"], table_id, role_name)
    return [charge_from_json(data) for row in rows for data in json.loads(row["charges"])]


def allowances(session: Session) -> list[Allowance]:
    """Return every allowance."""
    return [Allowance(**row) for row in session.fetch(SQL["allowances"])]


def grant(session: Session, table_id: int, role_name: str, positions: Sequence[int] | None) -> None:
    """Let a role ask about columns of a table, None: about all. It replaces what the role was granted before."""
    session.execute(SQL["grant"], table_id, role_name, None if positions is None else sorted(positions))


def revoke(session: Session, table_id: int, role_name: str) -> bool:
    """Take back what a role was granted; whether there was anything."""
    return session.execute(SQL["revoke"], table_id, role_name) > 0


def owns(session: Session, table_id: int) -> bool:
    """Whether the caller owns a tracked table."""
    return session.fetch(SQL["owned"], table_id)[0]["owned"]
