"""Closed forms of the literature, and other conversions, that what dbext computes is held against."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from math import comb

import numpy as np

from dbext.mechanisms.honaker import Block, block_variances, blocks_of
from dbext.mechanisms.signed_tree import Shape, signed_blocks
from dbext.mechanisms.unequal_budgets import Family
from dbext.privacy import conversion
from dbext.privacy.pico import PICOS, to_decimal


def root_coefficient(k: int) -> Fraction:
    """Return f_k = C(2k, k) / 4^k exactly."""
    return Fraction(comb(2 * k, k), 4**k)


def column_norm_squared(positions: int) -> float:
    """Return S_T = sum of f_k^2 for k < T, about ln(T) / pi + 1.0663."""
    return float(_squares(positions).sum())


def square_root_errors(positions: int) -> tuple[float, float]:
    """Return the root mean square error of the square root over time and its worst one, at sensitivity 1 and sigma 1: S_T included."""
    variances = np.cumsum(_squares(positions))
    return float(np.sqrt(variances[-1] * variances.mean())), float(variances[-1])


def _squares(positions: int) -> np.ndarray:
    k = np.arange(1, positions)
    return np.append(1.0, np.cumprod(1 - 0.5 / k)) ** 2


def least_squares_errors(horizon: int) -> tuple[float, float]:
    """Return the root mean square and the worst error of a least-squares tree, at sensitivity 1 and sigma 1.

    Every period lies in one block of each level that fits into the horizon, so that the squared sensitivity is their number.
    """
    levels = horizon.bit_length()
    variances = block_variances(levels)
    errors = [sum(variances[level] for level in range(levels) if total >> level & 1) for total in range(1, horizon + 1)]
    return (levels * sum(errors) / horizon) ** 0.5, (levels * max(errors)) ** 0.5


def restated_totals(noisy: Mapping[Block, float], total: int) -> list[float]:
    """Return the least-squares estimates of the totals 1 ... total from all blocks inside periods 1 ... total.

    Two passes per complete tree (Hay, Rastogi, Miklau and Suciu 2010): upwards the online estimates; downwards the difference between a
    block's final estimate and the sum of its halves' is split evenly between the halves, whose variances are equal. Cost: linear.
    """
    upward = _upward(noisy, total)
    periods: list[float] = []
    for root in blocks_of(total):
        final = {root: upward[root]}
        for level in range(root[0], 0, -1):
            first = root[1] << (root[0] - level)
            for index in range(first, first + (1 << (root[0] - level))):
                halves = [(level - 1, 2 * index), (level - 1, 2 * index + 1)]
                difference = final[level, index] - sum(upward[half] for half in halves)
                final.update((half, upward[half] + difference / 2) for half in halves)
        first = root[1] << root[0]
        periods += [final[0, index] for index in range(first, first + (1 << root[0]))]
    sums, running = [], 0.0
    for value in periods:
        running += value
        sums.append(running)
    return sums


def _upward(noisy: Mapping[Block, float], total: int) -> dict[Block, float]:
    variances = block_variances(max(total.bit_length(), 1))
    estimates: dict[Block, float] = {}
    for level in range(total.bit_length()):
        for index in range(total >> level):
            own = noisy[level, index]
            halves = sum(estimates[level - 1, 2 * index + side] for side in (0, 1)) if level else own
            estimates[level, index] = variances[level] * own + (1 - variances[level]) * halves
    return estimates


def signed_family(horizon: int, shape: Shape) -> Family:
    """Return the blocks that the totals of a signed tree use; each level's blocks come after those of the level below."""
    uses: dict[tuple[int, int], int] = {}
    for total in range(1, horizon + 1):
        for level, index, _ in signed_blocks(total, shape.radix, shape.levels):
            uses[level, index] = uses.get((level, index), 0) + 1
    for level, index in sorted(uses):
        if level + 1 < shape.levels:
            uses.setdefault((level + 1, index // shape.radix), 0)
    order = sorted(uses)
    position = {block: number for number, block in enumerate(order)}
    parents = tuple(position.get((level + 1, index // shape.radix)) for level, index in order)
    return Family(parents, tuple(uses[block] for block in order))


def rho_to_epsilon(rho: int, delta: Fraction) -> Decimal:
    """Return the epsilon that `rho` picos of zero-concentrated loss amount to at `delta`: 12 digits, rounded up."""
    if rho <= 0:
        return Decimal(0).quantize(Decimal("1e-12"))
    order = conversion._best_order(lambda excess: (1 + excess) * rho / PICOS + conversion._overhead(excess, delta))
    with localcontext() as context:
        context.prec, context.rounding = conversion._DIGITS, ROUND_CEILING
        epsilon = order * to_decimal(rho) + conversion._exact_overhead(order, delta) + conversion._MARGIN
        return max(Decimal(0), epsilon).quantize(Decimal("1e-12"))


def epsilon_to_rho(epsilon: Fraction, delta: Fraction) -> int:
    """Return the picos of rho that may be spent within (epsilon, delta), rounded down; 0 if no order allows any."""
    return max(0, conversion._rho_at(conversion._largest_rho(epsilon, delta), epsilon))
