"""Running totals from a binary indexed tree: every total is a sum of at most log2(horizon) + 1 nodes."""

from __future__ import annotations

from dataclasses import dataclass

from dbext.mechanisms.protocol import Node, check_period
from dbext.mechanisms.totals import Totals
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Pattern, Tree


@dataclass(frozen=True)
class BinaryTree(Totals):
    """Node n holds the lowbit(n) periods up to n (Fenwick's tree: the left children and roots of the dyadic tree over the periods).

    The total of period n is the nodes n, n - lowbit(n), ... of its binary digits. Right children are never used by a total and are not
    drawn, so that a period lies in at most bit_length(horizon) nodes. With `baseline`, node 0 = (-infinity, end(0)] is
    drawn with the first period and joins every total: the form that releases a `state`.
    """

    grid: RegularGrid | MonthGrid
    horizon: int
    baseline: bool = False

    name = "binary_tree"

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the node that the period closes; at the first one also the baseline."""
        return self._with_baseline(period, Node(period, self.grid.end(period - (period & -period)), self.grid.end(period)))

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return the nodes of the period's binary digits, and the baseline."""
        check_period(period, self.horizon)
        numbers = []
        while period:
            numbers.append((period, 1))
            period &= period - 1
        return (*numbers, (0, 1)) if self.baseline else tuple(numbers)

    def squares(self) -> list[int]:
        """Return the number of nodes of every total 1 ... horizon."""
        return [total.bit_count() + self.baseline for total in range(1, self.horizon + 1)]

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the tree, and the baseline."""
        return self._and_baseline(Tree(self.grid, self.horizon))
