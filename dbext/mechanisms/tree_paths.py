"""How far one entry moves all nodes of a complete tree together, by number of changes: exact, by dynamic programming over the levels.

The ledger charges every touched node (coverage). When all nodes of one tree are counted together the exact norm can be smaller, because
what an entry adds to a node is the difference of its states at the two ends: a node that it leaves as it was costs nothing. All subtrees of
a level are alike, so that one table per level is enough: the best of a block by its state before, its state after and the changes inside.
"""

from __future__ import annotations

from collections.abc import Sequence

_NEVER = float("-inf")
_STATES = (0, 1)
#: By (state before, state after): the best cost for 0, 1, 2 ... changes inside.
_Table = dict[tuple[int, int], list[float]]


def state_change_norms(radix: int, prices: Sequence[float], changes: int) -> list[float]:
    """Return the largest cost of at most 1 ... `changes` changes of a 0/1 state that starts at 0.

    A node costs its level's price if it sees a difference. `prices` are by level from the leaves up, one for each level of the tree:
    all 1 gives the L1 norm, which is the squared L2 norm too. Larger values of bounded states are no worse: the norm is convex, and 0 and
    1 are the ends. Cost: levels * radix * changes^2.
    """
    table = _leaf(prices[0], changes)
    for price in prices[1:]:
        table = _node(table, radix, price, changes)
    best = [max(table[0, state][count] for state in _STATES) for count in range(changes + 1)]
    return [max(best[: count + 1]) for count in range(1, changes + 1)]


def increment_norms(radix: int, levels: int, events: int, per_leaf: int = 1) -> list[tuple[int, int]]:
    """Return (L1, squared L2) of 1 ... `events` events of one sign in a complete tree, at most `per_leaf` of them in one leaf.

    Every event adds 1 to one node of each level: L1 is events * levels. Squared, events crowd: a table of the best sum of squares.
    """
    table = [float(n * n) if n <= per_leaf else _NEVER for n in range(events + 1)]
    for _ in range(levels - 1):
        inside = table
        for _ in range(radix - 1):
            inside = _fold(inside, table, events)
        table = [n * n + value for n, value in enumerate(inside)]
    return [(n * levels, int(table[n])) for n in range(1, events + 1) if table[n] > _NEVER]


def _leaf(price: float, changes: int) -> _Table:
    """A leaf sees a difference or none; whatever happens inside, one change or none is enough."""
    still, moved = [0.0] + [_NEVER] * changes, [_NEVER, price] + [_NEVER] * (changes - 1)
    return {(before, after): still if before == after else moved for before in _STATES for after in _STATES}


def _node(child: _Table, radix: int, price: float, changes: int) -> _Table:
    joined = child
    for _ in range(radix - 1):
        joined = {
            (before, after): [
                max(values)
                for values in zip(*(_fold(joined[before, middle], child[middle, after], changes) for middle in _STATES), strict=True)
            ]
            for before in _STATES
            for after in _STATES
        }
    return {(a, b): [value + price * (a != b) for value in values] for (a, b), values in joined.items()}


def _fold(one: Sequence[float], other: Sequence[float], most: int) -> list[float]:
    """Return the best sums for every split of a number between two parts."""
    return [max(one[i] + other[n - i] for i in range(n + 1)) for n in range(most + 1)]
