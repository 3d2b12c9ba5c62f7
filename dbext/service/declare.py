"""Declare a release: plan it, reserve its lifetime loss, freeze its keys, create its table. And drop one, and mark keys public."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dbext.database import catalog, ledger, release_table, releases, rights, targets
from dbext.database.catalog import TrackedTable
from dbext.database.effects import GroupColumn
from dbext.database.ledger import Budget
from dbext.database.release_table import ReleaseTable
from dbext.database.session import Session
from dbext.errors import AlreadyExists, BadArgument, NotPermitted, NotSupported, UnknownObject
from dbext.privacy.constraint import EntryType
from dbext.privacy.key_checks import KeyChecks
from dbext.privacy.pico import picos_up, to_decimal
from dbext.query.choose import plan_publication
from dbext.query.publication import Publication
from dbext.query.together import Planned
from dbext.service.budget import terms
from dbext.service.draft import Draft, draft
from dbext.service.explain import explained_rows, key_notes, with_cells
from dbext.service.figures import figure_columns
from dbext.service.grouping import columns_to_json, frozen_keys, group_columns, groups_to_json, require_cells
from dbext.service.local_declare import Model, create_local
from dbext.service.numbers import plain, require_noise_fits
from dbext.service.reserve import reserve
from dbext.service.selected_keys import checks_for

MAX_NAME_BYTES = 48
#: Kinds of plans as analysts are told of them.
KINDS = {
    "disjoint": "windows that do not overlap",
    "sliding": "windows that overlap",
    "running_total": "a running total",
    "once": "one window",
}
_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)


def create_release(session: Session, *, name: str | None, declaration: str | None, **wishes: Any) -> str:
    """Declare a release and reserve its lifetime loss; returns what was made and reserved.

    Planning may take long and holds no lock. The reservation is committed elsewhere and given back if this transaction comes to nothing,
    so that one that stays open keeps nobody from spending; a plan made under other constraints or another delta is made again.
    """
    who = rights.require_analyst(session)
    rights.require_read_committed(session)
    rights.require_home(session)
    check_name(session, name)
    model = Model.of(wishes)
    drafted = draft(session, declaration, **wishes)
    if model.is_local:
        return create_local(session, drafted, model, name=name, declared_by=who.name)
    table = drafted.table
    release_id = releases.next_number(session)
    left = None
    while left is None:
        budget = ledger.read_budget(session, ledger.budget_id_of(session, table.table_id, table.shown_name))
        settled = drafted.wish.settled(session, budget)
        made, types = _planned(session, drafted, budget)
        chosen = made.publication
        groups = group_columns(session, table, drafted.group_columns, chosen.labels, drafted.declaration.bins)
        keys = frozen_keys(session, drafted.groups, groups)
        require_cells(len(keys) * sum(stream.width for stream in chosen.streams if stream.spread is not None))
        checks = _checks(drafted, chosen, groups, types, budget)
        asked = plain(to_decimal(picos_up(chosen.epsilon)))
        left = reserve(
            session, table, release_id, chosen.charges, epsilon=asked, known_terms=terms(types, budget), declared_by=who.name,
            checks=checks, wish=drafted.wish, settled=settled,
        )  # fmt: skip
    explained = explained_rows(made, types, budget, checks)
    _record(session, (release_id, name, who.name), drafted, chosen, (groups, keys, checks), explained)
    return _said(name, chosen, budget, asked, left, checks)


def _checks(
    drafted: Draft, made: Publication, groups: Sequence[GroupColumn], types: Sequence[EntryType], budget: Budget
) -> KeyChecks | None:
    return None if drafted.key_delta is None else checks_for(made, groups, types, drafted.key_delta, budget.epsilon)


def _planned(session: Session, drafted: Draft, budget: Budget) -> tuple[Planned, tuple[EntryType, ...]]:
    """Return the publication and the types, under their loosest constraints, that it was priced for; too wide a noise is refused."""
    types = catalog.accounted_types(session, catalog.tracked_table(session, drafted.table.table_id))
    request = with_cells(session, drafted, budget)
    made = plan_publication(drafted.declaration, request, drafted.table.tick, types, budget.delta, drafted.bounds)
    for stream in made.publication.streams:
        if stream.plan.whole_numbers:
            require_noise_fits(stream.plan.noise)
    return made, types


def _said(name: str, publication: Publication, budget: Budget, asked: str, left: str, checks: KeyChecks | None) -> str:
    made = publication.main
    notes = "".join(f"\nnote: {note}" for note in (*publication.notes, *key_notes(made, checks)))
    mechanisms = dict.fromkeys(stream.plan.mechanism.name for stream in publication.streams)
    return (
        f"release dp_release.{name}: {KINDS[made.kind]}, measure {made.measure.value}, mechanism {', '.join(mechanisms)}; "
        f'reserves epsilon {asked} of budget "{budget.name}", {left} left{notes}'
    )


def check_name(session: Session, name: str | None) -> None:
    """Refuse a name that is taken or that SQL would have to quote."""
    if not name or not _NAME.fullmatch(name):
        raise BadArgument("a release's name is an identifier of lower-case letters, digits and underscores, such as confirmed_14d")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise BadArgument(f"a release's name has at most {MAX_NAME_BYTES} bytes")
    if releases.is_taken(session, name):
        raise AlreadyExists(f"the name {name} is taken in schema dp_release", hint="TABLE dbext.release_status lists the releases.")


def _record(
    session: Session,
    known: tuple[int, str, str],
    drafted: Draft,
    made: Publication,
    grouping: tuple[tuple[GroupColumn, ...], list[list[str | None]], KeyChecks | None],
    explained: list[dict[str, Any]],
) -> None:
    """Store the release (its number, name and author) with its keys and create its table."""
    (number, name, by), (groups, keys, checks) = known, grouping
    content = _content(drafted, made, groups) | {"cells": len(keys), "candidates": explained}
    if checks is not None:
        content["key_checks"] = checks.to_json()
    begins = releases.Begins(made.main.due_tick(1), sum_from(drafted.table, made), made.main.horizon_end(1))
    releases.add(session, number, name, drafted.table.table_id, drafted.declaration.text, content, begins, by)
    releases.freeze_keys(session, number, keys, hidden=checks is not None)
    release_table.create(session, ReleaseTable(name, figure_columns(made), groups, _description(drafted, made)))
    if (target := targets.default_target(session)) is not None:
        targets.send(session, number, target)


def _content(drafted: Draft, publication: Publication, groups: Sequence[GroupColumn]) -> dict[str, Any]:
    """Return what the catalog keeps of a release beside its text: enough to publish it without compiling or planning again."""
    made = publication.main
    return {
        "plan": made.to_json(),
        "publication": publication.to_json(),
        "declaration": drafted.declaration.to_json(),
        "columns": columns_to_json([one for one in drafted.columns if one.position in drafted.kept_positions]),
        "groups": groups_to_json(groups),
        "measure": made.measure.value,
        "kind": made.kind,
        "mechanism": made.mechanism.name,
        "horizon": made.horizon,
        "renews": made.renews,
        "epsilon": plain(to_decimal(picos_up(publication.epsilon))),
    }


def sum_from(table: TrackedTable, made: Publication) -> int:
    """Return the last tick whose effects no node of the release needs one by one."""
    leaves = [leaf for stream in made.streams for leaf in stream.plan.leaves(1)]
    starts, ends = [leaf.start for leaf in leaves], [leaf.end for leaf in leaves]
    return table.first_tick - 1 if None in starts else min([*starts, *ends])


def _description(drafted: Draft, made: Publication) -> str:
    return (
        f"Differentially private release of {drafted.table.shown_name} ({made.main.kind}, measure {made.main.measure.value}, "
        f"lifetime epsilon {float(made.epsilon):g}): {' '.join(drafted.declaration.text.split())}"
    )


def drop_release(session: Session, *, name: str | None) -> str:
    """End a release: its table goes, its nodes and ledger stay, and what was only reserved returns to the budget.

    A table that other objects depend on stays, without the release: nobody's view may keep a reservation.
    """
    who = rights.require_analyst(session)
    rights.require_read_committed(session)
    release = releases.lock(session, releases.by_name(session, name).release_id)
    if release.state == "dropped":
        raise UnknownObject(f"there is no release {name}")
    rights.require_declarer(who, release.name, release.created_by)
    gone = release_table.drop(session, release.name, reports=release.content.get("publish_reports", False))
    # What is given back needs no lock of the budget: whoever charges it meanwhile counts with what was reserved.
    charges = ledger.published_charges(session, release.release_id)
    ledger.append(
        session,
        "return",
        ledger.budget_id_of(session, release.table_id, release.name),
        recorded_by=who.name,
        table_id=release.table_id,
        release_id=release.release_id,
        charges=charges,
        key_checks=ledger.key_checks_of(session, release.release_id),
    )
    releases.mark_dropped(session, release.release_id)
    kept = "" if gone else f"; its table stays, because other objects depend on {release_table.SCHEMA}.{release.name}"
    return f"release {release.name} is dropped; its {release.next_period - 1} published periods stay charged{kept}"


def mark_public(session: Session, *, tbl: int, column_name: str | None) -> str:
    """Note that a column's values are public. Its table must be an ordinary one of the caller's: a view would run its code for us."""
    rights.require_admin(session)
    rows = session.fetch(releases.SQL["column_of_table"], tbl, column_name)
    if not rows:
        raise UnknownObject("there is no such table")
    if rows[0]["column_name"] is None:
        raise UnknownObject(f'table {rows[0]["schema_name"]}.{rows[0]["table_name"]} has no column "{column_name}"')
    row = rows[0]
    if row["kind"] != "r":
        raise NotSupported("keys are read from ordinary tables only")
    if not row["owned"]:
        raise NotPermitted("only the owner of a table may mark its columns public")
    if not row["reachable"]:
        raise NotPermitted("dbext may not use the schema of that table", hint=f"GRANT USAGE ON SCHEMA {row['schema_name']} TO dbext_owner;")
    session.execute(releases.SQL["mark_public"], row["schema_name"], row["table_name"], row["column_name"])
    return (
        f"column {row['column_name']} of table {row['schema_name']}.{row['table_name']} is marked public: its values may become group keys"
    )
