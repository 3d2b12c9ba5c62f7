"""Entries that may change in every period of a short span: a certified bound on the squared norm of any 0/1 path of presence.

Written in presence s_t in {0, 1} instead of changes, the entry's effect is the sum of s_t q_t with q_t = R(e_t - e_(t+1)), the last one
q = R e for an entry that stays. Its norm^2 is a sum over pairs of present periods. Products of pairs more than `memory` periods apart are
replaced by an upper bound, 0 for a negative one; what is left is maximised exactly by dynamic programming over the last `memory` values
of s. For an encoder whose runs repel all products of pairs are negative, and they fall like the square of the distance: little is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: Work of one bound, in steps of the dynamic programme: about a fifth of a second.
_WORK = 30_000_000
_MOST_MEMORY = 16
GramRows = Iterable[tuple[int, "np.ndarray"]]


def dense_bound(rows: GramRows, width: int) -> float:
    """Return a bound on x'Gx over all alternating x that start at period 0 and stay within `width` periods, however many changes.

    `rows` yields (i, [G(i, i) ... G(i, width - 1)]) for i = width - 1 down to 0. An encoder for which shifting x to the left never
    lowers the norm may be asked for starts at 0 only. Exact when width <= memory + 1, but for the rounding of some 80 values of G per
    period, which the caller allows for.
    Cost: O(width^2 + width * memory * 2^memory).
    """
    import numpy as np

    memory = min(_MOST_MEMORY, max(width - 1, 0), max((_WORK // width).bit_length() - 4, 1))
    own, near, far = _products(rows, width, memory)
    recent = np.arange(1 << memory)
    bits = (recent[:, None] >> np.arange(memory)) & 1
    best = np.full(1 << memory, -np.inf)
    best[min(1, (1 << memory) - 1)] = own[0]
    for t in range(1, width):
        present = best + own[t] + 2 * (bits @ near[:, t])
        best = _shift(np, best, present, memory)
    return float(best.max()) + 2 * far


def _shift(np, absent: np.ndarray, present: np.ndarray, memory: int) -> np.ndarray:  # noqa: ANN001 the module, imported late
    """Append one period: bit 0 of the state becomes its presence, the oldest bit is forgotten (the better of its two values kept)."""
    size = 1 << memory
    if memory == 0:
        return np.array([max(absent.max(), present.max())])
    new = np.empty(size)
    half = size >> 1
    new[0::2] = np.maximum(absent[:half], absent[half:])
    new[1::2] = np.maximum(present[:half], present[half:])
    return new


def _products(rows: GramRows, width: int, memory: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return |q_t|^2, the products <q_(t-d), q_t> as [d - 1, t] for d <= memory, and the sum of the positive ones further apart."""
    import numpy as np

    own, near, far = np.zeros(width), np.zeros((memory, width)), 0.0
    below = None
    for i, row in rows:
        if below is None:
            own[i] = row[0]
        else:
            # q_i = R(e_i - e_(i+1)): with e_j for the row's j, less e_(j+1) for all but the last.
            difference = row[1:] - below
            products = np.append(difference[:-1] - difference[1:], difference[-1])
            own[i] = row[0] - 2 * row[1] + below[0]
            reach = min(memory, len(products))
            near[np.arange(reach), i + 1 + np.arange(reach)] = products[:reach]
            far += float(np.maximum(products[reach:], 0).sum())
        below = row
    return own, near, far
