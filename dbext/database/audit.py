"""What an audit reads: the transcript, the ledger, and what the catalogs say about who else could read it. Everything here is private."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbext.database import catalog, releases
from dbext.database.identifiers import private
from dbext.database.nodes import Source
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.database.statements import fill, statements
from dbext.privacy.charge import Charge, charge_from_json

SQL = statements("audit")


@dataclass(frozen=True)
class NodeFacts:
    """How the nodes of a release stand to the ledger.

    `widths`: their numbers of cells. `uncharged`: those whose transaction left no ledger row. `rewritten`: those written again since they
    were drawn, of `known` ones that were drawn in this very database.
    """

    nodes: int
    widths: list[int]
    uncharged: int
    known: int
    rewritten: int


def all_releases(session: Session) -> list[tuple[Release, str | None]]:
    """Return every release ever declared, with the tolerance stated for it."""
    rows = [dict(row) for row in session.fetch(SQL["releases"])]
    tolerances = [row.pop("tolerance") for row in rows]
    return [(releases.from_row(session, row), tolerance) for row, tolerance in zip(rows, tolerances, strict=True)]


def all_tables(session: Session) -> list[catalog.TrackedTable]:
    """Return every tracked table."""
    return [catalog.tracked_table(session, row["table_id"]) for row in session.fetch(SQL["tables"])]


def forgotten_through(session: Session, table_id: int) -> int | None:
    """Return the last tick whose single changes dp_retain has forgotten."""
    return session.fetch(SQL["forgotten"], table_id)[0]["forgotten_through"]


def node_facts(session: Session, source: Source) -> NodeFacts:
    """Return how the nodes of a stream stand to the ledger."""
    row = dict(session.fetch(SQL["node_facts"], *source)[0])
    return NodeFacts(**{**row, "widths": json.loads(row["widths"])})


def stored_nodes(session: Session, source: Source) -> dict[int, list[int]]:
    """Return all nodes of a stream by number."""
    return {row["node_no"]: [int(one) for one in row["noisy"].split(",")] for row in session.fetch(SQL["node_texts"], *source)}


def ledger_of_release(session: Session, release_id: int) -> dict[str, list[list[Charge]]]:
    """Return the charges of a release's ledger rows by kind, in order."""
    found: dict[str, list[list[Charge]]] = {"reserve": [], "publish": [], "return": []}
    for row in session.fetch(SQL["ledger_of_release"], release_id):
        found.setdefault(row["kind"], []).append(_charges(row["charges"]))
    return found


def _charges(text: str) -> list[Charge]:
    return [charge_from_json(one) for one in json.loads(text)]


def questions(session: Session) -> list[dict[str, Any]]:
    """Return every answered question with `charges`: one list for each ledger row that charges it."""
    return [
        {**row, "charges": [[charge_from_json(one) for one in charges] for charges in json.loads(row["charges"])]}
        for row in session.fetch(SQL["questions"])
    ]


def lost_questions(session: Session) -> int:
    """Return how many ledger rows charge a question whose answer is gone."""
    return session.fetch(SQL["lost_questions"])[0]["lost"]


def budgets(session: Session) -> list[dict[str, Any]]:
    """Return every budget with the delta declared acceptable."""
    return session.fetch(SQL["budgets"])


def budget_history(session: Session, budget_id: int) -> list[dict[str, Any]]:
    """Return what the ledger says of a budget's figures, in order."""
    return session.fetch(SQL["budget_history"], budget_id)


def namesakes(session: Session) -> list[str]:
    """Return tables that took the name of a charged one without sharing its budget."""
    return [row["name"] for row in session.fetch(SQL["namesakes"])]


def guards(session: Session) -> dict[str, bool]:
    """Return which safeguards are in place: append_only, drawn_once, home."""
    return dict(session.fetch(SQL["guards"])[0])


def exposed(session: Session) -> list[str]:
    """Return, in words, all that lets somebody else read the private schema."""
    return [row["leak"] for row in session.fetch(fill(SQL["exposed"], private_relations=SQL["private_relations"]))]


def readers_of_all(session: Session) -> list[str]:
    """Return the roles that may read every table there is."""
    return [row["name"] for row in session.fetch(SQL["readers_of_all"])]


def seal_facts(session: Session, table_id: int) -> dict[str, int]:
    """Return `gaps` between seals, `late` rows, `open_events`, and `unsealed` changes of a table."""
    (row,) = session.fetch(SQL["seal_gaps"], table_id)
    (beyond,) = session.fetch(fill(SQL["unsealed_changes"], change=private("change", table_id)), table_id)
    return {**row, "unsealed": beyond["found"]}


def contributions(session: Session, table_id: int) -> tuple[int, int]:
    """Return how many entries ever changed, and how many of them did so beyond the loosest limits of their type."""
    units = [column for column, _ in catalog.stored_columns(session, table_id) if column.is_unit]
    places = {
        "keys": ", ".join(f"c.key_{one.position}" for one in units),
        "same_key": " AND ".join(f"a.key_{one.position} {one.operators['=']} c.key_{one.position}" for one in units),
        "change": private("change", table_id),
        "admission": private("admission", table_id),
    }
    (row,) = session.fetch(fill(SQL["contributions"], **places), table_id)
    return row["entries"], row["beyond"]


def record(session: Session, by: str, findings: Sequence[dict[str, Any]], *, passed: bool) -> None:
    """Note that an audit was made and how it ended."""
    session.execute(SQL["record"], by, passed, json.dumps(list(findings)))


def accept_delta(session: Session, budget_id: int, delta: str, by: str) -> None:
    """Store the largest acceptable delta of a budget."""
    session.execute(SQL["accept_delta"], budget_id, delta, by)


def state_tolerance(session: Session, release_id: int, tolerance: str, by: str) -> None:
    """Store how large an error the decisions taken from a release can bear."""
    session.execute(SQL["state_tolerance"], release_id, tolerance, by)
