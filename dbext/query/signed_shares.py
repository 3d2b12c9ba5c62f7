"""Signed trees for what entries may do: radix, levels, and how wide the noise of each level is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from dbext.mechanisms.signed_tree import Shape as TreeShape
from dbext.mechanisms.signed_tree import SignedTree, level_counts, signed_blocks, used_blocks
from dbext.privacy.constraint import Constraint, EntryType
from dbext.query.periods import Grid

MOST_LEVELS = 5
#: Widths are multiples of 1 / 16 of the narrowest, and no more than 16 of it: short enough for fast exact sampling.
_FINENESS, _WIDEST = 16, 16
_FINALISTS = 6
#: Sections of one tree, the longest horizon that is cut into them, and how fine their widths are.
_MOST_SECTIONS, _LONGEST_SECTIONED, _FINER = 8, 4_096, 64
#: Lives of so many mutations gain by sections; without a limit there are many.
_FEW, _MANY = 2, 1_000


class _Tree(NamedTuple):
    """A tree with its burden: the mean variance of a total, at equal price, under the best widths and under equal ones."""

    shape: TreeShape
    widths: tuple[float, ...]
    burden: float
    equal: float


def signed_trees(grid: Grid, horizon: int, types: Sequence[EntryType], *, baseline: bool) -> Iterator[SignedTree]:
    """Yield the best tree with equal noise on all levels, and the best two heights whose levels share the budget by use and touch."""
    trees = _weighed_trees(grid, horizon, types)
    if not trees:
        return  # a single period is its own total
    even = min(trees, key=lambda tree: tree.equal)
    yield SignedTree(grid, horizon, *even.shape, baseline)
    by_height = {tree.shape.levels: tree for tree in sorted(trees, key=lambda tree: -tree.burden)}
    for tree in sorted(by_height.values(), key=lambda tree: tree.burden)[:2]:
        factors = _factors(tree.widths)
        if len(set(factors)) > 1:
            yield SignedTree(grid, horizon, *tree.shape, baseline, factors)
        elif tree.shape != even.shape:
            yield SignedTree(grid, horizon, *tree.shape, baseline)
        if horizon <= _LONGEST_SECTIONED and (sectioned := _sectioned(grid, horizon, tree.shape, types, baseline=baseline)):
            yield sectioned


def _sectioned(grid: Grid, horizon: int, shape: TreeShape, types: Sequence[EntryType], *, baseline: bool) -> SignedTree | None:
    """Return a tree that divides the budget anew in every section: the longest blocks, or a few of them together.

    In a section the widths are those of `_weighed`, with its own uses, times the sum of c_l^(2/3) u_l^(1/3): then an entry that changes
    once loses the same in every section. None where there is but one longest block, and for lives that may touch many: they meet the worst.
    """
    if any(one.constraint.active_within is not None or (one.constraint.max_mutations or _MANY) > _FEW for one in types):
        return None
    longest = used_blocks(horizon, shape)[-1]
    sections = tuple(range(0, longest, -(-longest // _MOST_SECTIONS)))
    if len(sections) < 2:  # noqa: PLR2004 one section is a tree without
        return None
    uses = [[1e-6] * shape.levels for _ in sections]
    for total in range(1, horizon + 1):
        for level, index, _ in signed_blocks(total, *shape):
            uses[bisect_right(sections, index // shape.radix ** (shape.levels - 1 - level)) - 1][level] += 1
    blocks = [(shape.radix**level, number) for level, number in enumerate(used_blocks(horizon, shape))]
    touched = [max((_touched(grid, number, length, one.constraint) for one in types), default=1) for length, number in blocks]
    widths = []
    for own in uses:
        costs = sum(touch ** (2 / 3) * use ** (1 / 3) for touch, use in zip(touched, own, strict=True))
        widths += [(touch / use) ** (1 / 3) * costs for touch, use in zip(touched, own, strict=True)]
    return SignedTree(grid, horizon, *shape, baseline, _factors(widths, _FINER), sections[1:])


def _weighed_trees(grid: Grid, horizon: int, types: Sequence[EntryType]) -> list[_Tree]:
    """Weigh all shapes roughly, and those that may be best with the blocks that their totals really use."""
    rough = [_weighed(grid, horizon, shape, types, lambda _, length: -(-horizon // length)) for shape in _shapes(horizon)]
    close = {tree.shape for key in ("burden", "equal") for tree in sorted(rough, key=lambda tree: getattr(tree, key))[:_FINALISTS]}
    return [_weighed(grid, horizon, shape, types, lambda level, _, s=shape: used_blocks(horizon, s)[level]) for shape in sorted(close)]


def _shapes(horizon: int) -> Iterator[TreeShape]:
    """Yield the shapes worth weighing: around radix^levels = 2 T, the best when all levels are touched alike, and above."""
    for levels in range(2, MOST_LEVELS + 1):
        middle = (2 * horizon) ** (1 / levels)
        top = int(min(2.2 * middle, horizon ** (1 / (levels - 1)) + 1e-9))
        step = max(1, (top - int(0.5 * middle)) // 24)
        yield from (TreeShape(radix, levels) for radix in range(max(2, int(0.5 * middle)), top + 1, step))


def _weighed(grid: Grid, horizon: int, shape: TreeShape, types: Sequence[EntryType], blocks: Callable[[int, int], int]) -> _Tree:
    """Weigh a tree.

    With u_l blocks of level l in a total and c_l that an entry touches, the widths b_l with the least sum of u_l b_l^2 under a given sum of
    c_l / b_l are (c_l / u_l)^(1/3), by Hoelder's inequality: then it is (sum of c_l^(2/3) u_l^(1/3))^3.
    """
    uses = [max(float(count), 1e-6) for count in level_counts(horizon, shape).mean(axis=1)]
    sizes = [(shape.radix**level, blocks(level, shape.radix**level)) for level in range(shape.levels)]
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


def _factors(widths: Sequence[float], fineness: int = _FINENESS) -> tuple[Fraction, ...]:
    narrowest = min(widths)
    return tuple(Fraction(round(min(width / narrowest, _WIDEST) * fineness), fineness) for width in widths)
