"""Split WHERE into the conditions that AND joins at the top, without recursion: there may be thousands."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import expect, unwrap


def split_conditions(draft: Draft) -> Draft:
    """Fill `conditions`, in the order of the text."""
    root = draft.tree
    if draft.grammar.is_statement:
        where = draft.tree.args.get("where")
        root = None if where is None else expect(draft, where, exp.Where, "this").this
    return replace(draft, conditions=() if root is None else tuple(operands(draft, root, exp.And)))


def operands(draft: Draft, node: exp.Expression, kind: type[exp.And | exp.Or]) -> list[exp.Expression]:
    """Operands of a chain of one connective, parentheses around equal connectives removed."""
    waiting, found = [node], []
    while waiting:
        current = unwrap(draft, waiting.pop())
        if isinstance(current, kind):
            pair = expect(draft, current, kind, "this", "expression")
            waiting += [pair.args["expression"], pair.this]
        else:
            found.append(current)
    return found
