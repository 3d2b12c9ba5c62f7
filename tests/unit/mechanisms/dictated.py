"""Dictated randomness: the exact chances of what a sampler's step comes to."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction


class Dictated:
    """Hands out dictated numbers, and says which ranges were asked for."""

    def __init__(self, numbers=()):
        self.numbers, self.limits = list(numbers), []

    def below(self, limit):
        self.limits.append(limit)
        return self.numbers.pop(0)


def exact_probability(step, depth):
    """Run a step on every sequence of draws up to a depth: the exact weight of each result that is decided by then."""
    results, pending = Counter(), [()]
    for _ in range(depth):
        following = []
        for drawn in pending:
            source = Dictated(drawn)
            try:
                results[step(source)] += Fraction(1, math.prod(source.limits))
            except IndexError:
                following += [(*drawn, value) for value in range(source.limits[-1])]
        pending = following
    return results
