"""Budgets and the append-only ledger of what was charged to them.

Whoever charges a budget calls `lock_budget` first and reads the ledger afterwards, in READ COMMITTED: a later statement sees every
charge that was committed before the lock was had, and no other charge can be committed until this transaction ends.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.errors import UnknownObject
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.key_checks import KeyChecks, key_checks_from_json

SQL = statements("ledger")


@dataclass(frozen=True)
class Budget:
    """What the lifetime loss of an entry may be, over all tables of the budget together.

    `delta` is for the loss that noise leaves; `key_delta`, beside it, for showing group keys taken from the data.
    """

    budget_id: int
    name: str
    epsilon: Fraction
    delta: Fraction
    key_delta: Fraction = Fraction(0)

    @property
    def whole_delta(self) -> Fraction:
        """The delta that is promised: that of the conversion of losses, and that of group keys taken from the data."""
        return self.delta + self.key_delta

    @property
    def pure(self) -> bool:
        """Whether all losses add in epsilon; otherwise those that are not charged in epsilon add in rho."""
        return self.delta == 0


def _budget(row: dict) -> Budget:
    return Budget(row["budget_id"], row["name"], Fraction(row["epsilon"]), Fraction(row["delta"]), Fraction(row["key_delta"]))


def read_budget(session: Session, budget_id: int) -> Budget:
    """Return a budget as it stands: good for plans and views, never for a charge."""
    (row,) = session.fetch(SQL["budget"], budget_id)
    return _budget(row)


def lock_budget(session: Session, budget_id: int) -> Budget:
    """Take a budget's row until the transaction ends, and return it."""
    (row,) = session.fetch(SQL["lock_budget"], budget_id)
    return _budget(row)


def current_budget_id(session: Session, table_id: int) -> int | None:
    """Return the budget that a table belongs to, if one was set."""
    rows = session.fetch(SQL["budget_of_table"], table_id)
    return rows[0]["budget_id"] if rows else None


def budget_id_of(session: Session, table_id: int, name: str) -> int:
    """Return the budget that a table belongs to; UnknownObject if none was set. `name` is what messages call the table."""
    budget_id = current_budget_id(session, table_id)
    if budget_id is None:
        raise UnknownObject(f"no budget is set for table {name}", hint=f"SELECT dp_set_budget('{name}', epsilon => 1);")
    return budget_id


def find_or_add_budget(session: Session, name: str, epsilon: str, delta: str) -> int:
    """Return the budget of a name, created with these figures if there is none."""
    session.execute(SQL["add_budget"], name, epsilon, delta)
    return session.fetch(SQL["budget_named"], name)[0]["budget_id"]


def change_budget(session: Session, budget_id: int, epsilon: str, delta: str, key_delta: str) -> None:
    """Set the figures of a locked budget; `delta` is the whole of it."""
    session.execute(SQL["change_budget"], budget_id, epsilon, delta, key_delta)


def move_table(session: Session, table_id: int, budget_id: int) -> None:
    """Let a table belong to a locked budget."""
    session.execute(SQL["move_table"], table_id, budget_id)


def budgets(session: Session) -> list[int]:
    """Return the budgets that tables belong to."""
    return [row["budget_id"] for row in session.fetch(SQL["budgets"])]


def lock_budget_of(session: Session, table_id: int, name: str) -> Budget:
    """Lock the budget that a table belongs to, once the lock is had."""
    while True:
        budget_id = budget_id_of(session, table_id, name)
        budget = lock_budget(session, budget_id)
        if budget_id_of(session, table_id, name) == budget_id:
            return budget


def tables_of(session: Session, budget_id: int) -> list[int]:
    """Return the numbers of the tables whose losses add up in a budget."""
    return [row["table_id"] for row in session.fetch(SQL["tables_of_budget"], budget_id)]


def committed_charges(session: Session, table_id: int) -> list[Charge]:
    """Return all that a table is charged for, reservations included."""
    return _charges(session.fetch(SQL["committed_charges"], table_id))


def committed_key_checks(session: Session, table_id: int) -> list[KeyChecks]:
    """Return the checks of hidden group keys that a table is charged for, reservations included."""
    rows = session.fetch(SQL["committed_key_checks"], table_id)
    return [key_checks_from_json(data) for row in rows for data in json.loads(row["key_checks"])]


