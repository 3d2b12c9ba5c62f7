"""Buffered totals: the whole-number recurrence, what rounding can do to its privacy, and how far its noise is from the best."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dbext.errors import BadArgument
from dbext.mechanisms.alternating import runs_repel
from dbext.mechanisms.buffered import Buffered, buffered
from dbext.mechanisms.buffered_table import TABLE, parameters
from dbext.mechanisms.buffers import BITS, advanced, beginning, read_back
from dbext.mechanisms.epochs import continuing
from dbext.mechanisms.error import gaussian_half_width
from dbext.mechanisms.mixed_error import ErrorLaw, NormsLaw, mixed_half_width
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.spread import spread
from dbext.mechanisms.toeplitz import inverse_series
from dbext.privacy.constraint import Constraint
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import RoundedGaussian
from dbext.privacy.profile import cost_per_touch, lifetime, reach
from dbext.query.shape import MAX_BUFFERED_HORIZON
from tests.literature import square_root_errors
from tests.unit.mechanisms.test_joint_sensitivity import CONSTRAINTS, admissible, effect, lives

DAILY = RegularGrid(0, 1)


def coarse(periods: int, scale: int, guard: int, ticks_per_period: int = 1) -> Buffered:
    """Return a mechanism on a lattice so coarse that rounding matters, with the buffers of 64 periods."""
    return Buffered(RegularGrid(0, ticks_per_period), periods, False, *parameters(64), scale=scale, guard=guard)


def noises_of(mechanism, draws) -> list[list[int]]:
    """Return the noise of every total from one list of draws per position."""
    state, noises = beginning(mechanism.circuit, len(draws[0])), []
    for drawn in draws:
        state = advanced(mechanism.circuit, state, drawn)
        noises.append(state.noise)
    return noises


def moved(mechanism, draws, counts) -> int:
    """Return the squared distance between the draws and those that make the same totals of a neighbour, whose counts differ so."""
    noises = noises_of(mechanism, draws)
    shifts = np.cumsum(counts, axis=0) * (1 << mechanism.scale)
    others = [[noise - int(shift) for noise, shift in zip(*pair, strict=True)] for pair in zip(noises, shifts, strict=True)]
    read = read_back(mechanism.circuit, beginning(mechanism.circuit, len(draws[0])), others)
    return sum((a - b) ** 2 for drawn, (other, _) in zip(draws, read, strict=True) for a, b in zip(drawn, other, strict=True))


def paths(periods: int, cells: int, number: int) -> list[list[list[int]]]:
    """Return paths of draws: none at all, and random ones of several sizes."""
    chance = random.Random(7)
    sizes = [0] + [chance.choice([1, 3, 17, 1000]) for _ in range(number - 1)]
    return [[[chance.randint(-size, size) for _ in range(cells)] for _ in range(periods)] for size in sizes]


@pytest.mark.parametrize("horizon", [1, 5, 300, 5_000])
def test_the_draws_can_be_read_from_the_totals_and_the_state_is_the_same(horizon):
    mechanism, chance = buffered(DAILY, horizon, baseline=False), random.Random(horizon)
    steps = min(horizon, 400)
    draws = [[round(chance.gauss(0, 2**30)) for _ in range(2)] for _ in range(steps)]
    state, noises = beginning(mechanism.circuit, 2), []
    for drawn in draws:
        state = advanced(mechanism.circuit, state, drawn)
        noises.append(state.noise)
    read = list(read_back(mechanism.circuit, beginning(mechanism.circuit, 2), noises))
    assert [drawn for drawn, _ in read] == draws
    assert read[-1][1] == state


@pytest.mark.parametrize("baseline", [False, True])
def test_the_noise_is_the_answers_weights_times_the_draws(baseline):
    """But for rounding, which is far below what can be seen."""
    mechanism, chance = buffered(DAILY, 300, baseline=baseline), random.Random(3)
    draws = [[round(chance.gauss(0, 2**27))] for _ in range(mechanism.positions)]
    noises = noises_of(mechanism, draws)
    for period in (1, 2, 17, 300):
        weights = mechanism.answer(period)
        assert [number for number, _ in weights] == list(range(0 if baseline else 1, period + 1))
        first = 0 if baseline else 1
        expected = sum(weight * draws[number - first][0] for number, weight in weights)
        assert noises[period - first][0] / 2**mechanism.scale == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("scale", "guard"), [(0, 0), (2, 0), (3, 2), (5, 1)])
@pytest.mark.parametrize(("measure", "cells"), [(Measure.NET, 1), (Measure.NET, 2), (Measure.ENTERED, 1), (Measure.LEFT, 1)])
@pytest.mark.parametrize("ticks_per_period", [1, 2])
def test_no_life_moves_the_draws_further_than_certified_whatever_is_drawn(scale, guard, measure, cells, ticks_per_period):
    ticks = 5 if cells > 1 else 6
    mechanism = coarse(ticks // ticks_per_period, scale, guard, ticks_per_period)
    kept: dict[Constraint, list] = {one: [0, 0] for one in CONSTRAINTS}
    losses: dict[bytes, int] = {}
    tried = paths(mechanism.horizon, cells, 8)
    for images, touched in lives(ticks - ticks % ticks_per_period, cells):
        if not touched:
            continue
        counts = effect(images, ticks_per_period, measure, cells)
        key = str(counts).encode()
        if key not in losses:
            losses[key] = max(moved(mechanism, draws, counts) for draws in tried)
        for constraint, most in kept.items():
            if admissible(images, touched, constraint):
                most[0] = max(most[0], losses[key])
                most[1] = max(most[1], Fraction(losses[key], len({tick // ticks_per_period for tick in touched})))
    for constraint, (loss, per_touch) in kept.items():
        limits = reach(constraint, mechanism.horizon, ticks_per_period, ticks_per_period)
        profile = mechanism.profile(measure, cells > 1, limits)
        assert loss <= lifetime(profile, measure, limits), constraint
        assert per_touch <= cost_per_touch(profile, measure, limits), constraint


def largest(mechanism, counts, number=300) -> int:
    return max(moved(mechanism, draws, counts) for draws in paths(mechanism.horizon, 1, number))


def test_a_certificate_that_forgets_the_floors_is_seen(monkeypatch):
    limits = reach(Constraint(1), 12, 1, 1)
    counts = np.zeros((12, 1), dtype=int)
    counts[0] = 1
    worst = largest(coarse(12, 2, 0), counts)
    assert worst <= coarse(12, 2, 0).profile(Measure.NET, False, limits).after(1)
    monkeypatch.setattr(Buffered, "inflation", Fraction(1))
    forgetful = replace(coarse(12, 2, 0), grid=RegularGrid(3, 1))  # not one whose profile is kept
    assert worst > forgetful.profile(Measure.NET, False, limits).after(1)


def test_a_certificate_that_forgets_the_buffers_is_seen():
    """The draw of a period alone would be moved by 2^scale; the buffers carry it on."""
    mechanism = buffered(DAILY, 12, baseline=False)
    counts = np.zeros((12, 1), dtype=int)
    counts[0] = 1
    assert largest(mechanism, counts, 3) > 1.2 * 4**mechanism.scale


def test_a_lattice_that_is_fine_makes_rounding_cost_nothing_that_shows():
    for horizon in (1, 2, 100, 5_000, 100_000):
        mechanism = buffered(DAILY, horizon, baseline=True)
        assert 1 < mechanism.inflation < 1 + Fraction(1, 10_000)


@pytest.mark.parametrize("horizon", [64, 2_000, 100_000])
def test_coefficients_are_those_of_the_buffers(horizon):
    """Within 1 of the exact ones; never rising, repelling; with an inverse whose numbers have a sum of at most 2."""
    mechanism = buffered(DAILY, horizon, baseline=False)
    c = mechanism.coefficients
    powers = [Fraction(weight, 1 << BITS) for weight in mechanism.weights]
    for k in range(1, 40):
        assert abs(c[k] - (sum(powers) * (1 << mechanism.bits))) < 1
        powers = [power * Fraction(decay, 1 << BITS) for power, decay in zip(powers, mechanism.decays, strict=True)]
    exact = sum(
        Fraction(w, 1 << BITS) * Fraction(m, 1 << BITS) ** (horizon - 2) for w, m in zip(mechanism.weights, mechanism.decays, strict=True)
    ) if horizon < 5_000 else None
    assert exact is None or abs(c[horizon - 1] - exact * (1 << mechanism.bits)) < 1
    assert runs_repel(c)
    inverse = inverse_series(np.array([value / c[0] for value in c]), horizon)
    assert (inverse[1:] < 1e-12).all()
    assert abs(inverse).sum() <= 2


@pytest.mark.parametrize("renews", [False, True])
def test_what_is_said_of_the_noise_is_what_its_weights_say(renews):
    """Norms instead of thousands of weights: the same law, in all that intervals are made of, a hair wider for the rounding."""
    first, noise = buffered(DAILY, 40, baseline=True), RoundedGaussian(Fraction(2**50))
    mechanism = continuing(first) if renews else first
    for period in (1, 7, 40, *((41, 97) if renews else ())):
        law = ErrorLaw(tuple((noise, weight) for _, weight in mechanism.answer(period)))
        norms = NormsLaw(noise, mechanism.norms(period))
        assert norms.variance == pytest.approx(law.variance)
        assert norms.normal == pytest.approx(law.normal)
        assert norms.steps == pytest.approx(2 * (1 + 2**-8) * law.steps)
        assert norms.largest == pytest.approx(law.largest)
        for miss in (0.05, 1e-6, 1e-30):
            one, other = (mixed_half_width(((1.0, each),), miss) for each in (law, norms))
            assert one <= other <= one * (1 + 1e-4)
            assert other == pytest.approx(gaussian_half_width(noise, mechanism.norms(period), miss))


def test_buffers_that_prove_nothing_are_refused():
    good = buffered(DAILY, 100, baseline=False)
    for wrong in (
        {"decays": (1 << BITS, *good.decays[1:])},
        {"weights": (-1, *good.weights[1:])},
        {"weights": tuple(5 * weight for weight in good.weights)},
        {"decays": tuple(decay >> 8 for decay in good.decays)},
        {"horizon": 0},
    ):
        with pytest.raises(BadArgument):
            replace(good, **wrong)


@pytest.mark.parametrize(("horizon", "ratio"), [(1_024, 0.985), (4_200, 0.987), (20_000, 0.989), (100_000, 0.991)])
def test_five_buffers_err_less_than_the_square_root(horizon, ratio):
    mechanism = buffered(DAILY, horizon, baseline=False)
    limits = reach(Constraint(1), horizon, 1, 1)
    found = spread(mechanism)
    error = (found.mean * mechanism.profile(Measure.NET, False, limits).after(1)) ** 0.5
    assert error < ratio * square_root_errors(horizon)[0]
    assert found.period == horizon


def test_a_horizon_takes_the_parameters_of_the_nearest_one():
    horizons = [listed for listed, _, _ in TABLE]
    assert horizons == sorted(horizons)
    for listed, weights, decays in TABLE:
        assert parameters(listed) == (weights, decays) == parameters(round(listed * 1.05))
    assert parameters(1) == TABLE[0][1:]
    assert parameters(10**7) == TABLE[-1][1:]
    assert parameters(1000, again=True) == parameters(4000)
    assert TABLE[-1][0] >= 3.5 * MAX_BUFFERED_HORIZON


@pytest.mark.parametrize(("changes", "ratio"), [(2, 0.975), (4, 0.97), (12, 0.985)])
@pytest.mark.parametrize("horizon", [6_000, 100_000])
def test_buffers_for_entries_that_change_again_err_less(horizon, changes, ratio):
    def error(again):
        mechanism = buffered(DAILY, horizon, baseline=False, again=again)
        norm = lifetime(mechanism.profile(Measure.NET, False, limits := reach(Constraint(changes), horizon, 1, 1)), Measure.NET, limits)
        return (spread(mechanism).mean * norm) ** 0.5

    assert error(again=True) < ratio * error(again=False)


@pytest.mark.parametrize("grid", [RegularGrid(5, 7), MonthGrid(4, 1)])
def test_it_survives_json(grid):
    mechanism = buffered(grid, 5_000, baseline=True)
    for one in (mechanism, continuing(mechanism)):
        assert mechanism_from_json(json.loads(json.dumps(one.to_json()))) == one


def test_leaves_and_rows_are_those_of_a_total():
    mechanism = buffered(RegularGrid(10, 7), 4, baseline=True)
    assert [(leaf.number, leaf.start, leaf.end) for leaf in mechanism.leaves(1)] == [(0, None, 10), (1, 10, 17)]
    assert [row.number for row in mechanism.rows(1)] == [0, 1]
    assert [leaf for leaf, _ in mechanism.rows(3)[0].weights] == [0, 1, 2, 3]
    assert mechanism.rows(3)[0].weights[-1][1] == 1 << mechanism.scale
    assert mechanism.window(2) == (None, 24)
