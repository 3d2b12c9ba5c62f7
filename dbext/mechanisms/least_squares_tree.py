"""Running totals from a full binary tree by online least squares (Honaker 2015): better node estimates than the nodes themselves.

Every dyadic block is noised once, when it is over, and a total is put together from the best estimates of its blocks: each a weighted mean
of its own noisy sum and of the sums of all blocks inside it (`honaker`). Compared with the binary tree a period lies in as many nodes, or
one more, and a block's variance falls to one half; the history can be restated with even less error (`restate`). Weights are fractions, so
that answers are no whole numbers, although nodes are.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbext.mechanisms.honaker import block_variances, online_weights
from dbext.mechanisms.protocol import Node, check_period
from dbext.mechanisms.totals import Totals
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Pattern, Windows


@dataclass(frozen=True)
class LeastSquaresTree(Totals):
    """Block `index` of level l holds periods index 2^l + 1 to (index + 1) 2^l, for every level that fits into the horizon."""

    grid: RegularGrid | MonthGrid
    horizon: int
    baseline: bool = False

    name = "least_squares_tree"
    #: Answers weigh nodes with fractions.
    whole_answers = False

    @property
    def levels(self) -> int:
        """Levels of blocks: as many as there are blocks that a period lies in."""
        return self.horizon.bit_length()

    @property
    def numbers(self) -> int:
        """The largest number of a node."""
        return self.horizon * self.levels

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the blocks that end with the period; at the first one also the baseline."""
        check_period(period, self.horizon)
        closed = (level for level in range(self.levels) if period % (1 << level) == 0)
        return self._with_baseline(period, *(self._node(level, (period >> level) - 1) for level in closed))

    def answer(self, period: int) -> tuple[tuple[int, float], ...]:
        """Return the weights of all blocks inside the total; those of each period sum to 1."""
        check_period(period, self.horizon)
        weights = tuple((self._number(*block), weight) for block, weight in sorted(online_weights(period).items()))
        return ((0, 1.0), *weights) if self.baseline else weights

    def squares(self) -> list[float]:
        """Return the sum of squared weights of every total 1 ... horizon: those of the blocks of its binary digits."""
        variances = block_variances(self.levels)
        each = range(1, self.horizon + 1)
        return [sum(variances[level] for level in range(self.levels) if total >> level & 1) + self.baseline for total in each]

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the blocks of every level, and the baseline."""
        levels = range(self.levels)
        blocks = (Windows(self.grid.coarser(1 << level), None, 1, 0, self.horizon >> level, 0, 1 << level) for level in levels)
        return self._and_baseline(*blocks)

    def _number(self, level: int, index: int) -> int:
        return index * self.levels + level + 1

    def _node(self, level: int, index: int) -> Node:
        return Node(self._number(level, index), self.grid.end(index << level), self.grid.end((index + 1) << level))
