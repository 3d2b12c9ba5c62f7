"""The least-variance sum and difference of published nodes that makes up a range of ticks.

A node about (a, b] is an edge between the boundaries a and b, and the variance of its noise a resistance. Coefficients with which nodes
add up to the range (s, e], and to nothing else, are a flow of one unit from s to e: forward +, backward -. The variance of the sum is the
heat of that flow, flow^2 times resistance, and the least of all is the electric current (Thomson's principle): the best linear unbiased
estimate that independent noises allow, whatever the nodes: blocks of several lengths, nested or not, or windows that overlap.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

#: Coefficients closer than this to a whole number are that number: nodes that close no ring with others are used once or not at all.
_WHOLE = 1e-9
_LEAST = 1e-6

Boundary = int | None
Net = dict[Boundary, dict[Boundary, float]]


class Edge(NamedTuple):
    """A published node: its number, the range (start, end] that it is about (None: the beginning), and the variance of its noise."""

    number: int
    start: Boundary
    end: int
    variance: float


def assemble(edges: Sequence[Edge], start: Boundary, end: int) -> tuple[tuple[int, float], ...] | None:
    """Return (node number, coefficient) pairs of the least-variance estimate of the range; None if nodes do not add up to it.

    Boundaries are eliminated from the net one by one, those with the fewest neighbours first: nested blocks then never add a connection.
    """
    edges = _balanced(edges)
    net = net_of(edges)
    if start not in net or end not in net:
        return None
    eliminated = eliminate(net, start, end)
    between = net[start].get(end, 0.0)
    if not between:
        return None
    potential: dict[Boundary, float] = {start: 1 / between, end: 0.0}
    for boundary, neighbours in reversed(eliminated):
        total = sum(neighbours.values())
        potential[boundary] = sum(potential[one] * share for one, share in neighbours.items()) / total if total else 0.0
    flows = ((one.number, (potential[one.start] - potential[one.end]) / one.variance) for one in edges)
    return tuple((number, _snapped(flow)) for number, flow in flows if abs(flow) > _WHOLE)


def _balanced(edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges with variances relative to the largest, and none below a millionth of it, which floats could not tell from 0.

    Noise of next to no width (a huge epsilon) has a variance that vanishes; treating it as a little more changes what is best by nothing.
    """
    largest = max((one.variance for one in edges), default=0.0)
    return [one._replace(variance=max(one.variance / largest, _LEAST) if largest else 1.0) for one in edges]


def boundaries(edges: Sequence[Edge]) -> list[int]:
    """Return every boundary at which a node begins or ends, in order."""
    return sorted({one.end for one in edges} | {one.start for one in edges if one.start is not None})


def net_of(edges: Sequence[Edge]) -> Net:
    """Return the conductance between neighbouring boundaries; nodes about the same range conduct together."""
    net: Net = {}
    for one in edges:
        for here, there in ((one.start, one.end), (one.end, one.start)):
            near = net.setdefault(here, {})
            near[there] = near.get(there, 0.0) + 1 / one.variance
    return net


def eliminate(net: Net, start: Boundary, end: int) -> list[tuple[Boundary, dict[Boundary, float]]]:
    """Take all boundaries but two out of the net; returns them with the neighbours they had, in order.

    A boundary's potential is the mean of its neighbours' by conductance, which connects every two of them by g_1 g_2 / (sum of g).
    """
    order = [(len(near), place, boundary) for place, (boundary, near) in enumerate(net.items()) if boundary not in (start, end)]
    heapq.heapify(order)
    eliminated = []
    while order:
        degree, place, boundary = heapq.heappop(order)
        if degree != len(net[boundary]):
            heapq.heappush(order, (len(net[boundary]), place, boundary))
            continue
        neighbours = net.pop(boundary)
        _connect(net, boundary, list(neighbours.items()))
        eliminated.append((boundary, neighbours))
    return eliminated


def _connect(net: Net, gone: Boundary, neighbours: list[tuple[Boundary, float]]) -> None:
    total = sum(share for _, share in neighbours)
    for place, (one, share) in enumerate(neighbours):
        del net[one][gone]
        for other, more in neighbours[:place]:
            net[one][other] = net[one].get(other, 0.0) + share * more / total
            net[other][one] = net[one][other]


def _snapped(flow: float) -> float:
    whole = round(flow)
    return whole if whole and abs(flow - whole) < _WHOLE else flow
