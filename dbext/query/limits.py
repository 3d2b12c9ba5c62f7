"""How far the intervals of figures may reach: `max_error` for every count and sum alike, `max_errors` for those that it names.

A mean has no such limit: how exact it is depends on how many entries there are, which is not public. Its sum and its count have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dbext.errors import BadArgument
from dbext.query.shape import Request
from dbext.query.statistic import Formula, Statistic, scale_of


def limits_of(request: Request, statistics: Sequence[Statistic], formulas: Sequence[Formula]) -> tuple[Fraction, ...] | None:
    """The widest half width of each statistic, in steps of its grid; None if none was asked for.

    The narrowest limit of all counts and sums that a statistic is published as. BadArgument for a statistic without any: nothing would say
    how much noise it may have.
    """
    if not request.asks_error:
        return None
    named = dict(request.max_errors)
    _require_known(named, formulas)
    found: dict[int, Fraction] = {}
    for formula in formulas:
        limit = named.get(formula.label, request.max_error)
        if formula.is_linear and limit is not None:
            (place,) = formula.sources
            within = limit / scale_of(statistics[place])
            found[place] = min(within, found.get(place, within))
    for formula in formulas:
        _require_limited(formula, [place for place in formula.sources if place not in found])
    return tuple(found[place] for place in range(len(statistics)))


def _require_known(named: dict[str, Fraction], formulas: Sequence[Formula]) -> None:
    labels = {formula.label: formula for formula in formulas}
    for name in named:
        if name not in labels:
            raise BadArgument("max_errors names a figure that is not declared", hint=f"The figures are: {', '.join(labels)}.")
        if not labels[name].is_linear:
            raise _no_limit(labels[name])


def _require_limited(formula: Formula, without: Sequence[int]) -> None:
    if not without:
        return
    if formula.is_linear:
        raise BadArgument(
            f"max_errors does not say how exact {formula.label} must be",
            hint="Name every count and sum, or give max_error for those that are not named.",
        )
    raise _no_limit(formula)


def _no_limit(formula: Formula) -> BadArgument:
    return BadArgument(
        f"no budget promises an error of {formula.label}: how exact {formula.function}() is depends on how many entries there are",
        hint="Declare count and sum of the same column beside it and limit their errors, or give epsilon.",
    )


def require_affordable(needed: Fraction, request: Request) -> None:
    """Refuse an error that costs more than the epsilon allowed."""
    if request.epsilon is not None and needed > request.epsilon:
        shown = math.ceil(needed * 10**6) / 10**6
        what = "max_errors need" if request.max_errors else f"max_error of {float(request.max_error):g} needs"
        raise BadArgument(
            f"{what} an epsilon of {shown:g}, above the {float(request.epsilon):g} allowed",
            hint="Allow a larger error, or a larger epsilon.",
        )
