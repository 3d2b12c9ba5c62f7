"""What has become of budgets: spent, reserved, left, and on what. Public figures only: nothing here reads a table's data."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal
from typing import Any

from dbext.database import ledger
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.privacy.loss import Loss
from dbext.privacy.pico import picos_down
from dbext.service.budget import as_decimal, capacity, committed_loss, lost_loss, table_loss
from dbext.service.numbers import plain, rounded_down, rounded_up


def budget_status(session: Session) -> list[dict[str, Any]]:
    """Return one row per budget: its figures, losses rounded up and what is left rounded down."""
    return [_figures(session, ledger.read_budget(session, number)) for number in ledger.budgets(session)]


def _figures(session: Session, budget: Budget) -> dict[str, Any]:
    tables = ledger.tables_of(session, budget.budget_id)
    committed = committed_loss(session, budget).epsilon(budget.delta)
    losses = [table_loss(session, one, ledger.spent_charges(session, one), pure=budget.pure) for one in tables]
    losses += [lost_loss(session, one, pure=budget.pure) for one in tables]
    spent = sum(losses, Loss()).epsilon(budget.delta)
    return {
        "budget_id": budget.budget_id,
        "spent": rounded_up(spent),
        "reserved": rounded_up(max(committed - spent, Decimal(0))),
        "left": rounded_down(as_decimal(budget.epsilon) - committed),
    }


def budget_use(session: Session) -> list[dict[str, Any]]:
    """Return one row per release and question: its loss by itself, and its share of a budget that adds up in its unit alone."""
    return [row for number in ledger.budgets(session) for row in _uses(session, ledger.read_budget(session, number))]


def _uses(session: Session, budget: Budget) -> Iterator[dict[str, Any]]:
    whole = picos_down(budget.epsilon), capacity(budget)
    for table_id in ledger.tables_of(session, budget.budget_id):
        for kind, name, charges in ledger.uses(session, table_id):
            loss = table_loss(session, table_id, charges, pure=budget.pure)
            share = sum(Decimal(picos) / max(most, 1) for picos, most in zip(loss.most, whole, strict=True))
            yield {
                "budget_id": budget.budget_id,
                "table_id": table_id,
                "kind": kind,
                "name": name,
                "epsilon": rounded_up(loss.epsilon(budget.delta)),
                "share": plain(share.quantize(Decimal("0.0001"), ROUND_CEILING)),
                "adds_in": " and ".join(sorted({"epsilon" if budget.pure or one.pure else "rho" for one in charges})),
            }
