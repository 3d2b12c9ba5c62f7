"""SQL text -> our own tree, by an ordered tuple of small rules, each one file named by what it does.

Every rule is a pure function `Draft -> Draft` that reads what earlier rules left and refuses, with a position, what it does not know.
Two guards stand around the parser. Before it, every token must be one this grammar uses, and every word that is no keyword becomes a
quoted identifier: no syntax of another database or of a newer parser can slip in. After it, every node must be of a class the rule
expects, with no argument set that the rule does not read (`nodes.expect`). This package alone imports sqlglot.
"""

from __future__ import annotations

from collections.abc import Callable

from dbext.query.compile.check_text import check_text
from dbext.query.compile.draft import DECLARATION, PREDICATE, Draft
from dbext.query.compile.guard_words import guard_words
from dbext.query.compile.lift_typed_literals import lift_typed_literals
from dbext.query.compile.limit_nesting import limit_nesting
from dbext.query.compile.parse_tokens import parse_tokens
from dbext.query.compile.read_figures import check_one_window, read_figures
from dbext.query.compile.read_groups import read_groups
from dbext.query.compile.read_predicate import read_predicate
from dbext.query.compile.read_table import read_table
from dbext.query.compile.read_time_range import read_time_range
from dbext.query.compile.split_conditions import split_conditions
from dbext.query.compile.split_tokens import split_tokens
from dbext.query.declaration import Declaration
from dbext.query.predicate import Predicate
from dbext.query.refusal import refused

Rule = Callable[[Draft], Draft]

READ_TOKENS: tuple[Rule, ...] = (check_text, split_tokens, lift_typed_literals, limit_nesting, guard_words, parse_tokens)
DECLARATION_RULES = (
    *READ_TOKENS, read_table, read_groups, read_figures, split_conditions, read_time_range, read_predicate, check_one_window,
)  # fmt: skip
PREDICATE_RULES = (*READ_TOKENS, split_conditions, read_predicate)


def declaration_of(sql: str) -> Declaration:
    """Apply the rules for a declaration; names are not resolved yet."""
    draft = _apply(DECLARATION_RULES, Draft(sql, DECLARATION))
    known = (sql, draft.table, draft.predicate, draft.group_by, draft.range, draft.mentions_dp_time, draft.notes, draft.figures)
    return Declaration(*known, bins=draft.bins)


def predicate_of(sql: str) -> Predicate:
    """Apply the rules for a predicate that stands alone; names are not resolved yet."""
    draft = _apply(PREDICATE_RULES, Draft(sql, PREDICATE))
    if draft.predicate is None:
        raise refused("the predicate is empty")
    return draft.predicate


def _apply(rules: tuple[Rule, ...], draft: Draft) -> Draft:
    for rule in rules:
        draft = rule(draft)
    return draft
