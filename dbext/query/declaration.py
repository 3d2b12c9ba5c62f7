"""A declaration: what an SQL text asks to be counted, in our own words. Frozen; the compiler makes it, the planner reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dbext.query.bins import Bins, bins_from_json
from dbext.query.bounds import Bounds, bounds_from_json
from dbext.query.calendar import Span
from dbext.query.column import Column
from dbext.query.predicate import ColumnRef, Predicate
from dbext.query.predicate_json import from_json, to_json
from dbext.query.refusal import refused


@dataclass(frozen=True)
class TableName:
    """A table as written, folded; `schema` is None when the text names none."""

    schema: str | None
    name: str


@dataclass(frozen=True)
class Ago:
    """`now() - span`: that long before the end of the period."""

    span: Span


@dataclass(frozen=True)
class Fixed:
    """A timestamp literal. `tick` is the index of the tick boundary it stands on, once PostgreSQL has said so."""

    text: str
    offset: int | None = field(default=None, compare=False)
    tick: int | None = None


Bound = Ago | Fixed


@dataclass(frozen=True)
class TimeRange:
    """The half-open range (lower, upper] of mutation times. No lower bound: since the beginning; no upper bound: up to now().

    `every` is the period that TUMBLE or HOP states; None when none does.
    """

    lower: Bound | None = None
    upper: Bound | None = None
    every: Span | None = None

    @property
    def is_fixed(self) -> bool:
        """True when the range never moves, so that there is one answer."""
        return isinstance(self.upper, Fixed)


@dataclass(frozen=True)
class Figure:
    """One figure of the list after SELECT: `function(column) FILTER (WHERE predicate AND <range>) AS label`.

    Without a column every entry counts. A `range` of None is that of the declaration. `distinct` are the columns of count(DISTINCT ...),
    until they are seen to be the privacy unit; they stay where that has several rows, so that units are counted and not rows.
    Of a quantile, `fraction` says which; `bounds` are those that stand in the text.
    """

    function: str = "count"
    column: ColumnRef | None = None
    predicate: Predicate | None = None
    range: TimeRange | None = None
    label: str | None = None
    distinct: tuple[ColumnRef, ...] = ()
    offset: int | None = field(default=None, compare=False)
    fraction: Fraction | None = None
    bounds: Bounds | None = None

    @property
    def shown(self) -> str:
        """The function as it is commonly called."""
        if self.fraction is not None:
            return self.function
        return self.function.replace("var_", "variance_").split("_")[0]


@dataclass(frozen=True)
class Declaration:
    """`SELECT group_by, figures FROM table WHERE predicate AND <range> GROUP BY group_by`.

    Bins are group keys, too, after the columns of `group_by`.
    `mentions_dp_time` says whether the text names the time of mutations; `notes` how it was read where SQL leaves room.
    `row` is a column that tells rows of a unit apart, once bound to a table of which a unit has several.
    """

    text: str
    table: TableName
    predicate: Predicate | None = None
    group_by: tuple[ColumnRef, ...] = ()
    range: TimeRange = TimeRange()
    mentions_dp_time: bool = False
    notes: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = (Figure(),)
    bins: tuple[Bins, ...] = ()
    row: ColumnRef | None = None

    @property
    def is_count(self) -> bool:
        """Whether the one figure is count(*), without a condition or a window of its own."""
        first = self.figures[0]
        return len(self.figures) == 1 and (first.function, first.column, first.predicate, first.range) == ("count", None, None, None)

    @property
    def groups_of_rows(self) -> tuple[ColumnRef, ...]:
        """The columns grouped by, or cut into bins, in which rows of one unit may differ."""
        return tuple(one for one in (*self.group_by, *(one.column for one in self.bins)) if one.column.per_unit is not None)

    @property
    def grouped(self) -> bool:
        return bool(self.group_by or self.bins)

    @property
    def fixed_texts(self) -> tuple[str, ...]:
        """The timestamp literals to be turned into boundary indices, read in the table's time zone."""
        bounds = (self.range.lower, self.range.upper)
        return tuple(dict.fromkeys(bound.text for bound in bounds if isinstance(bound, Fixed)))

    def with_boundaries(self, ticks: Mapping[str, int | None]) -> Declaration:
        """The declaration with every literal on its tick boundary; None in `ticks` says that a literal stands on none: refused."""
        moved = {name: _placed(getattr(self.range, name), ticks) for name in ("lower", "upper")}
        return replace(self, range=replace(self.range, **moved))

    def to_json(self) -> dict:
        """What is counted (a resolved declaration): everything but text and notes, by column position."""
        return {
            "table": [self.table.schema, self.table.name],
            "predicate": None if self.predicate is None else to_json(self.predicate),
            "group_by": [to_json(column) for column in self.group_by],
            "lower": _bound_to_json(self.range.lower),
            "upper": _bound_to_json(self.range.upper),
            "every": self.range.every and self.range.every.to_json(),
            "mentions_dp_time": self.mentions_dp_time,
            "figures": [_figure_to_json(figure) for figure in self.figures],
            "bins": [one.to_json() for one in self.bins],
        }


