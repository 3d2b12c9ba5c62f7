"""Read percentile_disc(0.5) WITHIN GROUP (ORDER BY column), or BY dp_bounds(column, low, high, grid)."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dbext.query.bins import edge
from dbext.query.bounds import Bounds
from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import column_of, expect, offset_of, unwrap
from dbext.query.compile.read_bins import number_of, numbers_of
from dbext.query.declaration import Figure
from dbext.query.predicate import ColumnRef
from dbext.query.refusal import refused
from dbext.query.spread import require_few

QUANTILES = (exp.WithinGroup, exp.PercentileDisc)
_FORMS = "Write percentile_disc(0.5) WITHIN GROUP (ORDER BY age), or dp_bounds(age, 0, 100, 5) for bounds and grid of its own."
_DIGITS = 6


def quantiles_of(draft: Draft, item: exp.Expression, label: str | None) -> list[Figure]:
    """The quantiles of one call. Those of a list are named for their fractions in percent: age_25, age_50."""
    if not isinstance(item, exp.WithinGroup):
        raise refused("WITHIN GROUP is missing behind percentile_disc()", offset_of(item), _FORMS)
    within = expect(draft, item, exp.WithinGroup, "this", "expression")
    call = expect(draft, within.this, exp.PercentileDisc, "this")
    column, bounds = _ordered(draft, within.expression)
    several = isinstance(unwrap(draft, call.this), exp.Array)
    texts = numbers_of(draft, call.this) if several else [number_of(draft, call.this)]
    fractions = [_fraction(text, offset_of(call.this)) for text in texts]
    name = label or "percentile_disc"
    labels = [f"{name}_{_percent(one)}" if several else label for one in fractions]
    return [
        Figure("percentile_disc", column, label=own, fraction=one, bounds=bounds) for own, one in zip(labels, fractions, strict=True)
    ]


def _fraction(text: str, offset: int | None) -> Fraction:
    edge(text, offset)
    value = Fraction(Decimal(text))
    if not 0 < value < 1:
        hint = "The smallest and the largest value are decided by one entry alone: take 0.01 or 0.99." if value in (0, 1) else None
        raise refused("the fraction of a quantile lies between 0 and 1", offset, hint)
    if 10**_DIGITS % value.denominator:
        raise refused(f"the fraction of a quantile has at most {_DIGITS} digits after the point", offset)
    return value


def _percent(fraction: Fraction) -> str:
    return f"{float(fraction * 100):g}".replace(".", "_")


def _ordered(draft: Draft, node: exp.Expression) -> tuple[ColumnRef, Bounds | None]:
    """What is ordered by: a column, or its bounds and grid with it."""
    items = expect(draft, node, exp.Order, "expressions").expressions
    if len(items) != 1 or items[0].args.get("desc"):
        raise refused("quantiles are those of one column, in ascending order", offset_of(items[-1]), _FORMS)
    inner = unwrap(draft, expect(draft, items[0], exp.Ordered, "this", "desc").this)
    if isinstance(inner, exp.Anonymous) and inner.name == "dp_bounds":
        listed = expect(draft, inner, exp.Anonymous, "this", "expressions").expressions
        if len(listed) != 4 or not isinstance(unwrap(draft, listed[0]), exp.Column):  # noqa: PLR2004 column, low, high, grid
            raise refused("dp_bounds() has other arguments than these", offset_of(inner), _FORMS)
        numbers = [Fraction(Decimal(edge(number_of(draft, one), offset_of(one)))) for one in listed[1:]]
        return column_of(draft, unwrap(draft, listed[0])), _bounds(numbers, offset_of(inner))
    if not isinstance(inner, exp.Column):
        raise refused("percentile_disc() orders by a column", offset_of(inner), _FORMS)
    return column_of(draft, inner), None


def _bounds(numbers: list[Fraction], offset: int | None) -> Bounds:
    low, high, grid = numbers
    if grid <= 0 or low >= high:
        raise refused("low must be below high, and the grid above 0", offset, _FORMS)
    if low % grid or high % grid:
        raise refused("low and high must be multiples of the grid", offset, "Values are rounded to multiples of the grid.")
    made = Bounds(low, high, grid)
    require_few(made, offset)
    return made
