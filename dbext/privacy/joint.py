"""What a charge knows about a mechanism that noises overlapping sums together: bounds on one entry's effect, as plain data.

Such a mechanism (a square-root factorisation) adds rounded Gaussian noise of one sigma to whole-number combinations of disjoint time
ranges, its leaves. Its loss is rho = norm^2 / (2 sigma^2), with norm the L2 norm of an entry's effect on all of them together (Canonne,
Kamath and Steinke 2020, theorem 4). The mechanism proves bounds on that norm; the ledger keeps them, and needs nothing else to price the
charge for any type, now or after a constraint has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dbext.errors import BadArgument
from dbext.privacy.constraint import Constraint


@dataclass(frozen=True)
class JointBound:
    """For entries that obey `constraint`: what j touched leaves move has a squared norm of at most j * per_touch.

    Everything an entry does in its life has one of at most `lifetime` (None: nothing bounds it).
    """

    constraint: Constraint
    per_touch: Fraction
    lifetime: Fraction | None

    def to_json(self) -> dict[str, Any]:
        """Return the form that `joint_bound_from_json` reads; numbers as text, which JSON keeps exactly."""
        return {
            "max_mutations": self.constraint.max_mutations,
            "active_within": self.constraint.active_within,
            "per_touch": str(self.per_touch),
            "lifetime": None if self.lifetime is None else str(self.lifetime),
        }


def joint_bound_from_json(data: dict[str, Any]) -> JointBound:
    """Rebuild a bound."""
    lifetime = None if data["lifetime"] is None else Fraction(data["lifetime"])
    return JointBound(Constraint(data["max_mutations"], data["active_within"]), Fraction(data["per_touch"]), lifetime)


def check_bounds(bounds: Sequence[JointBound]) -> None:
    """Refuse bounds that say nothing about entries without any limit: a later type, or a looser constraint, must still have a price."""
    if not any(bound.constraint == Constraint() for bound in bounds):
        raise BadArgument("a joint charge needs a bound for entries without any limit")


def per_touch_for(bounds: Sequence[JointBound], constraint: Constraint) -> Fraction:
    """Return the least squared norm per touched leaf that is proven for entries of a constraint."""
    return min(bound.per_touch for bound in bounds if bound.constraint.allows(constraint))


def lifetime_for(bounds: Sequence[JointBound], constraint: Constraint) -> Fraction | None:
    """Return the least squared norm of a whole life that is proven for entries of a constraint; None if there is none."""
    proven = (bound.lifetime for bound in bounds if bound.constraint.allows(constraint))
    return min((lifetime for lifetime in proven if lifetime is not None), default=None)
