"""The attacker of the statistical audit: what best tells whether an entry is there, and what that proves.

He knows everything but whether the entry is there. He uses the likelihood ratio of all figures about it (for sums of several noises: the
best linear statistic), picks a threshold on one half of the experiments and tests it on the other with Clopper-Pearson limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dbext.errors import InternalError
from dbext.privacy.noise import DiscreteLaplace
from dbext.query.plan import Plan

Figures = np.ndarray

#: Where an entry is at the end of a day of its life: at its first key, at its second, at both with half its rows each, or absent.
HERE, THERE, BOTH, GONE = 0, 1, 2, None


@dataclass(frozen=True)
class Kind:
    """A kind of release and the life of an entry that costs it most: (day, place) changes, day 1 being the first period.

    `limits` are the arguments of dp_add_constraint that the life exhausts. `every` is None for one answer. `rows` of an entry count where
    it is a unit of several; None: it is one row. `gaussian`: it takes a budget with a delta.
    """

    name: str
    declaration: str
    measure: str
    life: tuple[tuple[int, int | None], ...]
    limits: dict[str, int | str]
    days: int
    horizon: int | None = None
    every: str | None = "1 day"
    renews: bool = False
    rows: int | None = None
    gaussian: bool = False

    def counted(self, place: int | None, key: int) -> int:
        """Return what the entry adds to the count of a key while it is at a place."""
        if place not in (key, BOTH):
            return 0
        if self.rows is None or "DISTINCT" in self.declaration:
            return 1
        return self.rows // 2 if place == BOTH else self.rows

    @property
    def at_horizon(self) -> str | None:
        """What is declared to happen at the horizon."""
        return "renew" if self.renews else None

    @property
    def epochs(self) -> int:
        """Number of epochs that the figures are of."""
        return -(-self.days // self.horizon) if self.renews else 1

    @property
    def periods(self) -> int:
        """Number of figures per key."""
        return self.days if self.every else 1


def collected(rows: Sequence[tuple[int, int, float]], runs: int, periods: int) -> Figures:
    """Return published (period, key, value) rows as figures: experiment x period x key, two keys an experiment."""
    figures = np.full((runs, periods, 2), np.nan)
    for period, place, value in rows:
        figures[place // 2, period - 1, place % 2] = value
    if np.isnan(figures).any():
        raise InternalError("a window or a key was not published")
    return figures


def scores_of(answers: Sequence[float]) -> Figures:
    """Return single answers as scores."""
    return np.array(answers, dtype=float)


def laplace_ratios(nodes: Iterable[tuple[Sequence[float], int, float]]) -> Figures:
    """Return, cell by cell, the log likelihood ratio of nodes (values, what the entry adds, scale of the noise) seen by themselves."""
    return sum((abs(np.array(values, float)) - abs(np.array(values, float) - change)) / scale for values, change, scale in nodes)


def place_at(kind: Kind, day: int) -> int | None:
    """Return where the entry is at the end of a day."""
    return next((place for since, place in reversed(kind.life) if since <= day), GONE)


def effect(kind: Kind, start: int | None, end: int, key: int) -> int:
    """Return what the entry does to the exact count of one key over the days (start, end]; None reaches back to the beginning."""
    if kind.measure in ("entered", "left"):
        came = 0 if kind.measure == "entered" else 1
        days = ((day, day - 1) if came == 0 else (day - 1, day) for day in range(start + 1, end + 1))
        return sum(place_at(kind, there) == key and place_at(kind, absent) is GONE for there, absent in days)
    before = GONE if start is None else place_at(kind, start)
    return kind.counted(place_at(kind, end), key) - kind.counted(before, key)


def statistic(kind: Kind, plan: Plan, first_boundary: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from figures (experiment x period x key) to what best tells whether the entry is there."""
    mixing, signal = _model(kind, plan, first_boundary)
    if isinstance(plan.noise, DiscreteLaplace) and mixing.shape[1] - mixing.shape[0] in (0, 1):
        return lambda figures: _laplace_ratio(figures, mixing, signal, float(plan.noise.scale))
    weights = np.linalg.pinv(mixing @ mixing.T) @ mixing @ signal
    return lambda figures: (figures * weights).sum(axis=(1, 2))


def _model(kind: Kind, plan: Plan, first_boundary: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how answers are put together from what was noised (period x sum), and what the entry does to each sum (sum x key)."""
    periods, mechanism = range(1, kind.periods + 1), plan.mechanism
    ranges = {leaf.number: leaf for period in periods for leaf in (mechanism.nodes if plan.whole_numbers else mechanism.leaves)(period)}
    days = {n: (None if leaf.start is None else leaf.start - first_boundary, leaf.end - first_boundary) for n, leaf in ranges.items()}
    moved = {number: [effect(kind, *window, key) for key in (HERE, THERE)] for number, window in days.items()}
    if plan.whole_numbers:
        sums = {number: np.array(one, float) for number, one in moved.items()}
    else:
        rows = [row for period in periods for row in mechanism.rows(period)]
        sums = {row.number: sum(weight * np.array(moved[leaf], float) for leaf, weight in row.weights) for row in rows}
    mixing = np.array([[dict(mechanism.answer(period)).get(number, 0) for number in sums] for period in periods], float)
    return mixing, np.array(list(sums.values()))


def _laplace_ratio(figures: np.ndarray, mixing: np.ndarray, signal: np.ndarray, scale: float) -> np.ndarray:
    """Return the log likelihood ratio of figures (experiment x period x key) that are sums of as many nodes, or of one more.

    If one more node is mixed in, it is summed over: given its value, the figures determine all others.
    """
    if mixing.shape[0] == mixing.shape[1]:
        nodes = np.linalg.inv(mixing) @ figures
        return ((abs(nodes) - abs(nodes - signal)) / scale).sum(axis=(1, 2))
    extra = np.linspace(-30 * scale, 30 * scale, 601)
    rest = np.linalg.inv(mixing[:, 1:])
    nodes = (rest @ figures)[..., None] - (rest @ mixing[:, 0])[:, None, None] * extra

    def likelihood(shift: np.ndarray) -> np.ndarray:
        sums = -abs(nodes - shift[1:, :, None]).sum(axis=1) / scale - abs(extra - shift[0][:, None]) / scale
        return np.logaddexp.reduce(sums, axis=2).sum(axis=1)

    return likelihood(signal) - likelihood(np.zeros_like(signal))


def judged(with_entry: np.ndarray, without: np.ndarray, bound: Callable[[int, int, int, int], float]) -> float:
    """Return the best bound that a threshold chosen on one half of the experiments proves on the other."""
    half = len(with_entry) // 2
    best = max(_thresholds(with_entry[:half], without[:half]), key=lambda test: bound(*_hits(test, with_entry[:half], without[:half])))
    return bound(*_hits(best, with_entry[half:], without[half:]))


def _thresholds(with_entry: np.ndarray, without: np.ndarray) -> Iterator[tuple[float, bool]]:
    for threshold in np.quantile(np.concatenate([with_entry, without]), np.linspace(0.02, 0.98, 97)):
        yield float(threshold), True
        yield float(threshold), False


def _hits(test: tuple[float, bool], with_entry: np.ndarray, without: np.ndarray) -> tuple[int, int, int, int]:
    threshold, above = test
    if above:
        return int((with_entry >= threshold).sum()), len(with_entry), int((without >= threshold).sum()), len(without)
    return int((without <= threshold).sum()), len(without), int((with_entry <= threshold).sum()), len(with_entry)
