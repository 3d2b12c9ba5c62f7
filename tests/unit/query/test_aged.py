"""Age-dependent loss of real plans: never below what an attacker really learns, worked out over all paths and many outputs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.markov import Chain, two_states
from dbext.query.aged import aged_release, together
from dbext.query.calendar import Span, Tick
from dbext.query.compiler import compile_declaration
from dbext.query.planner import Request, candidates

DAY = Tick("day", 1)
FREE = [EntryType(1, "any", Constraint(None, None))]
LIMITED = [EntryType(1, "any", Constraint(3, None))]
#: The restless one alternates, so that every change tells the same again: there the figures are nearly met.
RESTLESS = two_states(0.97, 0.97)
CHAINS = [two_states(0.2, 0.2), two_states(0.5, 0.1), Chain(((0.7, 0.2, 0.1), (0.1, 0.6, 0.3), (0.3, 0.1, 0.6)))]
WINDOW = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '{} days'"
AGED = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '{} days' AND dp_time <= now() - INTERVAL '{} days'"
#: name -> declaration, measure, mechanism
KINDS = {
    "disjoint": (WINDOW.format(1), "net", "independent_windows"),
    "events": (WINDOW.format(1), "entered", "independent_windows"),
    "overlapping": (WINDOW.format(2), "net", "independent_windows"),
    "aged": (AGED.format(3, 2), "net", "independent_windows"),
}
PERIODS = 3


def plan_of(kind, epsilon="0.9", types=FREE, horizon=PERIODS):
    text, measure, mechanism = KINDS[kind]
    request = Request(start_tick=0, every=Span(days=1), measure=measure, epsilon=Fraction(epsilon), horizon=horizon)
    made = candidates(compile_declaration(text), request, DAY, types, 0)
    return next(one.plan for one in made if one.mechanism == mechanism)


def effect(measure, path, start, end):
    """What an entry of this path (1 in state 0, 0 elsewhere; path[0] is tick -4) adds over (start, end]."""
    at = [int(state == 0) for state in path]
    if measure == "entered":
        return sum(at[tick + 4] and not at[tick + 3] for tick in range(start + 1, end + 1))
    return at[end + 4] - at[start + 4]


def learned(plan, chain, measure, until, tick):
    """The exact loss about the status at a tick from the outputs up to a period: over all paths, on a grid of outputs."""
    windows = [plan.window(period) for period in range(1, until + 1)]
    scale, size, last = float(plan.noise.scale), len(chain.transition), max(tick, windows[-1][1])
    joint: dict[tuple, np.ndarray] = {}
    for path in itertools.product(range(size), repeat=last + 5):
        chance = chain.stationary[path[0]] * math.prod(chain.transition[a][b] for a, b in itertools.pairwise(path))
        effects = tuple(effect(measure, path, *window) for window in windows)
        joint.setdefault(effects, np.zeros(size))[path[tick + 4]] += chance
    status = sum(joint.values())
    worst = 0.0
    for output in itertools.product((-9, -1, 0, 1, 2, 9), repeat=until):
        seen = sum(chance * math.exp(-sum(abs(o - e) for o, e in zip(output, effects, strict=True)) / scale) for effects, chance in joint.items())
        likelihood = seen / status
        worst = max(worst, math.log(likelihood.max() / likelihood.min()))
    return worst


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chain", [*CHAINS[:2], RESTLESS], ids=["symmetric", "lopsided", "restless"])
def test_nobody_learns_more_than_is_stated(kind, chain):
    plan = plan_of(kind)
    release = aged_release(plan, FREE)
    for until in range(1, PERIODS + 1):
        published = release.outputs[until - 1].published
        for tick in (published, *([published + 2] if until == PERIODS else [])):
            ((_, stated, _),) = release.curve(chain.delta, [tick])
            assert 0 < learned(plan, chain, KINDS[kind][1], until, tick) <= stated + 1e-12


def test_three_states():
    plan = plan_of("disjoint", horizon=2)
    release = aged_release(plan, FREE)
    ((_, stated, _),) = release.curve(CHAINS[2].delta, [release.outputs[1].published])
    assert learned(plan, CHAINS[2], "net", 2, release.outputs[1].published) <= stated


def test_the_curve_falls_within_an_epoch_and_jumps_at_a_publication():
    text = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '4 days'"
    request = Request(start_tick=0, every=Span(days=4), measure="net", epsilon=Fraction(1), horizon=5)
    plan = next(one.plan for one in candidates(compile_declaration(text), request, DAY, LIMITED, 0) if one.chosen)
    release = aged_release(plan, LIMITED)
    points = release.curve(CHAINS[0].delta, range(3, 21))
    assert points[0] == (None, 0.0, False)
    for (age, before, _), (later, after, published) in itertools.pairwise(points[1:]):
        assert (after > before) == published
        assert later == 0 if published else later == age + 1
    assert release.peak(CHAINS[0].delta) == pytest.approx(max(risk for _, risk, _ in points))


def test_aged_outputs_tell_less_and_keep_their_age():
    fresh, aged = (aged_release(plan_of(kind), FREE) for kind in ("disjoint", "aged"))
    assert (fresh.age, aged.age) == (0, 2)
    assert aged.peak(CHAINS[0].delta) < fresh.peak(CHAINS[0].delta)


def test_limits_bound_the_risk_for_ever_and_the_process_may():
    release = aged_release(plan_of("disjoint", types=LIMITED, horizon=None), LIMITED)
    assert release.is_bounded(CHAINS[0].delta)
    assert release.peak(CHAINS[0].delta) <= release.most == pytest.approx(2 * 0.9, rel=1e-6)
    assert "limits on changes" in release.reason(CHAINS[0].delta)
    slow = two_states(1e-6, 1e-6)
    assert release.peak(slow.delta) <= release.most
    assert not release.outlook(slow.delta).is_bounded


def test_no_figure_is_below_the_recurrence_for_ever():
    """The peak of an endless release is that of its outlook, which no finite stretch passes."""
    release = aged_release(plan_of("disjoint", types=LIMITED, horizon=None), LIMITED)
    stretch = max(risk for _, risk, _ in release.curve(CHAINS[0].delta, [one.published for one in release.outputs]))
    assert stretch <= release.peak(CHAINS[0].delta) + 1e-12


def test_gaussian_noise_proves_nothing():
    request = Request(start_tick=0, every=Span(days=1), measure="net", epsilon=Fraction(1))
    made = candidates(compile_declaration(WINDOW.format(7)), request, DAY, LIMITED, Fraction("1e-6"))
    assert {aged_release(one.plan, LIMITED) is None for one in made if type(one.noise).__name__ == "RoundedGaussian"} == {True}


def test_what_several_releases_tell_does_not_add_up_but_has_a_bound():
    """Two looks at the same windows are one look with half the noise's scale: the joint figure covers it."""
    single = aged_release(plan_of("disjoint"), FREE)
    double = aged_release(plan_of("disjoint", epsilon="1.8"), FREE)
    both = together([single, single])
    for chain in (*CHAINS, RESTLESS):
        assert both.peak(chain.delta) >= double.peak(chain.delta) - 1e-9
        assert both.peak(chain.delta) >= single.peak(chain.delta)
    old = aged_release(plan_of("aged"), FREE)
    assert together([old, old]).peak(CHAINS[0].delta) > 2 * old.peak(CHAINS[0].delta)
