"""The part of a budget's delta that pays for group keys taken from the data: what it must cover, and whether it does."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dbext.database import catalog, ledger
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.errors import KeyDeltaExceeded
from dbext.privacy.key_checks import KeyChecks, delta_of
from dbext.service.numbers import significant_up


def committed_key_delta(session: Session, budget: Budget, extra: dict[int, Sequence[KeyChecks]] | None = None) -> Fraction:
    """Return the delta that the hidden keys of all releases of a budget need; `extra` holds further checks by table.

    Chances add up over tables and releases (union bound), each at the constraints of today.
    """
    chance = Fraction(0)
    for table_id in ledger.tables_of(session, budget.budget_id):
        checks = [*ledger.committed_key_checks(session, table_id), *(extra or {}).get(table_id, ())]
        if checks:
            types = catalog.accounted_types(session, catalog.tracked_table(session, table_id))
            chance += sum(one.chance(types) for one in checks)
    return delta_of(chance, budget.epsilon) if chance else chance


def key_delta_of(session: Session, table_id: int, checks: Sequence[KeyChecks], budget: Budget) -> Fraction:
    """Return the delta that some checks of one table need, at its constraints of today."""
    types = catalog.accounted_types(session, catalog.tracked_table(session, table_id)) if checks else ()
    chance = sum((one.chance(types) for one in checks), Fraction(0))
    return delta_of(chance, budget.epsilon) if chance else chance


def require_key_delta(session: Session, budget: Budget, extra: dict[int, Sequence[KeyChecks]] | None = None) -> None:
    """Refuse what a locked budget's key_delta does not cover: further checks, looser constraints, other figures."""
    needed = committed_key_delta(session, budget, extra)
    if needed > budget.key_delta:
        raise KeyDeltaExceeded(budget.name, needed=significant_up(needed), key_delta=f"{float(budget.key_delta):g}")
