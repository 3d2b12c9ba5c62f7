"""What lives that somebody could really live lose to noise that was really drawn: a check of the accountant that shares nothing with it.

A life is a list of places, one per tick of change: a cell, or absent. Its effect on every noised sum is worked out exactly and priced at
the noise of that sum. The largest figure found, over all lives if they are few and by search if they are many, must not exceed what the
ledger says. Several releases of one table are met at the same ticks, each by whatever pattern of places hurts it most, because a
predicate never excuses an entry.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, Noise

if TYPE_CHECKING:
    import numpy as np

#: Sets of ticks that are all tried; of more, so many are searched from random beginnings.
ALL, STARTS, STEPS = 400, 4, 80
#: Changes of one life that are looked at; longer lives are cut.
LONGEST_LIFE = 24
ABSENT = None

Places = tuple[int | None, ...]


@dataclass(frozen=True)
class Noised:
    """Sums that were noised alike. Row t of `columns` says with which weight each sum holds what happens at tick `ticks[t]`."""

    columns: np.ndarray
    noise: Noise
    measure: Measure
    grouped: bool

    def loss(self, at: Sequence[int], places: Places, *, pure: bool) -> float:
        """Return what a life loses that is at places[j] from the tick in row at[j] on: epsilon if `pure`, else rho."""
        import numpy as np

        weights: dict[int, np.ndarray] = {}
        before = ABSENT
        for row, place in zip(at, places, strict=True):
            for cell, sign in self._effects(before, place):
                weights[cell] = weights.get(cell, 0) + sign * self.columns[row]
            before = place
        return self._price(np.abs(np.concatenate(list(weights.values()))), pure=pure) if weights else 0.0

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


def largest_loss(noised: Sequence[Noised], ticks: Sequence[int], constraint: Constraint, *, pure: bool, seed: int = 0) -> float:
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
            best = max(best, _search(loss, ticks, changes, constraint, random.Random(seed + changes)))  # noqa: S311 no secret
    return best


def _fits(ticks: Sequence[int], at: Sequence[int], constraint: Constraint) -> bool:
    within = constraint.active_within
    return within is None or ticks[at[-1]] - ticks[at[0]] <= within


def _search(loss, ticks: Sequence[int], changes: int, constraint: Constraint, chance: random.Random) -> float:  # noqa: ANN001 a function of rows
    """Climb from random sets of ticks, one change at a time. Not for privacy: which lives are tried is nobody's secret."""
    best = 0.0
    for _ in range(STARTS):
        at = _beginning(ticks, changes, constraint, chance)
        if at is None:
            continue
        figure = loss(at)
        for _ in range(STEPS):
            other = _neighbour(at, len(ticks), chance)
            if _fits(ticks, other, constraint) and (gained := loss(other)) >= figure:
                at, figure = other, gained
        best = max(best, figure)
    return best


def _beginning(ticks: Sequence[int], changes: int, constraint: Constraint, chance: random.Random) -> tuple[int, ...] | None:
    first = chance.randrange(len(ticks))
    near = [n for n in range(first, len(ticks)) if constraint.active_within is None or ticks[n] - ticks[first] <= constraint.active_within]
    if constraint.active_within is None:
        near = list(range(len(ticks)))
    return tuple(sorted(chance.sample(near, changes))) if len(near) >= changes else None


def _neighbour(at: tuple[int, ...], rows: int, chance: random.Random) -> tuple[int, ...]:
    """Return the set with one change moved: by one row, or anywhere."""
    place = chance.randrange(len(at))
    moved = at[place] + chance.choice((-1, 1)) if chance.random() < 1 / 2 else chance.randrange(rows)
    if not 0 <= moved < rows or moved in at:
        return at
    return tuple(sorted((*at[:place], moved, *at[place + 1 :])))
