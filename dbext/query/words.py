"""The words of SQL that matter here: those the grammar uses, and PostgreSQL's reserved ones with what to say when they appear.

Reserved words cannot be unquoted names in PostgreSQL, so refusing them takes no column away. Every other word is a plain name.
"""

from __future__ import annotations

KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false", "like", "between"})
STATEMENT_KEYWORDS = KEYWORDS | {"select", "from", "where", "group by", "as", "current_timestamp"}

FUNCTIONS = frozenset({"lower", "upper"})
FIGURES = frozenset({"count", "sum", "avg", "variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop"})
STATEMENT_FUNCTIONS = FUNCTIONS | FIGURES | {"now", "tumble", "hop", "width_bucket", "percentile_disc"}

_ONE_TABLE = ("only one table can be counted: no joins", "Count one tracked table; bring the columns you need into it.")
_ONE_SELECT = ("only one plain SELECT can be released", "Declare each statistic as a release of its own.")
_SUBQUERY = ("subqueries are not allowed", "Write the condition over the columns of the tracked table alone.")
_CLOCK = (
    "the current time cannot be used on an ordinary column",
    "The state of an entry would change without a mutation: limit dp_time, the time of its mutations, with now().",
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
_ALL_ROWS = ("every row counts: no sampling", "Put conditions in WHERE.")
_FILTER = ("FILTER stands after a figure", "Write count(*) FILTER (WHERE condition).")

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
    "distinct": ("DISTINCT is not allowed here", "Write count(DISTINCT unit) to count entries; for comparing, use = or <> and IS NULL."),
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
    "filter": _FILTER,
    "over": ("window functions are not allowed", "Write count(*), sum(column) and GROUP BY."),
    "at": ("AT TIME ZONE is not allowed", "Days are those of the tracked table's time zone."),
    "escape": ("ESCAPE is not allowed", "The escape character of a pattern is the backslash."),
    "within": ("WITHIN GROUP stands after percentile_disc(...)", "Write percentile_disc(0.5) WITHIN GROUP (ORDER BY age)."),
}

_EXTREMES = (
    "cannot be released: one entry alone decides it, so that its noise would have to be as wide as the column",
    "Count beyond limits of your own: count(*) FILTER (WHERE age >= 90) AS over_90.",
)
_QUANTILES = (
    "is not available: it lies between two entries' values, and one entry can move it from any value to any other",
    "Quantiles are read from noisy counts: percentile_disc(0.5) WITHIN GROUP (ORDER BY dp_bounds(age, 0, 100, 5)) AS median.",
)
_MODE = (
    "cannot be released: one entry alone decides it where two values are nearly as frequent",
    "Group by the column, with its values as public keys, or by width_bucket(column, low, high, number), and count.",
)
_COLLECTED = ("cannot be released: it shows the values of single entries", "Group by a column with public keys and count.")
_PAIRED = ("is not available", "Release sum, avg and variance of each column; products need a column that holds them.")
#: Aggregates people try, with why not and what to write instead.
AGGREGATES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(["min", "max", "first_value", "last_value", "range_agg"], _EXTREMES),
    **dict.fromkeys(["median", "percentile_cont", "quantile", "approx_percentile"], _QUANTILES),
    "mode": _MODE,
    **dict.fromkeys(["array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "any_value"], _COLLECTED),
    **dict.fromkeys(["corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2"], _PAIRED),
    **dict.fromkeys(
        ["bool_and", "bool_or", "every"],
        ("cannot be released: one entry alone decides it", "Count those that satisfy the condition: count(*) FILTER (WHERE condition)."),
    ),
    "approx_count_distinct": (
        "cannot be released: one entry decides whether a value occurs, as often as others with that value come and go",
        "Group by the column, with its values as public keys, and count.",
    ),
}

# Functions people try, with what to write instead.
FUNCTION_HINTS: dict[str, str] = {
    **dict.fromkeys(["coalesce", "nullif", "ifnull"], "Write IS NULL together with AND and OR."),
    **dict.fromkeys(["length", "char_length"], "Write LIKE with underscores, such as LIKE '___%'."),
    **dict.fromkeys(
        ["date_trunc", "date_bin", "extract", "date_part", "to_char", "date"],
        "Compare the column with literals: >= '2015-09-01' AND < '2015-10-01'. "
        "Windows of a release: GROUP BY TUMBLE(dp_time, INTERVAL '1 day').",
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
