"""Least squares in a binary tree with Gaussian noise: better node estimates as time goes by (Honaker 2015).

Every dyadic block is noised once with variance 1. A block can be measured by itself or by the sum of its halves' estimates; the best
unbiased mixture gives the block itself the weight v_l, which is also its variance at level l:
    v_0 = 1,  v_l = 1 / (1 + 1 / (2 v_(l-1))),  falling to 1/2.
For totals this is the online optimum: their blocks are the roots of complete trees over disjoint periods, which know nothing of each
other. When later blocks are known, the same measurements give better estimates of earlier totals (`restate`).
"""

from __future__ import annotations

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
