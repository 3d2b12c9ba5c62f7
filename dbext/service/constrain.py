"""State and change how often, or for how long, entries of one type may mutate."""

from __future__ import annotations

from dbext.database import catalog, constraints, ledger, rights
from dbext.database.catalog import StoredType, TrackedTable
from dbext.database.session import Session
from dbext.errors import AlreadyExists, BadArgument, UnknownObject
from dbext.privacy.constraint import Constraint
from dbext.query.calendar import parse_span, whole_ticks
from dbext.service.budget import check_budget
from dbext.service.literals import check_literals

#: Names are shown in views and in prices per type.
LONGEST_NAME = 63


def add_constraint(
    session: Session,
    tbl: object,
    *,
    name: str | None,
    applies_to: str | None = None,
    max_mutations: int | None = None,
    active_within: str | None = None,
    at_limit: str | None = "stay",
) -> str:
    """Add an entry type. Entries seen from the next seal on that match no earlier type take it; `applies_to` None is for all the others.

    The whole ledger, priced for the new type too, must fit the budget.
    """
    table = _open(session, tbl)
    limits, at_limit = _limits(table, max_mutations, active_within, at_limit)
    _require_new(table, catalog.entry_types(session, table.table_id), name, applies_to)
    predicate = None if applies_to is None else _predicate(session, table, applies_to)
    constraints.add(session, table.table_id, name, applies_to=predicate, limits=limits, at_limit=at_limit)
    _require_affordable(session, table)
    whom = "all other entries" if predicate is None else f"entries first seen with {predicate[1]}"
    return f'"{name}": {whom} of {table.shown_name} {describe(table, limits, at_limit)}'


def alter_constraint(
    session: Session,
    tbl: object,
    *,
    name: str | None,
    max_mutations: int | None = None,
    active_within: str | None = None,
    at_limit: str | None = "stay",
) -> str:
    """Replace the limits of an entry type. Tighter limits are free; looser ones are counted for everything already charged."""
    table = _open(session, tbl)
    limits, at_limit = _limits(table, max_mutations, active_within, at_limit)
    known = next((one for one in catalog.entry_types(session, table.table_id) if one.name == name), None)
    if known is None:
        raise UnknownObject(f'table {table.shown_name} has no constraint "{name}"', hint="TABLE dbext.entry_type lists the constraints.")
    if constraints.alter(session, table.table_id, known, limits, at_limit) != known.loosest:
        _require_affordable(session, table)
    return f'"{name}": from now on its entries {describe(table, limits, at_limit)}; losses are still counted with what was looser before'


def describe(table: TrackedTable, limits: Constraint, at_limit: str) -> str:
    """Return the limits in words."""
    parts = []
    if limits.max_mutations is not None:
        parts.append(f"count for at most {limits.max_mutations} mutation{'s' if limits.max_mutations > 1 else ''}")
    if limits.active_within is not None:
        after = "and then count as gone" if at_limit == "leave" else "and then stay as they are"
        parts.append(f"count for {table.tick.times(limits.active_within).text} after they first appear {after}")
    return ", ".join(parts)


def _open(session: Session, tbl: object) -> TrackedTable:
    rights.require_admin(session)
    rights.require_read_committed(session)
    table = catalog.tracked_by_regclass(session, str(tbl))
    rights.require_select(session, table.table_id, table.shown_name)
    constraints.lock(session, table.table_id)
    return catalog.tracked_table(session, table.table_id)  # one without a budget may have been given another tick meanwhile


def _limits(table: TrackedTable, mutations: int | None, within: str | None, at_limit: str | None) -> tuple[Constraint, str]:
    """Return the limits in ticks, checked as a whole."""
    if mutations is None and within is None:
        raise BadArgument("a constraint needs max_mutations, active_within, or both", hint="For example max_mutations => 3.")
    if at_limit not in ("stay", "leave"):
        raise BadArgument("at_limit is 'stay' or 'leave'")
    ticks = None if within is None else whole_ticks(parse_span(within, "active_within"), table.tick, "active_within")
    if at_limit == "leave" and ticks is None:
        raise BadArgument("at_limit => 'leave' needs active_within: it says when entries leave")
    if at_limit == "leave" and mutations == 1:
        raise BadArgument("at_limit => 'leave' needs max_mutations of at least 2: leaving is a mutation too")
    return Constraint(mutations, ticks), at_limit


def _require_new(table: TrackedTable, types: tuple[StoredType, ...], name: str | None, applies_to: str | None) -> None:
    if not name or not name.strip() or len(name.encode()) > LONGEST_NAME or not name.isprintable():
        raise BadArgument(f"a constraint needs a printable name of at most {LONGEST_NAME} bytes")
    if any(one.name == name for one in types):
        raise AlreadyExists(f'table {table.shown_name} has a constraint "{name}"', hint="Change it with dp_alter_constraint.")
    default = next((one.name for one in types if one.applies_to is None), None)
    if applies_to is None and default is not None:
        raise AlreadyExists(f'"{default}" is the default type of table {table.shown_name} already', hint="Give applies_to.")


def _predicate(session: Session, table: TrackedTable, sql: str) -> tuple[object, str]:
    """Return a predicate over an entry's first image as stored JSON and as text."""
    from dbext.query.compiler import compile_predicate
    from dbext.query.predicate_json import to_json
    from dbext.query.text import text

    predicate = compile_predicate(sql, catalog.columns(session, table.table_id))
    check_literals(session, table, predicate)
    return to_json(predicate), text(predicate)


def _require_affordable(session: Session, table: TrackedTable) -> None:
    budget_id = ledger.current_budget_id(session, table.table_id)  # not the one read before the lock was had
    if budget_id is not None:
        check_budget(session, budget_id)
