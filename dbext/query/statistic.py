"""What a declaration's figures are made of: the exact sums over entries that noise is added to.

A count adds 1 for each entry, a sum the entry's value on a grid of whole numbers, a sum of squares the square of its distance from the
middle of the bounds, or from 0 where that sum is published. Means and variances are worked out from noisy sums, for free; quantiles from
noisy counts by value. Equal statistics of several figures are noised once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dbext.errors import BadArgument
from dbext.privacy.measure import COUNT, Values
from dbext.query.bounds import Bounds, bounds_from_json
from dbext.query.canonical import canonical
from dbext.query.column import Column
from dbext.query.declaration import Declaration, Figure, TimeRange
from dbext.query.predicate import And, ColumnRef, Compare, IsNull, Literal, Predicate
from dbext.query.predicate_json import from_json, to_json
from dbext.query.refusal import refused
from dbext.query.spread import Spread, require_few, spreads_of
from dbext.query.text import text

#: Largest value of one entry: 2^32 of them stay within a bigint.
LARGEST_VALUE = 2**30


@dataclass(frozen=True)
class Term:
    """What an entry adds: (value - centre)^power in units of the grid, with its value clamped to the bounds and rounded to the grid.

    Where an entry is a unit of several rows, each of them adds that much, and `rows` is how many there are at most. Then power 0 is their
    number: a column that tells rows apart stands for it, and no bounds are needed. With `distinct` a unit adds 1 in each group in which
    it has a row: no more than its rows do.
    """

    column: ColumnRef
    bounds: Bounds | None
    centre: int = 0
    power: int = 1
    rows: int | None = None
    distinct: bool = False

    @property
    def is_count(self) -> bool:
        """Whether rows are counted, whatever values they have."""
        return self.power == 0

    @property
    def values(self) -> Values:
        """The range of what an entry adds: that of one row, or of any number of rows up to `rows`.

        The sum of j values in [low, high], 1 <= j <= n, lies in [min(low, n low), max(high, n high)].
        """
        row = self._of_one_row
        most = self.rows or 1
        return Values(min(row.low, most * row.low), max(row.high, most * row.high))

    @property
    def _of_one_row(self) -> Values:
        if self.is_count:
            return COUNT
        low, high = self.bounds.units
        if self.power == 1:
            return Values(low - self.centre, high - self.centre)
        return Values(0, max((low - self.centre) ** 2, (high - self.centre) ** 2))

    def to_json(self) -> dict[str, Any]:
        """The form that `term_from_json` reads."""
        bounds = None if self.bounds is None else self.bounds.to_json()
        said = {"column": to_json(self.column), "bounds": bounds, "centre": self.centre, "power": self.power}
        return said if self.rows is None else {**said, "rows": self.rows, "distinct": self.distinct}


def term_from_json(data: dict[str, Any] | None, columns: Sequence[Column]) -> Term | None:
    """The term that `to_json` wrote; None is a count."""
    if data is None:
        return None
    return replace(_without_column(data), column=from_json(data["column"], columns))


def values_of(data: dict[str, Any] | None) -> Values:
    """What an entry adds to the term that `Term.to_json` wrote; None is a count."""
    return COUNT if data is None else _without_column(data).values


def _without_column(data: dict[str, Any]) -> Term:
    bounds = None if data["bounds"] is None else bounds_from_json(data["bounds"])
    return Term(None, bounds, data["centre"], data["power"], data.get("rows"), data.get("distinct", False))


@dataclass(frozen=True)
class Statistic:
    """A sum over the entries that satisfy a predicate, or their number (`term` None), in a window; with `spread`, by value.

    Of units of several rows it is a sum over the rows that satisfy it, or the number of units of which some row does.
    """

    predicate: Predicate | None
    term: Term | None = None
    range: TimeRange | None = None
    spread: Spread | None = None

    @property
    def values(self) -> Values:
        """What an entry adds."""
        return COUNT if self.term is None else self.term.values

    @property
    def is_count(self) -> bool:
        """Whether it is a number of entries or of rows."""
        return self.term is None or self.term.is_count

    @property
    def name(self) -> str:
        """What is summed, in words."""
        if self.spread is not None:
            blocks = "" if self.spread.block == 1 else f"blocks of {self.spread.block} values of "
            return f"count by {blocks}{self.spread.column.name}"
        if self.is_count:
            return "count"
        return f"sum of {self.term.column.name}" if self.term.power == 1 else f"sum of squares of {self.term.column.name}"

    @property
    def full_name(self) -> str:
        """The name, and what is counted or summed up to which condition."""
        counted = "" if self.term is None or not self.is_count else " of units" if self.term.distinct else " of rows"
        condition = "" if self.predicate is None else f" where {text(self.predicate)}"
        return self.name + counted + condition


@dataclass(frozen=True)
class Formula:
    """A published figure: a function of noisy statistics, given by their places.

    These are (count, sum or sum of squares), (sum, count), (squares, sum, count), or counts by value, in longer blocks first, for the
    quantile `fraction`.
    """

    label: str
    function: str
    sources: tuple[int, ...]
    fraction: Fraction | None = None

    @property
    def is_linear(self) -> bool:
        """Whether the figure is one noisy statistic itself."""
        return len(self.sources) == 1 and self.fraction is None

    def to_json(self) -> dict[str, Any]:
        """The form that `formula_from_json` reads."""
        fraction = {} if self.fraction is None else {"fraction": str(self.fraction)}
        return {"label": self.label, "function": self.function, "sources": list(self.sources)} | fraction


def formula_from_json(data: dict[str, Any]) -> Formula:
    """The formula that `to_json` wrote."""
    fraction = None if data.get("fraction") is None else Fraction(data["fraction"])
    return Formula(data["label"], data["function"], tuple(data["sources"]), fraction)


def statistics_of(
    declaration: Declaration, bounds: Mapping[int, Bounds], labels: Sequence[str], *, pure: bool = True
) -> tuple[tuple[Statistic, ...], tuple[Formula, ...]]:
    """The statistics that a resolved declaration needs, each once, and how its figures are made of them.

    `bounds` are those declared for columns, by position; `pure` says how budgets add up. DeclarationRefused for a column without any.
    """
    found: dict[Statistic, int] = {}
    formulas = []
    summed = {_sum_of(declaration, figure, bounds) for figure in declaration.figures if figure.function == "sum"}
    for figure, label in zip(declaration.figures, labels, strict=True):
        if figure.fraction is not None:
            needed = _spread(declaration, figure, bounds, pure=pure)
        else:
            needed = _needed(declaration, figure, bounds, summed)
        places = tuple(found.setdefault(one, len(found)) for one in needed)
        formulas.append(Formula(label, figure.function, places, figure.fraction))
    return tuple(found), tuple(formulas)


def _needed(declaration: Declaration, figure: Figure, bounds: Mapping[int, Bounds], summed: set[Statistic]) -> list[Statistic]:
    """The statistics of one figure.

    A mean is best taken from the middle of the bounds: its error then holds less of that of the count. But a sum that is published
    anyway serves, too.
    """
    counted = _count_of(declaration, figure)
    if figure.column is None or figure.function == "count":
        return [counted]
    plain = _sum_of(declaration, figure, bounds)
    if figure.function == "sum":
        return [plain]
    if figure.function == "sum_squares":
        return [replace(plain, term=_checked(replace(plain.term, power=2), figure))]
    middle = sum(plain.term.bounds.units) // 2
    total = plain if plain in summed else replace(plain, term=_checked(replace(plain.term, centre=middle), figure))
    needed = [total, counted]
    if figure.function == "avg":
        return needed
    return [replace(plain, term=_checked(replace(plain.term, centre=middle, power=2), figure)), *needed]


def _count_of(declaration: Declaration, figure: Figure) -> Statistic:
    """The number of entries; of the rows of units that have several, unless DISTINCT says to count units.

    A unit counts in every group in which it has a row.
    """
    distinct = bool(figure.distinct)
    if declaration.row is None or (distinct and not declaration.groups_of_rows):
        return _statistic(declaration, figure, None)
    most = declaration.row.column.per_unit
    return _statistic(declaration, figure, Term(declaration.row, None, power=0, rows=most, distinct=distinct))


def _spread(declaration: Declaration, figure: Figure, bounds: Mapping[int, Bounds], *, pure: bool) -> list[Statistic]:
    """The counts by value of a quantile."""
    own = figure.bounds or _bounds_of(declaration, figure, bounds, "a quantile of it could lie anywhere")
    require_few(own, figure.offset)
    plain = _count_of(declaration, figure)
    return [replace(plain, spread=one) for one in spreads_of(figure.column, own, pure=pure)]


def _bounds_of(declaration: Declaration, figure: Figure, bounds: Mapping[int, Bounds], else_: str) -> Bounds:
    """The bounds declared for a figure's column."""
    column = figure.column.column
    if column.position in bounds:
        return bounds[column.position]
    raise refused(
        f"column {column.name} has no bounds, so that {else_}",
        figure.column.offset,
        f"SELECT dp_bounds('{declaration.table.name}', '{column.name}', low, high); values beyond are counted as the nearer bound.",
    )


