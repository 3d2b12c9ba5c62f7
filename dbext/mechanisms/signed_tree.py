"""Running totals from a tree with signed digits: the smallest error known for pure differential privacy.

Level l cuts the periods into blocks of k^l; a total is a sum of blocks with signed digits, at most k / 2 of a level where unsigned ones
need up to k - 1 (Andersson, Pagh, Steiner and Torkamani, "Count on Your Elders", FORC 2025). Every period lies in one block of each
level, so that the L1 sensitivity is the number of levels, and the mean of |digit| is about k / 4: for many periods the best k is 19.

Subtracting blocks means using the noise of blocks that are not over yet: the release is the exact total plus the signed noises, in whole
numbers, which equals the signed sum of noisy blocks exactly (what lies in the future cancels). So it is post-processing of Rx + z with
R the block sums, although R is not triangular. For pure DP that also covers updates that react to what was published: the likelihood
ratio of every single transcript is bounded by that of a fixed pair of inputs. Under Gaussian noise it would not; there the
square-root mechanisms are better anyway.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from dbext.errors import BadArgument
from dbext.mechanisms.protocol import Node, check_period
from dbext.mechanisms.totals import Totals
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Pattern, SignedBlocks, Single

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np


class Shape(NamedTuple):
    """A radix and a number of levels; the top level's digits are unsigned and unbounded."""

    radix: int
    levels: int


@lru_cache(maxsize=64)
def digit_weight(total: int, radix: int, levels: int) -> int:
    """Return the least number of blocks that add and subtract to the first `total` periods: minimal over every choice of carries."""
    if levels == 1:
        return total
    quotient, digit = divmod(total, radix)
    down = digit + digit_weight(quotient, radix, levels - 1)
    return down if digit == 0 else min(down, radix - digit + digit_weight(quotient + 1, radix, levels - 1))


def digit_weights(horizon: int, shape: Shape) -> np.ndarray:
    """Return the number of blocks of every total 1 ... horizon. Cost: O(horizon), in machine words."""
    return _weights_from(horizon, shape)[1 : horizon + 1]


def _weights_from(horizon: int, shape: Shape) -> np.ndarray:
    """Return the number of blocks of every total 0 ... horizon (or a few more)."""
    import numpy as np

    weights = np.arange(_multiples(horizon, shape.radix, shape.levels - 1) + 1)
    for level in range(shape.levels - 2, -1, -1):
        quotient, digit = np.divmod(np.arange(_multiples(horizon, shape.radix, level) + 1), shape.radix)
        up = np.where(digit > 0, shape.radix - digit + weights[np.minimum(quotient + 1, len(weights) - 1)], horizon + 1)
        weights = np.minimum(digit + weights[quotient], up)
    return weights


class Digits(NamedTuple):
    """How totals 1 ... horizon use one level: each from block `start` on before block `end`, added, or taken away where `up`."""

    start: np.ndarray
    end: np.ndarray
    up: np.ndarray


@lru_cache(maxsize=4)
def digits(horizon: int, shape: Shape) -> tuple[Digits, ...]:
    """Return the digits of all totals, level by level, as `signed_blocks` gives them one by one. Cost: O(levels horizon)."""
    import numpy as np

    found, totals = [], np.arange(1, horizon + 1)
    for level in range(shape.levels - 1):
        weights = _weights_from(_multiples(horizon, shape.radix, level + 1), Shape(shape.radix, shape.levels - level - 1))
        quotient, digit = np.divmod(totals, shape.radix)
        up = (digit > 0) & (shape.radix - digit + weights[np.minimum(quotient + 1, len(weights) - 1)] < digit + weights[quotient])
        found.append(Digits(np.where(up, totals, totals - digit), np.where(up, (quotient + 1) * shape.radix, totals), up))
        totals = quotient + up
    return (*found, Digits(np.zeros_like(totals), totals, np.zeros(horizon, dtype=bool)))


def block_uses(horizon: int, shape: Shape, level: int) -> np.ndarray:
    """Return how many totals up to the horizon use each block of a level, up to the last that any does."""
    import numpy as np

    found = digits(horizon, shape)[level]
    number = int((found.end * (found.end > found.start)).max())
    begun, over = (np.bincount(where, minlength=number + 1)[: number + 1] for where in (found.start, found.end))
    return (begun - over).cumsum()[:number]


