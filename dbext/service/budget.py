"""Set budgets, and say whether a charge fits one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from dbext.database import catalog, constraints, ledger, rights
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.errors import BadArgument, BudgetExceeded, ConstraintTooLoose, NotSupported
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import EntryType
from dbext.privacy.conversion import budget_picos
from dbext.privacy.loss import Loss, loss_of
from dbext.service.key_delta import require_key_delta
from dbext.service.numbers import delta_from, epsilon_from, plain, rounded_down, rounded_up

MAX_NAME_BYTES = 200
#: From here on a budget deserves a remark: a mechanism may reveal an entry outright with chance delta.
LARGE_DELTA = Decimal("0.001")


def table_loss(session: Session, table_id: int, charges: Sequence[Charge], *, pure: bool) -> Loss:
    """Return what entries of a table lose to charges: each type's epsilon and rho exactly. `pure`: the budget's delta is 0."""
    if not charges:
        return Loss()
    types = catalog.accounted_types(session, catalog.tracked_table(session, table_id))
    return loss_of(charges, types, pure=pure)


def lost_loss(session: Session, table_id: int, *, pure: bool) -> Loss:
    """Return the loss of all lost histories of a table: entries lived a life of their own in each, so that worst cases add up."""
    return sum((table_loss(session, table_id, charges, pure=pure) for charges in ledger.lost_charges(session, table_id)), Loss())


def table_losses(session: Session, budget: Budget, extra: dict[int, Sequence[Charge]] | None = None) -> dict[int, Loss]:
    """Return what is charged or reserved, by table of a budget. `extra` holds further charges by table."""
    return {
        table_id: table_loss(
            session, table_id, [*ledger.committed_charges(session, table_id), *(extra or {}).get(table_id, ())], pure=budget.pure
        )
        + lost_loss(session, table_id, pure=budget.pure)
        for table_id in ledger.tables_of(session, budget.budget_id)
    }


def committed_loss(session: Session, budget: Budget) -> Loss:
    """Return what is charged or reserved in a budget: the sum over its tables."""
    return sum(table_losses(session, budget).values(), Loss())


def holds(budget: Budget, loss: Loss) -> bool:
    """Whether a budget allows a loss."""
    return loss.fits(budget.epsilon, budget.delta)


def capacity(budget: Budget) -> int:
    """Return the picos that a budget holds: of epsilon when delta = 0, else of rho alone."""
    return budget_picos(budget.epsilon, budget.delta)


def require_fits(session: Session, budget: Budget, table_id: int, charges: Sequence[Charge], asked: str) -> Decimal:
    """Return the epsilon left after charging a locked budget; BudgetExceeded, with nothing changed, if it does not fit."""
    losses = table_losses(session, budget, {table_id: charges})
    total = sum(losses.values(), Loss())
    if not holds(budget, total):
        spent = committed_loss(session, budget).epsilon(budget.delta)
        left = rounded_down(as_decimal(budget.epsilon) - spent)
        raise BudgetExceeded(budget.name, spent=rounded_up(spent), asked=asked, left=left)
    for one, loss in losses.items():
        ledger.set_loss_bound(session, one, _terms(session, one, budget), loss.most)
    return as_decimal(budget.epsilon) - total.epsilon(budget.delta)


def fits_at_once(session: Session, budget: Budget, table_id: int, charges: Sequence[Charge]) -> bool:
    """Whether charges fit a locked budget even if they add up with all before them; if so the bound is moved on with them.

    The figure of a union is never above the sum of the figures of its parts, in epsilon or in rho, so that a certified bound plus the
    price of the new charges is a bound again. False says nothing: then the exact figure decides.
    """
    priced = {one: _terms(session, one, budget) for one in ledger.tables_of(session, budget.budget_id)}
    bounds = {one: ledger.loss_bound(session, one, priced[one]) for one in priced}
    if None in bounds.values():
        return False
    own = table_loss(session, table_id, charges, pure=budget.pure)
    if not holds(budget, sum(map(_bound, bounds.values()), own)):
        return False
    ledger.set_loss_bound(session, table_id, priced[table_id], (_bound(bounds[table_id]) + own).most)
    return True


def _bound(picos: tuple[int, int]) -> Loss:
    """Return a stored bound as a loss. It does not tell whether its epsilon is of steps: none of it is taken to be."""
    return Loss((picos,), stepwise=picos[0] == 0)


def terms(types: Sequence[EntryType], budget: Budget) -> str:
    """Return all that a plan under a budget depends on: how it is priced, and delta; the thresholds of hidden keys on epsilon, too."""
    return f"{_pricing(types, budget)} {budget.delta} {budget.epsilon if budget.key_delta else ''}"


def _pricing(types: Sequence[EntryType], budget: Budget) -> str:
    """Return all that a price depends on beside the charge: the kind of budget, and every type's loosest constraint."""
    return json.dumps([budget.pure, [[one.number, one.constraint.max_mutations, one.constraint.active_within] for one in types]])


def _terms(session: Session, table_id: int, budget: Budget) -> str:
    return _pricing(catalog.accounted_types(session, catalog.tracked_table(session, table_id)), budget)


def as_decimal(value: Fraction) -> Decimal:
    """Return an epsilon, which came from a decimal, as a decimal."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def check_budget(session: Session, budget_id: int) -> None:
    """Refuse what this transaction did to constraints if the whole ledger no longer fits the budget. Takes the budget's lock."""
    budget = ledger.lock_budget(session, budget_id)
    total = committed_loss(session, budget)
    if not holds(budget, total):
        needed = rounded_up(total.epsilon(budget.delta))
        raise ConstraintTooLoose(budget.name, needed=needed, epsilon=plain(as_decimal(budget.epsilon)))
    require_key_delta(session, budget)


