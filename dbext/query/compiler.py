"""The compiler's doors: SQL text in, our own frozen values out. Imports of sqlglot (92 ms in a fresh backend) happen at the first call.

>>> declaration = compile_declaration("SELECT count(*) FROM cases WHERE dp_time > now() - INTERVAL '14 days'")
>>> declaration.table.name, declaration.range.lower.span.text
('cases', '14 days')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbext.query.bind import bind, bind_column
from dbext.query.column import Column, by_name
from dbext.query.declaration import Declaration
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
    return replace(
        declaration,
        predicate=None if declaration.predicate is None else bind(declaration.predicate, columns),
        group_by=tuple(_bind_group(column, names) for column in declaration.group_by),
    )


def _bind_group(reference: ColumnRef, names: Mapping[str, Column]) -> ColumnRef:
    bound = bind_column(reference, names)
    if "=" not in bound.column.operators:
        raise refused(f"values of type {bound.column.type_name} cannot be grouped", reference.offset)
    return bound
