"""Which noise is taken: what was asked for, or what follows where nothing was said.

It imports little, because every new question needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dbext.database import ledger
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.errors import BadArgument

#: The noise to plan with, and whether the whole of an untouched budget is asked for.
Settled = tuple[str | None, bool]


@dataclass(frozen=True)
class Wish:
    """What a question or declaration asks for: a kind of noise (None: whatever is best), and its epsilon (None: as needed)."""

    noise: str | None = None
    epsilon: str | None = None

    def __post_init__(self):
        if self.noise not in (None, "laplace", "gaussian"):
            raise BadArgument("noise must be laplace or gaussian", hint="Leave it out for whatever errs least at a price that adds in rho.")

    def settled(self, session: Session, budget: Budget) -> Settled:
        """Return the noise to plan with, and whether this asks for the whole of a budget that nothing was charged to.

        Who asks for the whole of a budget that only pure charges were made to can have nothing but another one: nothing in rho fits
        beside them, another pure one may, if no entry can be in both windows.
        """
        if self.noise is not None or budget.pure or self.epsilon is None or Fraction(self.epsilon) != budget.epsilon:
            return self.noise, False
        tables = ledger.tables_of(session, budget.budget_id)
        charged = [one for table_id in tables for one in _all_charges(session, table_id)]
        if charged and all(one.pure for one in charged):
            return "laplace", False
        return None, not charged

    def to_json(self) -> list[str | None]:
        """Return the form that `wish_from_json` reads."""
        return [self.noise, self.epsilon]


def wish_from_json(data: list[str | None]) -> Wish:
    """Rebuild a wish."""
    return Wish(*data)


def _all_charges(session: Session, table_id: int) -> list[Any]:
    lost = (one for charges in ledger.lost_charges(session, table_id) for one in charges)
    return [*ledger.committed_charges(session, table_id), *lost]
