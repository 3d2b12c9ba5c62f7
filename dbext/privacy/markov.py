"""Finite Markov chains of one entry's public-status process, and how much of the present their past still tells.

An entry's status moves through a finite chain that everyone knows, in equilibrium, by itself. An output computed from the status t ticks
ago speaks of the present status x only through the law of the past given the present, the t-step law of the reversed chain. What it can
tell apart is Delta(t), the largest total variation distance between two rows of it: 1 at t = 0, never rising, and
Delta(s + t) <= Delta(s) Delta(t) (Zhang, Wei, Berry and Huang 2022, arXiv 2209.01466).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dbext.errors import BadArgument

Matrix = tuple[tuple[float, ...], ...]
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Chain:
    """Row x of `transition` is the law of the next tick's state after state x. Every state must be reachable from every other."""

    transition: Matrix

    def __post_init__(self):
        object.__setattr__(self, "transition", tuple(tuple(float(p) for p in row) for row in self.transition))
        size = len(self.transition)
        if not size or any(len(row) != size for row in self.transition):
            raise BadArgument("a transition matrix is square")
        if any(p < 0 for row in self.transition for p in row) or any(abs(sum(row) - 1) > _ROUNDING for row in self.transition):
            raise BadArgument("each row of a transition matrix holds probabilities that sum to 1")
        if not _connected(self.transition):
            raise BadArgument("every state of the process must be reachable from every other: else its law in equilibrium is not unique")

    @property
    def stationary(self) -> tuple[float, ...]:
        """The law in equilibrium."""
        return _stationary(self.transition)

    @property
    def reversed(self) -> Chain:
        """The chain read backwards in equilibrium: its (x, y) is stationary[y] transition[y][x] / stationary[x]."""
        law, size = self.stationary, range(len(self.transition))
        rows = ([law[y] * self.transition[y][x] / law[x] for y in size] for x in size)
        return Chain(tuple(tuple(p / sum(row) for p in row) for row in rows))

    def delta(self, ticks: int) -> float:
        """Return Delta(ticks) in [0, 1]. Cost: states^3 times log(ticks), remembered."""
        if ticks < 0:
            raise BadArgument(f"an age must not be negative, but is {ticks} ticks")
        return _spread(_power(self.reversed.transition, ticks))


def two_states(leave_first: float, leave_second: float) -> Chain:
    """Return a chain of two states that are left with these probabilities at each tick; Delta(t) = abs(1 - their sum)^t."""
    return Chain(((1 - leave_first, leave_first), (leave_second, 1 - leave_second)))


def from_dwell_times(dwell: Sequence[float], jumps: Sequence[Sequence[float]] | None = None) -> Chain:
    """Return a chain that stays in state x for dwell[x] >= 1 ticks on average (geometric) and then jumps to another by row x of `jumps`.

    `jumps` has zeros on its diagonal; without it all other states are equally likely.
    """
    size = len(dwell)
    if size < 2 or any(mean < 1 for mean in dwell):  # noqa: PLR2004 one state has nowhere to go
        raise BadArgument("dwell times are for two states or more, each at least one tick")
    jumps = jumps or [[0.0 if x == y else 1 / (size - 1) for y in range(size)] for x in range(size)]
    if any(jumps[x][x] for x in range(size)):
        raise BadArgument("a jump leads to another state")
    return Chain(tuple(tuple(1 - 1 / dwell[x] if x == y else jumps[x][y] / dwell[x] for y in range(size)) for x in range(size)))


def worst_delta(chains: Sequence[Chain], ticks: int) -> float:
    """Return the largest Delta over entry types with different processes."""
    return max(chain.delta(ticks) for chain in chains)


def _connected(matrix: Matrix) -> bool:
    size = len(matrix)
    forward = _reachable(lambda x: [y for y in range(size) if matrix[x][y] > 0])
    backward = _reachable(lambda x: [y for y in range(size) if matrix[y][x] > 0])
    return len(forward) == len(backward) == size


def _reachable(neighbours) -> set[int]:  # noqa: ANN001 a function from a state to states
    seen, pending = {0}, [0]
    while pending:
        for y in neighbours(pending.pop()):
            if y not in seen:
                seen.add(y)
                pending.append(y)
    return seen


@lru_cache(maxsize=64)
def _stationary(matrix: Matrix) -> tuple[float, ...]:
    """Return the law in equilibrium by state reduction (Grassmann, Taksar and Heyman 1985): no subtraction, so no cancellation."""
    reduced = [list(row) for row in matrix]
    size = len(reduced)
    for last in range(size - 1, 0, -1):
        leaving = sum(reduced[last][:last])
        for x in range(last):
            reduced[x][last] /= leaving
            for y in range(last):
                reduced[x][y] += reduced[x][last] * reduced[last][y]
    law = [1.0]
    for state in range(1, size):
        law.append(sum(law[x] * reduced[x][state] for x in range(state)))
    total = sum(law)
    return tuple(weight / total for weight in law)


@lru_cache(maxsize=4096)
def _power(matrix: Matrix, exponent: int) -> Matrix:
    if exponent == 0:
        return tuple(tuple(float(x == y) for y in range(len(matrix))) for x in range(len(matrix)))
    half = _power(matrix, exponent // 2)
    square = _product(half, half)
    return _product(square, matrix) if exponent % 2 else square


def _product(one: Matrix, other: Matrix) -> Matrix:
    columns = list(zip(*other, strict=True))
    return tuple(tuple(sum(a * b for a, b in zip(row, column, strict=True)) for column in columns) for row in one)


def _spread(matrix: Matrix) -> float:
    pairs = ((one, other) for number, one in enumerate(matrix) for other in matrix[:number])
    distances = (sum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2 for one, other in pairs)
    return min(1.0, max(distances, default=0.0))
