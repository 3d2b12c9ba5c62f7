"""The worst values that a column of each type can hold, and every condition the language can put on it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

#: Longer than a function that needs four bytes a byte can take; compressed it is small, and table `stash` holds it once.
HUGE = "(SELECT s.huge FROM stash AS s)"
#: Made of digits, it is more than two billion characters of text in a few kilobytes.
WIDE_NUMBERS = "array_fill(1e131000::numeric, ARRAY[9000])"
ODD_TEXTS = (
    "''", "' '", "chr(1)", "chr(127)", "E'\\n\\t\\\\'", "'%'", "'_'", "E'\\\\'", "'\"{},()'", "chr(304)", "chr(7838)", "chr(65279)",
    "chr(1114109)", "'e' || chr(769)", "chr(8238) || 'abc'", "repeat(chr(304), 200000)", "repeat('a', 1000001)", "repeat('\"\\', 900000)", "'NULL'",
)  # fmt: skip
CREATED = """
    CREATE TABLE stash AS SELECT repeat('x', 268435456) AS huge;
    CREATE EXTENSION citext;
    CREATE TYPE mood AS ENUM ('low', 'high', 'a label of the greatest length there is, that is 63');
    CREATE TYPE pair AS (a text, b numeric);
    CREATE DOMAIN word AS text CHECK (VALUE <> 'forbidden');
    CREATE DOMAIN share AS numeric CHECK (VALUE >= 0) NOT NULL DEFAULT 0;
    CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE COLLATION icu_german (provider = icu, locale = 'de');
