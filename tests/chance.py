"""How far chance may carry a test: limits that right code breaks with a chance of at most 1e-12, each time that one is asked for.

A run asks some thousand times, so that all of it fails by chance less than once in 1e8 runs.
"""

from __future__ import annotations

import math

from scipy.stats import binom

ALARM = 1e-12
#: Deviations of a mean of many draws: a normal one is further away with a chance of 6e-14, which leaves room for tails that are heavier.
SIGMAS = 7.5
#: Deviations of a few draws of Laplace noise, or of a sum of them: a single draw is further away with a chance of exp(-20 sqrt 2) = 5e-13.
FAR = 20


def most(trials: int, chance: float) -> int:
    """Return what so many trials of at most this chance exceed with a chance of at most ALARM."""
    return int(binom.isf(ALARM, trials, chance))


def fewest(trials: int, chance: float) -> int:
    """Return what so many trials of at least this chance fall short of with a chance of at most ALARM."""
    return int(binom.ppf(ALARM, trials, chance))


def away(trials: int, chance: float) -> float:
    """Return how far the share of so many trials may be from their chance."""
    return SIGMAS * math.sqrt(chance * (1 - chance) / trials)
