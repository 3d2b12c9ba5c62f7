"""Read the figures after SELECT: counts, sums, means, variances and quantiles, each with a FILTER and a name of its own."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import column_of, expect, name_of, offset_of, unwrap
from dbext.query.compile.read_predicate import read_predicate
from dbext.query.compile.read_quantiles import QUANTILES, quantiles_of
from dbext.query.compile.read_time_range import read_time_range
from dbext.query.compile.split_conditions import operands
from dbext.query.declaration import Ago, Figure, TimeRange
from dbext.query.labels import label_of
from dbext.query.predicate import ColumnRef
from dbext.query.refusal import refused

#: What sqlglot calls the functions; variance and stddev are those of a sample, as in PostgreSQL.
FUNCTIONS: dict[type[exp.Expression], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
}
_NO_FIGURE = "Write SELECT county, count(*) with the columns of GROUP BY before it."
_COMPUTED = "Compute with figures when you read the release table, or in a view on it."
_WINDOWS = "Write count(*) FILTER (WHERE dp_time > now() - INTERVAL '7 days') AS d7, and a window of its own for every other figure."


def is_figure(node: exp.Expression) -> bool:
    """Whether an item of the list after SELECT is a figure, named or not."""
    inner = node.this if isinstance(node, exp.Alias) else node
    return isinstance(inner, (exp.Filter, exp.WithinGroup, exp.PercentileDisc, *FUNCTIONS))


def require_figures(draft: Draft) -> None:
    """Refuse a list without any figure, and arithmetic with one, which is not one itself."""
    for item in draft.tree.expressions:
        if not is_figure(item) and item.find(*FUNCTIONS):
            raise refused("a figure stands alone, without arithmetic or anything else around it", offset_of(item), _COMPUTED)
    if not any(is_figure(item) for item in draft.tree.expressions):
        raise refused("count(*) is missing", offset_of(draft.tree), _NO_FIGURE)


def read_figures(draft: Draft) -> Draft:
    """Fill `figures`, and note how their windows were read."""
    read = [one for item in draft.tree.expressions if is_figure(item) for one in _figures(draft, item)]
    figures = tuple(figure for figure, _ in read)
    _check_windows(figures)
    _check_labels(figures)
    notes = dict.fromkeys(note for _, said in read for note in said)
    timed = any(figure.range is not None for figure in figures)
    return replace(draft, figures=figures, notes=draft.notes + tuple(notes), mentions_dp_time=draft.mentions_dp_time or timed)


def check_one_window(draft: Draft) -> Draft:
    """The last rule: a window stands in the FILTER of every figure, or once for all."""
    timed = next((figure for figure in draft.figures if figure.range is not None), None)
    if timed is not None and draft.range != TimeRange():
        raise refused(
            "this figure has a window, and the declaration has another", timed.offset, "State windows in WHERE, or in every FILTER."
        )
    return draft


def _figures(draft: Draft, item: exp.Expression) -> list[tuple[Figure, tuple[str, ...]]]:
    """The figure of an item, or the several ones of a list of fractions, each with the notes about its window."""
    label, place = None, offset_of(item)
    if isinstance(item, exp.Alias):
        alias = expect(draft, item, exp.Alias, "this", "alias")
        item, label = alias.this, name_of(draft, alias.args["alias"])
    condition = None
    if isinstance(item, exp.Filter):
        filtered = expect(draft, item, exp.Filter, "this", "expression")
        item, condition = filtered.this, expect(draft, filtered.expression, exp.Where, "this").this
    made = quantiles_of(draft, item, label) if isinstance(item, QUANTILES) else [replace(_function(draft, item), label=label)]
    figures = [replace(figure, offset=place) for figure in made]
    if condition is None:
        return [(figure, ()) for figure in figures]
    inside = replace(draft, conditions=tuple(operands(draft, condition, exp.And)), range=None, predicate=None, notes=())
    inside = read_predicate(read_time_range(inside))
    window = inside.range if inside.mentions_dp_time else None
    return [(replace(figure, predicate=inside.predicate, range=window), inside.notes) for figure in figures]


def _function(draft: Draft, item: exp.Expression) -> Figure:
    """A call: count(*), count(column), count(DISTINCT unit), or another function of one numeric column."""
    if type(item) not in FUNCTIONS:
        raise refused("a figure is count, sum, avg, variance, stddev or percentile_disc", offset_of(item), _NO_FIGURE)
    call, name = expect(draft, item, type(item), "this", "big_int"), FUNCTIONS[type(item)]
    inner = unwrap(draft, call.this)
    if isinstance(inner, exp.Star) and name == "count":
        expect(draft, inner, exp.Star)
        return Figure()
    if isinstance(inner, exp.Distinct):
        if name != "count":
            raise refused(f"{item.sql_name().lower()}(DISTINCT ...) cannot be released", offset_of(inner), "Leave DISTINCT out.")
        listed = expect(draft, inner, exp.Distinct, "expressions").expressions
        return Figure(distinct=tuple(column_of(draft, unwrap(draft, one)) for one in _opened(draft, listed)))
    if name == "sum" and isinstance(inner, exp.Mul):
        return Figure("sum_squares", _squared(draft, inner))
    if not isinstance(inner, exp.Column):
        hint = "count(1) is count(*)." if name == "count" else "Track a column that holds the value; PostgreSQL can generate one."
        raise refused(f"{name}() takes {'a star or ' if name == 'count' else ''}a column", offset_of(item), hint)
    return Figure(name, column_of(draft, inner))


def _squared(draft: Draft, product: exp.Mul) -> ColumnRef:
    """The column of sum(column * column)."""
    factors = expect(draft, product, exp.Mul, "this", "expression")
    one, other = (unwrap(draft, part) for part in (factors.this, factors.expression))
    if isinstance(one, exp.Column) and isinstance(other, exp.Column) and (column := column_of(draft, one)) == column_of(draft, other):
        return column
    hint = "Write sum(column * column), or track a column that holds the value; PostgreSQL can generate one."
    raise refused("sum() takes a column, or its square", offset_of(product), hint)


def _opened(draft: Draft, listed: list[exp.Expression]) -> list[exp.Expression]:
    """The columns of DISTINCT a, b or DISTINCT (a, b)."""
    if len(listed) == 1 and isinstance(listed[0], exp.Tuple):
        return expect(draft, listed[0], exp.Tuple, "expressions").expressions
    return listed


def _check_windows(figures: tuple[Figure, ...]) -> None:
    """Figures have windows of their own all or none, and all of them end with the period, or the same time before."""
    timed = [figure.range for figure in figures if figure.range is not None]
    if not timed:
        return
    bare = next((figure for figure in figures if figure.range is None), None)
    if bare is not None:
        raise refused("this figure has no window, and others have", bare.offset, _WINDOWS)
    for figure in figures:
        if figure.fraction is not None:
            raise refused("a quantile has the window of WHERE", figure.offset, "Declare it as a release of its own.")
        if not isinstance(figure.range.lower, Ago) or figure.range.is_fixed:
            raise refused("the window of a FILTER moves with now()", figure.offset, _WINDOWS)
        if figure.range.upper != timed[0].upper:
            raise refused("the windows of one release end at one time", figure.offset, "Declare a release for each age.")


def _check_labels(figures: tuple[Figure, ...]) -> None:
    """Names of several figures differ."""
    seen: set[str] = set()
    for figure in figures:
        if label_of(figure) in seen:
            raise refused(f"two figures are named {label_of(figure)}", figure.offset, "Give each a name: count(*) AS n.")
        seen.add(label_of(figure))
