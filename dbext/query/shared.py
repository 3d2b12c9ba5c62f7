"""One stream of noise for windows of several lengths: noisy periods that are added up, or an encoder made for all windows at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from dbext.mechanisms.disjoint import DisjointSums, disjoint_sums
from dbext.mechanisms.shared_windows import AnyWindow, SharedWindows, shared_root
from dbext.privacy.constraint import EntryType
from dbext.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise
from dbext.privacy.pattern import Windows
from dbext.query.admissible import LONGEST_ROOT
from dbext.query.calendar import Tick
from dbext.query.declaration import Declaration
from dbext.query.plan import Plan
from dbext.query.planner import Candidate, blank_plan, for_epsilon
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


def shared_candidates(shared: Shared, statistics: Sequence[Statistic]) -> Together | None:
    """The ways to answer windows of one statistic from one stream; None if they are not whole numbers of periods.

    Errors of a candidate are those of the longest window (`mean`), and the root of the sum over all windows for the choice.
    """
    shapes = [_shape(shared, statistic) for statistic in statistics]
    if any(shape.width is None for shape in shapes):
        return None
    assembled = [disjoint_sums(Windows(shape.grid, shape.width.ticks, shape.width.steps, shape.age, shape.horizon)) for shape in shapes]
    if any(one is None or one.remainder for one in assembled):
        return None
    windows = tuple(one.steps for one in assembled)
    longest = shapes[windows.index(max(windows))]
    made = [_planned(shared, longest, mechanism, kind) for mechanism, kind in _mechanisms(shared, assembled)]
    total = [math.sqrt(sum(_variance(plan, window) for window in windows)) for plan in made]
    best = total.index(min(total))
    found = [_candidate(plan, max(windows), total[n] / total[best], chosen=n == best) for n, plan in enumerate(made)]
    return Together(windows, tuple(found), total[best])


def _shape(shared: Shared, statistic: Statistic) -> Shape:
    declaration = replace(shared.declaration, range=statistic.range or shared.declaration.range)
    return replace(shape_of(declaration, shared.request, shared.tick), values=statistic.values)


def _mechanisms(shared: Shared, assembled: Sequence[DisjointSums]) -> Iterator[tuple[DisjointSums | SharedWindows, type[Noise]]]:
    longest = max(assembled, key=lambda one: one.steps)
    if shared.request.noise != "gaussian":
        yield longest, DiscreteLaplace
    if shared.delta == 0:
        return
    yield longest, DiscreteGaussian
    windows = tuple(one.steps for one in assembled)
    if 1 < longest.steps <= LONGEST_ROOT:
        yield SharedWindows(longest.grid, windows, shared_root(windows), longest.age, longest.count), DiscreteGaussian


def _planned(shared: Shared, shape: Shape, mechanism: DisjointSums | SharedWindows, kind: type[Noise]) -> Plan:
    pure = shared.delta == 0
    blank = blank_plan(shape, mechanism, grouped=shared.declaration.grouped, pure=pure)
    return for_epsilon(blank, kind, shared.request, shared.types, shared.delta)


def _variance(plan: Plan, window: int) -> float:
    """The variance of the answer about a window, in the long run."""
    if isinstance(plan.mechanism, DisjointSums):
        return plan.noise.variance * window
    count = plan.mechanism.count or _SETTLED * plan.mechanism.longest
    series = plan.mechanism.answer_series(window, count + plan.mechanism.longest - 1)
    return plan.noise.variance * float((series**2).sum())


def _candidate(plan: Plan, window: int, ratio: float, *, chosen: bool) -> Candidate:
    """The candidate with the error of its longest window."""
    error = math.sqrt(_variance(plan, window))
    reason = "smallest error of all windows together" if chosen else f"{ratio:.2f} times the error of the best"
    width = replace(plan, mechanism=AnyWindow(plan.mechanism, window)).half_width_95(1)
    return Candidate(plan, error, error, width, chosen, reason)
