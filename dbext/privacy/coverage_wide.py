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
