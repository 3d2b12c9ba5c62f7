"""A restated history: every published window from all nodes published so far, by full least squares.

When later blocks are known, the same stored numbers say more about earlier windows than was known when these were published (Honaker 2015;
Hay, Rastogi, Miklau and Suciu 2010). A node about (a, b] is an edge between boundaries whose resistance is the variance of its noise, as in
`assemble`; the least-squares totals are the potentials of that net when every node feeds in its value divided by its variance, and the
variance of a window is the resistance between its ends. Boundaries are eliminated one by one, those with the fewest neighbours first, which
never connects more than a few for nested blocks: the cost is about that of reading the numbers, windows times boundaries for the errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbext.mechanisms.assemble import Boundary, Edge, eliminate, net_of

if TYPE_CHECKING:
    import numpy as np

#: Windows whose errors are worked out at once.
_AT_ONCE = 512

Window = tuple[Boundary, int]
Elimination = list[tuple[int, list[tuple[int, float]], float]]


def restated(edges: Sequence[Edge], values: np.ndarray, windows: Sequence[Window]) -> tuple[np.ndarray, np.ndarray]:
    """Return the least-squares estimates (windows, cells) and their variances; `values` holds the noisy numbers (edges, cells).

    Every window must be a sum or difference of nodes.
    """
    import numpy as np

    places, elimination = _eliminated(edges)
    starts, ends = (np.array([places[boundary] for boundary in side]) for side in zip(*windows, strict=True))
    fed = np.zeros((len(places), values.shape[1]))
    conductance = np.array([1 / edge.variance for edge in edges])[:, None]
    np.add.at(fed, [places[edge.end] for edge in edges], values * conductance)
    np.add.at(fed, [places[edge.start] for edge in edges], -values * conductance)
    potentials = _solved(elimination, fed)
    variances = [_resistances(elimination, starts[i : i + _AT_ONCE], ends[i : i + _AT_ONCE]) for i in range(0, len(windows), _AT_ONCE)]
    return potentials[ends] - potentials[starts], np.concatenate(variances)


def _eliminated(edges: Sequence[Edge]) -> tuple[dict[Boundary, int], Elimination]:
    """Return the place of every boundary, and the boundaries in order of elimination with their neighbours' shares."""
    net = net_of(edges)
    places = {boundary: place for place, boundary in enumerate(net)}
    order = eliminate(net, edges[0].start, edges[0].start)
    steps = [(boundary, list(neighbours.items()), sum(neighbours.values())) for boundary, neighbours in order]
    return places, [(places[one], [(places[other], share / total) for other, share in near], total) for one, near, total in steps]


def _solved(elimination: Elimination, fed: np.ndarray) -> np.ndarray:
    """Return the potentials of all boundaries for currents fed in, in columns; what remains at the end of a component is its ground."""
    potentials = fed.copy()
    for place, near, _ in elimination:
        for other, share in near:
            potentials[other] += share * potentials[place]
    kept = {place for place, _, _ in elimination}
    for place in range(len(potentials)):
        if place not in kept:
            potentials[place] = 0.0
    for place, near, total in reversed(elimination):
        potentials[place] = potentials[place] / total if near else 0.0
        for other, share in near:
            potentials[place] += share * potentials[other]
    return potentials


def _resistances(elimination: Elimination, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    import numpy as np

    columns = np.arange(len(starts))
    fed = np.zeros((len(elimination) + 1, len(starts)))
    fed[ends, columns] = 1.0
    fed[starts, columns] = -1.0
    potentials = _solved(elimination, fed)
    return potentials[ends, columns] - potentials[starts, columns]
