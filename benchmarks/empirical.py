"""What comes out of the samplers against what was predicted: the error of every mechanism over 1,000 publications and more.

A publication is a whole table of errors: noise drawn as the product draws it, put together with the weights it is published with. The root
of its mean square over all periods, publications and cells must be the predicted one within 3%.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dbext.mechanisms.sampling import draw
from dbext.privacy.constraint import Constraint, EntryType
from dbext.query.calendar import Span, Tick
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.plan import Plan
from dbext.query.planner import Request, candidates

PUBLICATIONS, PERIODS = 1000, 40
TOTAL = "SELECT count(*) FROM t WHERE dp_time > '2000-01-03'"
WINDOW = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '10 days'"


def drawn_errors(plan: Plan, publications: int, periods: int) -> np.ndarray:
    """Return errors by (publication, period): sums of freshly drawn noise with the weights of each period."""
    answers = [plan.mechanism.answer(period) for period in range(1, periods + 1)]
    numbers = sorted({number for answer in answers for number, _ in answer})
    weights = np.zeros((len(numbers), periods))
    for period, answer in enumerate(answers):
        for number, weight in answer:
            weights[numbers.index(number), period] = weight
    noise = np.array([draw(plan.node_noise(number), publications) for number in numbers], dtype=float).T
    return noise @ weights


def plans() -> Iterator[tuple[str, Plan]]:
    """Yield one plan for every mechanism and kind of noise that the planner compares."""
    seen = set()
    for text, horizon in ((TOTAL, PERIODS), (WINDOW, None)):
        declaration = resolve(compile_declaration(text), ()).with_boundaries({"2000-01-03": 0})
        for delta in (Decimal(0), Decimal("1e-6")):
            request = Request(start_tick=0, every=Span(days=1), epsilon=Fraction(1), horizon=horizon, aligned=False)
            for one in candidates(declaration, request, Tick("day", 1), (EntryType(1, "any", Constraint(2)),), delta):
                name = f"{one.mechanism}, {type(one.noise).__name__}{', widths by level' if max(one.plan.pattern_factors) > 1 else ''}"
                if name not in seen:
                    seen.add(name)
                    yield name, one.plan


def ratio_to_predicted(plan: Plan, errors: np.ndarray) -> float:
    """Return the root of the mean square of errors (publication, period), each in proportion to the predicted one."""
    predicted = np.array([plan.std_error(period) for period in range(1, errors.shape[1] + 1)])
    return float(np.sqrt((errors**2 / predicted**2).mean()))


def measured(publications: int = PUBLICATIONS) -> Iterator[dict[str, Any]]:
    """Yield, for every mechanism, the ratio of the error over so many publications to the predicted one."""
    for name, plan in plans():
        ratio = ratio_to_predicted(plan, drawn_errors(plan, publications, PERIODS))
        yield {"mechanism": name, "publications": publications, "ratio": ratio}
