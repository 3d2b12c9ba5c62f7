"""Answer a range of time from the stored nodes of one release: free of charge, because everything here is post-processing."""

from __future__ import annotations

import math
from typing import Any

from dbext.database import catalog, moments, nodes, releases
from dbext.database.catalog import TrackedTable
from dbext.database.nodes import Source
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported, UnknownObject, WindowNotSealed
from dbext.mechanisms.error import half_width, variance_of
from dbext.mechanisms.ranges import Weights, combination, range_boundaries
from dbext.privacy.measure import Measure
from dbext.query.local_plan import LocalPlan, local_plan_from_json
from dbext.query.plan import Plan, plan_from_json
from dbext.query.statistic import Statistic, scale_of, term_from_json
from dbext.service import local_publish
from dbext.service.grouping import columns_from_json
from dbext.service.noising import Noising, combined
from dbext.service.selected_keys import require_public_keys

BEGINNING = "-infinity"


def range_stats(session: Session, *, release: str | None, range_start: str | None, range_end: str | None) -> list[dict[str, Any]]:
    """Return one row per group key: the least-variance estimate of the range, with its error.

    Whoever may read the release table may ask. Nothing is drawn, nothing is charged, and nodes of no other release are read.
    """
    found = releases.by_name(session, release)
    require_public_keys(found)
    unit = unit_of(found)
    local = local_publish.is_local(found)
    plan = (local_plan_from_json if local else plan_from_json)(found.content["plan"])
    releases.require_readable(session, found, plan.measure.value if local else found.content["publication"]["formulas"][0]["label"])
    table = catalog.tracked_table(session, found.table_id)
    start, end = _range(session, table, plan, range_start, range_end)
    weights = _weights(session, table, found, plan, start, end)
    if local:
        known = nodes.committed(session, Source(found.release_id), {number for number, _ in weights})
        return _rows(session, found, weights, local_publish.combined(plan, weights, known), start, end)
    beginning = min([table.first_tick, *(leaf.end for leaf in plan.leaves(1) if leaf.start is None)]) - 1
    noising = Noising(Source(found.release_id), plan, found.content["cells"], beginning)
    values = [value * unit for value in combined(session, noising, weights, start, end)]
    draws = plan.draws(weights)
    deviation, reach = math.sqrt(variance_of(draws)) * float(unit), half_width(draws) * float(unit)
    return _rows(session, found, weights, (values, [deviation] * len(values), [reach] * len(values)), start, end)


def unit_of(release: Release) -> float:
    """Return what one step of a release's nodes is in its only figure, a count or a sum. Refuses several figures, and means."""
    if local_publish.is_local(release):
        return 1
    streams, formulas = (release.content["publication"][name] for name in ("streams", "formulas"))
    if len(streams) > 1 or len(formulas) > 1 or len(formulas[0]["sources"]) > 1:
        raise NotSupported(
            f"release {release.name} publishes other figures than one count or sum, which is what ranges and restated histories are of",
            hint="Declare a release of the count or the sum alone, with every range you want between its boundaries.",
        )
    if streams[0]["term"] is None:
        return 1
    scale = scale_of(Statistic(None, term_from_json(streams[0]["term"], columns_from_json(release.content["columns"]))))
    return scale.numerator if scale.denominator == 1 else float(scale)


def range_value(session: Session, *, group_key: list[str], **arguments: Any) -> float:
    """Return the estimate for one group key; without groups the key is empty."""
    rows = range_stats(session, **arguments)
    width = len(rows[0]["group_key"])
    if len(group_key) != width:
        said = "has no groups" if width == 0 else f"is grouped by {width} column{'' if width == 1 else 's'}"
        raise BadArgument(f"the release {said}: name its group key as further arguments", hint="dp_range_stats returns all groups at once.")
    for row in rows:
        if row["group_key"] == group_key:
            return row["value"]
    raise UnknownObject("the release has no such group key", hint="dp_range_stats returns all of them.")


def _range(session: Session, table: TrackedTable, plan: Plan | LocalPlan, start: str | None, end: str | None) -> tuple[int | None, int]:
    """Return the range as boundaries; it must stand on ticks. Only a state reaches back to the beginning."""
    if end is None:
        raise BadArgument("range_end is missing")
    last = _boundary(session, table, "range_end", end)
    if start is None or start.strip().lower() == BEGINNING:
        if plan.measure is not Measure.STATE:
            raise BadArgument(f"measure {plan.measure.value} needs a range_start")
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


def _weights(session: Session, table: TrackedTable, release: Release, plan: Plan, start: int | None, end: int) -> Weights:
    """Return the weights of stored nodes; says why when published ones do not add up to the range."""
    published = release.next_answer - 1
    weights = combination(plan.mechanism, published, plan.node_variance, start, end)
    if weights is not None:
        return weights
    for name, boundary in (("range_start", start), ("range_end", end)):
        if boundary is not None:
            _require_boundary(session, table, plan, published, name, boundary)
    raise NotSupported(
        f"no sum or difference of what release {release.name} has published makes up this range",
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


def _rows(
    session: Session, release: Release, weights: Weights, figures: tuple[list[float], list[float], list[float]], start: int | None, end: int
) -> list[dict[str, Any]]:
    first, last = moments.ends(session, release.table_id, start, end)
    status = "capture_gap" if releases.is_gapped(session, release.table_id, start, end) else "ok"
    return [
        {
            "group_key": key,
            "value": value,
            "std_error": deviation,
            "lower_95": value - reach,
            "upper_95": value + reach,
            "range_start": first,
            "range_end": last,
            "nodes": len(weights),
            "status": status,
        }
        for key, value, deviation, reach in zip(releases.keys(session, release), *figures, strict=True)
    ]