def _sum_of(declaration: Declaration, figure: Figure, bounds: Mapping[int, Bounds]) -> Statistic:
    own = _bounds_of(declaration, figure, bounds, "one entry could change its sum without limit")
    return _statistic(declaration, figure, _checked(Term(figure.column, own, rows=figure.column.column.per_unit), figure))


def _checked(term: Term, figure: Figure) -> Term:
    if term.values.swing > LARGEST_VALUE:
        raise BadArgument(
            f"the bounds of column {figure.column.name} are too many steps of its grid apart for {figure.shown}()",
            hint="Declare a coarser grid with dp_bounds: values are rounded to it.",
        )
    return term


def _statistic(declaration: Declaration, figure: Figure, term: Term | None) -> Statistic:
    """The statistic of entries that satisfy WHERE and FILTER and whose value, if the figure reads one, is known."""
    parts = [declaration.predicate, figure.predicate, *(() if figure.column is None else known(figure.column))]
    present = [part for part in parts if part is not None]
    predicate = None if not present else canonical(And(tuple(present)) if len(present) > 1 else present[0])
    return Statistic(predicate, term, figure.range)


def known(reference: ColumnRef) -> list[Predicate]:
    """The conditions under which a column has a value: it is not NULL and not NaN. None is needed for whole numbers declared NOT NULL."""
    column = reference.column
    conditions: list[Predicate] = []
    if not (column.not_null or column.is_unit):
        conditions.append(IsNull(reference, negated=True))
    if column.base in ("numeric", "float"):
        conditions.append(Compare("<>", reference, Literal("NaN", "string", cast=column.literal_type)))
    return conditions


def scale_of(statistic: Statistic) -> Fraction:
    """What one unit of a statistic is worth in units of its column (squared for squares)."""
    return Fraction(1) if statistic.is_count else statistic.term.bounds.grid**statistic.term.power
