"""Columns that the compiler's tests speak about: one of each base type, and a table of each demo's shape."""

from __future__ import annotations

from fractions import Fraction

from dbext.privacy.constraint import Constraint, EntryType
from dbext.query.calendar import Tick
from dbext.query.column import Column

OPERATORS = {operator: f"OPERATOR(pg_catalog.{operator})" for operator in ("=", "<>", "<", "<=", ">", ">=")}
TWO_OPERATORS = {operator: OPERATORS[operator] for operator in ("=", "<")}


def column(name, position, type_name, category, base, *, is_unit=False, labels=(), operators=OPERATORS):
    return Column(name, position, type_name, category, base, is_unit, labels, operators, type_name)


COLUMNS = (
    column("id", 1, "pg_catalog.int8", "N", "integer", is_unit=True),
    column("status", 2, "pg_catalog.text", "S", "text"),
    column("county", 3, "pg_catalog.varchar", "S", "text"),
    column("age", 4, "pg_catalog.int4", "N", "integer"),
    column("imported", 5, "pg_catalog.bool", "B", "bool"),
    column("onset", 6, "pg_catalog.date", "D", "date"),
    column("seen", 7, "pg_catalog.timestamptz", "D", "timestamptz"),
    column("amount", 8, "pg_catalog.numeric", "N", "numeric"),
    column("user", 9, "pg_catalog.text", "S", "text"),
    column("noted", 10, "pg_catalog.timestamp", "D", "timestamp"),
    column("score", 11, "pg_catalog.float8", "N", "float"),
    column("serotype", 12, "public.serotype", "E", "enum", labels=("DENV-1", "DENV-2", "unknown")),
    column("token", 13, "pg_catalog.uuid", "U", "uuid", operators=TWO_OPERATORS),
    column("address", 14, "pg_catalog.inet", "I", "other", operators=TWO_OPERATORS),
    column("stay", 15, "pg_catalog.daterange", "R", "other", operators=TWO_OPERATORS),
    column("vaccinated", 16, "pg_catalog.bool", "B", "bool"),
    column("Kreis", 17, "pg_catalog.text", "S", "text"),
    column("縣市", 18, "pg_catalog.text", "S", "text"),
    column("photo", 19, "pg_catalog.point", "G", "other", operators={}),
)

DAY = Tick("day", 1)
IMPORTED = EntryType(1, "imported", Constraint(active_within=28))
LOCAL = EntryType(2, "local", Constraint(max_mutations=3))
TYPES = (IMPORTED, LOCAL)
UNBOUNDED = (EntryType(0, "unconstrained", Constraint()),)
DELTA = Fraction(1, 10**6)
PURE = Fraction(0)
