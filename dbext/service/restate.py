"""A release's history restated from all that it has published so far: post-processing, free of charge, never stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dbext.database import catalog, moments, nodes, releases
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.mechanisms.assemble import Edge
from dbext.query.plan import Plan, plan_from_json
from dbext.service.noising import Noising, answers


def restated_history(session: Session, *, release: str | None) -> list[dict[str, Any]]:
    """Return one row for each published window and group key: the least-squares estimate from all nodes so far, with its error.

    Whoever may read the release table may ask. Published rows stay as they are.
    """
    found = releases.by_name(session, release)
    plan = plan_from_json(found.content["plan"])
    releases.require_readable(session, found, plan.measure.value)
    table = catalog.tracked_table(session, found.table_id)
    periods = range(1, found.next_answer)
    if not periods:
        return []
    beginning = min([table.first_tick, *(leaf.end for leaf in plan.leaves(1) if leaf.start is None)]) - 1
    noising = Noising(found.release_id, plan, found.content["cells"], beginning)
    values, errors = (_as_published if _settled(plan, noising) else _restated)(session, noising, periods)
    return _rows(session, found, plan, periods, values, errors)


def _settled(plan: Plan, noising: Noising) -> bool:
    """Whether later numbers say nothing new: encoder rows are as many as counts, and signed blocks close no ring with others."""
    return not plan.whole_numbers or noising.noise_only


def _as_published(session: Session, noising: Noising, periods: Sequence[int]) -> tuple[list[list[float]], list[float]]:
    return answers(session, noising, periods), [noising.plan.std_error(period) for period in periods]


def _restated(session: Session, noising: Noising, periods: Sequence[int]) -> tuple[list[list[float]], list[float]]:
    import numpy as np

    from dbext.mechanisms.restate import restated

    plan = noising.plan
    drawn = {node.number: node for period in periods for node in plan.mechanism.nodes(period)}
    known = nodes.committed(session, noising.release_id, list(drawn))
    edges = [Edge(number, drawn[number].start, drawn[number].end, plan.node_variance(number)) for number in known]
    noisy = np.array([known[edge.number] for edge in edges], dtype=float)
    values, variances = restated(edges, noisy, [plan.window(period) for period in periods])
    return values.tolist(), [math.sqrt(variance) for variance in variances.tolist()]


def _rows(
    session: Session, release: Release, plan: Plan, periods: Sequence[int], values: list[list[float]], errors: list[float]
) -> list[dict[str, Any]]:
    keys = releases.keys(session, release)
    windows = moments.windows(session, release.table_id, [plan.window(period) for period in periods])
    return [
        {
            "release_no": period,
            "group_key": key,
            "window_start": start,
            "window_end": end,
            "value": value,
            "std_error": error,
        }
        for period, (start, end), cells, error in zip(periods, windows, values, errors, strict=True)
        for key, value in zip(keys, cells, strict=True)
    ]
