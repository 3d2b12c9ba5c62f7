"""What lives that somebody could really live lose to noise that was really drawn: a check of the accountant that shares nothing with it.

A life is a list of places, one per tick of change: a cell, or absent. Its effect on every noised sum is worked out exactly and priced at
the noise of that sum. The largest figure found, over all lives if they are few and by search if they are many, must not exceed what the
ledger says. Several releases of one table are met at the same ticks, each by whatever pattern of places hurts it most, because a
predicate never excuses an entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, Noise

if TYPE_CHECKING:
    import numpy as np

#: Sets of ticks that are all tried; with more there are, some are climbed from, in so many sweeps of so many moves each.
ALL, SWEEPS, MOVES = 400, 3, 24
#: Changes of one life that are looked at; longer lives are cut.
LONGEST_LIFE = 24
ABSENT = None

Places = tuple[int | None, ...]


@dataclass(frozen=True)
class Noised:
    """Sums that were noised alike. Row t of `columns` says with which weight each sum holds what happens at tick `ticks[t]`.

    An entry adds `magnitude` to the cell it is in: its largest value, all its life.
    """

    columns: np.ndarray
    noise: Noise
    measure: Measure
    grouped: bool
    magnitude: int = 1

    def loss(self, at: Sequence[int], places: Places, *, pure: bool) -> float:
        """Return what a life loses that is at places[j] from the tick in row at[j] on: epsilon if `pure`, else rho."""
        import numpy as np

        weights: dict[int, np.ndarray] = {}
        before = ABSENT
        for row, place in zip(at, places, strict=True):
            for cell, sign in self._effects(before, place):
                weights[cell] = weights.get(cell, 0) + sign * self.columns[row]
            before = place
        effects = self.magnitude * np.abs(np.concatenate(list(weights.values()))) if weights else np.zeros(1)
        return self._price(effects, pure=pure)

    def _effects(self, before: int | None, after: int | None) -> list[tuple[int, int]]:
        """Return (cell, sign) of what a change counts as."""
        if not self.grouped:
            before, after = (None if one is None else 0 for one in (before, after))
        if before == after:
            return []
        if self.measure is Measure.ENTERED:
            return [(after, 1)] if before is None else []
        if self.measure is Measure.LEFT:
            return [(before, 1)] if after is None else []
        return [(cell, sign) for cell, sign in ((after, 1), (before, -1)) if cell is not None]

    def _price(self, effects: np.ndarray, *, pure: bool) -> float:
        import numpy as np

        if isinstance(self.noise, DiscreteLaplace):
            losses = effects / float(self.noise.scale)
            return float(losses.sum()) if pure else float((losses * np.tanh(losses / 2)).sum())
        return float((effects * effects).sum()) / (2 * float(self.noise.sigma_squared))


def patterns(changes: int, constraint: Constraint) -> list[Places]:
    """Return the lives of so many changes that are worst for some release: to and fro, on and on, and back and forth between two cells.

    Who uses the last of several slots leaves with it.
    """
    last = changes - 1
    full = changes == constraint.max_mutations and changes > 1
    found = {tuple(0 if n % 2 == 0 else ABSENT for n in range(changes)) if not full or changes % 2 == 0 else None}
    for moving in (range(changes), [n % 2 for n in range(changes)]):
        found.add(tuple(ABSENT if full and n == last else cell for n, cell in enumerate(moving)))
        found.add(tuple(ABSENT if n == last and changes > 1 else cell for n, cell in enumerate(moving)))
    return sorted(found - {None}, key=str)


def largest_loss(noised: Sequence[Noised], ticks: Sequence[int], constraint: Constraint, *, pure: bool) -> float:
    """Return the largest loss found of a life within the constraint whose changes fall on some of `ticks` (rising, of all `columns`)."""
    most = min(len(ticks), LONGEST_LIFE if constraint.max_mutations is None else constraint.max_mutations, LONGEST_LIFE)
    best = 0.0
    for changes in range(1, most + 1):
        shapes = patterns(changes, constraint)

        def loss(at: Sequence[int], shapes: Sequence[Places] = shapes) -> float:
            return sum(max(one.loss(at, places, pure=pure) for places in shapes) for one in noised)

        if math.comb(len(ticks), changes) <= ALL:
            sets: Iterator = combinations(range(len(ticks)), changes)
            best = max([best, *(loss(at) for at in sets if _fits(ticks, at, constraint))])
        elif changes in (1, 2, 3, most):
            best = max(best, _search(loss, ticks, changes, constraint))
    return best


def _fits(ticks: Sequence[int], at: Sequence[int], constraint: Constraint) -> bool:
    within = constraint.active_within
    return within is None or ticks[at[-1]] - ticks[at[0]] <= within


def _search(loss: Callable[[Sequence[int]], float], ticks: Sequence[int], changes: int, constraint: Constraint) -> float:
    """Climb from sets of ticks close together, and spread, over the range: one change at a time goes where it hurts most."""
    return max((_climb(loss, ticks, at, constraint) for at in _beginnings(ticks, changes, constraint)), default=0.0)


def _climb(loss: Callable[[Sequence[int]], float], ticks: Sequence[int], at: tuple[int, ...], constraint: Constraint) -> float:
    figure = loss(at)
    for _ in range(SWEEPS):
        before = figure
        for place in range(len(at)):
            moved = [tuple(sorted((*at[:place], row, *at[place + 1 :]))) for row in _rows(len(ticks), at)]
            tried = [(loss(one), one) for one in moved if _fits(ticks, one, constraint)]
            figure, at = max([(figure, at), *tried])
        if figure == before:
            break
    return figure


def _rows(count: int, at: Sequence[int]) -> list[int]:
    """Return the free rows next to a set, and some over the whole range."""
    near = {row + step for row in at for step in (-1, 1)} | set(range(0, count, max(1, count // MOVES)))
    return sorted(row for row in near - set(at) if 0 <= row < count)


def _beginnings(ticks: Sequence[int], changes: int, constraint: Constraint) -> Iterator[tuple[int, ...]]:
    """Yield sets of rows: packed at the beginning, in the middle and at the end, and spread as far as the constraint lets them."""
    for first in (0, (len(ticks) - changes) // 2, len(ticks) - changes):
        packed = tuple(range(first, first + changes))
        if _fits(ticks, packed, constraint):
            yield packed
    reach = [row for row in range(len(ticks)) if constraint.active_within is None or ticks[row] - ticks[0] <= constraint.active_within]
    if len(reach) > changes > 1:
        yield tuple(reach[n * (len(reach) - 1) // (changes - 1)] for n in range(changes))
