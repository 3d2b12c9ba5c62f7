"""Results on standard output as a table, JSON or CSV; everything else the command line says goes to standard error."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

#: Width of tables that are not read on a terminal: nothing is folded there.
FILE_WIDTH = 1000


class Format(str, Enum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def write(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], form: Format) -> None:
    """Write rows; every row has all `columns`, in that order. An empty result still has its header (`[]` in JSON)."""
    writers = {Format.TABLE: _write_table, Format.JSON: _write_json, Format.CSV: _write_csv}
    writers[form](rows, columns)


def _write_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        is_number = any(isinstance(row[column], int | float | Decimal) for row in rows)
        table.add_column(column, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(_short(row[column]) for column in columns))
    console = Console(file=sys.stdout, markup=False, highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH)
    console.print(table)


def _short(value: Any) -> str:
    """Return a value for a table: six digits of a float are enough, and objects need no punctuation."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(one)}" for name, one in value.items())
    return text(value)


def _write_json(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    objects = [{column: _json_value(row[column]) for column in columns} for row in rows]
    print(json.dumps(objects, indent=2, ensure_ascii=False))


def _write_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([text(row[column]) for column in columns] for row in rows)


def text(value: Any) -> str:
    """Return a value as people read it; NULL is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime | date | time):
        return value.isoformat(*([" "] if isinstance(value, datetime) else []))
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _json_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else value