def key_checks_of(session: Session, release_id: int) -> list[KeyChecks]:
    """Return the checks of hidden group keys that were reserved for a release."""
    return [key_checks_from_json(data) for row in session.fetch(SQL["key_checks_of"], release_id) for data in json.loads(row["key_checks"])]


def spent_charges(session: Session, table_id: int) -> list[Charge]:
    """Return what has left: answered questions, and what releases have published so far."""
    return _charges(session.fetch(SQL["spent_charges"], table_id))


def lost_charges(session: Session, table_id: int) -> list[list[Charge]]:
    """Return what had left of a table in each history that this ledger has lost."""
    return [_charges([row]) for row in session.fetch(SQL["lost_charges"], table_id)]


def forget_loss_bounds(session: Session, budget_id: int) -> None:
    """Make no certified bound hold any more for a locked budget."""
    session.execute(SQL["forget_loss_bounds"], budget_id)


def published_charges(session: Session, release_id: int) -> list[Charge]:
    """Return all that a release has published so far."""
    return _charges(session.fetch(SQL["published_charges"], release_id))


def reservations(session: Session, release_id: int) -> list[list[Charge]]:
    """Return the charges of every reservation of a release, in order: one for each of its epochs."""
    return [_charges([row]) for row in session.fetch(SQL["reservations"], release_id)]


def _charges(rows: list[dict]) -> list[Charge]:
    return [charge_from_json(data) for row in rows for data in json.loads(row["charges"])]


def loss_bound(session: Session, table_id: int, terms: str) -> tuple[int, int] | None:
    """Return the picos of epsilon and of rho that a table's charges were certified not to exceed under these terms; None if not."""
    rows = session.fetch(SQL["loss_bound"], table_id, terms)
    return (int(rows[0]["pure_picos"]), int(rows[0]["rho_picos"])) if rows else None


def set_loss_bound(session: Session, table_id: int, terms: str, picos: tuple[int, int]) -> None:
    """Certify what a table's charges, the one that follows included, do not exceed. Only under the budget's lock."""
    session.execute(SQL["set_loss_bound"], table_id, terms, *picos)


def holds_budget_lock(session: Session) -> bool:
    """Whether this transaction has changed a budget, so that a second session would wait for it."""
    return session.fetch(SQL["own_budget_lock"])[0]["held"]


def own_transaction(session: Session) -> str:
    """Return the number of this transaction, as others see it."""
    return session.fetch(SQL["own_transaction"])[0]["number"]


def open_reservation(session: Session, release_id: int, declared_in: str) -> None:
    """Note that a reservation is for a declaration in another transaction, which has not ended."""
    session.execute(SQL["open_reservation"], release_id, declared_in)


def settle_reservations(session: Session) -> None:
    """Give back what was reserved for declarations that were rolled back. Not for transactions that may stay open: others wait for it.

    A transaction that is seen to have ended is looked up in a later statement, which sees the release that it left, if it left one.
    """
    ended = [row["release_id"] for row in session.fetch(SQL["close_reservations"])]
    if ended:
        session.execute(SQL["return_undeclared"], ended)


def uses(session: Session, table_id: int) -> list[tuple[str, str, list[Charge]]]:
    """Return (kind, name, charges) of every release, with all its epochs, and of every question that a table is charged for."""
    found: dict[tuple, list[dict]] = {}
    for row in session.fetch(SQL["uses"], table_id):
        found.setdefault((row["kind"], row["name"], row["release_id"]), []).append(row)
    return [(kind, name, _charges(rows)) for (kind, name, _), rows in found.items()]


def append(
    session: Session,
    kind: str,
    budget_id: int,
    *,
    recorded_by: str,
    table_id: int | None = None,
    release_id: int | None = None,
    question_id: int | None = None,
    charges: Sequence[Charge] = (),
    key_checks: Sequence[KeyChecks] = (),
    epsilon: str = "0",
    note: dict | None = None,
) -> None:
    """Add one row. `epsilon` is the exact decimal that was asked for; rows that reserve nothing new carry 0.

    A row of kind 'budget' holds a `note` of what changed in place of charges.
    """
    content = json.dumps([charge.to_json() for charge in charges] if note is None else note)
    checks = json.dumps([one.to_json() for one in key_checks])
    session.execute(SQL["append"], budget_id, table_id, release_id, question_id, kind, content, epsilon, recorded_by, checks)
