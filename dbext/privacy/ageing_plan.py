"""Choosing age and noise together: the least error whose age-dependent risk never passes a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dbext.errors import BadArgument
from dbext.privacy.ageing import Memory, epsilon_for_peak, largest_bounded_epsilon

#: Error of an answer that is up to `peak_age` ticks old and has loss epsilon per output: rising in the first, falling in the second.
ErrorMeasure = Callable[[int, float], float]


@dataclass(frozen=True)
class Choice:
    """A release every `interval` ticks, `age` ticks old when published, with loss `epsilon` per output and this error."""

    interval: int
    age: int
    epsilon: float
    error: float


@dataclass(frozen=True)
class AgeingPlan:
    """The best choice, and the two extremes beside it; `ageing_only` is None if the oldest age still leaves noise to be saved."""

    best: Choice
    noise_only: Choice
    ageing_only: Choice | None


def plan_ageing(
    target: float, intervals: Iterable[int], oldest: int, memory: Memory, error: ErrorMeasure, spared: float = 0.95
) -> AgeingPlan:
    """Return the choice with the least error among all intervals and ages 0 ... oldest whose peak risk is at most `target`.

    For a given age and interval the constraint is tight: the error falls with epsilon, and the largest epsilon allowed has a closed form
    (`epsilon_for_peak`). `noise_only` has age 0. `ageing_only` relies on age: the best of the youngest releases whose epsilon is at least
    the share `spared` of the largest one that any age allows (`largest_bounded_epsilon`), so that more age would spare hardly any noise.
    As the target goes to 0, an age with Delta(age) of the order of the target keeps epsilon, and with it the noise, bounded: the cost moves
    into staleness. Noise alone needs epsilon -> 0.
    """
    if target <= 0 or oldest < 0:
        raise BadArgument("the target risk must be positive and the oldest age not negative")
    found = [_choice(target, interval, age, memory, error) for interval in intervals for age in range(oldest + 1)]
    if not found:
        raise BadArgument("an ageing plan needs at least one interval to choose from")
    young = [choice for choice in found if choice.age == 0]
    quiet = [choice for choice in found if choice.epsilon >= spared * largest_bounded_epsilon(choice.interval, memory)]
    youngest = {interval: min(choice.age for choice in quiet if choice.interval == interval) for interval in {c.interval for c in quiet}}
    relying = [choice for choice in quiet if choice.age == youngest[choice.interval]]
    return AgeingPlan(
        min(found, key=lambda choice: choice.error),
        min(young, key=lambda choice: choice.error),
        min(relying, key=lambda choice: choice.error, default=None),
    )


def _choice(target: float, interval: int, age: int, memory: Memory, error: ErrorMeasure) -> Choice:
    epsilon = epsilon_for_peak(target, age, interval, memory)
    return Choice(interval, age, epsilon, error(age + interval, epsilon))


def laplace_and_drift(spread: float, sensitivity: float = 1.0) -> ErrorMeasure:
    """Return an error measure: root of the variance of Laplace noise plus that of a count that drifts by `spread` per square-root tick."""
    return lambda peak_age, epsilon: math.sqrt(2 * (sensitivity / epsilon) ** 2 + spread**2 * peak_age)
