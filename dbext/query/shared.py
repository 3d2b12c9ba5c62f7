"""One stream of noise for windows of several lengths: noisy periods that are added up, or an encoder made for all windows at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from dbext.mechanisms.disjoint import DisjointSums, disjoint_sums
from dbext.mechanisms.error import half_width
from dbext.mechanisms.shared_windows import SharedWindows, shared_root
from dbext.privacy.constraint import EntryType
from dbext.privacy.noise import law_of
from dbext.privacy.pattern import Windows
from dbext.query.admissible import LONGEST_ROOT
from dbext.query.calendar import Tick
from dbext.query.declaration import Declaration
from dbext.query.exact_error import largest_noise_within
from dbext.query.plan import Plan
from dbext.query.planner import Candidate, at_noise, blank_plan, for_epsilon
from dbext.query.shape import Request, Shape, shape_of
from dbext.query.statistic import Statistic

#: Rows, in longest windows, after which the error of endless shared windows no longer grows.
_SETTLED = 128


@dataclass(frozen=True)
class Shared:
    """What windows are planned under."""

    declaration: Declaration
    request: Request
    tick: Tick
    types: Sequence[EntryType]
    delta: Decimal


@dataclass(frozen=True)
class Together:
    """Windows answered together: their numbers of periods, the candidates, and the root of the sum of their squared errors."""

    windows: tuple[int, ...]
    made: tuple[Candidate, ...]
    error: float


def shared_candidates(shared: Shared, statistics: Sequence[Statistic], limits: Sequence[Fraction] | None = None) -> Together | None:
    """The ways to answer windows of one statistic from one stream; None if they are not whole numbers of periods.

    Errors of a candidate are those of the longest window (`mean`), and the root of the sum over all windows for the choice. With `limits`
    noise is as large as the half width of every window allows, and the least epsilon is chosen; None if no way reaches them.
    """
    shapes = [_shape(shared, statistic) for statistic in statistics]
    if any(shape.width is None for shape in shapes):
        return None
    assembled = [disjoint_sums(Windows(shape.grid, shape.width.ticks, shape.width.steps, shape.age, shape.horizon)) for shape in shapes]
    if any(one is None or one.remainder for one in assembled):
        return None
    windows = tuple(one.steps for one in assembled)
    longest = shapes[windows.index(max(windows))]
    within = None if limits is None else dict(zip(windows, limits, strict=True))
    tried = (_planned(shared, longest, mechanism, within) for mechanism in _mechanisms(shared, assembled))
    made = [one for one in tried if one is not None]
    if not made:
        return None
    total = [math.sqrt(sum(_variance(plan, window) for window in windows)) for plan in made]
    measured, what = (total, "error") if limits is None else ([float(plan.epsilon) for plan in made], "epsilon")
    best = measured.index(min(measured))
    least = measured[best]
    reasons = [_reason(one / least if least else 1.0, what, chosen=n == best) for n, one in enumerate(measured)]
    found = [_candidate(plan, max(windows), reasons[n], chosen=n == best) for n, plan in enumerate(made)]
    return Together(windows, tuple(found), total[best])


def _shape(shared: Shared, statistic: Statistic) -> Shape:
    declaration = replace(shared.declaration, range=statistic.range or shared.declaration.range)
    return replace(shape_of(declaration, shared.request, shared.tick), values=statistic.values)


def _mechanisms(shared: Shared, assembled: Sequence[DisjointSums]) -> Iterator[DisjointSums | SharedWindows]:
    longest = max(assembled, key=lambda one: one.steps)
    yield longest
    windows = tuple(one.steps for one in assembled)
    if shared.delta > 0 and 1 < longest.steps <= LONGEST_ROOT:
        yield SharedWindows(longest.grid, windows, shared_root(windows), longest.age, longest.count)


def _planned(
    shared: Shared, shape: Shape, mechanism: DisjointSums | SharedWindows, within: dict[int, Fraction] | None
) -> Plan | None:
    pure = shared.delta == 0
    blank = blank_plan(shape, mechanism, grouped=shared.declaration.grouped, pure=pure)
    if within is None:
        return for_epsilon(blank, shared.request, shared.types, shared.delta)
    noises = [
        largest_noise_within(limit, law_of(pure=pure), [(Fraction(1), weight) for weight in _weights(mechanism, window)], blank.tail(1))
        for window, limit in within.items()
    ]
    return None if None in noises else at_noise(blank, min(noises, key=lambda noise: noise.variance), shared.types, shared.delta)


def _weights(mechanism: DisjointSums | SharedWindows, window: int) -> list[float]:
    """The weights of an answer about a window in the long run, when it holds the most noise."""
    if isinstance(mechanism, DisjointSums):
        return [1] * window
    count = mechanism.count or _SETTLED * mechanism.longest
    return mechanism.answer_series(window, count + mechanism.longest - 1).tolist()


def _variance(plan: Plan, window: int) -> float:
    return plan.noise.variance * math.fsum(weight * weight for weight in _weights(plan.mechanism, window))


def _reason(ratio: float, what: str, *, chosen: bool) -> str:
    if not chosen:
        return f"{ratio:.2f} times the {what} of the best"
    return "smallest error of all windows together" if what == "error" else "smallest epsilon for all windows together"


def _candidate(plan: Plan, window: int, reason: str, *, chosen: bool) -> Candidate:
    """The candidate with the error of its longest window."""
    error = math.sqrt(_variance(plan, window))
    width = half_width([(plan.noise, weight) for weight in _weights(plan.mechanism, window)])
    return Candidate(plan, error, error, width, chosen=chosen, reason=reason)
