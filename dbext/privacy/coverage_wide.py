"""The recurrence of `coverage` in numpy: all layers advance together, one row each. Same answers as the plain form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dbext.privacy.cells import NEVER, Cells, PricedFilter, opening_depths


def point_layers(filters: Sequence[PricedFilter], cells: Cells, layers: int, points: int) -> tuple[list[int], list[int]]:
    """Return per layer j the best F_j, and the best F_j plus the filters without an end that begin after its last point.

    Row j of `kept` is the plain form's list of layer j + 1. The caller has checked that all sums fit 64 bits.
    """
    prices = _prices(filters, layers, points)
    opens = _opening_prices(prices, cells)
    closes = cells.closings()
    depths = opening_depths(filters, cells)
    kept = np.zeros((layers, cells.count), dtype=np.int64)
    lifted = np.zeros(layers, dtype=np.int64)
    top, best = np.full(layers, NEVER, dtype=np.int64), np.full(layers, NEVER, dtype=np.int64)
    for cell in range(cells.count):
        lifted += opens[cell]
        values = np.empty(layers, dtype=np.int64)
        values[0], values[1:] = depths[cell], (top + lifted)[:-1]
        np.maximum(best, values, out=best)
        kept[:, cell] = values - lifted
        np.maximum(top, kept[:, cell], out=top)
        for index in closes[cell]:
            first = cells.first[index]
            if first:
                lifted -= prices[index]
                held = kept[:, first : cell + 1]
                held += prices[index][:, None]
                np.maximum(top, held.max(axis=1), out=top)
    return best.tolist(), (top + lifted + opens[cells.count]).tolist()


def _prices(filters: Sequence[PricedFilter], layers: int, points: int) -> np.ndarray:
    """Return what each filter (row) costs a point that continues from layer j (column j - 1)."""
    prices = np.empty((len(filters), layers), dtype=np.int64)
    prices[:] = np.array([f.later for f in filters], dtype=np.int64)[:, None]
    if 1 < points <= layers + 1:
        prices[:, points - 2] = [f.opening for f in filters]
    return prices


def _opening_prices(prices: np.ndarray, cells: Cells) -> np.ndarray:
    opens = np.zeros((cells.count + 1, prices.shape[1]), dtype=np.int64)
    first = np.array(cells.first)
    np.add.at(opens, first[first > 0], prices[first > 0])
    return opens


def layers_within(filters: Sequence[PricedFilter], cells: Cells, layers: int, points: int, reach: Sequence[int]) -> int:
    """Return the best total of `points` mutations whose first lies in cell s and whose last lies in cell reach[s] or before, over all s.

    totals[d][s] is F_j of cell s + d among sequences that begin in cell s: a product of (maximum, plus) matrices kept as bands,
    O(k m D^2) additions for bands of D cells.
    """
    width = max(last - first for first, last in enumerate(reach))
    allowed = np.arange(width + 1)[:, None] + np.arange(cells.count)[None, :] <= np.array(reach)[None, :]
    prices = _prices(filters, layers, points)
    totals = np.full((width + 1, cells.count), NEVER, dtype=np.int64)
    totals[0] = opening_depths(filters, cells)
    best = int(totals[0].max())
    band = None
    for j in range(layers - 1):
        if band is None or (prices[:, j] != prices[:, j - 1]).any():
            band = _band(prices[:, j], cells, width)
        totals = np.where(allowed, _extend(totals, band), NEVER)
        best = max(best, int(totals.max()))
    return best


def _band(price: np.ndarray, cells: Cells, width: int) -> np.ndarray:
    """Return band[g][p]: the price of the filters that hold cell p and begin after cell p - g."""
    band = np.zeros((width + 1, cells.count), dtype=np.int64)
    opens, closes = [[] for _ in range(cells.count)], cells.closings()
    for index, first in enumerate(cells.first):
        if 0 < first < cells.count:
            opens[first].append(index)
    new_after = np.zeros(cells.count, dtype=np.int64)
    for cell in range(cells.count):
        for index in opens[cell]:
            new_after[max(0, cell - width) : cell] += price[index]
        gaps = min(width, cell)
        band[1 : gaps + 1, cell] = new_after[cell - gaps : cell][::-1]
        for index in closes[cell]:
            first = cells.first[index]
            new_after[max(0, first - width) : first] -= price[index]
    return band


def _extend(totals: np.ndarray, band: np.ndarray) -> np.ndarray:
    """Return the totals of one more point: extended[d][s] = max over gaps g of totals[d - g][s] + band[g][s + d]."""
    depth, count = totals.shape
    extended = np.full_like(totals, NEVER)
    alone = totals.shape[0] > 1 and (totals[1:] == NEVER).all()
    for last in range(1, depth):
        target = extended[last, : count - last]
        for gap in range(last if alone else 1, last + 1):
            np.maximum(target, totals[last - gap, : count - last] + band[gap, last:], out=target)
    return extended
