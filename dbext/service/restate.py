"""A release's history restated from all that it has published so far: post-processing, free of charge, never stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dbext.database import moments, nodes, releases
from dbext.database.nodes import Source
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.mechanisms.assemble import Edge
from dbext.mechanisms.ranges import combination
from dbext.query.local_plan import LocalPlan
from dbext.query.plan import Plan
from dbext.service import local_publish
from dbext.service.asked_figures import Asked, asked_figures
from dbext.service.figures import figures_of_windows
from dbext.service.noised import Noising
from dbext.service.noising import answers
from dbext.service.streaming import require_kept

Window = tuple[int | None, int]


def restated_history(session: Session, *, release: str | None) -> list[dict[str, Any]]:
    """Return one row for each figure, published window and group key: the least-squares estimate from all nodes so far, with its error.

    Whoever may read the release table may ask. Published rows stay as they are.
    """
    asked = asked_figures(session, release)
    periods = range(1, asked.release.next_answer)
    if not periods:
        return []
    if asked.local:
        windows = [asked.local.mechanism.window(period) for period in periods]
        return _rows(session, asked, asked.formulas[0].label, windows, _from_reports(session, asked.release, asked.local, windows))
    made = {place: _statistic(session, asked, place, periods) for place in asked.places}
    noisy, deviations = ({place: both[side] for place, both in made.items()} for side in (0, 1))
    return [
        row
        for formula in asked.formulas
        for row in _rows(
            session,
            asked,
            formula.label,
            [asked.publication.mechanism(formula.sources[0]).window(period) for period in periods],
            figures_of_windows(asked.publication, formula, noisy, deviations),
        )
    ]


def _statistic(session: Session, asked: Asked, place: int, periods: Sequence[int]) -> tuple[list[list[float]], list[float]]:
    """Return the sums of all cells, and their standard errors, of the windows of one statistic."""
    noising, mechanism = asked.due.noisings[asked.publication.readings[place].stream], asked.publication.mechanism(place)
    require_kept(noising.plan, asked.release.name, "a restated history")
    return (_as_published if _settled(noising.plan, noising) else _restated)(session, noising, mechanism, periods)


def _from_reports(session: Session, release: Release, plan: LocalPlan, windows: Sequence[Window]) -> list[list[tuple[float, float]]]:
    """Return estimates and their errors, cell by cell, of each window from all reports so far."""
    weights = [combination(plan.mechanism, len(windows), plan.node_variance, *window) for window in windows]
    known = nodes.committed(session, Source(release.release_id), {number for one in weights for number, _ in one})
    made = (local_publish.combined(plan, one, known) for one in weights)
    return [list(zip(values, errors, strict=True)) for values, errors, _ in made]


def _settled(plan: Plan, noising: Noising) -> bool:
    """Whether later numbers say nothing new: encoder rows are as many as counts, and signed blocks close no ring with others."""
    return not plan.whole_numbers or noising.noise_only


def _as_published(session: Session, noising: Noising, mechanism: Any, periods: Sequence[int]) -> tuple[list[list[float]], list[float]]:
    read = replace(noising.plan, mechanism=mechanism)
    return answers(session, noising, mechanism, periods), [read.std_error(period) for period in periods]


def _restated(session: Session, noising: Noising, mechanism: Any, periods: Sequence[int]) -> tuple[list[list[float]], list[float]]:
    import numpy as np

    from dbext.mechanisms.restate import restated

    plan = noising.plan
    drawn = {node.number: node for period in periods for node in plan.mechanism.nodes(period)}
    known = nodes.committed(session, noising.source, list(drawn))
    edges = [Edge(number, drawn[number].start, drawn[number].end, plan.node_variance(number)) for number in known]
    noisy = np.array([known[edge.number] for edge in edges], dtype=float)
    values, variances = restated(edges, noisy, [mechanism.window(period) for period in periods])
    return values.tolist(), [math.sqrt(variance) for variance in variances.tolist()]


def _rows(
    session: Session, asked: Asked, label: str, windows: Sequence[Window], estimates: Sequence[Sequence[tuple[float, float]]]
) -> list[dict[str, Any]]:
    keys = releases.keys(session, asked.release)
    ends = moments.windows(session, asked.release.table_id, windows)
    return [
        {
            "release_no": period,
            "group_key": key,
            "window_start": start,
            "window_end": end,
            "value": value,
            "std_error": error,
            "figure": label,
        }
        for period, (start, end), cells in zip(range(1, len(windows) + 1), ends, estimates, strict=True)
        for key, (value, error) in zip(keys, cells, strict=True)
    ]
