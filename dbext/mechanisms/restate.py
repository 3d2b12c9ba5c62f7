"""A restated history: every published window from all nodes published so far, by full least squares.

When later blocks are known, the same stored numbers say more about earlier windows than was known when these were published (Honaker 2015;
Hay, Rastogi, Miklau and Suciu 2010). A node about (a, b] is an edge between boundaries whose resistance is the variance of its noise, as in
`assemble`; the least-squares totals are the potentials of that net when every node feeds in its value divided by its variance, and the
variance of a window is the resistance between its ends. Boundaries are eliminated one by one, those with the fewest neighbours first, which
never connects more than a few for nested blocks: the cost is about that of reading the numbers. So it is for the errors of windows with one
start, as totals have; of others it is windows times boundaries.
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

    places, elimination = _eliminated(edges, ground=windows[0][0])
    starts, ends = (np.array([places[boundary] for boundary in side]) for side in zip(*windows, strict=True))
    fed = np.zeros((len(places), values.shape[1]))
    conductance = np.array([1 / edge.variance for edge in edges])[:, None]
    np.add.at(fed, [places[edge.end] for edge in edges], values * conductance)
    np.add.at(fed, [places[edge.start] for edge in edges], -values * conductance)
    potentials = _solved(elimination, fed)
    return potentials[ends] - potentials[starts], _variances(elimination, starts, ends)


def _eliminated(edges: Sequence[Edge], ground: Boundary) -> tuple[dict[Boundary, int], Elimination]:
    """Return the place of every boundary, and all but the ground in order of elimination with their neighbours' shares."""
    net = net_of(edges)
    places = {boundary: place for place, boundary in enumerate(net)}
    order = eliminate(net, ground, ground)
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


def _variances(elimination: Elimination, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the variances of windows, the first of which starts at the ground."""
    import numpy as np

    if (starts == starts[0]).all():
        return np.array(_from_the_ground(elimination))[ends]
    parts = (slice(begin, begin + _AT_ONCE) for begin in range(0, len(starts), _AT_ONCE))
    return np.concatenate([_resistances(elimination, starts[part], ends[part]) for part in parts])


def _from_the_ground(elimination: Elimination) -> list[float]:
    """Return the resistance between the ground and every boundary; 0 where nothing connects them.

    A boundary's potential is the mean of its neighbours' by conductance and noise of its own. So, from the last one back, its covariance
    with those that were its neighbours follows from theirs with each other: they were connected when it was taken out, so that those are
    known (Takahashi, Fagan and Chen 1973).
    """
    own = [0.0] * (len(elimination) + 1)
    shared: list[dict[int, float]] = [{} for _ in own]
    for place, near, total in reversed(elimination):
        with_near = shared[place]
        for one, share in near:
            with_near[one] = share * own[one] + sum(part * _covariance(shared, one, other) for other, part in near if other != one)
        own[place] = sum(share * with_near[one] for one, share in near) + (1 / total if near else 0.0)
    return own


def _covariance(shared: list[dict[int, float]], one: int, other: int) -> float:
    return shared[one][other] if other in shared[one] else shared[other].get(one, 0.0)


def _resistances(elimination: Elimination, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    import numpy as np

    columns = np.arange(len(starts))
    fed = np.zeros((len(elimination) + 1, len(starts)))
    fed[ends, columns] = 1.0
    fed[starts, columns] = -1.0
    potentials = _solved(elimination, fed)
    return potentials[ends, columns] - potentials[starts, columns]