"""


@dataclass(frozen=True)
class Kind:
    """A type: a value that most entries have, the literal for it (None: the type takes none), and the worst values, all as SQL."""

    definition: str
    usual: str
    literal: str | None
    worst: tuple[str, ...]


def _text(definition: str, *more: str) -> Kind:
    return Kind(definition, "'usual'", "'usual'", (*more, *ODD_TEXTS))


def _integer(definition: str, bits: int) -> Kind:
    return Kind(definition, "5", "5", (str(-(2 ** (bits - 1))), str(2 ** (bits - 1) - 1), "0"))


def _float(definition: str, *more: str) -> Kind:
    return Kind(definition, "1.5", "1.5", ("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", *more))


KINDS = {
    "smallint": _integer("smallint", 16),
    "integer": _integer("integer", 32),
    "bigint": _integer("bigint", 64),
    "numeric": Kind(
        "numeric", "1.5", "1.5",
        ("'NaN'", "'Infinity'", "'-Infinity'", "repeat('9', 131072)::numeric", "-repeat('9', 131072)::numeric", "('0.' || repeat('7', 16383))::numeric",
         "(repeat('1', 131072) || '.' || repeat('7', 16383))::numeric", "'1e-16383'", "1.50000000000000000000"),
    ),
    "real": _float("real", "'1e-45'", "'3.4028235e38'"),
    "double precision": _float("double precision", "'5e-324'", "'1.7976931348623157e308'", "'-1.7976931348623157e308'"),
    "text": _text('text COLLATE "C"'),
    "text of the database": _text("text", HUGE),
    "text of ICU": _text("text COLLATE icu_german"),
    "loose text": _text("text COLLATE loose"),
    "character varying": _text("varchar"),
    "citext": _text("citext", HUGE),
    "character": Kind("char(3)", "'a'", "'a'", ("'   '", "''", "chr(304)", "'%'")),
    "name": Kind("name", "'usual'", "'usual'", ("''", "repeat('x', 63)")),
    "domain over text": _text("word"),
    "domain over numeric": Kind("share", "1.5", "1.5", ("'NaN'", "'Infinity'", "repeat('9', 131072)::numeric")),
    "uuid": Kind("uuid", f"'{'1' * 32}'", f"'{'1' * 32}'", (f"'{'0' * 32}'", f"'{'f' * 32}'")),
    "boolean": Kind("boolean", "true", "true", ("false",)),
    "enum": Kind("mood", "'low'", "'low'", ("'high'", "'a label of the greatest length there is, that is 63'")),
    "date": Kind("date", "'2020-01-01'", "'2020-01-01'", ("'infinity'", "'-infinity'", "'4713-01-01 BC'", "'5874897-12-31'")),
    "timestamp without time zone": Kind(
        "timestamp", "'2020-01-01'", "'2020-01-01'", ("'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31 23:59:59.999999'", "'2020-06-30 23:59:60'")
    ),
    "timestamp with time zone": Kind(
        "timestamptz", "'2020-01-01 00:00+00'", "'2020-01-01 00:00+00'",
        ("'infinity'", "'-infinity'", "'4713-01-01 00:00+00 BC'", "'294276-12-31 23:59:59.999999+00'", "'294276-12-31 12:00-11'"),
    ),
    "time": Kind("timetz", "'12:00+00'", None, ("'24:00+15:59'", "'00:00-15:59'")),
    "interval": Kind("interval", "'1 day'", None, ("'178000000 years'", "'-178000000 years'", "'2147483647 days 2562047788 hours'")),
    "jsonb": Kind(
        "jsonb", "'{}'", None,
        ("'null'", "to_jsonb(array_fill(1e131000::numeric, ARRAY[200]))", "(repeat('[', 5000) || repeat(']', 5000))::jsonb", "to_jsonb(repeat('x', 2000000))", "'{\"\": 1e131000}'"),
    ),
    "json": Kind("json", "'{}'", None, ("'null'", "(repeat('[', 5000) || repeat(']', 5000))::json", "('\"' || repeat('x', 2000000) || '\"')::json")),
    "xml": Kind("xml", "'<a/>'", None, ("xmlcomment(repeat('x', 2000000))",)),
    "array of texts": Kind("text[]", "'{}'", None, ("ARRAY[repeat('x', 2000000)]", "ARRAY[NULL]::text[]", "ARRAY['{', '\"']")),
    "array of numbers": Kind("numeric[]", "'{}'", None, (WIDE_NUMBERS, "'[-2147483648:-2147483648]={1}'", "'{NaN}'")),
    "composite": Kind("pair", "('a', 1)", None, ("(repeat('x', 2000000), 1e131000)", "(NULL, NULL)", "('\"(,)', 'NaN')")),
    "bytea": Kind("bytea", "''", None, ("convert_to(repeat('x', 2000000), 'UTF8')", "'\\x00'")),
    "inet": Kind("inet", "'10.0.0.0/8'", "'10.0.0.0/8'", ("'::/0'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'", "'0.0.0.0/0'")),
    "cidr": Kind("cidr", "'10.0.0.0/8'", "'10.0.0.0/8'", ("'::/0'", "'0.0.0.0/0'")),
    "macaddr": Kind("macaddr", "'08:00:2b:01:02:03'", None, ("'ff:ff:ff:ff:ff:ff'",)),
    "money": Kind("money", "1::money", None, ("'-92233720368547758.08'", "'92233720368547758.07'")),
    "bits": Kind("varbit", "'1'", None, ("''", "repeat('1', 1000000)::varbit")),
    "range of dates": Kind("daterange", "'[2020-01-01,2020-02-01)'", None, ("'empty'", "'(,)'", "'[-infinity,infinity]'")),
    "range of numbers": Kind("numrange", "'[1,2)'", None, ("'[NaN,NaN]'", "numrange(NULL, 1e131000)", "numrange(-repeat('9', 131072)::numeric, NULL)")),
    "ranges": Kind("nummultirange", "'{}'", None, ("'{(,)}'", "'{[NaN,NaN]}'")),
    "searched": Kind("tsvector", "''", None, ("(SELECT string_agg(md5(n::text), ' ') FROM generate_series(1, 3000) AS n)::tsvector",)),
    "point": Kind("point", "'(1,1)'", None, ("'(NaN,Infinity)'",)),
    "polygon": Kind("polygon", "'((0,0),(1,1))'", None, ("(repeat('(1e308,NaN),', 50000) || '(0,0)')::polygon",)),
    "snapshot": Kind("pg_snapshot", "'1:1:'", None, ("'1:9223372036854775807:5,6'",)),
    "lsn": Kind("pg_lsn", "'0/0'", None, ("'FFFFFFFF/FFFFFFFF'",)),
}  # fmt: skip

#: What each form of condition of the language looks like: {c} is the column, {v} a literal of it.
CONDITIONS = {
    exp.EQ: ("{c} = {v}", "{v} = {c}", "{c} = {other}"),
    exp.NEQ: ("{c} <> {v}",),
    exp.LT: ("{c} < {v}",),
    exp.LTE: ("{c} <= {v}",),
    exp.GT: ("{c} > {v}", "{v} > {c}"),
    exp.GTE: ("{c} >= {v}",),
    exp.Between: ("{c} BETWEEN {v} AND {v}", "{c} NOT BETWEEN {v} AND {v}"),
    exp.In: ("{c} IN ({v}, {v})", "{c} NOT IN ({v})"),
    exp.Like: ("{c} LIKE '%u_u%l'", "{c} NOT LIKE '\\%%'", "{c} LIKE '%" + "x" * 500 + "y%'"),
    exp.Is: ("{c} IS NULL", "{c} IS NOT NULL", "({c} = {v}) IS NOT TRUE", "{c} IS TRUE", "{c}"),
}
CALLS = ("{f}({c}) = 'usual'", "{f}({c}) < 'usual'", "{f}({c}) LIKE '%u%'", "{f}({c}) IN ('usual')", "{f}({c}) IS NULL", "{f}({c}) = {f}({other})")
