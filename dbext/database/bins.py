"""SQL for bins: the bucket of a value, by comparisons that never change; and what PostgreSQL's own width_bucket says of some values."""

from __future__ import annotations

from collections.abc import Sequence

from dbext.database.session import Session
from dbext.query.bins import Bins
from dbext.query.exact import exact_decimal


def bucket(bins: Bins, value: str) -> str:
    """SQL for the number of the bucket of a value: how many cuts it has reached. NULL for NULL, and for NaN if the bins are equal.

    Nothing here can fail. Numerics of equal bins are clamped before they are multiplied; among thresholds NaN is the largest value, as it
    is for PostgreSQL. The comparisons are exact, and the same for ever.
    """
    base = bins.column.column.base
    # Never the column's own type: a value of the wider one that it may be given later would not fit.
    kind = "pg_catalog.float8" if base == "float" else "pg_catalog.numeric"
    cast = operand = f"{value}::{kind}"
    if bins.unit > 1:
        low, high = (exact_decimal(end) for end in (min(bins.edges) - 1, max(bins.edges) + 1))
        operand = f"least(greatest({cast}, '{low}'::{kind}), '{high}'::{kind})"
    if bins.unit > 1 or bins.descending:
        operand = f"({operand} OPERATOR(pg_catalog.*) '{-bins.unit if bins.descending else bins.unit}'::{kind})"
    as_written = f"::{bins.column.column.literal_type}[]" if base == "float" and not bins.equal else ""
    number = f"pg_catalog.width_bucket({operand}, '{{{','.join(bins.cuts)}}}'{as_written}::{kind}[])"
    if not bins.equal or base == "integer":
        return number
    return f"CASE WHEN {cast} OPERATOR(pg_catalog.<>) 'NaN'::{kind} THEN {number} END"


def buckets(session: Session, bins: Bins, values: Sequence[float]) -> list[int]:
    """Ask PostgreSQL, which chooses the variant of width_bucket by the numbers as they were written."""
    kind = "pg_catalog.int8" if bins.column.column.base == "integer" else "pg_catalog.float8"
    low, high = (f"({text})" for text in bins.written)
    sql = (
        f"SELECT pg_catalog.width_bucket(v.value, {low}, {high}, {bins.count}) AS bucket "
        f"FROM unnest($1::{kind}[]) WITH ORDINALITY AS v(value, n) ORDER BY v.n"
    )
    return [row["bucket"] for row in session.fetch(sql, list(values))]
