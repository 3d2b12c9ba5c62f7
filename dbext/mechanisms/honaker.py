"""Least squares in a binary tree with Gaussian noise: better node estimates, online and for a restated history (Honaker 2015).

Every dyadic block is noised once with variance 1. A block can be measured by itself or by the sum of its halves' estimates; the best
unbiased mixture gives the block itself the weight v_l, which is also its variance at level l:
    v_0 = 1,  v_l = 1 / (1 + 1 / (2 v_(l-1))),  falling to 1/2.
For totals this is the online optimum: their blocks are the roots of complete trees over disjoint periods, which know nothing of each
other. When later blocks are known, the same measurements give better estimates of earlier totals (`restated_totals`): free
post-processing for a revised series.
"""

from __future__ import annotations

from collections.abc import Mapping

#: (level, index): periods index 2^level + 1 to (index + 1) 2^level.
Block = tuple[int, int]


def block_variances(levels: int) -> list[float]:
    """Return v_0 ... v_(levels-1)."""
    variances = [1.0]
    while len(variances) < levels:
        variances.append(1 / (1 + 1 / (2 * variances[-1])))
    return variances


def blocks_of(total: int) -> list[Block]:
    """Return the dyadic blocks of periods 1 ... total, largest first."""
    blocks, start = [], 0
    for level in range(total.bit_length() - 1, -1, -1):
        if total >> level & 1:
            blocks.append((level, start >> level))
            start += 1 << level
    return blocks


def online_weights(total: int) -> dict[Block, float]:
    """Return the weight of every noisy block in the online estimate of a total; each period's weights over its blocks sum to 1."""
    weights: dict[Block, float] = {}
    variances = block_variances(max(total.bit_length(), 1))
    pending = [(block, 1.0) for block in blocks_of(total)]
    while pending:
        (level, index), share = pending.pop()
        own = variances[level]
        weights[level, index] = share * own
        if level:
            pending += [((level - 1, 2 * index + side), share * (1 - own)) for side in (0, 1)]
    return weights


def normalised_errors(horizon: int) -> tuple[float, float]:
    """Return the root mean square and the worst error of the totals 1 ... horizon, at sensitivity 1 and sigma 1.

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
