"""The recurrence of `coverage` in plain Python, one layer after the other.

Per layer every cell p' keeps F_j(p') plus the price of the open filters that are new after it. A filter that opens raises all earlier cells
alike: that is one number, `lifted`. One that closes is lowered in `lifted` and given back to the cells it held, which keep it; so kept
numbers only rise and their maximum is kept up at the cells that change. Cost: cells plus the lengths of the filters, in cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbext.privacy.cells import NEVER, Cells, PricedFilter, opening_depths


def point_layers(filters: Sequence[PricedFilter], cells: Cells, layers: int, points: int) -> tuple[list[int], list[int]]:
    """Return per layer j the best F_j, and the best F_j plus the filters without an end that begin after its last point."""
    inside, onward = [], []
    closes = cells.closings()
    values = opening_depths(filters, cells)
    for j in range(1, layers + 1):
        inside.append(max(values))
        prices = [f.opening if j + 1 == points else f.later for f in filters]
        values, ahead = _next_layer(prices, cells, closes, values)
        onward.append(ahead)
    return inside, onward


def _next_layer(prices: list[int], cells: Cells, closes: list[list[int]], values: list[int]) -> tuple[list[int], int]:
    """Return F_(j+1) from F_j, and the best sum that is left after the last cell."""
    opens = _opening_prices(prices, cells)
    kept: list[int] = []
    result, lifted, top = [], 0, NEVER
    for cell, value in enumerate(values):
        lifted += opens[cell]
        result.append(top + lifted)
        kept.append(value - lifted)
        top = max(top, value - lifted)
        for index in closes[cell]:
            first, price = cells.first[index], prices[index]
            if first:
                lifted -= price
                for held in range(first, cell + 1):
                    kept[held] += price
                top = max([top, *kept[first : cell + 1]])
    return result, top + lifted + opens[len(values)]


def _opening_prices(prices: list[int], cells: Cells) -> list[int]:
    """Return the price of what opens at each cell; a filter that holds the first cell is new to no later point."""
    opens = [0] * (cells.count + 1)
    for price, first in zip(prices, cells.first, strict=True):
        if first:
            opens[first] += price
    return opens
