"""Correlated noise from a few buffers, in whole numbers: what a buffered total adds to its exact counts, one step at a time.

Let u_t be what the noise of a running total grows by at position t, n_t = n_(t-1) + u_t the noise itself, and z_t a fresh draw. With

    B_j(t) = floor(theta_j B_j(t-1)) + 2^guard u_t        j = 1 ... d
    u_t    = z_t - round(sum over j of w_j B_j(t-1) / 2^guard)

u is the inverse of R(z) = 1 + sum w_j z / (1 - theta_j z) applied to the draws, but for the rounding (a buffered linear Toeplitz
factorisation: Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024). The state is n and the d buffers, however long the history.

Read the other way round, z_t = u_t + round(...), and the buffers follow from u: whoever knows all n_t knows all draws exactly. So the
recurrence is a whole-number map from totals to draws, and its privacy is that of the draws (`buffered`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

#: Weights and decays are numerators of fractions of 2^BITS.
BITS = 24

#: One number per cell.
Cells = list[int]


class Circuit(NamedTuple):
    """What the recurrence is made of: w_j and theta_j in units of 2^-BITS, and the spare bits of the buffers."""

    weights: tuple[int, ...]
    decays: tuple[int, ...]
    guard: int

    def lag(self, buffers: Sequence[Cells], cells: int) -> Cells:
        """Return what the buffers take off the next draw: their weighted sum, rounded to whole numbers."""
        shift = self.guard + BITS
        total = [1 << (shift - 1)] * cells
        for weight, buffer in zip(self.weights, buffers, strict=True):
            total = [value + weight * held for value, held in zip(total, buffer, strict=True)]
        return [value >> shift for value in total]

    def decayed(self, buffers: Sequence[Cells], growth: Cells) -> list[Cells]:
        """Return the buffers one step later."""
        fresh = [value << self.guard for value in growth]
        return [
            [(decay * held >> BITS) + value for held, value in zip(buffer, fresh, strict=True)]
            for decay, buffer in zip(self.decays, buffers, strict=True)
        ]

    def blank(self, cells: int) -> list[Cells]:
        """Return the buffers before the first step."""
        return [[0] * cells for _ in self.weights]


class State(NamedTuple):
    """The noise of the running total so far, and the buffers, cell by cell."""

    noise: Cells
    buffers: list[Cells]


def beginning(circuit: Circuit, cells: int) -> State:
    """Return the state before anything was drawn."""
    return State([0] * cells, circuit.blank(cells))


def advanced(circuit: Circuit, state: State, draws: Cells) -> State:
    """Return the state after one more position, from its fresh draws."""
    lag = circuit.lag(state.buffers, len(draws))
    growth = [drawn - taken for drawn, taken in zip(draws, lag, strict=True)]
    return State([noise + value for noise, value in zip(state.noise, growth, strict=True)], circuit.decayed(state.buffers, growth))


def read_back(circuit: Circuit, state: State, noises: Iterable[Cells]) -> Iterator[tuple[Cells, State]]:
    """Yield the draws behind successive noises of the total, each with the state after it: the inverse of `advanced`."""
    for noise in noises:
        growth = [now - before for now, before in zip(noise, state.noise, strict=True)]
        draws = [value + taken for value, taken in zip(growth, circuit.lag(state.buffers, len(noise)), strict=True)]
        state = State(noise, circuit.decayed(state.buffers, growth))
        yield draws, state
