"""Unequal shares of the budget inside a tree: nodes that serve many answers get less noise, whatever is left goes inside them.

On a laminar family (any two nodes are nested or disjoint) an entry pays for every node on one path, so that shares along each path may
add up to the whole budget. Let u be the number of answers that use a node and `inside` the least total cost of what is nested in it when
that has the whole budget. With Laplace noise a share e costs 2 u / e^2, so that the node and its inside together cost at least
    min over e of 2 u / e^2 + inside / (1 - e)^2 = (a^(1/3) + inside^(1/3))^3,  a = 2 u,   at e = a^(1/3) / (a^(1/3) + inside^(1/3)).
With Gaussian noise, where costs are u / rho, the exponents are 1/2 and 2. Disjoint parts do not compete: their costs add.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Nodes of a laminar family, each after everything nested in it: its parent's position (None: a root) and the answers that use it."""

    parents: tuple[int | None, ...]
    uses: tuple[int, ...]


@dataclass(frozen=True)
class Division:
    """Shares of the whole budget by node, and the sum over all answers of their variance when the whole is 1."""

    shares: tuple[float, ...]
    total_variance: float


def divide(family: Family, *, pure: bool) -> Division:
    """Return the best shares. Cost: linear. A node that no answer uses gets 0, and is not to be released."""
    power, weight = (1 / 3, 2.0) if pure else (1 / 2, 1.0)
    inside = [0.0] * len(family.uses)
    roots = 0.0
    for node, (parent, uses) in enumerate(zip(family.parents, family.uses, strict=True)):
        cost = ((weight * uses) ** power + inside[node] ** power) ** (1 / power)
        if parent is None:
            roots += cost
        else:
            inside[parent] += cost
    left = [1.0] * len(family.uses)
    shares = [0.0] * len(family.uses)
    for node in range(len(family.uses) - 1, -1, -1):
        parent = family.parents[node]
        available = 1.0 if parent is None else left[parent]
        own, within = (weight * family.uses[node]) ** power, inside[node] ** power
        shares[node] = available * own / (own + within) if own else 0.0
        left[node] = available - shares[node]
    return Division(tuple(shares), roots)


def indexed_tree(horizon: int) -> Family:
    """Return Fenwick's tree over periods 1 ... horizon: node n (at position n - 1) serves the totals n ... n + lowbit(n) - 1."""
    parents, uses = [], []
    for n in range(1, horizon + 1):
        low = n & -n
        parents.append(n + low - 1 if n + low <= horizon else None)
        uses.append(min(low, horizon - n + 1))
    return Family(tuple(parents), tuple(uses))
