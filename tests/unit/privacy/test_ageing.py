"""Age-dependent loss: chains, bounds against exact leakage, recurrences, boundedness and the plan."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument
from dbext.privacy.ageing import (
    Publication,
    aged,
    epsilon_for_peak,
    largest_bounded_epsilon,
    losses_at_inputs,
    outlook,
    replacement_loss,
    risk_at,
    risk_curve,
)
from dbext.privacy.ageing_exact import attack_accuracy, repeated_report_losses, single_report_loss
from dbext.privacy.ageing_plan import laplace_and_drift, plan_ageing
from dbext.privacy.markov import Chain, from_dwell_times, two_states, worst_delta
from dbext.privacy.measure import Measure

SLOW = two_states(0.1, 0.1)


@st.composite
def chains(draw, largest=4):
    size = draw(st.integers(2, largest))
    rows = [[draw(st.integers(1, 20)) for _ in range(size)] for _ in range(size)]
    return Chain(tuple(tuple(weight / sum(row) for weight in row) for row in rows))


@given(chains())
def test_equilibrium_is_kept_and_reversal_undone(chain):
    law, size = chain.stationary, range(len(chain.transition))
    after = [sum(law[x] * chain.transition[x][y] for x in size) for y in size]
    assert after == pytest.approx(list(law))
    twice = chain.reversed.reversed
    assert all(row == pytest.approx(list(own)) for row, own in zip(twice.transition, chain.transition, strict=True))


@given(chains(), st.integers(0, 6), st.integers(0, 6))
def test_memory_fades(chain, one, other):
    assert chain.delta(0) == 1
    assert chain.delta(one + other) <= chain.delta(one) * chain.delta(other) + 1e-12
    assert chain.delta(one + 1) <= chain.delta(one) + 1e-12


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.integers(0, 12))
def test_memory_of_two_states(leave, come, ticks):
    assert two_states(leave, come).delta(ticks) == pytest.approx(abs(1 - leave - come) ** ticks, abs=1e-12)


def test_chains_from_dwell_times():
    chain = from_dwell_times([10, 5])
    assert chain == two_states(0.1, 0.2)
    three = from_dwell_times([4, 4, 4], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert three.stationary == pytest.approx([1 / 3] * 3)
    assert worst_delta([chain, three], 3) == max(chain.delta(3), three.delta(3))


@pytest.mark.parametrize(
    "matrix", [(), ((0.5, 0.5),), ((1.0, 0.0), (0.0, 1.0)), ((0.5, 0.4), (0.5, 0.5)), ((1.5, -0.5), (0.5, 0.5)), ((0.5, 0.5), (0.0, 1.0))]
)
def test_what_is_no_process_is_refused(matrix):
    with pytest.raises(BadArgument):
        Chain(matrix)


@given(chains(), st.floats(0.05, 3), st.integers(0, 5))
def test_one_report_never_tells_more_than_the_bound(chain, epsilon, age):
    assert single_report_loss(chain, epsilon, age) <= aged(epsilon, chain.delta(age)) + 1e-9


@given(chains(3), st.floats(0.05, 1.5), st.integers(1, 3))
def test_repeated_reports_never_tell_more_than_the_recurrence(chain, epsilon, spacing):
    publications = [Publication(n * spacing, n * spacing, epsilon) for n in range(5)]
    bounds = [loss for _, loss in losses_at_inputs(publications, chain.delta)]
    for exact, bound in zip(repeated_report_losses(chain, epsilon, spacing, 5), bounds, strict=True):
        assert exact <= bound + 1e-9


def transcript_loss(chain: Chain, epsilon: float, inputs: list[int], now: int) -> float:
    """Return the exact loss about the status now of reports at input times, by enumerating statuses and reports (two states)."""
    times = sorted({*inputs, now})
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    joint: dict[tuple[int, ...], list[float]] = {}
    for path in itertools.product((0, 1), repeat=len(times)):
        chance = chain.stationary[path[0]]
        for step, (a, b) in enumerate(itertools.pairwise(path)):
            move = [[1.0, 0.0], [0.0, 1.0]]
            for _ in range(times[step + 1] - times[step]):
                move = [[sum(row[k] * chain.transition[k][j] for k in (0, 1)) for j in (0, 1)] for row in move]
            chance *= move[a][b]
        for reports in itertools.product((0, 1), repeat=len(inputs)):
            seen = chance
            for time, report in zip(inputs, reports, strict=True):
                seen *= keep if path[times.index(time)] == report else 1 - keep
            joint.setdefault(reports, [0.0, 0.0])[path[times.index(now)]] += seen
    law = chain.stationary
    return max(abs(math.log((a / law[0]) / (b / law[1]))) for a, b in joint.values())


@pytest.mark.parametrize("ages", [[0, 0, 0], [1, 1, 1], [3, 3, 3], [0, 4, 1]])
def test_risk_is_never_below_the_exact_leakage_even_with_late_outputs(ages):
    chain, epsilon = two_states(0.1, 0.3), 0.7
    publications = [Publication(published - age, published, epsilon) for published, age in zip((4, 6, 8), ages, strict=True)]
    for now in range(4, 12):
        inputs = [publication.input for publication in publications if publication.published <= now]
        assert transcript_loss(chain, epsilon, inputs, now) <= risk_at(publications, chain.delta, now) + 1e-9


def test_the_published_recurrence_would_miss_outputs_that_overlap():
    """With age 3 and spacing 2, the risk at S_n - A_n as it stood then ignores one output; on input times it is counted."""
    memory = SLOW.delta
    publications = [Publication(2 * n, 2 * n + 3, 0.5) for n in range(3)]

    def as_printed(tick):
        risk = 0.0
        for number, publication in enumerate(publications):
            if publication.published <= tick:
                before = [other for other in publications[:number] if other.published <= publication.input]
                carried = aged(sum(other.epsilon for other in before[-1:]), memory(2)) if before else 0.0
                risk = aged(publication.epsilon + carried, memory(tick - publication.input))
        return risk

    assert as_printed(7) < risk_at(publications, memory, 7)


def test_curve_falls_within_an_epoch_and_jumps_at_a_publication():
    publications = [Publication(2 * n, 2 * n + 1, 0.3) for n in range(50)]
    ticks = list(range(100))
    curve = risk_curve(publications, SLOW.delta, ticks)
    assert curve[0] == 0.0
    assert all(curve[tick + 1] < curve[tick] for tick in range(1, 98, 2))
    assert all(curve[tick] > curve[tick - 1] for tick in range(1, 99, 2))
    assert curve == [risk_at(publications, SLOW.delta, tick) for tick in ticks]
    assert max(curve) <= outlook(2, 1, 0.3, SLOW.delta).peak == pytest.approx(1.11731, abs=1e-5)


@given(st.floats(0.02, 0.45), st.integers(1, 6), st.integers(0, 6), st.floats(0.05, 2))
def test_outlook_is_the_limit_of_the_recurrence(flip, interval, age, epsilon):
    memory = two_states(flip, flip).delta
    view = outlook(interval, age, epsilon, memory)
    publications = [Publication(n * interval, n * interval + age, epsilon) for n in range(400)]
    latest, loss = losses_at_inputs(publications, memory)[-1]
    risk = aged(loss, memory(publications[-1].published - latest))
    assert view.is_bounded == (epsilon < largest_bounded_epsilon(interval, memory))
    assert ("is below 1" in view.reason) == view.is_bounded
    if view.growth < 0.97:
        assert risk == pytest.approx(view.peak, rel=1e-4)
    elif not view.is_bounded:
        assert view.peak == math.inf


@given(st.floats(0.01, 3), st.integers(0, 10), st.integers(1, 10))
def test_epsilon_for_a_peak_reaches_it(target, age, interval):
    epsilon = epsilon_for_peak(target, age, interval, SLOW.delta)
    assert outlook(interval, age, epsilon, SLOW.delta).peak == pytest.approx(target, rel=1e-6)


def test_forgetting_processes_and_huge_losses():
    def forgets(ticks):
        return 1.0 if ticks == 0 else 0.0

    assert epsilon_for_peak(0.1, 1, 1, forgets) == math.inf
    assert outlook(1, 1, 5.0, forgets).peak == 0.0
    assert aged(2000.0, 0.5) == pytest.approx(2000 + math.log(0.5))
    assert aged(3.0, 1.0) == pytest.approx(3.0)


def test_replacement_doubles_where_a_status_moves_two_ways():
    assert replacement_loss(0.5, Measure.STATE, grouped=False) == 0.5
    assert replacement_loss(0.5, Measure.NET, grouped=False) == 1.0
    assert replacement_loss(0.5, Measure.STATE, grouped=True) == 1.0


def test_age_and_noise_together_stay_accurate_as_the_target_goes_to_zero():
    plans = [plan_ageing(target, [1, 7, 14], 200, SLOW.delta, laplace_and_drift(0.1)) for target in (1, 0.1, 0.01, 0.001)]
    assert [plan.best.error for plan in plans] == sorted(plan.best.error for plan in plans)
    assert plans[-1].best.error < 1.5 * plans[0].best.error
    assert plans[-1].noise_only.error > 100 * plans[0].noise_only.error
    for plan, target in zip(plans, (1, 0.1, 0.01, 0.001), strict=True):
        assert plan.best.error <= min(plan.noise_only.error, plan.ageing_only.error)
        for choice in (plan.best, plan.noise_only, plan.ageing_only):
            assert outlook(choice.interval, choice.age, choice.epsilon, SLOW.delta).peak == pytest.approx(target, rel=1e-6)


def test_plans_need_something_to_choose_from():
    with pytest.raises(BadArgument):
        plan_ageing(1.0, [], 3, SLOW.delta, laplace_and_drift(1.0))
    with pytest.raises(BadArgument):
        plan_ageing(0.0, [1], 3, SLOW.delta, laplace_and_drift(1.0))
    with pytest.raises(BadArgument):
        Publication(3, 2, 1.0)


def test_the_attack_on_the_richest():
    assert attack_accuracy(SLOW, 2.0, 3) == pytest.approx(0.695, abs=1e-3)
    assert attack_accuracy(two_states(0.1, 0.3), 2.0, 0) == pytest.approx(math.exp(2) / (1 + math.exp(2)))
    with pytest.raises(BadArgument):
        attack_accuracy(from_dwell_times([2, 2, 2]), 1.0, 1)
