"""How much noise the answers of a mechanism hold: sums of squared weights, over all of its periods at once.

The variance of an answer is that of one draw times the sum of squares of the weights of its nodes (or rows). Where a period's position
says what that sum is, no answer is put together: ten years of days cost milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.buffered import Buffered
from dbext.mechanisms.encoded import EncodedMechanism
from dbext.mechanisms.epochs import Epochs
from dbext.mechanisms.hierarchical import HierarchicalSums, block_counts
from dbext.mechanisms.least_squares_tree import LeastSquaresTree
from dbext.mechanisms.levelled import LevelledSums, base_square, ranges_that_matter, squared_widths
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.signed_tree import Shape, SignedTree, digit_weights, weighed_blocks
from dbext.mechanisms.sliding_root import BAND, SlidingRoot
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot, error_variances
from dbext.privacy.noise import Noise, scaled

#: Rows, in bands of the encoder, after which the error of endless windows no longer grows (by less than 1e-9 of itself).
_SETTLED = 16


class Spread(NamedTuple):
    """Sum of squared weights: its mean over the periods, its largest value, and a period that has it."""

    mean: float
    worst: float
    period: int


@lru_cache(maxsize=128)
def spread(mechanism: Mechanism | EncodedMechanism) -> Spread:
    """Return the spread of a mechanism; of endless windows in the long run, of totals that go on in their first epoch."""
    if isinstance(mechanism, LevelledSums):
        squares = [squared_widths(mechanism, mechanism.cover(*one)) for one in ranges_that_matter(mechanism)]
        return Spread(sum(squares) / len(squares) + base_square(mechanism), max(squares) + base_square(mechanism), 1)
    if isinstance(mechanism, SlidingRoot):
        return _sliding(mechanism)
    if isinstance(mechanism, Epochs):
        return spread(mechanism.first)
    squares = _squares(mechanism)
    worst = max(squares)
    return Spread(sum(squares) / len(squares), float(worst), squares.index(worst) + 1)


def _squares(mechanism: Mechanism | EncodedMechanism) -> list[float]:
    """Return the sums of all periods, or of one turn where they repeat."""
    if isinstance(mechanism, WeightedSquareRoot):
        return error_variances(mechanism.positions)[mechanism.baseline :].tolist()
    if isinstance(mechanism, (SquareRoot, Buffered)):
        return (mechanism.answer_series() ** 2).cumsum()[mechanism.baseline :].tolist()
    if isinstance(mechanism, SignedTree):
        if not mechanism.factors:
            return (digit_weights(mechanism.horizon, Shape(mechanism.radix, mechanism.levels)) + mechanism.baseline).tolist()
        return _of_blocks(mechanism, lambda factor: float(factor) ** 2)
    if isinstance(mechanism, (BinaryTree, LeastSquaresTree, HierarchicalSums)):
        return block_counts(mechanism) if isinstance(mechanism, HierarchicalSums) else mechanism.squares()
    last = mechanism.horizon if hasattr(mechanism, "baseline") else 1  # windows of one kind of node are all alike
    return [sum(weight * weight for _, weight in mechanism.answer(period)) for period in range(1, last + 1)]


def _of_blocks(tree: SignedTree, weight: Callable[[Fraction], float]) -> list[float]:
    sums = weighed_blocks(tree, weight)
    return (sums + weight(tree.factor(0))).tolist() if tree.baseline else sums.tolist()


@lru_cache(maxsize=128)
def deviations(mechanism: Mechanism | EncodedMechanism, noise: Noise) -> tuple[float, float]:
    """Return the root mean variance of the answers under a noise, and the largest deviation.

    Blocks of several widths have noise of several laws: wide ones of discrete Laplace noise vary by more than as many squares.
    """
    first = mechanism.first if isinstance(mechanism, Epochs) else mechanism
    if isinstance(first, SignedTree) and first.factors:
        variances = _of_blocks(first, lambda factor: scaled(noise, factor).variance)
        return math.sqrt(sum(variances) / len(variances)), math.sqrt(max(variances))
    squares = spread(mechanism)
    return math.sqrt(noise.variance * squares.mean), math.sqrt(noise.variance * squares.worst)


def _sliding(mechanism: SlidingRoot) -> Spread:
    """The weights of a window do not depend on its period, but early ones meet fewer rows: errors rise to their limit."""
    last = mechanism.count or _SETTLED * BAND * mechanism.steps
    sums = (mechanism.answer_series(last + mechanism.steps - 1) ** 2).cumsum()[mechanism.steps - 1 :]
    mean = float(sums[-1]) if mechanism.count is None else float(sums.mean())
    return Spread(mean, float(sums[-1]), last)
