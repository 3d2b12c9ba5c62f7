"""Answer a range of time from the stored nodes of one release: free of charge, because everything here is post-processing.

Nothing is drawn, and nodes of no other release are read. A figure that is worked out from several statistics has the errors of all of them.
"""

from __future__ import annotations

from typing import Any

from dbext.database import moments, nodes, releases
from dbext.database.catalog import TrackedTable
from dbext.database.nodes import Source
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported, UnknownObject, WindowNotSealed
from dbext.mechanisms.moments import Estimate
from dbext.mechanisms.ranges import Weights, combination, range_boundaries
from dbext.privacy.measure import Measure
from dbext.query.local_plan import LocalPlan
from dbext.query.plan import Plan
from dbext.query.statistic import Formula
from dbext.service import local_publish
from dbext.service.asked_figures import Asked, asked_figures, require_one
from dbext.service.figures import RangeSum, figure_of_range
from dbext.service.noising import combined
from dbext.service.streaming import require_kept

#: A figure's name, how many nodes were put together for it, and its estimates, cell by cell.
Answered = tuple[str, int, list[Estimate]]
BEGINNING = "-infinity"


def range_stats(session: Session, *, release: str | None, range_start: str | None, range_end: str | None) -> list[dict[str, Any]]:
    """Return one row for each figure and group key: the least-variance estimate of the range, with its error."""
    return _stats(session, asked_figures(session, release), range_start, range_end)


def range_value(session: Session, *, release: str | None, range_start: str | None, range_end: str | None, group_key: list[str]) -> float:
    """Return the estimate of one figure for one group key; without groups the key is empty."""
    asked = asked_figures(session, release)
    require_one(asked)
    rows = _stats(session, asked, range_start, range_end)
    width = len(rows[0]["group_key"])
    if len(group_key) != width:
        said = "has no groups" if width == 0 else f"is grouped by {width} column{'' if width == 1 else 's'}"
        raise BadArgument(f"the release {said}: name its group key as further arguments", hint="dp_range_stats returns all groups at once.")
    for row in rows:
        if row["group_key"] == group_key:
            return row["value"]
    raise UnknownObject("the release has no such group key", hint="dp_range_stats returns all of them.")


def _stats(session: Session, asked: Asked, range_start: str | None, range_end: str | None) -> list[dict[str, Any]]:
    measure = (asked.local or asked.publication.main).measure
    start, end = _range(session, asked.table, measure, range_start, range_end)
    estimates = _of_reports(session, asked, start, end) if asked.local else _of_nodes(session, asked, start, end)
    keys = releases.keys(session, asked.release)
    first, last = moments.ends(session, asked.release.table_id, start, end)
    status = "capture_gap" if releases.is_gapped(session, asked.release.table_id, start, end) else "ok"
    about = {"range_start": first, "range_end": last, "status": status}
    return [
        {
            "group_key": key,
            "figure": label,
            "value": one.value,
            "std_error": one.std_error,
            "lower_95": one.lower,
            "upper_95": one.upper,
            "nodes": count,
            **about,
        }
        for label, count, cells in estimates
        for key, one in zip(keys, cells, strict=True)
    ]


def _of_reports(session: Session, asked: Asked, start: int | None, end: int) -> list[Answered]:
    """The only figure of a release of the local model, from its reports."""
    weights = _weights(session, asked, asked.local, start, end)
    known = nodes.committed(session, Source(asked.release.release_id), {number for number, _ in weights})
    made = zip(*local_publish.combined(asked.local, weights, known), strict=True)
    cells = [Estimate(value, deviation, value - reach, value + reach) for value, deviation, reach in made]
    return [(asked.formulas[0].label, len(weights), cells)]


def _of_nodes(session: Session, asked: Asked, start: int | None, end: int) -> list[Answered]:
    """Every figure from the noisy sums of its statistics over the range."""
    formulas = _meaningful(asked, start)
    sums = {}
    for place in sorted({place for formula in formulas for place in formula.sources}):
        noising = asked.due.noisings[asked.publication.readings[place].stream]
        require_kept(noising.plan, asked.release.name, "a range of time")
        weights = _weights(session, asked, noising.plan, start, end)
        sums[place] = RangeSum(tuple(noising.plan.draws(weights)), combined(session, noising, weights, start, end))
    return [
        (formula.label, sum(len(sums[place].draws) for place in formula.sources), figure_of_range(asked.publication, formula, sums))
        for formula in formulas
    ]


def _meaningful(asked: Asked, start: int | None) -> list[Formula]:
    """The figures that mean something over a range: changes of a state are no entries that one could take the mean of."""
    if start is None or asked.publication.main.measure is not Measure.STATE:
        return list(asked.formulas)
    found = [formula for formula in asked.formulas if formula.is_linear]
    if not found:
        raise NotSupported(
            f"{asked.formulas[0].label} is a mean of what is there, and a range of a state is what changed in it",
            hint="Leave range_start NULL for the figure at range_end.",
        )
    return found


def _range(session: Session, table: TrackedTable, measure: Measure, start: str | None, end: str | None) -> tuple[int | None, int]:
    """Return the range as boundaries; it must stand on ticks. Only a state reaches back to the beginning."""
    if end is None:
        raise BadArgument("range_end is missing")
    last = _boundary(session, table, "range_end", end)
    if start is None or start.strip().lower() == BEGINNING:
        if measure is not Measure.STATE:
            raise BadArgument(f"measure {measure.value} needs a range_start")
        return None, last
    first = _boundary(session, table, "range_start", start)
    if first >= last:
        raise BadArgument("range_end must be after range_start")
    return first, last


def _boundary(session: Session, table: TrackedTable, name: str, text: str) -> int:
    floor, ceiling = moments.snap(session, table, name, text)
    if floor != ceiling:
        before, after = (moments.shown(session, table, one) for one in (floor, ceiling))
        raise BadArgument(f"{name} is not a tick boundary", hint=f"The nearest ones are {before} and {after}.")
    return floor


def _weights(session: Session, asked: Asked, plan: Plan | LocalPlan, start: int | None, end: int) -> Weights:
    """Return the weights of stored nodes; says why when published ones do not add up to the range."""
    published = asked.release.next_answer - 1
    weights = combination(plan.mechanism, published, plan.node_variance, start, end)
    if weights is not None:
        return weights
    for name, boundary in (("range_start", start), ("range_end", end)):
        if boundary is not None:
            _require_boundary(session, asked.table, plan, published, name, boundary)
    raise NotSupported(
        f"no sum or difference of what release {asked.release.name} has published makes up this range",
        hint="Its windows overlap or leave gaps. A release that is declared with levels answers every range between its boundaries.",
    )


def _require_boundary(session: Session, table: TrackedTable, plan: Plan, published: int, name: str, boundary: int) -> None:
    known = range_boundaries(plan.mechanism, published, boundary)
    if boundary in known:
        return
    if not known:
        raise WindowNotSealed("the release has published nothing yet", hint="CALL dp_publish() publishes what is due.")
    if boundary > known[-1]:
        until = moments.shown(session, table, known[-1])
        raise WindowNotSealed(f"{name} is not published yet: the release has published up to {until}")
    below, above = [one for one in known if one < boundary][-1:], [one for one in known if one > boundary][:1]
    shown = " and ".join(moments.shown(session, table, one) for one in (*below, *above))
    raise BadArgument(f"{name} is not a boundary of the release", hint=f"Nearest: {shown}.")
