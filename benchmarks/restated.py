"""What a history errs by when it may be restated: full least squares over all blocks of a tree, as dp_restated does it, without a net.

When the last block is over, every total is estimated anew from all blocks. A release that publishes as time goes by cannot do that, so
that such errors are compared with those of packages that restate too. Trees have levels of radix^l periods, whole blocks only, and are
those that SQL plans for such `levels`: the planner's shares of the budget, and its noise.

The error of the total up to t is the resistance between 0 and t in the net whose edges are the blocks (`dbext.mechanisms.restate`). Blocks
of a level are alike there, so that levels are worked out at once: from the leaves up, what a block with all inside it resists; from the top
down, the potentials' covariance at the two ends of every block, from which that of the boundaries inside follows, for given its ends
nothing outside matters to them. The cost is O(periods).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dbext.mechanisms.spread import deviations
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace
from dbext.query.levels import levelled
from dbext.query.planner import Request, blank_plan, for_epsilon
from dbext.query.shape import Shape

#: Of so many trees that are best with equal shares the planner's shares are tried.
_FINALISTS = 6
_ONCE = (EntryType(1, "any", Constraint(1)),)


class Tree(NamedTuple):
    """A tree: its mean and worst error when it is restated, and the mean one as it is published."""

    error: float
    worst: float
    published: float
    radix: int
    levels: int


def best_restated(periods: int) -> Tree:
    """Return the tree with Laplace noise that errs least when restated, at epsilon 1 and one mutation, of those that SQL plans."""
    shapes = sorted(_shapes(periods), key=lambda shape: restated_variances(periods, shape[0], _equal(shape[1])).mean())
    return min(_planned(periods, *shape) for shape in shapes[:_FINALISTS])


def _shapes(periods: int) -> Iterator[tuple[int, int]]:
    """Yield (radix, levels) with a whole block on every level, up to twice the radix whose top level would be one block."""
    for levels in range(2, max(3, periods.bit_length())):
        most = min(int(2.2 * periods ** (1 / levels)) + 1, int(periods ** (1 / (levels - 1)) + 1e-9))
        yield from ((radix, levels) for radix in range(2, most + 1))


def _equal(levels: int) -> list[float]:
    return [DiscreteLaplace(Fraction(levels)).variance] * levels


def _planned(periods: int, radix: int, levels: int) -> Tree:
    grids = tuple(RegularGrid(0, radix**level) for level in range(levels))
    shape = Shape("running_total", Measure.NET, grids[0], periods, levels=grids)
    asked = Request(start_tick=0, epsilon=Fraction(1))
    blank = (blank_plan(shape, one, grouped=False, pure=True) for one in levelled(shape, _ONCE, pure=True))
    made = [for_epsilon(one, asked, _ONCE, Decimal(0)) for one in blank]
    published, chosen = min(((deviations(one.mechanism, one.noise)[0], one) for one in made), key=lambda both: both[0])
    found = restated_variances(periods, radix, [chosen.node_variance(level) for level in range(levels)])
    return Tree(math.sqrt(found.mean()), math.sqrt(found.max()), published, radix, levels)


def restated_variances(periods: int, radix: int, variances: Sequence[float]) -> np.ndarray:
    """Return the variance of every total 1 ... periods, given that of a block by level, from the leaves up."""
    inside = [variances[0]]
    for own in variances[1:]:
        inside.append(1 / (1 / own + 1 / (radix * inside[-1])))
    blocks, since, passed = _Ends(*(np.empty(0),) * 3), 0, 0.0
    for level in range(len(variances) - 1, -1, -1):
        number = (periods - since) // radix**level  # whole blocks behind those of the level above: nothing closes a ring with them
        before = passed + inside[level] * np.arange(number)
        blocks = _joined(_cut(blocks, radix, inside[level]), _Ends(before, before, before + inside[level]))
        since, passed = since + number * radix**level, passed + inside[level] * number
    return blocks.last


class _Ends(NamedTuple):
    """Of blocks in order: the variance of the total at the first end, its covariance with that at the last, and the variance of that."""

    first: np.ndarray
    both: np.ndarray
    last: np.ndarray


def _cut(blocks: _Ends, radix: int, inside: float) -> _Ends:
    """Return the blocks inside each: in between, totals are on a line between the ends, and a bridge of equal steps from 0 to 0."""
    place = np.arange(radix + 1) / radix
    first, both, last = (one[:, None] for one in blocks)

    def covariance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        ends = first * (1 - one) * (1 - other) + both * (one * (1 - other) + other * (1 - one)) + last * one * other
        return ends + radix * inside * one * (1 - other)

    before, after = place[:-1], place[1:]
    return _Ends(*(covariance(*two).ravel() for two in ((before, before), (before, after), (after, after))))


def _joined(one: _Ends, other: _Ends) -> _Ends:
    return _Ends(*(np.concatenate(parts) for parts in zip(one, other, strict=True)))