def weighed_blocks(tree: SignedTree, weight: Callable[[Fraction], float]) -> np.ndarray:
    """Return the sum over the blocks of every total 1 ... horizon of what their factors weigh; the baseline is left out."""
    import numpy as np

    shape, total = Shape(tree.radix, tree.levels), np.zeros(tree.horizon)
    weights = {factor: weight(factor) for factor in set(tree.factors)}
    by_place = np.array([weights[factor] for factor in tree.factors])
    for level, found in enumerate(digits(tree.horizon, shape)):
        number = len(block_uses(tree.horizon, shape, level))
        sums = np.cumsum(np.append(0.0, by_place[_places_of_factors(tree, level, number)]))
        total += sums[np.minimum(found.end, number)] - sums[np.minimum(found.start, number)]
    return total


def _places_of_factors(tree: SignedTree, level: int, number: int) -> np.ndarray:
    """Return the place of the factor of blocks 0, 1, ..., number - 1 of a level, as `SignedTree.factor` finds it for one."""
    import numpy as np

    blocks = np.arange(number)
    section = np.searchsorted(tree.sections, blocks // tree.radix ** (tree.levels - 1 - level), side="right") * tree.in_a_section
    if level == tree.levels - 1:
        return section + tree.in_a_section - 1
    inside = blocks // tree.radix ** (tree.levels - 2 - level) % tree.radix
    group = np.array(tree.places)[inside] if tree.places else 0
    return section + group * (tree.levels - 1) + level


@dataclass(frozen=True)
class SignedTree(Totals):
    """Totals of periods 1 ... horizon. With `baseline`, a node (-infinity, end(0)] joins every total (`state`).

    `factors` say how wide the noise of each level is, as a multiple of the plan's; empty is alike. The baseline is noised as the top, or
    with a factor of its own, the last (which later epochs, that have no baseline, keep).
    With `sections`, the longest blocks at which new sections begin, there are factors for each level of every section in turn: totals use
    the first longest blocks more often than the last, so that the blocks within share differently with them. With `places`, the group of
    each place that a block of the level below has in a longest block, a section has factors for each level below of every group in turn,
    and then that of its longest blocks: totals use the places at both ends most, and one in the middle never.
    """

    grid: RegularGrid | MonthGrid
    horizon: int
    radix: int
    levels: int
    baseline: bool = False
    factors: tuple[Fraction, ...] = ()
    sections: tuple[int, ...] = ()
    places: tuple[int, ...] = ()

    name = "signed_tree"
    #: Nodes store their noise alone: the answer is the exact total of the window plus the signed noises.
    noise_only = True

    def __post_init__(self):
        if self.horizon < 1 or self.radix < 2 or self.levels < 1:  # noqa: PLR2004 the smallest
            raise BadArgument("a signed tree needs a period, a radix of at least 2, and one level")
        plain = not self.factors and not self.sections and not self.places
        if not plain and len(self.factors) - self._of_blocks not in (0, 1):
            raise BadArgument("a signed tree has one factor for each level of each section, or none")
        if self.places and (len(self.places) != self.radix or self.levels < 2):  # noqa: PLR2004 places are inside a longer block
            raise BadArgument("a signed tree has a group for each place, or none")

    @property
    def _groups(self) -> int:
        return max(self.places, default=0) + 1

    @property
    def in_a_section(self) -> int:
        """Number of factors of one section."""
        return self._groups * (self.levels - 1) + 1

    @property
    def _of_blocks(self) -> int:
        """Number of factors without that of the baseline, if it has one of its own."""
        return self.in_a_section * (len(self.sections) + 1)

    @property
    def numbers(self) -> int:
        """The largest number of a block that any total up to the horizon can use."""
        return self.levels * max(used_blocks(self.horizon, Shape(self.radix, self.levels)))

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the blocks that the period's total is the first to use; their noise is drawn then, even if they end later."""
        first = _first_uses(self)
        return tuple(self._node(number) for number, _ in self.answer(period) if first[number] == period)

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return (node number, +1 or -1): blocks that add up to the total, and those beyond it that are taken away."""
        check_period(period, self.horizon)
        blocks = tuple((index * self.levels + level + 1, sign) for level, index, sign in signed_blocks(period, self.radix, self.levels))
        return ((0, 1), *blocks) if self.baseline else blocks

    def patterns(self) -> tuple[Pattern, ...]:
        """Return every level's blocks, as far as they may be used, and the baseline."""
        used = used_blocks(self.horizon, Shape(self.radix, self.levels))
        blocks = SignedBlocks(self.grid, self.horizon, self.radix, self.levels, self.horizon, used)
        if not self.factors:
            return self._and_baseline(blocks)
        beyond = self.horizon // self.radix ** (self.levels - 1) + 2
        parts = pairwise((0, *self.sections, beyond)) if self.sections else [None]
        levels = tuple(replace(blocks, part=part, **which) for part in parts for which in self._classes())
        return (*levels, Single(None, self.grid.end(0))) if self.baseline else levels

    def _classes(self) -> Iterator[dict[str, Any]]:
        """Yield what blocks of one section each factor is for."""
        for group in range(self._groups):
            inside = tuple(place for place, one in enumerate(self.places) if one == group) or None
            yield from ({"only": level, "inside": inside} for level in range(self.levels - 1))
        yield {"only": self.levels - 1}

    def factor(self, number: int) -> Fraction:
        """Return how wide the noise of a block is, as a multiple of the plan's."""
        if not self.factors:
            return Fraction(1)
        if not number:
            return self.factors[-1]
        index, level = divmod(number - 1, self.levels)
        longest = index // self.radix ** (self.levels - 1 - level)
        section = bisect_right(self.sections, longest) * self.in_a_section
        if level == self.levels - 1:
            return self.factors[section + self.in_a_section - 1]
        group = self.places[index // self.radix ** (self.levels - 2 - level) % self.radix] if self.places else 0
        return self.factors[section + group * (self.levels - 1) + level]

    def pattern_factors(self) -> tuple[Fraction, ...]:
        """Return the factor of each pattern."""
        if not self.factors:
            return (Fraction(1),)
        of_blocks = self.factors[: self._of_blocks]
        return (*of_blocks, self.factors[-1]) if self.baseline else of_blocks

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        lists = {"sections": list(self.sections), "places": list(self.places)}
        return super().to_json() | {"factors": [str(factor) for factor in self.factors], **lists}

    def _node(self, number: int) -> Node:
        if number == 0:
            return Node(0, None, self.grid.end(0))
        index, level = divmod(number - 1, self.levels)
        size = self.radix**level
        start, end = (self.grid.end(min(n * size, self.horizon)) for n in (index, index + 1))
        return Node(number, start, end)


def signed_blocks(total: int, radix: int, levels: int) -> list[tuple[int, int, int]]:
    """Return (level, index, sign) of the blocks of a total; block `index` of a level holds periods index k^l + 1 to (index + 1) k^l."""
    blocks = []
    for level in range(levels - 1):
        quotient, digit = divmod(total, radix)
        if _rounds_up(quotient, digit, Shape(radix, levels - level - 1)):
            blocks += [(level, index, -1) for index in range(total, (quotient + 1) * radix)]
            total = quotient + 1
        else:
            blocks += [(level, index, 1) for index in range(quotient * radix, total)]
            total = quotient
    return blocks + [(levels - 1, index, 1) for index in range(total)]


def _rounds_up(quotient: int, digit: int, above: Shape) -> bool:
    """Whether fewer blocks are taken away from the next longer block, and all that is above it, than are added."""
    return digit > 0 and above.radix - digit + digit_weight(quotient + 1, *above) < digit + digit_weight(quotient, *above)


@lru_cache(maxsize=64)
def used_blocks(horizon: int, shape: Shape) -> tuple[int, ...]:
    """Return how many blocks of each level totals up to the horizon reach.

    On each level totals are all numbers up to a last one: they reach the last itself, or where one of its longer block is rounded up to.
    """
    reached, last = [], horizon
    for level in range(shape.levels - 1):
        reach = 0
        for quotient, digit in (divmod(total, shape.radix) for total in range(max(0, last - 1) // shape.radix * shape.radix + 1, last + 1)):
            if digit:
                up = _rounds_up(quotient, digit, Shape(shape.radix, shape.levels - level - 1))
                reach = max(reach, (quotient + 1) * shape.radix if up else quotient * shape.radix + digit)
        reached.append(reach)
        last = max(last, reach) // shape.radix
    return (*reached, last)


def _multiples(horizon: int, radix: int, level: int) -> int:
    """Return how many blocks of a level any total up to the horizon can reach, rounding up at every level below."""
    reach = horizon
    for _ in range(level):
        reach = reach // radix + 1
    return reach


@lru_cache(maxsize=16)
def _first_uses(tree: SignedTree) -> dict[int, int]:
    """Return the period at which each node is first used."""
    uses: dict[int, int] = {}
    for period in range(1, tree.horizon + 1):
        for number, _ in tree.answer(period):
            uses.setdefault(number, period)
    return uses