def set_budget(
    session: Session, tbl: object, epsilon: str | None, delta: str | None = None, budget: str | None = None, key_delta: str | None = None
) -> str:
    """Set a table's budget, or let the table join the named one; returns what is in force now.

    Without `delta` the budget keeps its own, 0 if it is new; likewise `key_delta`, the part of it for keys taken from the data. The whole
    ledger is priced anew under the new figures and must fit them.
    Whoever joins a budget that other tables have repeats its figures. A table that shares a budget with others and has spent from it
    cannot leave it: the others' entries may be the same people.
    """
    who = rights.require_admin(session)
    rights.require_read_committed(session)
    wanted_epsilon = epsilon_from(epsilon, "dp_set_budget('cases', epsilon => 2)")
    wanted_delta = None if delta is None else delta_from(delta)
    wanted_key_delta = None if key_delta is None else delta_from(key_delta, "key_delta")
    table = catalog.tracked_by_regclass(session, str(tbl))
    rights.require_select(session, table.table_id, table.shown_name)
    rights.require_captured(table)
    constraints.lock(session, table.table_id)  # as whoever changes limits does, before the budget: one after the other
    target = _lock_for(session, table, budget, wanted_epsilon, wanted_delta)
    new_delta = plain(as_decimal(target.whole_delta) if wanted_delta is None else wanted_delta)
    new_key_delta = plain(as_decimal(target.key_delta) if wanted_key_delta is None else wanted_key_delta)
    if Decimal(new_key_delta) > Decimal(new_delta):
        raise BadArgument("key_delta is a part of delta and cannot be larger")
    ledger.change_budget(session, target.budget_id, plain(wanted_epsilon), new_delta, new_key_delta)
    changed = ledger.read_budget(session, target.budget_id)
    _require_covers(session, changed)
    note = {"delta": new_delta, "key_delta": new_key_delta, "table": table.shown_name}
    ledger.append(
        session, "budget", target.budget_id, recorded_by=who.name, table_id=table.table_id, epsilon=plain(wanted_epsilon), note=note
    )
    figures = f"epsilon {plain(wanted_epsilon)}, delta {new_delta}{_said_key_delta(new_key_delta)}"
    return f'budget "{changed.name}" of table {table.shown_name}: {figures}{_remark(new_delta)}'


def _said_key_delta(key_delta: str) -> str:
    return "" if Decimal(key_delta) == 0 else f", {key_delta} of it for group keys taken from the data"


def _remark(delta: str) -> str:
    """Say when a delta is one that nobody should want."""
    if Decimal(delta) <= LARGE_DELTA:
        return ""
    return f"; a delta above {LARGE_DELTA} is no protection: with that chance an entry may be revealed outright"


def _lock_for(session: Session, table: catalog.TrackedTable, name: str | None, epsilon: Decimal, delta: Decimal | None) -> Budget:
    """Lock the budget that the table is to belong to, created if need be, with the one it leaves, and move the table."""
    current = ledger.current_budget_id(session, table.table_id)
    if name is None and current is not None:
        return ledger.lock_budget(session, current)
    target = ledger.find_or_add_budget(session, _checked_name(name or table.shown_name), plain(epsilon), plain(delta or Decimal(0)))
    locked = {number: ledger.lock_budget(session, number) for number in sorted({target, current or target})}
    if target != current:
        _require_same_figures(session, locked[target], epsilon, delta)
    if current is not None and current != target:
        _require_may_leave(session, table, locked[current])
    ledger.move_table(session, table.table_id, target)
    return locked[target]


def _checked_name(name: str) -> str:
    if not name or len(name.encode()) > MAX_NAME_BYTES or not name.isprintable():
        raise BadArgument(f"a budget's name has 1 to {MAX_NAME_BYTES} printable bytes")
    return name


def _require_same_figures(session: Session, budget: Budget, epsilon: Decimal, delta: Decimal | None) -> None:
    """Refuse to change, by joining, what other tables were promised."""
    same = Fraction(epsilon) == budget.epsilon and (delta is None or Fraction(delta) == budget.whole_delta)
    if not same and ledger.tables_of(session, budget.budget_id):
        figures = f"epsilon => {plain(as_decimal(budget.epsilon))}, delta => {plain(as_decimal(budget.whole_delta))}"
        raise BadArgument(
            f'budget "{budget.name}" exists with other figures, on which other tables rely',
            hint=f"Join with {figures}, then change them with another dp_set_budget.",
        )


def _require_may_leave(session: Session, table: catalog.TrackedTable, budget: Budget) -> None:
    alone = ledger.tables_of(session, budget.budget_id) == [table.table_id]
    if not alone and (ledger.committed_charges(session, table.table_id) or ledger.lost_charges(session, table.table_id)):
        raise NotSupported(
            f'table {table.shown_name} has spent from budget "{budget.name}", which it shares with other tables, and cannot leave it',
            hint="Entries of those tables may be the same people: their losses stay together.",
        )


def _require_covers(session: Session, budget: Budget) -> None:
    """Refuse figures that are below what was spent or reserved, or that cannot price it."""
    try:
        total = committed_loss(session, budget)
    except NotSupported as fault:
        if not budget.pure:
            raise
        said = f'budget "{budget.name}" was charged for Gaussian noise, which has no finite epsilon at delta 0'
        raise NotSupported(said, hint="Leave delta out to keep the budget's own, or give one above 0.") from fault
    if not holds(budget, total):
        spent = rounded_up(total.epsilon(budget.delta))
        raise BadArgument(f'epsilon is smaller than what is already spent or reserved in budget "{budget.name}": {spent} at this delta')
    require_key_delta(session, budget)
