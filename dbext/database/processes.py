"""Stated models of how the status in a column moves."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dbext.database.session import Session
from dbext.database.statements import statements
from dbext.privacy.charge import Charge, charge_from_json
from dbext.privacy.markov import Chain

SQL = statements("processes")

#: Stands for every entry type without a model of its own.
EVERY_TYPE = ""


def of_table(session: Session, table_id: int) -> dict[str, dict[str, Chain]]:
    """Return the models of a table: column -> entry type (EVERY_TYPE for all others) -> chain."""
    found: dict[str, dict[str, Chain]] = {}
    for row in session.fetch(SQL["of_table"], table_id):
        found.setdefault(row["column_name"], {})[row["type_name"]] = Chain(json.loads(row["transition"]))
    return found


def state(session: Session, table_id: int, column: str, type_name: str, chain: Chain, by: str) -> None:
    """Store a model."""
    session.execute(SQL["set"], table_id, column, type_name, json.dumps(chain.transition), by)


def forget(session: Session, table_id: int, column: str, type_name: str) -> int:
    """Remove a model; returns how many there were."""
    return session.execute(SQL["forget"], table_id, column, type_name)


def modelled(session: Session) -> list[str]:
    """Return the names of releases whose table has a model."""
    return [row["name"] for row in session.fetch(SQL["modelled"])]


def answers(session: Session, table_id: int) -> list[tuple[int, Charge]]:
    """Return (last tick of the window, charge) of every answered question about a table."""
    charges = [charge_from_json(one) for row in session.fetch(SQL["answers"], table_id) for one in json.loads(row["charges"])]
    return [(charge.pattern.span()[1], charge) for charge in charges]


def ends(session: Session, table_id: int, ticks: Sequence[int]) -> list[str]:
    """Return the moments that end consecutive ticks."""
    return [row["moment"] for row in session.fetch(SQL["ends"], table_id, ticks[0], ticks[-1])]
