"""Renewal of running totals: a new epoch is reserved before the present one ends, and nothing of it is published until that is done."""

from __future__ import annotations

from collections.abc import Sequence

from dbext.database import catalog, ledger
from dbext.database.catalog import TrackedTable
from dbext.database.ledger import Budget
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.errors import BudgetExceeded
from dbext.privacy.charge import Charge
from dbext.privacy.pico import picos_up, to_decimal
from dbext.query.publication import Publication
from dbext.service.allow import require_allowed
from dbext.service.budget import require_fits
from dbext.service.numbers import plain

#: A new epoch is reserved when so great a part of the present one is left; `dbext.release_status` counts on the same.
LEAD = 10

Reserved = list[list[Charge]]


def reserve_epochs(session: Session, release: Release, plan: Publication, table: TrackedTable) -> tuple[Reserved, int]:
    """Return the charges that are reserved for each epoch of a locked release, and the tick up to which it may publish.

    A new epoch is reserved, under the budget's lock, with the last tenth of the one before it. If the budget does not allow it, what the
    old epoch still holds is published; then BudgetExceeded, and nothing is drawn, until the budget is raised.
    """
    reserved = ledger.reservations(session, release.release_id)
    if not plan.renews:
        return reserved, table.sealed_tick
    length = plan.horizon
    wanted = plan.main.mechanism.epoch_of(plan.main.grid.last_end(table.sealed_tick) + max(1, length // LEAD))
    while len(reserved) < wanted:
        try:
            reserved.append(_reserve(session, release, plan, table, len(reserved) + 1))
        except BudgetExceeded:
            if release.next_period > len(reserved) * length:
                raise
            break
    return reserved, plan.main.grid.end(len(reserved) * length)


def _reserve(session: Session, release: Release, plan: Publication, table: TrackedTable, epoch: int) -> list[Charge]:
    """Reserve one epoch; what it costs is priced for the types of today, together with everything else."""
    budget: Budget = ledger.lock_budget_of(session, table.table_id, table.shown_name)
    charges = list(plan.charges_of_epoch(epoch, catalog.accounted_types(session, table)))
    asked = plain(to_decimal(picos_up(plan.epsilon)))
    require_allowed(session, budget, table, charges, asked, release.created_by)
    require_fits(session, budget, table.table_id, charges, asked)
    where = {"table_id": table.table_id, "release_id": release.release_id}
    ledger.append(session, "reserve", budget.budget_id, recorded_by=release.created_by, charges=charges, epsilon=asked, **where)
    return charges


def spent(plan: Publication, reserved: Sequence[Sequence[Charge]], last: int) -> list[Charge]:
    """Return all that has left when periods up to `last` are drawn: finished epochs as a whole, the present one so far."""
    if not plan.renews:
        return [charge.through(last) for charge in plan.charges]
    begun = [(charges, last - before * plan.horizon) for before, charges in enumerate(reserved)]
    return [charge.through(min(local, plan.horizon)) for charges, local in begun if local > 0 for charge in charges]
