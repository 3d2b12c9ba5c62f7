"""Group keys that the data name: the chance that a key which one entry alone supports is published, and what delta that is.

A release with such keys counts in a cell for every key that any entry ever had. A cell stays hidden until an answer in it is large: it is
looked at only while its exact answer is not 0, and shown from then on once its noisy answer passes a threshold.

Why that is private. Let D' be D with one entry x more, and take the release that would answer in every cell that there could be, a cell
that nobody supports being 0 and noise: (epsilon, delta)-private, as for public keys. What is published is worked out from those answers,
but for which cells are looked at. That differs between D and D' only where an exact answer is 0 in one of them: there x makes up the
whole of the other, at most `change`, and passing the threshold has at most the chance `tail`. With N such answers, what is published is,
but for a chance of N tail in each database, the same function of the answers of both. So P[M(D) in S] <= e^epsilon P[M(D') in S] + delta +
(1 + e^epsilon) N tail, either way: e^epsilon N tail in the database where cells are looked at, N tail in the other, and the two kinds of
cells share the N. Releases and questions on the same budget are parts of one such mechanism, so that epsilon is the budget's.

N: an entry changes `l1` cells of one answer at most (counting each as often as it changes), and there are `checks` answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.measure import Measure, Sensitivity, sensitivity

_DIGITS = 60
#: Thresholds are worked out for tails that are whole multiples of this.
_TAIL_STEPS = 10**40


@dataclass(frozen=True)
class KeyChecks:
    """When hidden cells of a release are looked at. `ticks`: the longest window of an answer, None if it reaches back to the beginning.

    `change`: the most that one entry adds to one cell of one answer, under the constraints at declaration.
    `tail`: the chance that noise alone lifts such a cell over its threshold.
    """

    measure: Measure
    ticks: int | None
    checks: int
    change: int
    tail: Fraction

    def chance(self, types: Sequence[EntryType]) -> Fraction:
        """Return the chance that any cell of one entry's is shown; 1 where constraints let an entry add more than the threshold allows."""
        effect = worst_effect(self.measure, self.ticks, types)
        if effect is None or largest_change(self.measure, effect) > self.change:
            return Fraction(1)
        return min(Fraction(1), self.checks * effect.l1 * self.tail)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `key_checks_from_json` reads."""
        return {
            "measure": self.measure.value,
            "ticks": self.ticks,
            "checks": self.checks,
            "change": self.change,
            "tail": str(self.tail),
        }


def key_checks_from_json(data: dict[str, Any]) -> KeyChecks:
    """Rebuild checks."""
    return KeyChecks(Measure(data["measure"]), data["ticks"], data["checks"], data["change"], Fraction(data["tail"]))


def key_checks(
    measure: Measure, ticks: int | None, checks: int, types: Sequence[EntryType], delta: Fraction, epsilon: Fraction
) -> KeyChecks | None:
    """Return the checks that cost at most `delta` under a budget of `epsilon`; None if nothing bounds what an entry adds."""
    effect = worst_effect(measure, ticks, types)
    if effect is None:
        return None
    tail = delta / (factor(epsilon) * checks * effect.l1)
    return KeyChecks(measure, ticks, checks, largest_change(measure, effect), Fraction(int(tail * _TAIL_STEPS), _TAIL_STEPS))


def delta_of(chance: Fraction, epsilon: Fraction) -> Fraction:
    """Return the delta that a chance of showing an entry's own keys amounts to, beside a loss of `epsilon`."""
    return factor(epsilon) * chance


def factor(epsilon: Fraction) -> Fraction:
    """Return 1 + e^epsilon, rounded up: the chance counts in both databases."""
    with localcontext() as context:
        context.prec, context.rounding = _DIGITS, ROUND_CEILING
        power = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp() * (1 + Decimal("1e-40"))
    return 1 + Fraction(power)


def worst_effect(measure: Measure, ticks: int | None, types: Sequence[EntryType]) -> Sensitivity | None:
    """Return the largest effect of an entry of any type on the cells of one answer; None if nothing bounds it."""
    found = [sensitivity(measure, True, ticks, one.constraint) for one in types or (EntryType(0, "", Constraint()),)]  # noqa: FBT003 grouped
    return None if None in found else max(found, key=lambda one: one.l1)


def largest_change(measure: Measure, effect: Sensitivity) -> int:
    """Return how much of an effect one cell can take: all events, but only one unit of a difference of states."""
    return effect.l1 if measure.counts_events else 1
