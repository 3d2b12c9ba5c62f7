"""What has become of budgets: spent, reserved, left, and on what. Public figures only: nothing here reads a table's data."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal
from typing import Any

from dbext.database import ledger
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.privacy.conversion import epsilon_of
from dbext.service.budget import as_decimal, capacity, committed_loss, lost_loss, table_loss
from dbext.service.numbers import plain, rounded_down, rounded_up


def budget_status(session: Session) -> list[dict[str, Any]]:
    """Return one row per budget: its figures, losses rounded up and what is left rounded down."""
    return [_figures(session, ledger.read_budget(session, number)) for number in ledger.budgets(session)]


def _figures(session: Session, budget: Budget) -> dict[str, Any]:
    tables = ledger.tables_of(session, budget.budget_id)
    committed = epsilon_of(committed_loss(session, budget), budget.delta)
    picos = [table_loss(session, one, ledger.spent_charges(session, one), pure=budget.pure) for one in tables]
    spent = epsilon_of(sum(picos) + sum(lost_loss(session, one, pure=budget.pure) for one in tables), budget.delta)
    return {
        "budget_id": budget.budget_id,
        "spent": rounded_up(spent),
        "reserved": rounded_up(max(committed - spent, Decimal(0))),
        "left": rounded_down(as_decimal(budget.epsilon) - committed),
    }


def budget_use(session: Session) -> list[dict[str, Any]]:
    """Return one row per release and question: its loss by itself, and its share of the budget in the unit that adds up."""
    return [row for number in ledger.budgets(session) for row in _uses(session, ledger.read_budget(session, number))]


def _uses(session: Session, budget: Budget) -> Iterator[dict[str, Any]]:
    whole = Decimal(max(capacity(budget), 1))
    for table_id in ledger.tables_of(session, budget.budget_id):
        for kind, name, charges in ledger.uses(session, table_id):
            picos = table_loss(session, table_id, charges, pure=budget.pure)
            yield {
                "budget_id": budget.budget_id,
                "table_id": table_id,
                "kind": kind,
                "name": name,
                "epsilon": rounded_up(epsilon_of(picos, budget.delta)),
                "share": plain((Decimal(picos) / whole).quantize(Decimal("0.0001"), ROUND_CEILING)),
            }
