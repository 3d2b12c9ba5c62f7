"""Exact age-dependent leakage of randomised response on a chain: what the bounds of `ageing` are compared with.

One entry's status among m states is reported by m-ary randomised response with loss epsilon. What reports tell about the status at the last
input time is the largest log ratio of their likelihoods under two statuses, found exactly instead of bounded.
"""

from __future__ import annotations

import math

from dbext.errors import BadArgument
from dbext.privacy.markov import Chain

_MOST_TRANSCRIPTS = 1_000_000
_TWO = 2

Likelihood = tuple[float, ...]


def single_report_loss(chain: Chain, epsilon: float, age: int) -> float:
    """Return the exact loss about the present status of one report that is `age` ticks old; at most ln(1 + Delta (e^epsilon - 1)).

    For two symmetric states with Delta = D and s = (1 + D) / 2 this is ln((s e^epsilon + 1 - s) / ((1 - s) e^epsilon + s)).
    """
    return max(_ratio(_look_back(chain, likelihood, age)) for likelihood in _reports(len(chain.transition), epsilon))


def repeated_report_losses(chain: Chain, epsilon: float, spacing: int, count: int) -> list[float]:
    """Return the exact loss about the status at the latest input time after 1 ... `count` reports, `spacing` ticks apart.

    The likelihood of the transcript so far is carried forward status by status. With two states only the two extreme likelihood ratios
    matter, because looking back and reporting map ratios monotonically; with more, all transcripts are followed, up to a million.
    """
    states = len(chain.transition)
    if states > _TWO and states**count > _MOST_TRANSCRIPTS:
        raise BadArgument(f"{count} reports on {states} states are too many transcripts to follow")
    reports = _reports(states, epsilon)
    known, losses = set(reports), [max(map(_ratio, reports))]
    for _ in range(count - 1):
        earlier = [_look_back(chain, likelihood, spacing) for likelihood in known]
        known = {_scaled([a * b for a, b in zip(one, report, strict=True)]) for one in earlier for report in reports}
        losses.append(max(map(_ratio, known)))
        if states == _TWO:
            ordered = sorted(known, key=lambda likelihood: likelihood[0] / likelihood[1])
            known = {ordered[0], ordered[-1]}
    return losses


def attack_accuracy(chain: Chain, epsilon: float, age: int) -> float:
    """Return how often a guess from one report is right about a status of two that is `age` ticks younger, in equilibrium.

    The guess is the reported status. For two symmetric states: 1/2 + Delta(age) (e^epsilon / (1 + e^epsilon) - 1/2).
    """
    if len(chain.transition) != _TWO:
        raise BadArgument("the attack is on a status of two")
    accuracy = 0.0
    for guess, report in enumerate(_reports(_TWO, epsilon)):
        accuracy += chain.stationary[guess] * _look_back(chain, report, age)[guess]
    return accuracy / (1 + math.exp(-epsilon))


def _reports(states: int, epsilon: float) -> list[Likelihood]:
    """Return each report's likelihoods by status, scaled to a largest value of 1."""
    return [tuple(1.0 if status == report else math.exp(-epsilon) for status in range(states)) for report in range(states)]


def _look_back(chain: Chain, likelihood: Likelihood, ticks: int) -> Likelihood:
    """Return the likelihoods by the status `ticks` later: means over the reversed chain."""
    values = list(likelihood)
    backward = chain.reversed.transition
    for _ in range(ticks):
        values = [sum(p * value for p, value in zip(row, values, strict=True)) for row in backward]
    return tuple(values)


def _scaled(likelihood: list[float]) -> Likelihood:
    largest = max(likelihood)
    return tuple(value / largest for value in likelihood)


def _ratio(likelihood: Likelihood) -> float:
    return math.log(max(likelihood) / min(likelihood))
