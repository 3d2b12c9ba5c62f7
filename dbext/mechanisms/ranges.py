"""Any range of ticks from what a release has published: which stored numbers add up to it, and with which weights.

Noise that was paid for once answers as many ranges as one likes: sums, differences and weighted means of stored nodes are post-processing.
Nodes that hold the noisy sum of a time range are combined with least variance (`assemble`). Where nodes are encoder rows, or noise alone,
the unbiased estimate is a difference of totals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbext.mechanisms.assemble import Boundary, Edge, assemble, boundaries
from dbext.mechanisms.encoded import EncodedMechanism, is_encoded
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.toeplitz import answer_weights

Weights = tuple[tuple[int, float], ...]
#: The variance of a node's noise, by node number.
Variance = Callable[[int], float]


def combination(mechanism: Mechanism | EncodedMechanism, published: int, variance: Variance, start: Boundary, end: int) -> Weights | None:
    """Return (number, weight) pairs of stored nodes or rows that add up to the range (start, end]; None if nothing published does.

    `published` is the last period whose nodes may be used.
    """
    if published < 1:
        return None
    if not _sums_totals(mechanism):
        return assemble(edges(mechanism, published, variance, start, end), start, end)
    upper = _total(mechanism, published, end)
    lower = () if start == _beginning(mechanism) else _total(mechanism, published, start)
    return None if upper is None or lower is None else _difference(upper, lower)


def range_boundaries(mechanism: Mechanism | EncodedMechanism, published: int, near: int) -> list[int]:
    """Return the boundaries around `near`, in order, at which ranges can begin or end."""
    if published < 1:
        return []
    if not _sums_totals(mechanism):
        return boundaries(edges(mechanism, published, lambda _: 1.0, near, near))
    beginning = _beginning(mechanism)
    ends = [leaf.end for period in range(1, published + 1) for leaf in mechanism.leaves(period) if leaf.number or beginning is not None]
    return ends if beginning is None else [beginning, *ends]


def edges(mechanism: Mechanism, published: int, variance: Variance, start: Boundary, end: int) -> list[Edge]:
    """Return the nodes of the published periods; of an endless release, those that can share a boundary with what the range overlaps."""
    periods: Sequence[int] = range(1, published + 1)
    if start is not None and not mechanism.patterns()[0].is_finite:
        windows = getattr(mechanism, "windows", mechanism)
        reach = 3 * max(one.longest for one in mechanism.patterns()) + windows.age
        first, last = windows.grid.last_end(start - reach), windows.grid.last_end(end + reach) + 1
        periods = [1, *range(max(2, first), min(published, last) + 1)]
    found = (node for period in periods for node in mechanism.nodes(period))
    return [Edge(node.number, node.start, node.end, variance(node.number)) for node in found]


def _sums_totals(mechanism: Mechanism | EncodedMechanism) -> bool:
    """Whether nodes mean nothing one by one, so that ranges are differences of totals."""
    return is_encoded(mechanism) or getattr(mechanism, "noise_only", False)


def _beginning(mechanism: Mechanism | EncodedMechanism) -> Boundary:
    return mechanism.leaves(1)[0].start


def _total(mechanism: Mechanism | EncodedMechanism, published: int, end: Boundary) -> Weights | None:
    """Return the weights of everything up to a boundary, or None if no published leaf ends there. Sliding mechanisms alone have an age."""
    if end is None:
        return None
    period = mechanism.grid.last_end(end + getattr(mechanism, "age", 0))
    if period > published:
        return None
    if hasattr(mechanism, "age"):
        return _total_of_leaves(mechanism, period, end)
    return mechanism.answer(period) if period >= 1 and mechanism.grid.end(period) == end else None


def _total_of_leaves(mechanism: EncodedMechanism, period: int, end: int) -> Weights | None:
    """Return the weights of all leaves of a sliding mechanism up to one of them: the coefficients of 1 / ((1 - z) c(z))."""
    first = mechanism.leaves(1)[0].number
    if period < first or mechanism.grid.end(period) - mechanism.age != end:
        return None
    weights = answer_weights(mechanism.coefficients, None, period - first + 1)[::-1]
    return tuple(zip(range(first, period + 1), weights.tolist(), strict=True))


def _difference(upper: Weights, lower: Weights) -> Weights:
    total = dict(upper)
    for number, weight in lower:
        total[number] = total.get(number, 0) - weight
    return tuple((number, weight) for number, weight in sorted(total.items()) if weight)
