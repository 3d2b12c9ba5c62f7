"""Events of one sign (`entered`, `left`): how far s of them move all noised numbers of a joint mechanism together.

Between two entries into a predicate lies a departure, each in its own tick. So successive events are at least 2 ticks apart, a period
of L ticks holds at most ceil(L / 2) of them, and with L = 1 they lie in every other period at best. All entries of the effect x are
non-negative counts; with non-negative inner products G(i, j) the norm x'Gx is largest when the events crowd together:
never s^2 where the distance forbids it, never s where they can pile up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dbext.privacy.pico import ceil_divide

if TYPE_CHECKING:
    import numpy as np

#: Coefficients are taken apart into words of so many bits, whose products add up exactly in 64.
_WORD = 16


def packed_norms(coefficients: Sequence[int], events: int, longest: int) -> list[int]:
    """Return the largest squared norm of 1 ... `events` events, exact whole numbers, for periods of up to `longest` ticks.

    For non-negative, non-increasing coefficients. Let the events' periods be q_1 <= q_2 <= ...; G(i, j) falls when j moves away from i
    and when both move right.
    With L = 1: q_i >= 2 (i - 1) and q_j - q_i >= 2 (j - i), so that every G(q_i, q_j) is at most that of the periods 0, 2, 4, ...
    With L > 1: at most P = ceil(L / 2) fall into one period. The norm is convex in the counts n_t of {0 <= n_t <= P, sum <= s}, so that
    an extreme point is worst: all n_t are 0 or P but one, which holds the remainder. Moving them together and to the left raises every
    G; the remainder may stand at any rank, and all ranks are tried. Attained for even L (every second tick of successive periods).
    Cost: O(events^2 T / P) additions of words, O(events T) for P = 1.
    """
    per_period = ceil_divide(longest, 2)
    stride = 2 if longest == 1 else 1
    words = _words(coefficients, events)
    if per_period == 1:
        return [_square(effect) for effect in _crowds(words, events, stride)]
    return [max(_square(_effect(words, counts)) for counts in _packings(number, per_period)) for number in range(1, events + 1)]


def _packings(events: int, per_period: int) -> list[list[int]]:
    full, rest = divmod(events, per_period)
    if not rest:
        return [[per_period] * full]
    return [[per_period] * rank + [rest] + [per_period] * (full - rank) for rank in range(full + 1)]


def _words(coefficients: Sequence[int], events: int) -> np.ndarray:
    """Return the words of the coefficients, lowest first, by row; whole numbers without a limit where sums of their products are too large.

    A sum of T products of two effects, each of at most `events` words, stays below 2^63.
    """
    import numpy as np

    if (events << _WORD) ** 2 * len(coefficients) >= 1 << 63:
        return np.array([coefficients], dtype=object)
    size = -(-max(coefficients).bit_length() // _WORD) * _WORD // 8
    digits = np.frombuffer(b"".join(value.to_bytes(size, "little") for value in coefficients), dtype="<u2")
    return digits.reshape(len(coefficients), -1).T.astype(np.int64)


def _crowds(words: np.ndarray, events: int, stride: int) -> Iterator[np.ndarray]:
    """Yield what 1, 2, ... `events` events do, one in each period 0, stride, 2 stride, ...; each is made from the one before it."""
    effect = words * 0
    for start in range(0, events * stride, stride):
        if start < words.shape[1]:
            effect[:, start:] += words[:, : words.shape[1] - start]
        yield effect


def _effect(words: np.ndarray, counts: Sequence[int]) -> np.ndarray:
    """Return what counts in the first periods do."""
    effect = words * 0
    for start, count in enumerate(counts[: words.shape[1]]):
        effect[:, start:] += count * words[:, : words.shape[1] - start]
    return effect


def _square(effect: np.ndarray) -> int:
    """Return the exact squared norm of what is kept in words."""
    return sum(value << _WORD * (i + j) for i, row in enumerate((effect @ effect.T).tolist()) for j, value in enumerate(row))


def pairwise_norms(products: np.ndarray, events: int, longest: int) -> list[float]:
    """Return upper bounds for 1 ... `events` events on a stationary mechanism with G(i, j) = products[j - i] (0 beyond), any signs.

    Events whose ranks differ by n lie at least D(n) periods apart: n + 1 of them need (D + 1) L >= 2 n + 1 ticks, for D + 1 periods hold
    (D + 1) L ticks, in every second of which there can be one. Each pair counts with the largest product at that distance or beyond.
    Exact where those products decline and the events can be packed that closely.
    """
    import numpy as np

    falling = np.maximum.accumulate(np.append(np.maximum(products, 0.0), 0.0)[::-1])[::-1]
    distance = [min(max(0, ceil_divide(2 * n + 1, longest) - 1), len(products)) for n in range(events)]
    pairs = [float(falling[distance[n]]) for n in range(1, events)]
    return [number * float(products[0]) + 2 * sum((number - n) * pairs[n - 1] for n in range(1, number)) for number in range(1, events + 1)]
