"""What charges cost together: epsilon of pure charges beside rho of the others.

Fix an entry that is there or never was, and let analysts choose charge after charge by what they saw. The privacy loss of all answers is
that of the pure charges, which is at most their sum E on every path, and that of the others. At an order t, exp((t - 1) loss) grows by at
most exp((t - 1) e) with a pure charge of e and, in expectation, by at most exp((t - 1) t rho) with one of rho, whatever was seen before.
So it is, less (t - 1) (E + t R) in the exponent, a supermartingale, and the Renyi divergence of order t stays below what a path's sums
never exceed. `conversion` says which sums a budget holds by such orders, why they are fixed beforehand, and that it may hold
them by the exact filter of Gaussian noise (`gaussian`) as well.

An entry has one type in each table, and every combination of types is an entry of its own. Of each, the largest E and the largest R are
kept, which may be of two different lives: never less than the worst life costs, and exact if all charges are in epsilon, or all in rho.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import EntryType
from dbext.privacy.conversion import epsilon_of_both, rho_beside

#: Combinations of types that are told apart; with more, the largest E and the largest R stand for all.
_MOST_CORNERS = 64

Corner = tuple[int, int]


@dataclass(frozen=True)
class Loss:
    """Pairs (picos of epsilon, picos of rho) of the entries that lose most: none is below another in both.

    `stepwise`: whether all charges in epsilon are (`Charge.stepwise`).
    """

    corners: tuple[Corner, ...] = ((0, 0),)
    stepwise: bool = True

    def __add__(self, other: Loss) -> Loss:
        """Return the loss to both, of entries that may be in both."""
        sums = largest((one[0] + two[0], one[1] + two[1]) for one in self.corners for two in other.corners)
        return replace(sums, stepwise=self.stepwise and other.stepwise)

    @property
    def most(self) -> Corner:
        """The largest picos of epsilon and the largest picos of rho, of whichever entries."""
        return max(pure for pure, _ in self.corners), max(rho for _, rho in self.corners)

    def fits(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether no entry loses more than (epsilon, delta)."""
        return all(rho <= rho_beside(pure, epsilon, delta, stepwise=self.stepwise) for pure, rho in self.corners)

    def epsilon(self, delta: Fraction) -> Decimal:
        """Return the epsilon that the worst entry loses at `delta`, rounded up."""
        return max(epsilon_of_both(pure, rho, delta, stepwise=self.stepwise) for pure, rho in self.corners)


def largest(pairs: Iterable[Corner]) -> Loss:
    """Return the loss of the worst of several entries."""
    corners: list[Corner] = []
    for pure, rho in sorted(set(pairs), reverse=True):
        if not corners or rho > corners[-1][1]:
            corners.append((pure, rho))
    if len(corners) > _MOST_CORNERS:
        corners = [(corners[0][0], corners[-1][1])]
    return Loss(tuple(corners) or ((0, 0),))


def loss_of(charges: Sequence[Charge], types: Sequence[EntryType], *, pure: bool) -> Loss:
    """Return what an entry loses to charges, at worst. In a `pure` budget (delta = 0) all of them are priced in epsilon.

    Raises UnboundedLoss when nothing bounds it, NotSupported for Gaussian noise in epsilon.
    """
    added_in_epsilon, added_in_rho = ([one for one in charges if (pure or one.pure) is wanted] for wanted in (True, False))
    in_epsilon, in_rho = worst_case_loss(added_in_epsilon, types, pure=True), worst_case_loss(added_in_rho, types, pure=False)
    worst = largest((in_epsilon[one.number], in_rho[one.number]) for one in types)
    return replace(worst, stepwise=all(one.stepwise for one in added_in_epsilon))
