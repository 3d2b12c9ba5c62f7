"""The guard behind the parser: a node is only read through `expect`, which refuses every argument the rule does not know."""

from __future__ import annotations

from typing import NoReturn, TypeVar

from sqlglot import exp

from dbext.query.compile.draft import Draft
from dbext.query.declaration import TableName
from dbext.query.predicate import ColumnRef
from dbext.query.refusal import refused

Node = TypeVar("Node", bound=exp.Expression)

_REASONS: dict[type, tuple[str, str | None]] = {
    exp.Sub: ("arithmetic is not allowed", "Compare the column itself with a literal."),
    exp.Neg: ("a minus sign is only allowed before a number", None),
    exp.Star: ("a star is only allowed in count(*)", None),
    exp.Tuple: ("rows of several values cannot be compared", "Join one comparison for each column with AND."),
    exp.Alias: ("names can only be given to figures and to the table", None),
    exp.Null: ("nothing is ever equal to NULL", "Write IS NULL or IS NOT NULL."),
    exp.CurrentTimestamp: (
        "the current time can only limit dp_time",
        "The state of an entry would change without a mutation: limit dp_time, the time of its mutations, and not a column.",
    ),
    **dict.fromkeys(
        (exp.Count, exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Filter),
        ("count(*) and other figures belong into the list after SELECT, and only there", None),
    ),
    **dict.fromkeys((exp.PercentileDisc, exp.WithinGroup), ("figures belong into the list after SELECT, and only there", None)),
    exp.WidthBucket: ("width_bucket() belongs into the list after SELECT, and into GROUP BY", None),
    exp.Array: ("ARRAY is only allowed in width_bucket() and percentile_disc()", "Write IN ('a', 'b') in a condition."),
    exp.Anonymous: ("TUMBLE and HOP belong into GROUP BY", None),
    exp.Identifier: ("this name has too many parts", "Write schema.table for a table, and column or table.column for a column."),
    exp.Lower: ("lower() can only be used in a condition", "Group by plain columns."),
    exp.Upper: ("upper() can only be used in a condition", "Group by plain columns."),
}


def expect(draft: Draft, node: exp.Expression | None, kind: type[Node], *known: str) -> Node:
    """The node, if it is exactly of `kind` and every argument that is set is in `known`; else DeclarationRefused."""
    if type(node) is not kind:
        raise refused_node(draft, node)
    for name, value in node.args.items():
        if name not in known and value is not None and value is not False and value != []:
            culprit = value[0] if isinstance(value, list) else value
            raise refused_node(draft, culprit if isinstance(culprit, exp.Expression) else node)
    return node


def refused_node(draft: Draft, node: exp.Expression | None) -> NoReturn:
    """Say what this node is and that it has no place here."""
    offset = offset_of(node)
    kind = exp.CurrentTimestamp if isinstance(node, exp.Sub) and isinstance(node.this, exp.CurrentTimestamp) else type(node)
    message, hint = _REASONS.get(kind, ("this is not allowed here", None))
    if kind not in _REASONS and offset is not None:
        hint = f"Near: {draft.text[offset : offset + 30]}"
    raise refused(message, offset, hint)


def offset_of(node: exp.Expression | None) -> int | None:
    """Offset of the first character of a node the parser kept a place of; of what stands around it if it kept none."""
    while node is not None:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if starts:
            return min(starts)
        node = node.parent
    return None


def name_of(draft: Draft, node: exp.Expression | None) -> str:
    """The text of an identifier; the guard in front of the parser has folded it."""
    return expect(draft, node, exp.Identifier, "this", "quoted").this


def table_name_of(draft: Draft, node: exp.Expression | None) -> TableName:
    """A table written as name or schema.name."""
    table = expect(draft, node, exp.Table, "this", "db", "alias")
    schema = table.args.get("db")
    return TableName(None if schema is None else name_of(draft, schema), name_of(draft, table.this))


def column_of(draft: Draft, node: exp.Expression | None) -> ColumnRef:
    """A column, alone or qualified with the declaration's one table or its alias."""
    column = expect(draft, node, exp.Column, "this", "table")
    qualifier = column.args.get("table")
    if qualifier is not None and name_of(draft, qualifier) != draft.qualifier:
        hint = f"The table goes by {draft.qualifier} here." if draft.qualifier else "Name the column alone."
        raise refused("this column belongs to no table of the text", offset_of(qualifier), hint)
    return ColumnRef(name_of(draft, column.this), offset=offset_of(column))


def unwrap(draft: Draft, node: exp.Expression | None) -> exp.Expression | None:
    """The node inside any parentheses."""
    while isinstance(node, exp.Paren):
        node = expect(draft, node, exp.Paren, "this").this
    return node
