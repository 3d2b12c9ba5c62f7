"""Age-dependent privacy: state a model, and see what releases tell under it. Beside the classical loss, never in its place.

Nothing here is charged, and nothing here enlarges a budget: figures come from plans and models alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dbext.database import catalog, processes, releases, rights
from dbext.database.catalog import TrackedTable
from dbext.database.identifiers import shown
from dbext.database.processes import EVERY_TYPE
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported, UnknownObject
from dbext.privacy.ageing import Memory, outlook
from dbext.privacy.ageing_plan import Choice, laplace_and_drift, plan_ageing
from dbext.privacy.markov import Chain, from_dwell_times
from dbext.query.aged import AgedRelease, aged_release, aged_reports, in_step, one_answer, together
from dbext.query.local_plan import local_plan_from_json
from dbext.query.publication import publication_from_json
from dbext.service.grouping import columns_from_json

MAX_STATES, MAX_TICKS, MAX_GRID = 50, 2_000, 1_000
NOT_PURE = "age-dependent loss is proven for one count of pure loss only"
NO_MODEL = "no model is stated for some entry types, so that nothing ages for them"


def set_process(session: Session, *, tbl: int, column_name: str | None, transition: Any, dwell: Any, entry_type: str | None) -> str:
    """State, replace or (given neither matrix nor dwell times) forget the model of a column, of one entry type or of all others."""
    who = rights.require_admin(session)
    table = catalog.tracked_by_regclass(session, str(tbl))
    if table.rows_per_unit is not None:
        raise NotSupported(f"a model is of one row per entry, and an entry of table {table.shown_name} is a unit of several rows")
    column = _column(session, table, column_name)
    type_name = _type(session, table, entry_type)
    if transition is None and dwell is None:
        if not processes.forget(session, table.table_id, column, type_name):
            raise UnknownObject(f"no such model is stated for column {shown(column)} of table {table.shown_name}")
        return f"the model of column {shown(column)} of table {table.shown_name} is forgotten"
    if transition is not None and dwell is not None:
        raise BadArgument("a model is a transition matrix or dwell times, not both")
    chain = _chain(transition, dwell)
    processes.state(session, table.table_id, column, type_name, chain, who.name)
    kept = ", ".join(f"{chain.delta(ticks):.3g} over {ticks}" for ticks in (1, 7, 30))
    return (
        f"column {shown(column)} of table {table.shown_name} is taken to move as a chain of {len(chain.transition)} states, "
        f"which keeps of a difference {kept} ticks; figures under this model stand beside epsilon and enlarge no budget"
    )


def _column(session: Session, table: TrackedTable, name: str | None) -> str:
    if name not in {one.name for one in catalog.columns(session, table.table_id)}:
        raise UnknownObject(f"table {table.shown_name} has no tracked column {shown(name or '')}")
    return name


def _type(session: Session, table: TrackedTable, name: str | None) -> str:
    if name is not None and name not in {one.name for one in catalog.entry_types(session, table.table_id)}:
        raise UnknownObject(f"table {table.shown_name} has no entry type {shown(name)}")
    return EVERY_TYPE if name is None else name


def _chain(transition: Any, dwell: Any) -> Chain:
    given = transition if dwell is None else dwell
    if len(given) > MAX_STATES:
        raise BadArgument(f"a model has at most {MAX_STATES} states")
    numbers = [value for row in given for value in (row if isinstance(row, list) else [row])]
    if any(not isinstance(value, int | float) or not math.isfinite(value) for value in numbers):
        raise BadArgument("a model holds numbers only")
    if dwell is not None:
        return from_dwell_times(dwell)
    if not all(isinstance(row, list) for row in given):
        raise BadArgument("a transition matrix is square", hint="For two states: ARRAY[[0.9, 0.1], [0.2, 0.8]]")
    return Chain(tuple(tuple(row) for row in given))


def age_risks(session: Session) -> list[dict[str, Any]]:
    """Return what every release tells, one row for each column with a model."""
    declared = [releases.by_name(session, name) for name in processes.modelled(session)]
    totals = [row for table_id in dict.fromkeys(one.table_id for one in declared) for row in _total(session, table_id, declared)]
    return [row for one in declared for row in risks_of(session, one)] + totals


def _total(session: Session, table_id: int, declared: Sequence[Release]) -> list[dict[str, Any]]:
    """Return what all releases of a table and all answers about it tell together, one row for each column with a model."""
    table = catalog.tracked_table(session, table_id)
    types = catalog.accounted_types(session, table)
    parts = [_aged(session, one, table) for one in declared if one.table_id == table_id]
    parts += [one_answer(end, charge, types) for end, charge in processes.answers(session, table_id)]
    everything = None if None in parts else together(parts)
    memories = {name: _memory(session, table, chains) for name, chains in processes.of_table(session, table_id).items()}
    return [{"table_id": table_id, "column_name": name, **_figures(everything, memory)} for name, memory in memories.items()]


def risks_of(session: Session, release: Release) -> list[dict[str, Any]]:
    """Return what a release tells, one row for each column with a model."""
    table = catalog.tracked_table(session, release.table_id)
    aged = _aged(session, release, table)
    rows = []
    for column, chains in processes.of_table(session, table.table_id).items():
        row = {"table_id": table.table_id, "release": release.name, "column_name": column, "epsilon": release.content["epsilon"]}
        rows.append({**row, **_figures(aged, _memory(session, table, chains))})
    return rows


def _figures(aged: AgedRelease | None, memory: Memory | None) -> dict[str, Any]:
    if aged is None:
        return {"reason": NOT_PURE}
    figures = {"output_loss": _finite(aged.dearest), "every": aged.interval, "age": aged.age}
    if memory is None:
        return {**figures, "reason": NO_MODEL}
    return {
        **figures,
        "kept": memory(aged.interval),
        "peak": _finite(aged.peak(memory)),
        "bounded": aged.is_bounded(memory),
        "reason": aged.reason(memory),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _aged(session: Session, release: Release, table: TrackedTable) -> AgedRelease | None:
    """Return the outputs of a release; None where nothing is proven."""
    types = catalog.accounted_types(session, table)
    if release.content.get("model") == "local":
        return aged_reports(local_plan_from_json(release.content["plan"]), types)
    columns = columns_from_json(release.content["columns"])
    publication = publication_from_json(release.content["plan"], release.content["publication"], columns)
    parts = [aged_release(stream.plan, types) for stream in publication.streams]
    return None if None in parts else in_step(parts)


def _memory(session: Session, table: TrackedTable, chains: dict[str, Chain]) -> Memory | None:
    """Return the worst Delta over entry types; None if one has no model."""
    names = [one.name for one in catalog.accounted_types(session, table)]
    used = {chains.get(name, chains.get(EVERY_TYPE)) for name in names}
    return None if None in used else lambda ticks: max(chain.delta(ticks) for chain in used)


def risk_curve(
    session: Session, *, release: str | None, column_name: str | None, ticks: int | None, late: int | None = 0
) -> list[dict[str, Any]]:
    """Return the age of information and the risk at the end of consecutive ticks, from the one before the first output.

    Every output appears `late` ticks after it is due.
    """
    rights.require_analyst(session)
    if ticks is None or not 1 <= ticks <= MAX_TICKS or late is None or not 0 <= late <= MAX_TICKS:
        raise BadArgument(f"ticks must lie between 1 and {MAX_TICKS:,}, late between 0 and {MAX_TICKS:,}")
    found = releases.by_name(session, release)
    table = catalog.tracked_table(session, found.table_id)
    memory = _memory(session, table, _chains(session, table, column_name))
    aged = _aged(session, found, table)
    if aged is None or memory is None:
        raise BadArgument(NOT_PURE if aged is None else NO_MODEL)
    aged = aged.delayed(late)
    first = aged.outputs[0].published - 1
    span = range(first, first + ticks)
    points = aged.curve(memory, span)
    return [
        {"moment": moment, "age": age, "risk": _finite(risk), "published": published}
        for moment, (age, risk, published) in zip(processes.ends(session, table.table_id, span), points, strict=True)
    ]


def _chains(session: Session, table: TrackedTable, column: str | None) -> dict[str, Chain]:
    """Return the models of a column; without a name, of the only one that has any."""
    found = processes.of_table(session, table.table_id)
    if column is None and len(found) > 1:
        raise BadArgument("several columns have a model", hint=f"Name one: column_name => '{next(iter(found))}'")
    chosen = next(iter(found), None) if column is None else column
    if chosen not in found:
        raise UnknownObject(f"no model is stated for table {table.shown_name}", hint="An administrator states one with dp_set_process.")
    return found[chosen]


def plan_ageing_of(
    session: Session,
    *,
    tbl: int,
    column_name: str | None,
    target: float | None,
    spread: float | None,
    longest: int | None,
    oldest: int | None,
) -> list[dict[str, Any]]:
    """Return the age and noise of least error below a target, and the two extremes. Spends nothing and enlarges no budget."""
    rights.require_analyst(session)
    table = catalog.tracked_by_regclass(session, str(tbl))
    memory = _memory(session, table, _chains(session, table, column_name))
    if memory is None:
        raise BadArgument(NO_MODEL)
    return choices(memory, target, spread, longest, oldest)


def choices(memory: Memory, target: float | None, spread: float | None, longest: int | None, oldest: int | None) -> list[dict[str, Any]]:
    """Return the rows of an ageing plan."""
    if not (target and spread and math.isfinite(target) and math.isfinite(spread) and target > 0 and spread > 0):
        raise BadArgument("target and spread must be positive")
    if not (longest and 1 <= longest <= MAX_GRID and oldest is not None and 0 <= oldest <= MAX_GRID):
        raise BadArgument(f"longest must lie between 1 and {MAX_GRID:,}, oldest between 0 and {MAX_GRID:,}")
    made = plan_ageing(target, range(1, longest + 1), oldest, memory, laplace_and_drift(spread))
    named = [("best", made.best), ("noise only", made.noise_only), ("ageing only", made.ageing_only)]
    return [_choice(name, one, memory) for name, one in named if one is not None]


def _choice(name: str, one: Choice, memory: Memory) -> dict[str, Any]:
    peak = outlook(one.interval, one.age, one.epsilon, memory).peak
    return {
        "strategy": name,
        "every": one.interval,
        "age": one.age,
        "epsilon": _finite(one.epsilon),
        "error": one.error,
        "peak": _finite(peak),
    }
