"""Figures of a release: their columns, and their values worked out from noisy statistics. Post-processing; nothing exact is read here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbext.database.release_table import MEANINGS, FigureColumns
from dbext.mechanisms.error import TAIL, half_width, variance_of
from dbext.mechanisms.mixed_error import ErrorLaw
from dbext.mechanisms.moments import Estimate, deviation, mean, mean_band, variance, variance_band
from dbext.mechanisms.quantiles import quantile
from dbext.privacy.measure import Measure
from dbext.privacy.noise import Noise
from dbext.query.publication import Publication
from dbext.query.ranks import rank_band, reading_plan
from dbext.query.spread import margin
from dbext.query.statistic import Formula, scale_of
from dbext.service.noising import Answers

_WORDS = {
    "avg": "mean",
    "var_samp": "sample variance",
    "var_pop": "variance",
    "stddev_samp": "sample standard deviation",
    "stddev_pop": "standard deviation",
}


def figure_columns(publication: Publication) -> tuple[FigureColumns, ...]:
    """Return the columns of all figures: value, std_error, lower_95, upper_95, with the figure's name before them if there are several."""
    return tuple((_columns if formula.fraction is None else _quantile_columns)(publication, formula) for formula in publication.formulas)


def count_columns(measure: Measure) -> FigureColumns:
    """Return the columns of one estimated count that is no whole number, called what it means."""
    said = f"Noisy number {MEANINGS[measure]}; may be negative"
    return FigureColumns(measure.value, said, clipped=measure is not Measure.NET, whole=False)


def _columns(publication: Publication, formula: Formula) -> FigureColumns:
    statistic = publication.statistic(formula.sources[0])
    plan = publication.main
    own = publication.streams[publication.readings[formula.sources[0]].stream].plan
    whole = formula.is_linear and own.whole_answers and scale_of(statistic).denominator == 1
    positive = statistic.is_count or (statistic.term.bounds.low >= 0)
    return FigureColumns(
        label=formula.label,
        said=_said(publication, formula),
        prefix=f"{formula.label}_" if len(publication.formulas) > 1 else "",
        linear=formula.is_linear,
        clipped=plan.measure is not Measure.NET and (positive if formula.function in ("count", "sum", "avg") else True),
        whole=whole,
        rounds=formula.is_linear and scale_of(statistic).denominator == 1,
        band=plan.band,
    )


def _quantile_columns(publication: Publication, formula: Formula) -> FigureColumns:
    counted = "entries" if publication.statistic(formula.sources[0]).term is None else "rows"
    return FigureColumns(
        label=formula.label,
        said=_said_of_quantile(publication, formula),
        prefix=f"{formula.label}_" if len(publication.formulas) > 1 else "",
        linear=False,
        clipped=False,
        whole=False,
        rounds=False,
        band=publication.main.band,
        error="rank_error",
        error_said=f"Number of {counted} by which the rank of the value may be off, with 95% confidence, for the noise",
    )


def _said(publication: Publication, formula: Formula) -> str:
    """What the comment of a figure's column says."""
    term = publication.statistic(formula.sources[0]).term
    meaning = MEANINGS[publication.main.measure]
    if term is not None and term.rows is not None:
        meaning = meaning.replace("entries", "rows")
    if formula.function == "count":
        counted = "number of times" if publication.main.measure.counts_events else "number"
        return f"Noisy {counted} {meaning}; may be negative"
    within = f"{term.column.name}, clamped to [{float(term.bounds.low):g}, {float(term.bounds.high):g}],"
    if formula.is_linear:
        squares = "squares of " if formula.function == "sum_squares" else ""
        return f"Noisy sum of {squares}{within} {meaning}; may be negative"
    return f"{_WORDS[formula.function].capitalize()} of {within} {meaning}; worked out from noisy sums"


def _said_of_quantile(publication: Publication, formula: Formula) -> str:
    """What the comment of a quantile's column says."""
    spread = publication.statistic(formula.sources[0]).spread
    low, high, grid = (f"{float(value):g}" for value in (spread.bounds.low, spread.bounds.high, spread.bounds.grid))
    return (
        f"Quantile {float(formula.fraction):g} of {spread.column.name} {MEANINGS[publication.main.measure]}; "
        f"clamped to [{low}, {high}], rounded to multiples of {grid}; worked out from noisy counts"
    )


def figure_arrays(publication: Publication, periods: Sequence[int], made: Sequence[Answers], cells: int) -> list[list]:
    """Return the parameters of `rows_sql` for all figures; `made` holds for each reading the numbers of each period."""
    arrays: list[list] = []
    for formula in publication.formulas:
        work_out = _linear if formula.is_linear else _derived if formula.fraction is None else _quantiles
        arrays += work_out(publication, formula, periods, made, cells)
    return arrays


def _linear(publication: Publication, formula: Formula, periods: Sequence[int], made: Sequence[Answers], cells: int) -> list[list]:
    """Values in units of the column, and by period their standard errors and half widths."""
    (place,) = formula.sources
    scale, plan = scale_of(publication.statistic(place)), reading_plan(publication, place)
    unit = scale.numerator if scale.denominator == 1 else float(scale)
    values = [value * unit for answer in made[place] for value in answer]
    errors = [plan.std_error(period) * float(unit) for period in periods]
    return [values, errors, [plan.half_width(period, cells) * float(unit) for period in periods]]


