"""Literals of predicates, read by PostgreSQL once, when they are declared."""

from __future__ import annotations

from dbext.database import moments
from dbext.database.catalog import TrackedTable
from dbext.database.session import Session
from dbext.errors import DeclarationRefused
from dbext.query.predicate import Predicate, literals


def check_literals(session: Session, table: TrackedTable, predicate: Predicate | None) -> None:
    """Refuse a literal that is not a value of its column's type; PostgreSQL's own message, which quotes the value, is not shown."""
    for text, literal_type in literals(predicate):
        if not moments.is_literal(session, text, literal_type, table.time_zone):
            raise DeclarationRefused(f"a literal of the predicate is not a value of type {literal_type}")
