"""Where the noise of buffered totals begins anew, and what that is worth to entries of another epoch."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from dbext.mechanisms.buffered import buffered
from dbext.mechanisms.buffers import advanced, beginning, read_back
from dbext.privacy.grid import RegularGrid
from dbext.service.streaming import numbers_of, started

LENGTH, CELLS = 4, 2


def plan(*, renews: bool, baseline: bool = True) -> SimpleNamespace:
    return SimpleNamespace(renews=renews, horizon=LENGTH, buffered=buffered(RegularGrid(0, 1), LENGTH, baseline=baseline))


def test_a_new_epoch_begins_with_empty_buffers_and_its_total_goes_on():
    made = plan(renews=True)
    state = advanced(made.buffered.circuit, beginning(made.buffered.circuit, 1), [5000])
    assert [number for number in range(12) if started(made, state, number, 1).buffers != state.buffers] == [5, 9]
    assert started(made, state, 5, 1).noise == state.noise
    assert all(started(plan(renews=False), state, number, 1) == state for number in range(12))


def test_the_first_period_draws_for_the_baseline_too():
    assert numbers_of(plan(renews=True), 1) == (0, 1)
    assert numbers_of(plan(renews=True), 2) == (2,)
    assert numbers_of(plan(renews=True, baseline=False), 1) == (1,)


@pytest.mark.parametrize("leaf", range(3 * LENGTH + 1))
def test_what_an_entry_does_in_one_epoch_moves_no_draw_of_another(leaf):
    """Its mutations are charged in the epoch they lie in. With buffers that were carried over, later draws would be moved, uncharged."""
    made, chance = plan(renews=True), random.Random(leaf)
    draws = {number: [round(chance.gauss(0, 2**24)) for _ in range(CELLS)] for number in range(3 * LENGTH + 1)}
    state, noises = beginning(made.buffered.circuit, CELLS), {}
    for number, drawn in draws.items():
        state = advanced(made.buffered.circuit, started(made, state, number, CELLS), drawn)
        noises[number] = state.noise
    step = 1 << made.buffered.scale
    state, moved = beginning(made.buffered.circuit, CELLS), []
    for number, noise in noises.items():
        other = [value - step * (number >= leaf and cell == 0) for cell, value in enumerate(noise)]
        ((drawn, state),) = read_back(made.buffered.circuit, started(made, state, number, CELLS), [other])
        assert drawn[1] == draws[number][1]
        if drawn != draws[number]:
            moved.append(number)
    epoch = max(0, leaf - 1) // LENGTH
    assert moved == list(range(leaf, (epoch + 1) * LENGTH + 1))
