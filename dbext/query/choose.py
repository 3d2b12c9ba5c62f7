"""Declaration -> publication: at a price in epsilon or in rho, whichever was asked for, with the other one shown beside it.

With delta > 0 charges add in rho, which falls with the square of epsilon, so that many of them fit where few add up plainly. Laplace noise
can be had at its price in epsilon as well: then it errs less, for short totals, narrow windows and single answers several times less, and
takes more of the budget. What is worth more depends on what is asked later, which nobody knows: so the analyst says `noise => 'laplace'`.
Only who asks for the whole of an untouched budget leaves nothing to come, and gets what errs least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from dbext.errors import BadArgument
from dbext.privacy.constraint import EntryType
from dbext.privacy.conversion import budget_picos
from dbext.query.bounds import Bounds
from dbext.query.calendar import Tick
from dbext.query.declaration import Declaration
from dbext.query.plan import Plan
from dbext.query.planner import NOISES
from dbext.query.shape import Request
from dbext.query.together import Option, Planned, publication_at

#: A smaller error is said when it is so much smaller; prices are shown for so many releases.
_WORTH_SAYING, _SEVERAL = 0.97, 4


def plan_publication(
    declaration: Declaration,
    request: Request,
    tick: Tick,
    types: Sequence[EntryType],
    delta: Decimal,
    bounds: Mapping[int, Bounds] | None = None,
) -> Planned:
    """The best publication of a resolved declaration; `bounds` by position of column. Reads no data and spends nothing."""
    what = (tick, types, delta, bounds)
    asked = publication_at(declaration, request, *what)
    if delta == 0 or request.noise == "gaussian":
        return asked
    other = _priced_otherwise(declaration, request, what)
    if other is None:
        return asked
    if request.noise is None and request.whole and not request.asks_error and other.error < asked.error:
        chosen, other = other, asked
        return _announced(_beside(chosen, other), "this is all of the budget: Laplace noise, which adds in epsilon, errs least")
    note = _note(asked, other, request, delta)
    return _announced(_beside(asked, other), note) if note else _beside(asked, other)


def _priced_otherwise(declaration: Declaration, request: Request, what: tuple) -> Planned | None:
    """The same at prices in epsilon instead of rho, or the other way round; None if it cannot be had."""
    other = next(noise for noise in NOISES if noise != request.noise)
    try:
        return publication_at(declaration, replace(request, noise=other), *what)
    except BadArgument:
        return None


def _beside(chosen: Planned, other: Planned) -> Planned:
    """The chosen publication, with the candidates that add in the other of epsilon and rho shown after its own."""
    best = {one.stream: one.candidate for one in chosen.options if one.candidate.chosen}
    shown = [replace(one, candidate=replace(one.candidate, chosen=False, reason=_reason(one, best))) for one in other.options]
    return replace(chosen, options=(*chosen.options, *shown))


def _reason(one: Option, best: Mapping[str, object]) -> str:
    """How an option that adds otherwise compares."""
    adds = "in epsilon, with noise => 'laplace'" if one.candidate.plan.pure else "in rho, without noise => 'laplace'"
    chosen = best.get(one.stream)
    if chosen is None or not chosen.mean_std_error or not math.isfinite(one.candidate.mean_std_error):
        return f"adds {adds}"
    return f"adds {adds}: {one.candidate.mean_std_error / chosen.mean_std_error:.2f} times the error"


def _note(asked: Planned, other: Planned, request: Request, delta: Decimal) -> str | None:
    """What the price in epsilon means: said when it would err less, or need less, and when it was asked for."""
    in_rho, pure = (other, asked) if request.noise == "laplace" else (asked, other)
    taken = "" if request.noise == "laplace" else f"noise => 'laplace' would {_gain(pure, in_rho, request)}; "
    if request.noise is None and not _gains(pure, in_rho, request):
        return None
    return f"{taken}its price adds in epsilon, plainly: {_prices(pure, in_rho, delta)}"


def _gains(pure: Planned, in_rho: Planned, request: Request) -> bool:
    if request.asks_error:
        return pure.publication.epsilon < _WORTH_SAYING * in_rho.publication.epsilon
    return pure.error < _WORTH_SAYING * in_rho.error


def _gain(pure: Planned, in_rho: Planned, request: Request) -> str:
    if request.asks_error:
        return f"need an epsilon of {float(pure.publication.epsilon):.4g} instead of {float(in_rho.publication.epsilon):.4g}"
    if len(pure.publication.readings) > 1:
        return f"err {pure.error / in_rho.error:.2f} times as much over all figures"
    return f"do with a mean standard error of {pure.error:.4g} instead of {in_rho.error:.4g}"


def _prices(pure: Planned, in_rho: Planned, delta: Decimal) -> str:
    """How many such releases a budget takes in epsilon and in rho."""
    whole = _SEVERAL * pure.publication.epsilon
    most = max(in_rho.publication.lifetime.values(), default=0)
    fit = budget_picos(whole, delta) // most if most else 0
    return f"{_SEVERAL} such releases take epsilon {float(whole):.4g}, which holds {fit} of those in rho"


def _announced(made: Planned, note: str) -> Planned:
    """A publication that says something in the notes of its first stream and its own."""
    first = made.publication.streams[0]
    streams = (replace(first, plan=_noted(first.plan, note)), *made.publication.streams[1:])
    place = next(n for n, one in enumerate(made.options) if one.candidate.chosen)
    told = replace(made.options[place].candidate, plan=_noted(made.options[place].candidate.plan, note))
    options = (*made.options[:place], replace(made.options[place], candidate=told), *made.options[place + 1 :])
    publication = replace(made.publication, streams=streams, notes=(*made.publication.notes, note))
    return replace(made, publication=publication, options=options)


def _noted(plan: Plan, note: str) -> Plan:
    return replace(plan, notes=(*plan.notes, note))
