"""The compiler's doors: SQL text in, our own frozen values out. Imports of sqlglot (92 ms in a fresh backend) happen at the first call.

>>> declaration = compile_declaration("SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days'")
>>> declaration.table.name, declaration.range.lower.span.text
('cases', '14 days')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbext.query.bind import bind, bind_column
from dbext.query.bins import Bins
from dbext.query.column import Column, by_name
from dbext.query.declaration import Declaration, Figure
from dbext.query.predicate import ColumnRef, Predicate
from dbext.query.refusal import refused


def compile_declaration(sql: str) -> Declaration:
    """Read a declaration; names of columns are not resolved yet. Raises DeclarationRefused with a position."""
    from dbext.query.compile import declaration_of

    return declaration_of(sql)


def compile_predicate(sql: str, columns: Sequence[Column]) -> Predicate:
    """Read a predicate that stands alone, over these columns, in canonical form. Raises DeclarationRefused with a position."""
    from dbext.query.compile import predicate_of

    return bind(predicate_of(sql), columns)


def resolve(declaration: Declaration, columns: Sequence[Column]) -> Declaration:
    """The declaration with its columns bound and its predicate canonical. Raises DeclarationRefused with a position."""
    names = by_name(columns)
    if declaration.mentions_dp_time and "dp_time" in names:
        raise refused(
            "the table has a column named dp_time, which hides the time of a mutation",
            hint="Leave that column out when tracking the table.",
        )
    row = next((one for one in columns if one.per_unit is not None and one.is_key), None)
    return replace(
        declaration,
        row=None if row is None else ColumnRef(row.name, row),
        predicate=None if declaration.predicate is None else bind(declaration.predicate, columns),
        group_by=tuple(_bind_group(column, names) for column in declaration.group_by),
        figures=tuple(_bind_figure(figure, columns) for figure in declaration.figures),
        bins=tuple(_bind_bins(one, names) for one in declaration.bins),
    )


def _bind_figure(figure: Figure, columns: Sequence[Column]) -> Figure:
    """The figure with its column and predicate bound; the entries of count(DISTINCT unit) are all that count, unless rows do."""
    names = by_name(columns)
    predicate = None if figure.predicate is None else bind(figure.predicate, columns)
    if figure.distinct:
        distinct = tuple(bind_column(one, names) for one in figure.distinct)
        _require_unit(distinct, columns, figure.offset)
        several = any(one.per_unit is not None for one in columns)
        return replace(figure, predicate=predicate, distinct=distinct if several else ())
    if figure.column is None:
        return replace(figure, predicate=predicate)
    bound = bind_column(figure.column, names)
    if figure.function != "count" and bound.column.base not in ("integer", "numeric", "float"):
        raise refused(
            f"{figure.shown}() needs a column of numbers, and {bound.name} is of type {bound.column.type_name}",
            bound.offset,
            "Count entries instead: count(*) FILTER (WHERE condition).",
        )
    if figure.function != "count" and bound.column.is_unit and any(one.per_unit is not None for one in columns):
        raise refused(
            f"{bound.name} belongs to the privacy unit, and is the same in all of its rows",
            bound.offset,
            f"Count units instead: count(DISTINCT {', '.join(one.name for one in columns if one.is_unit)}).",
        )
    return replace(figure, column=bound, predicate=predicate)


def _require_unit(listed: Sequence[ColumnRef], columns: Sequence[Column], offset: int | None) -> None:
    """Distinct entries can be counted; distinct values of any other column cannot."""
    if {one.column.position for one in listed} != {one.position for one in columns if one.is_unit}:
        unit = ", ".join(one.name for one in columns if one.is_unit)
        raise refused(
            "the number of distinct values cannot be released: one entry decides whether a value occurs, as often as others with that "
            "value come and go",
            offset,
            f"Count entries with count(DISTINCT {unit}), or group by the column, with its values as public keys.",
        )


def _bind_group(reference: ColumnRef, names: Mapping[str, Column]) -> ColumnRef:
    bound = bind_column(reference, names)
    if "=" not in bound.column.operators:
        raise refused(f"values of type {bound.column.type_name} cannot be grouped", reference.offset)
    return bound


def _bind_bins(bins: Bins, names: Mapping[str, Column]) -> Bins:
    bound = bind_column(bins.column, names)
    if bound.column.base not in ("integer", "numeric", "float"):
        hint = "Group by the column itself, with its values as public keys, or count with FILTER (WHERE condition)."
        raise refused(f"width_bucket() needs a column of numbers, and {bound.name} is of type {bound.column.type_name}", bound.offset, hint)
    if bins.label in names:
        raise refused(f"the table has a column {bins.label}, too", bins.offset, "Give the bins another name: width_bucket(...) AS bin.")
    return bins.bound(bound)
