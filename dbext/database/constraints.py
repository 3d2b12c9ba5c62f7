"""Storing entry types and what follows from changing them."""

from __future__ import annotations

import json

from dbext.database.catalog import StoredType
from dbext.database.identifiers import private
from dbext.database.session import Session
from dbext.database.statements import fill, statements
from dbext.errors import SealRefused
from dbext.privacy.constraint import Constraint

SQL = statements("constraints")


def lock(session: Session, table_id: int) -> None:
    """Wait for a running seal and keep others out until this transaction ends; keep the table with its budget as long.

    What is priced afterwards is read in later statements, so that a budget set or spent meanwhile counts. A seal locks in the same order.
    """
    if not session.fetch(SQL["lock"], table_id):
        raise SealRefused("the table was tracked anew meanwhile", hint="Try again.")
    session.fetch(SQL["lock_table"], table_id)


def add(session: Session, table_id: int, name: str, *, applies_to: tuple[object, str] | None, limits: Constraint, at_limit: str) -> None:
    """Store an entry type as the last one to be tried. `applies_to`: a predicate's JSON and text, None for the default type."""
    stored, text = (None, None) if applies_to is None else (json.dumps(applies_to[0]), applies_to[1])
    (row,) = session.fetch(SQL["add"], table_id, name, stored, text, limits.max_mutations, limits.active_within, at_limit)
    index_departures(session, table_id, row["type_no"], at_limit)


def alter(session: Session, table_id: int, known: StoredType, limits: Constraint, at_limit: str) -> Constraint:
    """Replace the limits of a type and return the loosest ever in force. Call with the seal lock held.

    Entries whose time was over stay frozen when more time is given: what they did meanwhile was ignored.
    """
    loosest = known.loosest.loosest(limits)
    values = (limits.max_mutations, limits.active_within, at_limit, loosest.max_mutations, loosest.active_within)
    session.execute(SQL["alter"], table_id, known.number, *values)
    before, after = known.constraint.active_within, limits.active_within
    if before is not None and (after is None or after > before):
        session.execute(fill(SQL["freeze"], admission=private("admission", table_id)), table_id, known.number, before)
    index_departures(session, table_id, known.number, at_limit)
    return loosest


def index_departures(session: Session, table_id: int, type_no: int, at_limit: str) -> None:
    """Make the index that seals look departures up with, for a type whose entries leave by the calendar."""
    if at_limit == "leave":
        names = {"table": str(table_id), "type": str(type_no), "admission": private("admission", table_id)}
        session.execute(fill(SQL["leave_index"], **names))
