"""What a role may ask about a table, and how much of its budget that may take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.key_checks import KeyChecks, key_checks_from_json

SQL = statements("allowances")


@dataclass(frozen=True)
class Allowance:
    """What an entry of a table may lose to all that one role asks and declares; the budget is None while the table has none.

    `own`: it is that of who asks, whatever it was called.
    """

    table_id: int
    role_name: str
    epsilon: str
    key_delta: str
    budget_id: int | None
    own: bool


class Limits(NamedTuple):
    """What a role may spend on a table: of epsilon, and of key_delta."""

    epsilon: str
    key_delta: str


class Spent(NamedTuple):
    """What a role has asked and declared about a table, reservations included, and the checks of its keys taken from the data."""

    charges: list[Charge]
    checks: list[KeyChecks]


def role_exists(session: Session, name: str) -> bool:
    """Whether the cluster has a role of this name."""
    return bool(session.fetch(SQL["role"], name))


def set_allowance(session: Session, table_id: int, role_name: str, epsilon: str, key_delta: str | None) -> str:
    """Say what a role may spend on a table; without a key_delta it keeps the one it has, 0 at first. Returns that."""
    return session.fetch(SQL["set_allowance"], table_id, role_name, epsilon, key_delta)[0]["key_delta"]


def note_role(session: Session, role_name: str) -> None:
    """Remember what a role is called, so that its spending is found when it is renamed."""
    session.execute(SQL["note_role"], role_name)


def end_allowance(session: Session, table_id: int, role_name: str) -> bool:
    """Remove an allowance; whether there was one."""
    return session.execute(SQL["end_allowance"], table_id, role_name) > 0


def allowance_of(session: Session, table_id: int, role_name: str) -> Limits | None:
    """Return what a role may spend on a table, None if only the budget limits it."""
    rows = session.fetch(SQL["allowance_of"], table_id, role_name)
    return Limits(**rows[0]) if rows else None


def spent_by(session: Session, table_id: int, role_name: str) -> Spent:
    """Return all that a role has asked and declared about a table, under whatever name."""
    rows = session.fetch(SQL["charges_of"], table_id, role_name)
    return Spent(
        [charge_from_json(data) for row in rows for data in json.loads(row["charges"])],
        [key_checks_from_json(data) for row in rows for data in json.loads(row["key_checks"])],
    )


def allowances(session: Session, role_name: str) -> list[Allowance]:
    """Return every allowance, those of a role marked as its own."""
    return [Allowance(**row) for row in session.fetch(SQL["allowances"], role_name)]


def grant(session: Session, table_id: int, role_name: str, positions: Sequence[int] | None) -> None:
    """Let a role ask about columns of a table, None: about all. It replaces what the role was granted before."""
    session.execute(SQL["grant"], table_id, role_name, None if positions is None else sorted(positions))


def revoke(session: Session, table_id: int, role_name: str) -> bool:
    """Take back what a role was granted; whether there was anything."""
    return session.execute(SQL["revoke"], table_id, role_name) > 0


def owns(session: Session, table_id: int) -> bool:
    """Whether the caller owns a tracked table."""
    return session.fetch(SQL["owned"], table_id)[0]["owned"]
