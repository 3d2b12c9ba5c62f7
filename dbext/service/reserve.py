"""Reserve the lifetime loss of a release: in a second session, so that a declaration left open keeps nobody from spending.

What is reserved there is committed before the declaration is. It counts from then on, and is given back once the transaction that
declared the release has ended without leaving one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbext.database import catalog, ledger, second_session
from dbext.database.catalog import TrackedTable
from dbext.database.session import Session
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.key_checks import KeyChecks, key_checks_from_json
from dbext.service.allow import require_allowed
from dbext.service.budget import require_fits, terms
from dbext.service.key_delta import require_key_delta
from dbext.service.numbers import rounded_down
from dbext.service.wish import Settled, Wish, wish_from_json


def reserve(
    session: Session,
    table: TrackedTable,
    release_id: int,
    charges: Sequence[Charge],
    *,
    epsilon: str,
    known_terms: str,
    declared_by: str,
    checks: KeyChecks | None = None,
    wish: Wish = Wish(),  # noqa: B008 frozen
    settled: Settled = (None, False),
) -> str | None:
    """Reserve, and return the epsilon that is left; None, with nothing reserved, if the terms are others than those of the plan by now.

    What the `wish` for a kind of noise came to (`settled`) is one of them: it may depend on whether anything is charged.
    A transaction that holds the budget itself (it has just set it) reserves in its own name: a second session would wait for it.
    """
    request = {
        "table_id": table.table_id,
        "release_id": release_id,
        "charges": [charge.to_json() for charge in charges],
        "epsilon": epsilon,
        "known_terms": known_terms,
        "declared_by": declared_by,
        "key_checks": [] if checks is None else [checks.to_json()],
        "wish": wish.to_json(),
        "settled": list(settled),
    }
    if ledger.holds_budget_lock(session):
        return reserve_release(session, **request, declared_in=None)["left"]
    return second_session.ask(session, "reserve_release", request | {"declared_in": ledger.own_transaction(session)})["left"]


def reserve_release(
    session: Session,
    *,
    table_id: int,
    release_id: int,
    charges: list[Any],
    epsilon: str,
    known_terms: str,
    declared_by: str,
    declared_in: str | None,
    key_checks: list[Any],
    wish: list[str | None],
    settled: list[Any],
) -> dict[str, str | None]:
    """Check and append a reservation under the budget's lock. `declared_in`: the other transaction that declares the release."""
    table = catalog.tracked_table(session, table_id)
    budget = ledger.lock_budget_of(session, table_id, table.shown_name)
    if declared_in is not None:
        ledger.settle_reservations(session)
    same = wish_from_json(wish).settled(session, budget) == tuple(settled)
    if not same or terms(catalog.accounted_types(session, table), budget) != known_terms:
        return {"left": None}
    asked = [charge_from_json(one) for one in charges]
    checks = [key_checks_from_json(one) for one in key_checks]
    require_allowed(session, budget, table, asked, epsilon, declared_by, checks)
    left = require_fits(session, budget, table_id, asked, epsilon)
    if checks:
        require_key_delta(session, budget, {table_id: checks})
    ledger.append(
        session, "reserve", budget.budget_id, recorded_by=declared_by, table_id=table_id,
        release_id=release_id, charges=asked, epsilon=epsilon, key_checks=checks,
    )  # fmt: skip
    if declared_in is not None:
        ledger.open_reservation(session, release_id, declared_in)
    return {"left": rounded_down(left)}
