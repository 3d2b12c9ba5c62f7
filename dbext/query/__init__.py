"""From SQL text to a plan: calendar, predicates, declarations, compiler, planner. Pure; nothing here reads a table.

Read it in this order: `calendar`, `periods`; `column`, `predicate`, `literals`, `bind`, `canonical`, `text`, `predicate_json`, `render`;
`declaration`, `compile/` (the only importer of sqlglot), `compiler`, `groups`; `shape`, `admissible`, `plan`, `planner`, `plan_text`.
"""
