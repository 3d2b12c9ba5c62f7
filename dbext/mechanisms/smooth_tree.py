"""The smooth binary tree: the same variance at every time (Andersson and Pagh 2023).

Only leaves whose H-bit number has exactly w ones are used, in increasing order. A period placed at such a leaf lies in H - w left
children, and the total up to it is the sum of the w left children that hang off its path: E = sqrt(w (H - w)) at sensitivity 1 and
sigma 1, for every time. It needs C(H, w) > T leaves; memory O(log T). Better than the binary tree, worse than the square root.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, isqrt

from dbext.errors import BadArgument


@dataclass(frozen=True)
class SmoothTree:
    """A tree of `height` bits, leaves of `weight` ones."""

    height: int
    weight: int

    def __post_init__(self):
        if not 0 < self.weight < self.height:
            raise BadArgument("a smooth tree needs some ones and some zeros in its leaves")

    @property
    def horizon(self) -> int:
        """Number of periods it can hold."""
        return comb(self.height, self.weight) - 1

    @property
    def normalised_error(self) -> float:
        """Root mean square error of every total, at sensitivity 1 and sigma 1."""
        return (self.weight * (self.height - self.weight)) ** 0.5

    def leaf(self, number: int) -> int:
        """Return the leaf of this rank, from 0: the number-th smallest with `weight` ones (combinatorial number system)."""
        code, ones = 0, self.weight
        for bit in range(self.height - 1, -1, -1):
            below = comb(bit, ones)
            if ones and number >= below:
                number, ones, code = number - below, ones - 1, code | 1 << bit
        return code

    def rank(self, code: int) -> int:
        """Return the number of leaves below an H-bit number."""
        count, ones = 0, self.weight
        for bit in range(self.height - 1, -1, -1):
            if code >> bit & 1:
                count += comb(bit, ones)
                ones -= 1
                if ones < 0:
                    break
        return count

    def nodes(self, total: int) -> list[tuple[int, int, int]]:
        """Return (bit, first, last) of the nodes of the total of periods 1 ... `total`: a left child holds periods first + 1 ... last.

        For each 1 in the leaf of that rank: the sibling with a 0 there and the same bits above. Nodes that hold no period are left out.
        """
        code, found = self.leaf(total), []
        for bit in range(self.height):
            if code >> bit & 1:
                start = (code >> bit) - 1 << bit
                first, last = self.rank(start), self.rank(start + (1 << bit))
                if first < last:
                    found.append((bit, first, last))
        return found


def best_smooth_tree(horizon: int) -> SmoothTree:
    """Return the tree with the least error that holds the horizon: w (H - w) least with C(H, w) >= T + 1."""
    best, least = None, 0
    for height in range(2, 2 * isqrt(horizon.bit_length() ** 2) + 8):
        for weight in range(1, height):
            product = weight * (height - weight)
            if comb(height, weight) > horizon and (best is None or product < least):
                best, least = SmoothTree(height, weight), product
    if best is None:
        raise BadArgument(f"no smooth tree for a horizon of {horizon}")
    return best
