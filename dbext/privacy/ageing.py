"""Age-dependent loss: what outputs about the past tell about an entry's status now, under a stated model of how that status moves.

For a status that follows a known chain in equilibrium, independently of all other entries, outputs computed at input time tau with a
replacement loss e tell, at time t, no more than  ln(1 + Delta(t - tau) (e^e - 1))  (Zhang, Wei, Berry and Huang 2022, theorem 1). Sketch:
the chance of an output, as a function of the entry's past status, has a largest and a smallest value with ratio at most e^e, and
changing the law of that status by Delta in total variation moves the mean by at most Delta (largest - smallest).

This is proven for pure loss. It is a conditional statement about the present status under the stated model, not about the
history, and not if the model is wrong, entries depend on each other, or someone knows the status at another time. It is shown beside the
classical loss, never instead of it, and never enlarges a budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dbext.errors import BadArgument
from dbext.privacy.measure import Measure

#: Delta(t) for a whole number of ticks t >= 0.
Memory = Callable[[int], float]


@dataclass(frozen=True)
class Publication:
    """An output made public at tick `published`, computed from the statuses at tick `input`, with replacement loss `epsilon`."""

    input: int
    published: int
    epsilon: float

    def __post_init__(self):
        if self.input > self.published or self.epsilon < 0:
            raise BadArgument("an output is computed from the past, and its loss is not negative")


@dataclass(frozen=True)
class Outlook:
    """A release for ever: every `interval` ticks, each `age` ticks old when published, `epsilon` each.

    `growth` = Delta(interval) e^epsilon; the risk stays bounded for ever if and only if it is below 1, and then never passes `peak`.
    """

    interval: int
    age: int
    epsilon: float
    growth: float
    peak: float

    @property
    def is_bounded(self) -> bool:
        """Whether the process forgets faster than the release tells."""
        return self.growth < 1

    @property
    def reason(self) -> str:
        """Why it is bounded, or not."""
        side = "below" if self.is_bounded else "not below"
        return (
            f"between two outputs the process keeps {self.growth / math.exp(self.epsilon):.4g} of what can be told apart, each output "
            f"multiplies it by e^{self.epsilon:.4g}; the product {self.growth:.4g} is {side} 1"
        )


def replacement_loss(epsilon: float, measure: Measure, grouped: bool) -> float:  # noqa: FBT001 a property of the release
    """Return the loss against changing one entry's status, from that against adding or removing the entry.

    One cell that moves by one either way (`net`), and two cells between which an entry moves, lose twice; a single count of presence
    (`state`) or events loses the same, because both statuses differ by at most one in one cell.
    """
    return 2 * epsilon if grouped or measure is Measure.NET else epsilon


def aged(epsilon: float, delta: float) -> float:
    """Return ln(1 + delta (e^epsilon - 1)), also for losses whose exponential overflows."""
    if delta <= 0 or epsilon <= 0:
        return 0.0
    if epsilon > 500:  # noqa: PLR2004 near the largest exponent of a float
        return max(0.0, epsilon + math.log(delta))
    return math.log1p(delta * math.expm1(epsilon))


def losses_at_inputs(publications: Sequence[Publication], memory: Memory) -> list[tuple[int, float]]:
    """Return (input time, loss about the status at it) after each publication, in order of publication.

        e_0 = epsilon_0,   e_n = epsilon_n + aged(e_(n-1), Delta(tau_n - tau_(n-1)))   on input times tau.
    What the earlier outputs tell about the status at tau_n ages by the time between the inputs (Markov property), the new output adds its
    own loss. An output from an older input than the latest one adds its loss at the latest one: whatever it tells
    about that status is within a factor e^epsilon. The recurrence of the paper's theorem 3 uses the risk at tau_n as it stood
    before outputs in (tau_n, S_n) were published, and so misses some; on input times none is missed, and both agree if none lies there.
    """
    losses: list[tuple[int, float]] = []
    for publication in publications:
        if not losses:
            losses.append((publication.input, publication.epsilon))
            continue
        latest, loss = losses[-1]
        gap = max(0, publication.input - latest)
        losses.append((latest + gap, publication.epsilon + aged(loss, memory(gap))))
    return losses


def risk_at(publications: Sequence[Publication], memory: Memory, tick: int) -> float:
    """Return the loss about the status at `tick` from everything published by then; 0 before the first publication."""
    ordered = sorted(publications, key=lambda publication: publication.published)
    known = [publication for publication in ordered if publication.published <= tick]
    if not known:
        return 0.0
    latest, loss = losses_at_inputs(known, memory)[-1]
    return aged(loss, memory(tick - latest))


def risk_curve(publications: Sequence[Publication], memory: Memory, ticks: Sequence[int]) -> list[float]:
    """Return the risk at each tick: it falls within an epoch and jumps at a publication. Cost: linear in both."""
    ordered = sorted(publications, key=lambda publication: publication.published)
    losses = losses_at_inputs(ordered, memory)
    curve, done = [], 0
    for tick in sorted(ticks):
        while done < len(ordered) and ordered[done].published <= tick:
            done += 1
        curve.append(aged(losses[done - 1][1], memory(tick - losses[done - 1][0])) if done else 0.0)
    at = dict(zip(sorted(ticks), curve, strict=True))
    return [at[tick] for tick in ticks]


def outlook(interval: int, age: int, epsilon: float, memory: Memory) -> Outlook:
    """Return whether equal releases stay bounded for ever, and the peak of the risk (at publication instants).

    With u_n = e^(e_n) - 1 the recurrence is u_n = (e^epsilon - 1) + q u_(n-1), q = Delta(interval) e^epsilon: a geometric series, bounded
    if and only if q < 1, with limit (e^epsilon - 1) / (1 - q).
    """
    if interval < 1 or age < 0:
        raise BadArgument("releases are at least one tick apart and not younger than now")
    growth = memory(interval) * math.exp(epsilon)
    limit = math.expm1(epsilon) / (1 - growth) if growth < 1 else math.inf
    told_apart = memory(age)
    peak = math.log1p(told_apart * limit) if told_apart > 0 else 0.0
    return Outlook(interval, age, epsilon, growth, peak)


def largest_bounded_epsilon(interval: int, memory: Memory) -> float:
    """Return ln(1 / Delta(interval)): from this loss per output on, the risk grows without bound."""
    kept = memory(interval)
    return math.inf if kept <= 0 else -math.log(kept)


def epsilon_for_peak(target: float, age: int, interval: int, memory: Memory) -> float:
    """Return the loss per output at which the peak is exactly `target`.

    It is ln((1 + c) / (1 + c Delta(interval))) with c = (e^target - 1) / Delta(age), always below `largest_bounded_epsilon`, and equal to
    it if the process forgets everything within `age`.
    """
    kept = memory(age)
    if kept <= 0:
        return largest_bounded_epsilon(interval, memory)
    c = math.expm1(target) / kept
    return math.log1p(c) - math.log1p(c * memory(interval))