def half_widths(publication: Publication, period: int, cells: int) -> list[float]:
    """Return how far the intervals of counts and sums reach to either side in a period, in units of their columns."""
    places = [formula.sources[0] for formula in publication.formulas if formula.is_linear]
    scales = [float(scale_of(publication.statistic(place))) for place in places]
    return [reading_plan(publication, place).half_width(period, cells) * scale for place, scale in zip(places, scales, strict=True)]


def _derived(publication: Publication, formula: Formula, periods: Sequence[int], made: Sequence[Answers], cells: int) -> list[list]:
    """Values, standard errors and ends of intervals of every cell of every period."""
    plans = [reading_plan(publication, place) for place in formula.sources]
    found: list[Estimate] = []
    for number, period in enumerate(periods):
        laws = [plan.law(period) for plan in plans]
        tail = publication.main.tail(cells)
        noisy = zip(*(made[place][number] for place in formula.sources), strict=True)
        found += _estimates(publication, formula, laws, tail, list(noisy))
    return [list(column) for column in zip(*found, strict=True)]


def _quantiles(publication: Publication, formula: Formula, periods: Sequence[int], made: Sequence[Answers], cells: int) -> list[list]:
    """Values, rank errors and ends of intervals of every key of every period, in units of the column.

    The interval holds the quantile before it is rounded, too: it reaches as much farther as rounding moves a value.
    """
    spreads = [publication.statistic(place).spread for place in formula.sources]
    own, found = spreads[0].bounds, []
    least, beyond = own.units[0], margin(spreads[0])
    for number, period in enumerate(periods):
        band = rank_band(publication, formula, period, publication.main.tail(cells))
        counts = [(made[place][number], one.cells) for place, one in zip(formula.sources, spreads, strict=True)]
        for key in range(cells):
            one = quantile(band, [values[key * width : (key + 1) * width] for values, width in counts])
            value, lower, upper = ((least + place) * own.grid for place in one)
            lower, upper = min(max(lower - beyond, own.low), value), max(min(upper + beyond, own.high), value)
            found.append((float(value), band.rank_error, float(lower), float(upper)))
    return [list(column) for column in zip(*found, strict=True)]


@dataclass(frozen=True)
class RangeSum:
    """One statistic over a range of time: the noises that its sums hold, with their weights, and the sums, cell by cell."""

    draws: tuple[tuple[Noise, float], ...]
    values: Sequence[float]


def figure_of_range(publication: Publication, formula: Formula, sums: Mapping[int, RangeSum]) -> list[Estimate]:
    """Return a figure of all cells from the statistics over a range, by their places. Each interval holds by itself."""
    if not formula.is_linear:
        used = [sums[place] for place in formula.sources]
        noisy = list(zip(*(one.values for one in used), strict=True))
        return _estimates(publication, formula, [ErrorLaw(one.draws) for one in used], TAIL, noisy)
    (place,) = formula.sources
    scale, one = scale_of(publication.statistic(place)), sums[place]
    unit = scale.numerator if scale.denominator == 1 else float(scale)
    deviation, reach = math.sqrt(variance_of(one.draws)) * float(unit), half_width(one.draws) * float(unit)
    return [Estimate(value, deviation, value - reach, value + reach) for value in (noisy * unit for noisy in one.values)]


def figures_of_windows(
    publication: Publication, formula: Formula, noisy: Mapping[int, Sequence[Sequence[float]]], deviations: Mapping[int, Sequence[float]]
) -> list[list[tuple[float, float]]]:
    """Return values and standard errors of a figure, window by window and cell by cell, from its statistics and their deviations."""
    scale = scale_of(publication.statistic(formula.sources[0]))
    unit = scale.numerator if scale.denominator == 1 else float(scale)
    made = []
    for number in range(len(noisy[formula.sources[0]])):
        errors = [deviations[place][number] for place in formula.sources]
        cells = list(zip(*(noisy[place][number] for place in formula.sources), strict=True))
        if formula.is_linear:
            made.append([(value * unit, errors[0] * float(unit)) for (value,) in cells])
        else:
            laws = [_law_of(reading_plan(publication, place).noise, error) for place, error in zip(formula.sources, errors, strict=True)]
            made.append([one[:2] for one in _estimates(publication, formula, laws, None, cells)])
    return made


def _law_of(noise: Noise, deviation: float) -> ErrorLaw:
    """An error with this standard deviation: what standard errors need, and no interval may be made of."""
    return ErrorLaw(((noise, deviation / math.sqrt(variance_of([(noise, 1.0)]))),))


def _estimates(
    publication: Publication, formula: Formula, laws: Sequence[ErrorLaw], tail: float | None, noisy: Sequence[tuple]
) -> list[Estimate]:
    """The figure of every cell of one period; without a tail its intervals mean nothing."""
    terms = [publication.statistic(place).term for place in formula.sources]
    low, high = terms[0].bounds.units
    grid = float(terms[0].bounds.grid)
    if formula.function == "avg":
        centre = terms[0].centre
        band = mean_band(*laws, float(low - centre), float(high - centre), tail)
        return [_moved(mean(band, *one), grid, centre * grid) for one in noisy]
    bounds = (low, high, terms[1].centre, terms[0].centre)
    band = variance_band(*laws, bounds, tail, sample=formula.function.endswith("samp"))
    if formula.function.startswith("var"):
        return [_moved(variance(band, *one), grid * grid, 0.0) for one in noisy]
    return [_moved(deviation(band, *one), grid, 0.0) for one in noisy]


def _moved(estimate: Estimate, unit: float, offset: float) -> Estimate:
    value, error, lower, upper = estimate
    return Estimate(value * unit + offset, error * unit, lower * unit + offset, upper * unit + offset)
