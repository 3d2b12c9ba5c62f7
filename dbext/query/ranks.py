"""Bands of a publication's quantiles: how far ranks may be off, from its plans alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbext.mechanisms.quantiles import Band, band
from dbext.mechanisms.spread import spread
from dbext.query.exact import exact_decimal
from dbext.query.plan import Plan
from dbext.query.publication import Publication
from dbext.query.statistic import Formula


def reading_plan(publication: Publication, place: int) -> Plan:
    """The plan that a statistic is read with: that of its stream, turned to a window of its own if it has several."""
    return replace(publication.streams[publication.readings[place].stream].plan, mechanism=publication.mechanism(place))


def rank_band(publication: Publication, formula: Formula, period: int, tail: float) -> Band:
    """How far the counts up to each value may be off in a period, for intervals that miss with probability `tail`."""
    laws = tuple(reading_plan(publication, place).law(period) for place in formula.sources)
    spreads = [publication.statistic(place).spread for place in formula.sources]
    return band(laws, spreads[0].values, tuple(one.block for one in spreads), formula.fraction, tail)


def rank_notes(publication: Publication) -> list[str]:
    """Say how far the ranks of quantiles are off in the period that errs most, and what they are resolved to."""
    period = spread(publication.main.mechanism).period
    return [_note(publication, formula, period) for formula in publication.formulas if formula.fraction is not None]


def _note(publication: Publication, formula: Formula, period: int) -> str:
    made = rank_band(publication, formula, period, publication.main.tail(1))
    own = publication.statistic(formula.sources[0]).spread
    grid, low, high = (exact_decimal(value) for value in (own.bounds.grid, own.bounds.low, own.bounds.high))
    blocks = "" if len(made.blocks) == 1 else f", counted in blocks of {_listed(made.blocks)}"
    return (
        f"{formula.label}: with 95% its rank is off by at most {made.rank_error:.4g} entries (period {period}); "
        f"it is one of {made.values} values, from {low} to {high} by {grid}{blocks}"
    )


def _listed(blocks: Sequence[int]) -> str:
    return f"{', '.join(map(str, blocks[:-1]))} and {blocks[-1]} values"
