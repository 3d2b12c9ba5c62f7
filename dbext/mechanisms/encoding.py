"""Exact encoder rows from exact counts, and answers from stored noisy rows: the arithmetic of publishing an encoded mechanism.

Rows are whole numbers, computed without any rounding: in 64 bits where no sum can pass them, with weights cut into pieces where one could.
Answers are post-processing: floats, computed from what was stored and from nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbext.mechanisms.encoded import Row
from dbext.mechanisms.protocol import Node

if TYPE_CHECKING:
    import numpy as np

#: Sums of products stay below 2^62.
_BITS = 62

Texts = Sequence[tuple[int, str]]


def leaf_counts(leaves: Sequence[Node], tick_sums: Texts, cells: int) -> np.ndarray:
    """Return the exact counts of adjacent leaves, in order, as a table (leaves, cells) of 64-bit numbers.

    `tick_sums` holds the effect of each tick on every cell, as numbers with commas; a tick that lies in no leaf is left out.
    """
    import numpy as np

    counts = np.zeros((len(leaves), cells), dtype=np.int64)
    if tick_sums:
        places = np.searchsorted([leaf.end for leaf in leaves], [tick for tick, _ in tick_sums])
        inside = [n for n, place in enumerate(places.tolist()) if place < len(leaves) and _holds(leaves[place], tick_sums[n][0])]
        values = np.array([np.fromstring(tick_sums[n][1], dtype=np.int64, sep=",") for n in inside]).reshape(len(inside), cells)
        np.add.at(counts, places[inside], values)
    return counts


def _holds(leaf: Node, tick: int) -> bool:
    return leaf.start is None or leaf.start < tick


def encode_rows(rows: Sequence[Row], first_leaf: int, counts: np.ndarray) -> list[list[int]]:
    """Return, for each row and cell, the sum of weight times count, exactly. `counts` begins with the leaf of number `first_leaf`."""
    import numpy as np

    encoded = []
    for row in rows:
        places = np.array([leaf for leaf, _ in row.weights], dtype=np.int64) - first_leaf
        encoded.append(exact_product(np.array([weight for _, weight in row.weights], dtype=np.int64), counts[places]))
    return encoded


def exact_product(weights: np.ndarray, counts: np.ndarray) -> list[int]:
    """Return weights (n) times counts (n, cells) in whole numbers without end.

    In 64 bits when the sum of abs(weight) times the largest count stays below 2^62. Else weights are cut into pieces of so many bits that
    it does, piece by piece, lowest first (the highest keeps the sign), and put together as Python's integers.
    """
    largest = max(1, int(abs(counts).max(initial=0)))
    room = _BITS - (len(weights) * largest).bit_length()
    if room < 1:
        return (weights.astype(object) @ counts.astype(object)).tolist()
    total, shift = [0] * counts.shape[1], 0
    while True:
        last = int(abs(weights).max(initial=0)) >> room == 0
        piece = weights if last else weights & ((1 << room) - 1)
        total = [value + (part << shift) for value, part in zip(total, (piece @ counts).tolist(), strict=True)]
        if last:
            return total
        weights, shift = weights >> room, shift + room


def noisy_table(stored: Texts) -> np.ndarray:
    """Return stored rows (number, numbers with commas), in order, as a table of floats."""
    import numpy as np

    return np.array([np.fromstring(text, sep=",") for _, text in stored])


def weighted_sums(answer: Sequence[tuple[int, float]], first_row: int, table: np.ndarray) -> list[float]:
    """Return the answer of one period, a number per cell, from the stored rows; `table` begins with the row of number `first_row`."""
    import numpy as np

    places = np.array([number for number, _ in answer]) - first_row
    return (np.array([weight for _, weight in answer]) @ table[places]).tolist()
