"""Signed trees for what entries may do: radix, levels, and how wide the noise of each level is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from dbext.mechanisms.divided_tree import Division, division
from dbext.mechanisms.signed_tree import Shape as TreeShape
from dbext.mechanisms.signed_tree import SignedTree, digits, used_blocks
from dbext.privacy.constraint import Constraint, EntryType
from dbext.query.periods import Grid

MOST_LEVELS = 5
#: Widths are multiples of 1 / 16 of the narrowest, and no more than 16 of it: short enough for fast exact sampling.
_FINENESS, _WIDEST = 16, 16
_FINALISTS = 6
#: How fine the widths of a divided tree's blocks are, and how wide they may be.
_FINER, _WIDER = 64, 512
#: Lives of so many mutations gain by sections; without a limit there are many.
_FEW, _MANY = 2, 1_000


class _Uses(NamedTuple):
    """Blocks of each level that a total uses, on the average; and the best division, where lives touch few blocks."""

    shape: TreeShape
    means: tuple[float, ...]
    division: Division | None


class _Tree(NamedTuple):
    """A tree with its burden: the mean variance of a total, at equal price, under the best widths and under equal ones."""

    shape: TreeShape
    widths: tuple[float, ...]
    burden: float
    equal: float


def signed_trees(grid: Grid, horizon: int, types: Sequence[EntryType], *, baseline: bool) -> Iterator[SignedTree]:
    """Yield the best tree with equal noise on all levels, and the best two heights whose levels share the budget by use and touch."""
    uses = [_uses(horizon, shape, divided=_touch_few(types)) for shape in _shapes(horizon)]
    if not uses:
        return  # a single period is its own total
    trees = _weighed_trees(grid, horizon, types, uses)
    even = min(trees, key=lambda tree: tree.equal)
    yield SignedTree(grid, horizon, *even.shape, baseline)
    by_height = {tree.shape.levels: tree for tree in sorted(trees, key=lambda tree: -tree.burden)}
    for tree in sorted(by_height.values(), key=lambda tree: tree.burden)[:2]:
        factors = _factors(tree.widths)
        if len(set(factors)) > 1:
            yield SignedTree(grid, horizon, *tree.shape, baseline, factors)
        elif tree.shape != even.shape:
            yield SignedTree(grid, horizon, *tree.shape, baseline)
    if divided := [one.division for one in uses if one.division is not None]:
        yield _divided(grid, horizon, min(divided, key=lambda one: one.burden), baseline=baseline)


def _divided(grid: Grid, horizon: int, best: Division, *, baseline: bool) -> SignedTree:
    """Return the tree that divides the budget anew in every section and group of places.

    A section is a longest block, or a few of them together. What is in the baseline is in no block of a life that touches few: it takes all
    that a path takes.
    """
    factors = _factors((*best.widths, 1.0) if baseline else best.widths, _FINER, _WIDER)
    return SignedTree(grid, horizon, *best.shape, baseline, factors, best.sections[1:], best.places)


def _touch_few(types: Sequence[EntryType]) -> bool:
    """Whether lives touch few blocks: those that may touch many meet the worst section."""
    return all(one.constraint.active_within is None and (one.constraint.max_mutations or _MANY) <= _FEW for one in types)


def _uses(horizon: int, shape: TreeShape, *, divided: bool) -> _Uses:
    """Return all that is weighed of a shape's totals, while their digits are at hand."""
    means = tuple(max(float((one.end - one.start).mean()), 1e-6) for one in digits(horizon, shape))
    return _Uses(shape, means, division(horizon, shape) if divided else None)


def _weighed_trees(grid: Grid, horizon: int, types: Sequence[EntryType], uses: Sequence[_Uses]) -> list[_Tree]:
    """Weigh all shapes roughly, and those that may be best with the blocks that their totals really use."""
    rough = [_weighed(grid, one, types, [-(-horizon // one.shape.radix**level) for level in range(one.shape.levels)]) for one in uses]
    close = {tree.shape for key in ("burden", "equal") for tree in sorted(rough, key=lambda tree: getattr(tree, key))[:_FINALISTS]}
    finalists = sorted((one for one in uses if one.shape in close), key=lambda one: one.shape)
    return [_weighed(grid, one, types, used_blocks(horizon, one.shape)) for one in finalists]


def _shapes(horizon: int) -> Iterator[TreeShape]:
    """Yield the shapes worth weighing: around radix^levels = 2 T, the best when all levels are touched alike, and above."""
    for levels in range(2, MOST_LEVELS + 1):
        middle = (2 * horizon) ** (1 / levels)
        top = int(min(2.2 * middle, horizon ** (1 / (levels - 1)) + 1e-9))
        step = max(1, (top - int(0.5 * middle)) // 24)
        yield from (TreeShape(radix, levels) for radix in range(max(2, int(0.5 * middle)), top + 1, step))


def _weighed(grid: Grid, of: _Uses, types: Sequence[EntryType], blocks: Sequence[int]) -> _Tree:
    """Weigh a tree with so many blocks on each level.

    With u_l blocks of level l in a total and c_l that an entry touches, the widths b_l with the least sum of u_l b_l^2 under a given sum of
    c_l / b_l are (c_l / u_l)^(1/3), by Hoelder's inequality: then it is (sum of c_l^(2/3) u_l^(1/3))^3.
    """
    shape, uses = of.shape, of.means
    sizes = [(shape.radix**level, number) for level, number in enumerate(blocks)]
    touched = [max((_touched(grid, number, length, one.constraint) for one in types), default=1) for length, number in sizes]
    widths = tuple((touch / use) ** (1 / 3) for touch, use in zip(touched, uses, strict=True))
    burden = sum(touch ** (2 / 3) * use ** (1 / 3) for touch, use in zip(touched, uses, strict=True)) ** 3
    return _Tree(shape, widths, burden, sum(touched) ** 2 * sum(uses))


def _touched(grid: Grid, blocks: int, length: int, constraint: Constraint) -> int:
    """Return how many blocks of so many periods an entry can touch."""
    limits = [blocks]
    if (most := constraint.max_mutations) is not None:
        limits.append(most - 1 if most > 1 and most % 2 else most)  # counts go up and down in turn: of an odd number the last is void
    if constraint.active_within is not None:
        shortest = length * grid.longest_step
        limits.append(-(-constraint.active_within // shortest) + 1 if constraint.active_within else 1)
    return max(1, min(limits))


def _factors(widths: Sequence[float], fineness: int = _FINENESS, widest: int = _WIDEST) -> tuple[Fraction, ...]:
    narrowest = min(widths)
    return tuple(Fraction(round(min(width / narrowest, widest) * fineness), fineness) for width in widths)
