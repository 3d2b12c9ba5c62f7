"""A release's history restated from all that it has published so far: post-processing, free of charge, never stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dbext.database import catalog, moments, nodes, releases
from dbext.database.nodes import Source
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.mechanisms.assemble import Edge
from dbext.mechanisms.ranges import combination
from dbext.query.local_plan import LocalPlan, local_plan_from_json
from dbext.query.plan import Plan, plan_from_json
from dbext.service import local_publish
from dbext.service.noising import Noising, answers
from dbext.service.range import unit_of
from dbext.service.selected_keys import require_public_keys


def restated_history(session: Session, *, release: str | None) -> list[dict[str, Any]]:
    """Return one row for each published window and group key: the least-squares estimate from all nodes so far, with its error.

    Whoever may read the release table may ask. Published rows stay as they are.
    """
    found = releases.by_name(session, release)
    require_public_keys(found)
    unit = unit_of(found)
    local = local_publish.is_local(found)
    plan = (local_plan_from_json if local else plan_from_json)(found.content["plan"])
    releases.require_readable(session, found, plan.measure.value if local else found.content["publication"]["formulas"][0]["label"])
    table = catalog.tracked_table(session, found.table_id)
    periods = range(1, found.next_answer)
    if not periods:
        return []
    if local:
        return _rows(session, found, plan, periods, *_from_reports(session, found, plan, periods))
    beginning = min([table.first_tick, *(leaf.end for leaf in plan.leaves(1) if leaf.start is None)]) - 1
    noising = Noising(Source(found.release_id), plan, found.content["cells"], beginning)
    values, errors = (_as_published if _settled(plan, noising) else _restated)(session, noising, periods)
    scaled = [[value * unit for value in cells] for cells in values]
    return _rows(session, found, plan, periods, scaled, [[error * float(unit)] * noising.cells for error in errors])


def _from_reports(
    session: Session, release: Release, plan: LocalPlan, periods: Sequence[int]
) -> tuple[list[list[float]], list[list[float]]]:
    """Return estimates and their errors, cell by cell, of each window from all reports so far."""
    last, windows = periods[-1], [plan.mechanism.window(period) for period in periods]
    weights = [combination(plan.mechanism, last, plan.node_variance, *window) for window in windows]
    known = nodes.committed(session, Source(release.release_id), {number for one in weights for number, _ in one})
    made = [local_publish.combined(plan, one, known) for one in weights]
    return [values for values, _, _ in made], [errors for _, errors, _ in made]


def _settled(plan: Plan, noising: Noising) -> bool:
    """Whether later numbers say nothing new: encoder rows are as many as counts, and signed blocks close no ring with others."""
    return not plan.whole_numbers or noising.noise_only


def _as_published(session: Session, noising: Noising, periods: Sequence[int]) -> tuple[list[list[float]], list[float]]:
    return answers(session, noising, noising.plan.mechanism, periods), [noising.plan.std_error(period) for period in periods]


def _restated(session: Session, noising: Noising, periods: Sequence[int]) -> tuple[list[list[float]], list[float]]:
    import numpy as np

    from dbext.mechanisms.restate import restated

    plan = noising.plan
    drawn = {node.number: node for period in periods for node in plan.mechanism.nodes(period)}
    known = nodes.committed(session, noising.source, list(drawn))
    edges = [Edge(number, drawn[number].start, drawn[number].end, plan.node_variance(number)) for number in known]
    noisy = np.array([known[edge.number] for edge in edges], dtype=float)
    values, variances = restated(edges, noisy, [plan.window(period) for period in periods])
    return values.tolist(), [math.sqrt(variance) for variance in variances.tolist()]


def _rows(
    session: Session,
    release: Release,
    plan: Plan | LocalPlan,
    periods: Sequence[int],
    values: list[list[float]],
    errors: list[list[float]],
) -> list[dict[str, Any]]:
    keys = releases.keys(session, release)
    windows = moments.windows(session, release.table_id, [plan.mechanism.window(period) for period in periods])
    return [
        {
            "release_no": period,
            "group_key": key,
            "window_start": start,
            "window_end": end,
            "value": value,
            "std_error": error,
        }
        for period, (start, end), cells, widths in zip(periods, windows, values, errors, strict=True)
        for key, value, error in zip(keys, cells, widths, strict=True)
    ]
