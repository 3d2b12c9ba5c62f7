"""What comes out of the samplers against what was predicted: the error of every mechanism over 10,000 publications.

A publication is a whole table of errors: noise drawn as the product draws it, put together with the weights it is published with. The root
of its mean square over all periods, publications and cells must be the predicted one within 3%.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dbext.mechanisms.buffers import advanced, beginning
from dbext.mechanisms.sampling import draw
from dbext.mechanisms.shared_windows import AnyWindow, SharedWindows
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.measure import Measure
from dbext.query import admissible
from dbext.query.calendar import Span, Tick
from dbext.query.choose import plan_publication
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.plan import Plan
from dbext.query.planner import Request, candidates, plan_question

PUBLICATIONS, PERIODS = 10_000, 40
TOTAL = "SELECT count(*) FROM t WHERE dp_time > '2000-01-03'"
WINDOW = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '10 days'"
WIDE = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '90 days'"
FILTERED = "count(*) FILTER (WHERE dp_time > now() - INTERVAL '{days} days') AS d{days}"
SEVERAL = f"SELECT {FILTERED.format(days=7)}, {FILTERED.format(days=28)} FROM t"
TYPES, DAY, DELTAS = (EntryType(1, "any", Constraint(2)),), Tick("day", 1), (Decimal(0), Decimal("1e-6"))


def drawn_errors(plan: Plan, publications: int, periods: int) -> np.ndarray:
    """Return errors by (publication, period): sums of freshly drawn noise with the weights of each period."""
    if plan.buffered is not None:
        return _from_buffers(plan, publications, periods)
    answers = [plan.mechanism.answer(period) for period in range(1, periods + 1)]
    numbers = sorted({number for answer in answers for number, _ in answer})
    places = {number: place for place, number in enumerate(numbers)}
    weights = np.zeros((len(numbers), periods))
    for period, answer in enumerate(answers):
        for number, weight in answer:
            weights[places[number], period] = weight
    noise = np.array([draw(plan.node_noise(number), publications) for number in numbers], dtype=float).T
    return noise @ weights


def _from_buffers(plan: Plan, publications: int, periods: int) -> np.ndarray:
    """Return the errors of totals whose noise is made step by step, a cell for each publication."""
    state, errors = beginning(plan.buffered.circuit, publications), []
    for _ in range(periods):
        state = advanced(plan.buffered.circuit, state, draw(plan.noise, publications))
        errors.append([value / (1 << plan.buffered.scale) for value in state.noise])
    return np.array(errors).T


def plans() -> Iterator[tuple[str, Plan]]:
    """Yield one plan for every mechanism and kind of noise that the planner compares for totals and windows."""
    yield from _named(one for text, horizon in ((TOTAL, PERIODS), (WINDOW, None)) for one in _compared(text, horizon=horizon))


def further_plans() -> Iterator[tuple[str, Plan]]:
    """Yield one plan for every mechanism that is taken in fewer cases: see the names."""
    yield from _named(_compared(WIDE), "90 days", only=("hierarchical_sums",))
    yield from _named(_compared(TOTAL, horizon=PERIODS // 2, at_horizon="renew"), "two epochs")
    yield from _named(_compared(TOTAL, horizon=PERIODS, cells=admissible.MOST_STORED), only=("buffered",))
    levels = (Span(days=1), Span(days=4), Span(days=12))
    yield from _named(_compared(TOTAL, horizon=PERIODS, levels=levels))
    for delta in DELTAS:
        yield f"one_window, {'in rho' if delta else 'in epsilon'}", _once(delta)
    declaration = resolve(compile_declaration(SEVERAL), ())
    made = plan_publication(declaration, Request(0, Span(days=1), epsilon=Fraction(1), measure="entered"), DAY, TYPES, DELTAS[1])
    shared = next(one.candidate.plan for one in made.options if isinstance(one.candidate.plan.mechanism, SharedWindows))
    for steps in shared.mechanism.windows:
        yield f"shared_windows, {steps} days", replace(shared, mechanism=AnyWindow(shared.mechanism, steps))


def _compared(text: str, **wishes: Any) -> Iterator[Plan]:
    declaration = resolve(compile_declaration(text), ()).with_boundaries({"2000-01-03": 0})
    request = Request(start_tick=0, every=Span(days=1), epsilon=Fraction(1), aligned=False, **wishes)
    for delta in DELTAS:
        yield from (one.plan for one in candidates(declaration, request, DAY, TYPES, delta))


def _once(delta: Decimal) -> Plan:
    return plan_question(0, 7, measure=Measure.NET, epsilon=Fraction(1), types=TYPES, delta=delta)


def _named(found: Iterable[Plan], *details: str, only: Sequence[str] = ()) -> Iterator[tuple[str, Plan]]:
    """Yield the first plan of each mechanism, kind of noise and way to divide a budget."""
    seen = set()
    for plan in found:
        name = ", ".join((plan.mechanism.name, type(plan.noise).__name__, *_division(plan), *details))
        if name not in seen and (not only or plan.mechanism.name in only):
            seen.add(name)
            yield name, plan


def _division(plan: Plan) -> list[str]:
    if getattr(plan.mechanism, "sections", ()):
        return ["widths by section"]
    return ["widths by level"] if max(plan.pattern_factors) > 1 else []


def ratio_to_predicted(plan: Plan, errors: np.ndarray) -> float:
    """Return the root of the mean square of errors (publication, period), each in proportion to the predicted one."""
    predicted = np.array([plan.std_error(period) for period in range(1, errors.shape[1] + 1)])
    return float(np.sqrt((errors**2 / predicted**2).mean()))


def measured(publications: int = PUBLICATIONS) -> Iterator[dict[str, Any]]:
    """Yield, for every mechanism, the ratio of the error over so many publications to the predicted one."""
    for name, plan in (*plans(), *further_plans()):
        ratio = ratio_to_predicted(plan, drawn_errors(plan, publications, plan.horizon if plan.horizon == 1 else PERIODS))
        yield {"mechanism": name, "publications": publications, "ratio": ratio}
