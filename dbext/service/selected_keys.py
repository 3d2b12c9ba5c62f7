"""Group keys taken from the data: a key gets a cell when the first entry has it, and rows once its noisy count is too large for one entry.

Cells are noised like those of public keys, from the first node on: what a hidden cell holds has never left. Why showing some of them
costs no more than `key_delta` is told in `privacy.key_checks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dbext.database import nodes, releases
from dbext.database.effects import GroupColumn, new_keys_sql
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported, UnboundedLoss
from dbext.mechanisms.protocol import Node
from dbext.mechanisms.sampling import draw
from dbext.privacy.constraint import EntryType
from dbext.privacy.key_checks import KeyChecks, key_checks
from dbext.query.plan import Plan
from dbext.query.publication import Publication
from dbext.service.due import Due, batches
from dbext.service.noised import Noising
from dbext.service.noising import Answers
from dbext.service.streaming import exact_totals, join

#: Types whose equal values are written alike: of others, how a key is written could tell of one entry.
PLAIN = {"bool", "integer", "enum", "date", "timestamp", "timestamptz", "uuid", "text"}


def checks_for(
    made: Publication, groups: Sequence[GroupColumn], types: Sequence[EntryType], key_delta: Fraction, epsilon: Fraction
) -> KeyChecks:
    """Return the checks of a release that may use `key_delta` of a budget of `epsilon`; refuses what cannot hide its keys."""
    plan = made.main
    _require_plain(groups)
    if len(made.formulas) > 1 or made.formulas[0].function != "count" or made.streams[0].windows:
        raise NotSupported("keys are taken from the data for releases of one count(*)", hint="List the keys with groups =>.")
    if plan.band != "pointwise":
        raise NotSupported("a simultaneous band tells how many keys there are", hint="Leave band out, or list the keys with groups =>.")
    if plan.horizon is None or plan.renews:
        raise NotSupported(
            "keys that are taken from the data can be looked at a limited number of times only",
            hint="Say how many periods there are: horizon => 365, and at_horizon => 'end' if that is given.",
        )
    windows = [plan.window(period) for period in range(1, plan.horizon + 1)]
    ticks = None if any(start is None for start, _ in windows) else max(end - start for start, end in windows)
    checks = key_checks(plan.measure, ticks, plan.horizon, types, key_delta, epsilon)
    if checks is not None and checks.tail == 0:
        raise BadArgument("key_delta is too small beside the budget's epsilon: no key could ever be shown")
    if checks is None:
        raise UnboundedLoss("no constraint bounds how often an entry can enter or leave in one window")
    return checks


def _require_plain(groups: Sequence[GroupColumn]) -> None:
    for group in groups:
        if group.column.base not in PLAIN or group.column.type_name.endswith(("citext", "bpchar", "character")):
            raise NotSupported(
                f"values of column {group.column.name} that are equal can be written in several ways, which could tell of one entry",
                hint="List the keys with groups =>, or group by a column of type text.",
            )


def threshold(plan: Plan, checks: KeyChecks, period: int) -> float:
    """Return what a noisy count must be above for its key to be shown from a period on."""
    return checks.change + plan.half_width_at(period, float(checks.tail))


def add_cells(session: Session, due: Due, through: int) -> int:
    """Give cells to keys that first appear in ticks not summed yet, up to `through`, and noise them in all stored nodes; returns how many.

    Whatever was summed and noised before is 0 in a cell that is new, and its noise is as fresh as if it had been drawn then.
    """
    release, (noising,) = due.release, due.noisings
    sql = new_keys_sql(release.table_id, due.plan.measure, due.publication.streams[0].predicate, due.table.groups)
    added = session.execute(sql, release.release_id, release.summed_through, through)
    if added:
        nodes.widen_sums(session, noising.source, added)
        if noising.plan.buffered is not None:
            join(session, noising, added)
            return added
        for numbers in batches(nodes.stored_numbers(session, noising.source), added):
            fresh = [value for number in numbers for value in draw(noising.plan.node_noise(number), added)]
            nodes.widen(session, noising.source, numbers, fresh, added)
    return added


def show_keys(session: Session, due: Due, periods: Sequence[int], noisy: Answers) -> None:
    """Show hidden keys whose answers pass the threshold, each from its first such period on. `noisy` holds the answers of the periods.

    A key is looked at only where its exact answer is not 0. Exact answers are summed from all ticks, and that only in the rare periods in
    which some hidden key passes: at most once for each key that is shown, but for the chance that noise alone passes.
    """
    hidden = releases.hidden_cells(session, due.release.release_id)
    least = [threshold(due.plan, due.checks, period) for period in periods]
    passing = [{cell for cell in hidden if answer[cell - 1] > limit} for answer, limit in zip(noisy, least, strict=True)]
    where = [place for place, cells in enumerate(passing) if cells]
    exact = exact_answers(session, due.noisings[0], [periods[place] for place in where]) if where else []
    shown: dict[int, int] = {}
    for place, answer in zip(where, exact, strict=True):
        for cell in passing[place]:
            if answer[cell - 1] != 0:
                shown.setdefault(cell, periods[place])
    if shown:
        releases.show_keys(session, due.release.release_id, shown)


def exact_answers(session: Session, noising: Noising, periods: Sequence[int]) -> list[list[int]]:
    """Return the exact answers of periods, one number per cell. They decide which cells are looked at, and go nowhere."""
    if noising.plan.buffered is not None:
        return exact_totals(session, noising, periods)
    windows = [Node(period, *noising.plan.window(period)) for period in periods]
    return nodes.exact_sums(session, noising.source, windows, noising.cells, noising.beginning)


def require_public_keys(release: Release) -> None:
    """Refuse what would show all cells of a release, if some may be hidden."""
    if release.content.get("key_checks"):
        raise NotSupported(
            f"group keys of release {release.name} are taken from the data, and some of its cells are hidden",
            hint="Its published rows can be added and subtracted; each of its keys has rows from the first window on that showed it.",
        )