def declaration_from_json(data: dict, columns: Sequence[Column], text: str = "") -> Declaration:
    """The declaration `to_json` made, bound to the columns as they are now."""
    every = data["every"] and Span.from_json(data["every"])
    return Declaration(
        text=text,
        table=TableName(*data["table"]),
        predicate=None if data["predicate"] is None else from_json(data["predicate"], columns),
        group_by=tuple(from_json(column, columns) for column in data["group_by"]),
        range=TimeRange(_bound_from_json(data["lower"]), _bound_from_json(data["upper"]), every),
        mentions_dp_time=data["mentions_dp_time"],
        figures=tuple(_figure_from_json(figure, columns) for figure in data["figures"]),
        bins=tuple(bins_from_json(one, columns) for one in data.get("bins", ())),
    )


def _figure_to_json(figure: Figure) -> dict:
    window = figure.range
    return {
        "function": figure.function,
        "column": None if figure.column is None else to_json(figure.column),
        "predicate": None if figure.predicate is None else to_json(figure.predicate),
        "range": None if window is None else [_bound_to_json(window.lower), _bound_to_json(window.upper)],
        "label": figure.label,
    } | ({} if figure.fraction is None else {"fraction": str(figure.fraction), "bounds": figure.bounds and figure.bounds.to_json()})


def _figure_from_json(data: dict, columns: Sequence[Column]) -> Figure:
    window = data["range"]
    return Figure(
        data["function"],
        None if data["column"] is None else from_json(data["column"], columns),
        None if data["predicate"] is None else from_json(data["predicate"], columns),
        None if window is None else TimeRange(*(_bound_from_json(bound) for bound in window)),
        data["label"],
        fraction=None if data.get("fraction") is None else Fraction(data["fraction"]),
        bounds=None if data.get("bounds") is None else bounds_from_json(data["bounds"]),
    )


def _placed(bound: Bound | None, ticks: Mapping[str, int | None]) -> Bound | None:
    if not isinstance(bound, Fixed):
        return bound
    tick = ticks.get(bound.text)
    if tick is None:
        raise refused(
            "a fixed time of dp_time is not a tick boundary",
            bound.offset,
            "Write the instant at which a tick of the table ends, such as midnight in its time zone for ticks of days.",
        )
    return replace(bound, tick=tick)


def _bound_to_json(bound: Bound | None) -> list | None:
    if bound is None:
        return None
    return ["ago", bound.span.to_json()] if isinstance(bound, Ago) else ["fixed", bound.text, bound.tick]


def _bound_from_json(data: list | None) -> Bound | None:
    if data is None:
        return None
    return Ago(Span.from_json(data[1])) if data[0] == "ago" else Fixed(data[1], tick=data[2])
