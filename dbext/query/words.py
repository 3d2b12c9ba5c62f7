"""The words of SQL that matter here: those the grammar uses, and PostgreSQL's reserved ones with what to say when they appear.

Reserved words cannot be unquoted names in PostgreSQL, so refusing them takes no column away. Every other word is a plain name.
"""

from __future__ import annotations

KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false", "like", "between"})
STATEMENT_KEYWORDS = KEYWORDS | {"select", "from", "where", "group by", "as", "current_timestamp"}

FUNCTIONS = frozenset({"lower", "upper"})
STATEMENT_FUNCTIONS = FUNCTIONS | {"count", "now", "tumble", "hop"}

_ONE_TABLE = ("only one table can be counted: no joins", "Count one tracked table; bring the columns you need into it.")
_ONE_SELECT = ("only one plain SELECT can be released", "Declare each statistic as a release of its own.")
_SUBQUERY = ("subqueries are not allowed", "Write the condition over the columns of the tracked table alone.")
_CLOCK = (
    "the current time cannot be used on an ordinary column",
    "The state of an entry would change without a mutation: use dp_time with now().",
)
_WHO = ("the current user or database cannot be used", "Quote the word if it is the name of a column.")
_CAST = ("casts are not allowed", "Compare the column itself with a literal: the literal is read as the column's type.")
_CASE = ("CASE is not allowed", "Write the condition with AND, OR and NOT.")
_ORDER = (
    "the order and number of rows cannot be chosen",
    "Leave it out: a release publishes every group; order the release table when you read it.",
)
_ANY = ("ANY, ALL, SOME and ARRAY are not allowed", "Write IN ('a', 'b').")
_NULLTEST = ("this form of a null test is not allowed", "Write IS NULL or IS NOT NULL.")
_LIKE = ("only LIKE and NOT LIKE match patterns here", "For matching without case write lower(column) LIKE 'pattern'.")
_QUOTE = ("a reserved word stands where a name is expected", "Put the name in double quotes if it is the name of a column.")
_ALL_ROWS = ("every row counts: no FILTER, DISTINCT or sampling", "Put conditions in WHERE.")

REASONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(["join", "cross", "natural", "inner", "left", "right", "full", "outer", "lateral", "on", "using"], _ONE_TABLE),
    **dict.fromkeys(["with", "union", "intersect", "except", "into", "window", "returning", "table", "variadic", "do"], _ONE_SELECT),
    **dict.fromkeys(["select", "from", "where", "group by"], _SUBQUERY),
    **dict.fromkeys(["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"], _CLOCK),
    **dict.fromkeys(["user", "current_user", "session_user", "system_user", "current_role", "current_catalog", "current_schema"], _WHO),
    **dict.fromkeys(["cast", "collate", "collation", "binary"], _CAST),
    **dict.fromkeys(["case", "when", "then", "else", "end"], _CASE),
    **dict.fromkeys(["order", "order by", "limit", "offset", "fetch", "asc", "desc"], _ORDER),
    **dict.fromkeys(["any", "all", "some", "array"], _ANY),
    **dict.fromkeys(["isnull", "notnull"], _NULLTEST),
    **dict.fromkeys(["ilike", "similar"], _LIKE),
    **dict.fromkeys(["tablesample"], _ALL_ROWS),
    "distinct": ("DISTINCT is not allowed", "Only count(*) can be released; for comparing, use = or <> and IS NULL."),
    "group": ("GROUP is not followed by BY", "Write GROUP BY and the columns."),
    "only": ("ONLY is not allowed", "Name the tracked table alone."),
    "having": ("HAVING is not allowed", "Every group is published, zeros included: filter the release table when you read it."),
    "for": ("row locks are not allowed", "Leave FOR UPDATE or FOR SHARE out."),
    "symmetric": ("BETWEEN SYMMETRIC is not allowed", "Write the smaller bound first."),
    "asymmetric": ("BETWEEN ASYMMETRIC is not allowed", "Write plain BETWEEN."),
    "overlaps": ("OVERLAPS is not allowed", "Write two comparisons joined by AND."),
    "as": ("aliases are not allowed here", "The release table names its columns itself."),
}
REASONS["collate"] = ("COLLATE is not allowed", "Columns compare by their own collation.")

_RESERVED = """
    analyse analyze authorization both check column concurrently constraint create default deferrable foreign freeze grant initially
    leading placing primary references to trailing unique verbose
"""
REASONS.update(dict.fromkeys(_RESERVED.split(), _QUOTE))

# Words that are no reserved words, yet can only be an operator when they follow a complete value.
TRAILING: dict[str, tuple[str, str]] = {
    "filter": _ALL_ROWS,
    "over": ("window functions are not allowed", "Count with count(*) and GROUP BY."),
    "at": ("AT TIME ZONE is not allowed", "Days are those of the tracked table's time zone."),
    "escape": ("ESCAPE is not allowed", "The escape character of a pattern is the backslash."),
    "within": ("ordered-set aggregates are not allowed", "Only count(*) can be released."),
}

# Functions people try, with what to write instead.
FUNCTION_HINTS: dict[str, str] = {
    **dict.fromkeys(["sum", "avg", "min", "max", "array_agg", "string_agg"], "Only count(*) can be released."),
    **dict.fromkeys(["coalesce", "nullif", "ifnull"], "Write IS NULL together with AND and OR."),
    **dict.fromkeys(["length", "char_length"], "Write LIKE with underscores, such as LIKE '___%'."),
    **dict.fromkeys(
        ["date_trunc", "date_bin", "extract", "date_part", "to_char", "date"],
        "Compare the column with literals: >= '2015-09-01' AND < '2015-10-01'.",
    ),
    **dict.fromkeys(
        ["clock_timestamp", "statement_timestamp", "transaction_timestamp", "getdate"], "Write now(), which is the end of the window."
    ),
    **dict.fromkeys(["exists", "any", "all"], "Write the condition over the columns of the tracked table alone."),
    **dict.fromkeys(["rollup", "cube", "grouping sets", "grouping"], "Group by plain columns."),
    "left": "Write LIKE 'prefix%'.",
    "starts_with": "Write LIKE 'prefix%'.",
    "cast": "Compare the column itself with a literal.",
}

# Names that mean something to the parser when they stand unquoted: `text` quotes them.
MUST_QUOTE = frozenset(REASONS) | STATEMENT_KEYWORDS | frozenset(TRAILING) | {"interval", "unknown", "group", "order"}
