"""Declare a release of the local model: plan it, reserve its loss, freeze its roster and categories, create its tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dbext.database import catalog, ledger, release_table, releases, reports, rights, targets
from dbext.database.effects import GroupColumn
from dbext.database.release_table import ReleaseTable
from dbext.database.session import Session
from dbext.errors import AlreadyExists, BadArgument, NotSupported
from dbext.privacy.constraint import EntryType
from dbext.privacy.conversion import epsilon_of
from dbext.privacy.measure import Measure
from dbext.privacy.pico import picos_up, to_decimal
from dbext.query.groups import compile_groups
from dbext.query.local_plan import LocalPlan, local_plans
from dbext.service.budget import terms
from dbext.service.draft import Draft
from dbext.service.figures import count_columns
from dbext.service.grouping import columns_to_json, frozen_keys, group_columns, groups_to_json
from dbext.service.numbers import plain
from dbext.service.reserve import reserve

MAX_MEMBERS = 100_000


@dataclass(frozen=True)
class Model:
    """Who is trusted with the truth: the server (`central`), or nobody (`local`)."""

    name: str
    roster: str | None
    publish_reports: bool

    @staticmethod
    def of(wishes: dict[str, Any]) -> Model:
        """Take the model out of the arguments of a declaration."""
        model = Model(wishes.pop("model", None) or "central", wishes.pop("roster", None), bool(wishes.pop("publish_reports", False)))
        if model.name not in ("central", "local"):
            raise BadArgument("model must be central or local")
        if model.is_local and wishes.get("noise") is not None:
            raise BadArgument("noise is for the central model: reports of the local model are randomised answers", hint="Leave it out.")
        if not model.is_local and (model.roster is not None or model.publish_reports):
            raise BadArgument("roster and publish_reports are for the local model", hint="Add model => 'local'.")
        return model

    @property
    def is_local(self) -> bool:
        """Whether entries report by themselves."""
        return self.name == "local"


@dataclass(frozen=True)
class Roster:
    """Who reports: the key columns of an entry, and the frozen keys."""

    unit: tuple[GroupColumn, ...]
    keys: list[list[str]]


def plan_local(session: Session, drafted: Draft, model: Model) -> list[dict[str, Any]]:
    """Return the candidates of a declaration that is not made yet."""
    roster, keys = _roster(session, drafted, model.roster), _keys(session, drafted)
    budget = ledger.read_budget(session, ledger.budget_id_of(session, drafted.table.table_id, drafted.table.shown_name))
    types = catalog.accounted_types(session, drafted.table)
    return candidate_rows(_plans(drafted, types, budget.delta, roster, keys), types, budget.delta)


def create_local(session: Session, drafted: Draft, model: Model, *, name: str, declared_by: str) -> str:
    """Reserve the lifetime loss and make the release; returns what was made and reserved."""
    table = drafted.table
    if model.publish_reports and releases.is_taken(session, f"{name}_reports"):
        raise AlreadyExists(f"the name {name}_reports is taken in schema dp_release")
    roster, keys = _roster(session, drafted, model.roster), _keys(session, drafted)
    release_id = releases.next_number(session)
    left = None
    while left is None:
        budget = ledger.read_budget(session, ledger.budget_id_of(session, table.table_id, table.shown_name))
        types = catalog.accounted_types(session, catalog.tracked_table(session, table.table_id))
        made = _plans(drafted, types, budget.delta, roster, keys)
        chosen = made[0][0]
        asked = plain(to_decimal(picos_up(chosen.epsilon)))
        left = reserve(session, table, release_id, chosen.charges, epsilon=asked, known_terms=terms(types, budget), declared_by=declared_by)
    recorded = _Made(chosen, roster, keys, candidate_rows(made, types, budget.delta))
    _record(session, release_id, drafted, recorded, model, name, declared_by)
    said = "".join(f"\nnote: {note}" for note in chosen.notes)
    return (
        f"release dp_release.{name}: local model, {len(roster.keys)} members report {_reports(chosen)}, measure {chosen.measure.value}, "
        f'mechanism {chosen.mechanism.name}; reserves epsilon {asked} of budget "{budget.name}", {left} left{said}'
    )


def _plans(
    drafted: Draft, types: tuple[EntryType, ...], delta: Fraction, roster: Roster, keys: list[list[str]]
) -> list[tuple[LocalPlan, float]]:
    return local_plans(
        drafted.declaration, drafted.request, drafted.table.tick, types, delta, members=len(roster.keys), cells=len(keys)
    )  # fmt: skip


def _roster(session: Session, drafted: Draft, text: str | None) -> Roster:
    """Return the fixed public list of those who report. It is frozen: who reports must not say who exists."""
    if drafted.table.rows_per_unit is not None:
        raise NotSupported(
            "the local model randomises one row per entry, and an entry of this table is a unit of several rows",
            hint="Use the central model.",
        )
    if not drafted.declaration.is_count:
        raise NotSupported("the local model counts with count(*) alone", hint="Put conditions into WHERE, or use the central model.")
    if drafted.declaration.bins:
        raise NotSupported("the local model groups by columns alone", hint="Keep the bin in a generated column.")
    if drafted.key_delta is not None:
        raise NotSupported("in the local model the categories of a state are public", hint="List them with groups =>.")
    if text is None:
        raise BadArgument(
            "the local model needs a roster: a public list of the keys that report, whether they have a row or not",
            hint="Add roster => 'SELECT id FROM person' with a column marked public, or roster => 'VALUES (1), (2)'.",
        )
    unit = tuple(column for column in drafted.columns if column.is_unit)
    positions = [column.position for column in unit]
    rights.require_asking(session, drafted.table.table_id, drafted.table.shown_name, positions)
    columns = group_columns(session, drafted.table, unit, [])
    keys = frozen_keys(session, compile_groups(text, len(unit)), columns)
    if len(keys) > MAX_MEMBERS:
        raise NotSupported(f"a roster has at most {MAX_MEMBERS} members")
    return Roster(columns, keys)


def _keys(session: Session, drafted: Draft) -> list[list[str]]:
    if drafted.key_delta is not None:
        raise NotSupported("in the local model nobody knows the keys of the data", hint="List them with groups =>.")
    return frozen_keys(session, drafted.groups, group_columns(session, drafted.table, drafted.group_columns, []))


def _reports(chosen: LocalPlan) -> str:
    return "their net change" if chosen.measure is Measure.NET else f"one of {chosen.response.categories} categories"


@dataclass(frozen=True)
class _Made:
    """What is recorded of a release: its plan, who reports, the frozen keys, and how it was chosen."""

    plan: LocalPlan
    roster: Roster
    keys: list[list[str]]
    explained: list[dict[str, Any]]


def _record(session: Session, number: int, drafted: Draft, made: _Made, model: Model, name: str, by: str) -> None:
    """Store the release with its keys and its roster, and create its tables."""
    table, plan = drafted.table, made.plan
    groups = group_columns(session, table, drafted.group_columns, [plan.measure.value])
    content = _content(drafted, made, groups) | {"publish_reports": model.publish_reports}
    begins = releases.Begins(plan.due_tick(1), table.first_tick - 1, plan.horizon_end)
    releases.add(session, number, name, table.table_id, drafted.declaration.text, content, begins, by)
    releases.freeze_keys(session, number, made.keys)
    reports.freeze_members(session, number, made.roster.keys, named=model.publish_reports)
    described = (
        f"Local-model release of {table.shown_name} ({plan.kind}, measure {plan.measure.value}, {plan.members} members, "
        f"lifetime epsilon {float(plan.epsilon):g}): {' '.join(drafted.declaration.text.split())}"
    )
    release_table.create(session, ReleaseTable(name, (count_columns(plan.measure),), groups, described))
    if model.publish_reports:
        reports.create_table(session, name)
    if (target := targets.default_target(session)) is not None:
        targets.send(session, number, target)


def _content(drafted: Draft, made: _Made, groups: tuple[GroupColumn, ...]) -> dict[str, Any]:
    """Return what the catalog keeps of a release beside its text."""
    plan, used = made.plan, drafted.positions | {one.column.position for one in made.roster.unit}
    return {
        "model": "local",
        "plan": plan.to_json(),
        "declaration": drafted.declaration.to_json(),
        "columns": columns_to_json([one for one in drafted.columns if one.position in used]),
        "groups": groups_to_json(groups),
        "unit": groups_to_json(made.roster.unit),
        "cells": len(made.keys),
        "candidates": made.explained,
        "measure": plan.measure.value,
        "kind": plan.kind,
        "mechanism": plan.mechanism.name,
        "horizon": plan.horizon,
        "epsilon": plain(to_decimal(picos_up(plan.epsilon))),
    }


def candidate_rows(made: list[tuple[LocalPlan, float]], types: tuple[EntryType, ...], delta: Fraction) -> list[dict[str, Any]]:
    """Return one row for each way to make the release: errors if nothing changes, and the loss of replacing an entry of each type."""
    names = {one.number: one.name for one in types}
    best = made[0][1]
    return [
        {
            "mechanism": plan.mechanism.name,
            "noise": f"randomised response over {plan.response.categories} categories, epsilon {float(plan.response.epsilon):.6g} a report",
            "mean_std_error": error,
            "worst_std_error": max(error, math.sqrt(plan.node_variance(1))),
            "epsilon_by_type": {names[number]: float(epsilon_of(picos, delta)) for number, picos in plan.lifetime.items()},
            "chosen": place == 0,
            "reason": "smallest error at this epsilon" if place == 0 else f"{error / best:.2f} times the error of the best",
            "kind": plan.kind,
            "horizon": plan.horizon,
            "notes": "; ".join(plan.notes) or None,
        }
        for place, (plan, error) in enumerate(made)
    ]
