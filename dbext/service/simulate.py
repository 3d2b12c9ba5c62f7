"""Simulate a release before it is declared: the product's own plan and noise, on data that is public or made up, many times over.

Additive noise does not depend on data, so that errors are the same on any; the data shows what they mean. Nothing is stored or charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dbext.errors import BadArgument
from dbext.mechanisms.sampling import draw
from dbext.privacy.calibrate import noise_for
from dbext.privacy.conversion import budget_picos, epsilon_of
from dbext.privacy.noise import DiscreteLaplace, Noise, law_of
from dbext.privacy.pattern import Several, Single
from dbext.query.declaration_file import DeclarationFile
from dbext.query.plan import Plan
from dbext.query.planner import candidates

#: Endless releases are simulated for so many periods.
PERIODS = 365
#: Answers are worked out as a matrix: 200 MB for so many periods.
MOST_PERIODS = 5_000
RENOISED = "re-noised each period"


@dataclass(frozen=True)
class Method:
    """One way to publish. `answers` (period x node) says with which weights the noises of `noises` make an answer's error."""

    name: str
    chosen: bool
    epsilon: float
    noises: tuple[Noise, ...]
    answers: np.ndarray
    half_widths: tuple[float, ...] | None


@dataclass(frozen=True)
class Simulated:
    """What repetitions of one method showed, in one cell unless said otherwise: root mean squared errors, by period in `by_period`.

    `uniform` is the mean, over repetitions, of the largest error of any period and cell; `covered` the share of answers that their 95%
    interval holds; `draws` the noises drawn per cell; `example` one published series of the first cell.
    """

    method: str
    chosen: bool
    noise: str
    epsilon: float
    error: float
    worst: float
    uniform: float
    covered: float | None
    draws: int
    by_period: tuple[float, ...]
    example: tuple[float, ...]


def simulate(file: DeclarationFile, changes: np.ndarray, repetitions: int, cells: int) -> tuple[tuple[float, ...], list[Simulated]]:
    """Return the exact series of the first cell, and what every method made of it. `changes` is tick x cell."""
    made = candidates(file.declaration, file.request, file.tick, file.types, file.delta)
    plans = sorted(((one.plan, one.chosen) for one in made), key=lambda pair: not pair[1])
    length = plans[0][0].horizon or min(PERIODS, max(1, len(changes)))
    if length > MOST_PERIODS:
        raise BadArgument(f"a simulation works out every period, and at most {MOST_PERIODS} of them", hint="Give a shorter horizon.")
    exact = series(plans[0][0], changes, length, file.request.start_tick)
    methods = [_method(plan, length, chosen=chosen) for plan, chosen in plans]
    if plans[0][0].kind == "running_total":
        methods.append(_renoised(file, plans[0][0], length))
    return tuple(exact[:, 0].tolist()), [_tried(one, exact[:, 0], repetitions, cells) for one in methods]


def series(plan: Plan, changes: np.ndarray, length: int, start: int) -> np.ndarray:
    """Return the exact figures, period x cell: sums of changes over windows; nothing happened before the first tick, `start` + 1."""
    totals = np.concatenate([np.zeros((1, changes.shape[1])), np.cumsum(changes, axis=0)])

    def at(boundary: int | None) -> np.ndarray:
        return totals[0 if boundary is None else min(max(boundary - start, 0), len(changes))]

    windows = [plan.window(period) for period in range(1, length + 1)]
    return np.array([at(end) - at(begin) for begin, end in windows])


def _method(plan: Plan, length: int, *, chosen: bool) -> Method:
    terms = [plan.mechanism.answer(period) for period in range(1, length + 1)]
    place = {number: n for n, number in enumerate(dict.fromkeys(number for one in terms for number, _ in one))}
    answers = np.zeros((length, len(place)))
    for period, one in enumerate(terms):
        for number, weight in one:
            answers[period, place[number]] = weight
    widths = {one: plan.half_width_95(one) for one in range(1, length + 1)}
    name = plan.mechanism.name.replace("_", " ")
    return Method(name, chosen, float(plan.epsilon), tuple(plan.node_noise(n) for n in place), answers, tuple(widths.values()))


def _renoised(file: DeclarationFile, plan: Plan, length: int) -> Method:
    """A running total noised anew each period, calibrated to the same loss: what one would do without a mechanism."""
    windows = Several(tuple(Single(*plan.window(period)) for period in range(1, length + 1)))
    delta = Fraction(0) if plan.pure else file.delta
    target = budget_picos(plan.epsilon, delta)
    noise = noise_for([windows], plan.measure, plan.grouped, file.types, target, plan.pure, law_of(pure=plan.pure))
    epsilon = float(epsilon_of(target, delta))
    return Method(RENOISED, False, epsilon, (noise,) * length, np.eye(length), None)  # noqa: FBT003 not the one chosen


def _tried(method: Method, exact: np.ndarray, repetitions: int, cells: int) -> Simulated:
    """Draw the noise of a method many times."""
    errors = (method.answers @ _drawn(method.noises, repetitions * cells)).reshape(len(exact), repetitions, cells)
    by_period = np.sqrt((errors**2).mean(axis=(1, 2)))
    covered = None
    if method.half_widths is not None:
        covered = float((abs(errors) <= np.array(method.half_widths)[:, None, None] + 1e-9).mean())
    return Simulated(
        method.name,
        method.chosen,
        _said(method.noises),
        method.epsilon,
        float(np.sqrt((errors**2).mean())),
        float(by_period.max()),
        float(abs(errors).max(axis=(0, 2)).mean()),
        covered,
        len(method.noises),
        tuple(by_period.tolist()),
        tuple((exact + errors[:, 0, 0]).tolist()),
    )


def _drawn(noises: Sequence[Noise], count: int) -> np.ndarray:
    """Return `count` draws of each noise: noise x draw. The product's samplers, nothing else."""
    drawn = np.zeros((len(noises), count))
    for law in dict.fromkeys(noises):
        rows = [n for n, one in enumerate(noises) if one == law]
        drawn[rows] = np.array(draw(law, len(rows) * count), dtype=float).reshape(len(rows), count)
    return drawn


def _said(noises: Sequence[Noise]) -> str:
    """Say what the noise is, of the widest."""
    widest = max(noises, key=lambda one: one.variance)
    if isinstance(widest, DiscreteLaplace):
        return f"discrete Laplace, scale {float(widest.scale):.6g}"
    return f"rounded Gaussian, sigma {float(widest.sigma_squared) ** 0.5:.6g}"


def wave(ticks: int, cells: int) -> np.ndarray:
    """Return made-up changes, tick x cell: a season of arrivals, each cell of its own size, and departures two weeks later."""
    day = np.arange(ticks)
    season = np.maximum(0, np.sin(2 * np.pi * day / 182 - 1)) * (1 + 0.3 * np.cos(2 * np.pi * day / 7))
    arrivals = np.rint(np.outer(season, 60 / (1 + np.arange(cells)))).astype(np.int64)
    gone = np.zeros_like(arrivals)
    gone[14:] = arrivals[:-14]
    return arrivals - gone


def arrivals_only(changes: np.ndarray) -> np.ndarray:
    """Return the made-up changes that a count of events sees."""
    return np.maximum(changes, 0)
