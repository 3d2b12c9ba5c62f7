"""Simulations: errors as predicted, exact series as counted by hand, and files that say too much or too little."""

from __future__ import annotations

import numpy as np
import pytest

from dbext.errors import BadArgument
from dbext.query.declaration_file import read_declaration
from dbext.query.planner import candidates
from dbext.service.simulate import RENOISED, _method, _renoised, series, simulate, wave

TOTAL = "-- every: 1 day\n-- measure: state\n-- epsilon: 1\n-- delta: {}\n-- horizon: 24\n-- max_mutations: 2\nSELECT count(*) FROM cases"
WINDOW = "-- every: 1 day\n-- epsilon: 1\n-- measure: entered\n-- max_mutations: 2\nSELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '3 days'"


@pytest.mark.parametrize("text", [TOTAL.format(0), TOTAL.format("1e-6"), WINDOW], ids=["pure total", "total", "window"])
def test_errors_are_those_the_planner_predicts(text):
    file = read_declaration(text)
    _, found = simulate(file, wave(24, 1), 3000, 1)
    made = sorted(candidates(file.declaration, file.request, file.tick, file.types, file.delta), key=lambda one: not one.chosen)
    for one, planned in zip(found, made, strict=False):
        assert one.method == planned.mechanism.replace("_", " ")
        assert one.error == pytest.approx(planned.mean_std_error, rel=0.1), one.method
        assert one.covered >= 0.93
    for one in found:
        assert one.uniform >= one.error
        assert one.worst >= one.error
    assert found[0].chosen


@pytest.mark.parametrize(("delta", "noise"), [(0, "discrete Laplace, scale "), ("1e-6", "rounded Gaussian, sigma ")])
def test_noise_is_called_what_plans_call_it(delta, noise):
    _, found = simulate(read_declaration(TOTAL.format(delta)), wave(24, 1), 1, 1)
    assert {one.noise.startswith(noise) for one in found} == {True}


def predicted(method):
    """Return the root of the mean squared error over all periods, exactly: no draws, hence no chance."""
    return float(np.sqrt((method.answers**2 @ [noise.variance for noise in method.noises]).mean()))


def test_fresh_noise_each_period_is_far_worse_for_totals():
    file = read_declaration(TOTAL.format(0))
    (plan,) = [one.plan for one in candidates(file.declaration, file.request, file.tick, file.types, file.delta) if one.chosen]
    renoised = _renoised(file, plan, 24)
    assert predicted(renoised) == pytest.approx(24 * 2**0.5, rel=1e-3), "a life is seen in all 24 totals, by 1 in each"
    assert predicted(renoised) > 3.2 * predicted(_method(plan, 24, chosen=True))
    _, found = simulate(file, wave(24, 1), 3000, 1)
    (drawn,) = [one for one in found if one.method == RENOISED]
    assert drawn.error == pytest.approx(predicted(renoised), rel=0.1)


def test_a_horizon_that_memory_would_not_hold_is_refused():
    with pytest.raises(BadArgument, match="at most 5000"):
        simulate(read_declaration(TOTAL.format("1e-6").replace("24", "5001")), wave(24, 1), 1, 1)


def test_exact_series():
    changes = np.array([[1], [2], [0], [4]])
    total, window = (read_declaration(text) for text in (TOTAL.format(0), WINDOW))
    plans = [candidates(one.declaration, one.request, one.tick, one.types, one.delta)[0].plan for one in (total, window)]
    assert series(plans[0], changes, 6, 0)[:, 0].tolist() == [1, 3, 3, 7, 7, 7]
    assert series(plans[1], changes, 6, 0)[:, 0].tolist() == [1, 3, 3, 6, 4, 4]


def test_fixed_dates_and_groups():
    file = read_declaration("-- groups: 4\n-- max_mutations: 1\nSELECT a, count(*) FROM t WHERE dp_time > '2020-01-02' AND dp_time <= '2020-01-04' GROUP BY a")
    assert file.groups == 4
    assert file.declaration.range.upper.tick - file.declaration.range.lower.tick == 2


@pytest.mark.parametrize("text", ["-- colour: red\nSELECT count(*) FROM t", "-- epsilon: much\nSELECT count(*) FROM t", "-- horizon: 1.5\nSELECT count(*) FROM t", "SELECT count(*) FROM t WHERE dp_time > '2020-01-02 06:00'", "SELECT sum(a) FROM t", "SELECT count(*) AS a, count(b) FROM t"])
def test_what_a_file_cannot_say(text):
    with pytest.raises(BadArgument):
        read_declaration(text)
