"""Read the FROM clause, and refuse every clause of SELECT that no rule reads."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import expect, name_of, offset_of, refused_node, table_name_of
from dbext.query.refusal import refused


def read_table(draft: Draft) -> Draft:
    """Exactly one table, with an optional schema and an optional alias without column names."""
    if not isinstance(draft.tree, exp.Select):
        raise refused("a declaration is one SELECT", offset_of(draft.tree), "Write SELECT count(*) FROM the tracked table.")
    joined = draft.tree.args.get("joins")
    if joined:
        raise refused(
            "only one table can be counted: no joins", offset_of(joined[0]), "Count one tracked table; bring the columns you need into it."
        )
    select = expect(draft, draft.tree, exp.Select, "expressions", "from_", "where", "group")
    if select.args.get("from_") is None:
        raise refused("FROM is missing", None, "Name the tracked table.")
    source = expect(draft, select.args["from_"], exp.From, "this").this
    table = table_name_of(draft, source)
    return replace(draft, table=table, qualifier=_alias(draft, source) or table.name)


def _alias(draft: Draft, source: exp.Table) -> str | None:
    alias = source.args.get("alias")
    if alias is None:
        return None
    if alias.args.get("columns"):
        raise refused_node(draft, alias)
    return name_of(draft, expect(draft, alias, exp.TableAlias, "this").this)
