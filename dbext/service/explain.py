"""Show how a release would be made, or was chosen to be made. Spends nothing and reads no data of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dbext.database import catalog, ledger, releases, rights
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.privacy.constraint import EntryType
from dbext.privacy.conversion import epsilon_of
from dbext.privacy.key_checks import KeyChecks
from dbext.privacy.noise import DiscreteLaplace
from dbext.query.choose import plan_publication
from dbext.query.plan import Plan
from dbext.query.plan_text import lattice_text
from dbext.query.planner import Candidate, Request
from dbext.query.together import Option, Planned
from dbext.service.draft import Draft, draft
from dbext.service.grouping import frozen_keys, group_columns
from dbext.service.local_declare import Model, plan_local
from dbext.service.selected_keys import checks_for, threshold


def plan_release(session: Session, *, declaration: str | None, **wishes: Any) -> list[dict[str, Any]]:
    """Return the candidates of a declaration that is not made yet. Takes what `create_release` takes; the name does not matter."""
    rights.require_analyst(session)
    wishes.pop("name", None)
    model = Model.of(wishes)
    drafted = draft(session, declaration, **wishes)
    if model.is_local:
        return plan_local(session, drafted, model)
    budget = ledger.read_budget(session, ledger.budget_id_of(session, drafted.table.table_id, drafted.table.shown_name))
    types = catalog.accounted_types(session, drafted.table)
    request = with_cells(session, drafted, budget)
    made = plan_publication(drafted.declaration, request, drafted.table.tick, types, budget.delta, drafted.bounds)
    checks = None
    if drafted.key_delta is not None:
        groups = group_columns(session, drafted.table, drafted.group_columns, made.publication.labels)
        checks = checks_for(made.publication, groups, types, drafted.key_delta, budget.epsilon)
    return explained_rows(made, types, budget, checks)


def with_cells(session: Session, drafted: Draft, budget: Budget) -> Request:
    """Return what is asked for, with the number of its groups; of keys that are taken from the data nobody knows how many there will be."""
    groups = group_columns(session, drafted.table, drafted.group_columns, ())
    keys = max(1, len(frozen_keys(session, drafted.groups, groups)))
    bins = math.prod(one.buckets for one in drafted.declaration.bins)
    return replace(drafted.request_for(session, budget), cells=keys * bins)


def explain_release(session: Session, *, name: str | None) -> list[dict[str, Any]]:
    """Return the candidates a declared release was chosen from, as they were when it was declared."""
    rights.require_analyst(session)
    from dbext.service.ageing import risks_of

    release = releases.by_name(session, name)
    told = [{key: value for key, value in row.items() if key not in ("table_id", "release")} for row in risks_of(session, release)]
    return [{**row, "age_dependent": told if row["chosen"] and told else None} for row in release.content["candidates"]]


def explained_rows(made: Planned, types: Sequence[EntryType], budget: Budget, checks: KeyChecks | None) -> list[dict[str, Any]]:
    """Return the candidates; the chosen ones say too when keys taken from the data are shown."""
    rows = candidate_rows(made, types, budget.delta)
    for row in rows:
        if row["chosen"]:
            row["notes"] = "; ".join([*filter(None, [row["notes"]]), *key_notes(made.publication.main, checks)]) or None
    return rows


def key_notes(plan: Plan, checks: KeyChecks | None) -> list[str]:
    """Say from which count on keys taken from the data are shown."""
    if checks is None:
        return []
    first, last = (threshold(plan, checks, period) for period in (1, plan.horizon))
    much = f"{max(first, last):.1f}" if abs(first - last) < 0.1 else f"{first:.1f} (first period) to {last:.1f} (last)"  # noqa: PLR2004
    return [f"keys are taken from the data: one has rows from the first window on in which its noisy count is above {much}"]


def candidate_rows(made: Planned, types: Sequence[EntryType], delta: Fraction) -> list[dict[str, Any]]:
    """Return one row for each way to noise each stream: predicted errors at its share, and the lifetime loss of an entry of each type.

    Candidates of a stream were compared with the whole budget; only the chosen ones were then calibrated to their share.
    """
    names = {one.number: one.name for one in types}
    return [
        {
            "mechanism": one.mechanism,
            "noise": _noise(one),
            "mean_std_error": one.mean_std_error,
            "worst_std_error": one.worst_std_error,
            "epsilon_by_type": {names[number]: _epsilon(made, option, picos, delta) for number, picos in one.lifetime.items()},
            "chosen": one.chosen,
            "reason": one.reason,
            "kind": one.plan.kind,
            "horizon": one.plan.horizon,
            "notes": "; ".join(one.plan.notes) or None,
            "stream": option.stream,
            "share": option.share,
            "adds_in": "epsilon" if one.plan.pure else "rho",
            "stored_numbers": one.stored,
        }
        for option in made.options
        for one in [option.candidate]
    ]


def _epsilon(made: Planned, option: Option, picos: int, delta: Fraction) -> float:
    """Return what a candidate costs at its stream's share: those that were not chosen were priced with the whole budget."""
    costs = picos if option.candidate.chosen or made.backwards else round(picos * option.share)
    return float(epsilon_of(costs, Fraction(0) if option.candidate.plan.pure else delta))


def _noise(one: Candidate) -> str:
    if isinstance(one.noise, DiscreteLaplace):
        widest = max(one.plan.pattern_factors)
        upto = f" to {float(one.noise.scale * widest):.6g} by level" if widest > 1 else ""
        return f"discrete Laplace, scale {float(one.noise.scale):.6g}{upto}"
    return f"rounded Gaussian, sigma {float(one.noise.sigma_squared) ** 0.5:.6g}{lattice_text(one.plan)}"
