"""Command line and limits in the SQL reference against the code that keeps them."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
import typer.main

from dbext.control import cli
from dbext.control.failures import ExitCode
from dbext.database import releases, second_session
from dbext.query import groups, periods, planner, shape
from dbext.service import constrain, declare, numbers
from tests.documents import SQL_REFERENCE, code, tables

# These modules share their names with the functions that the package imports from them.
check_text, limit_nesting = (import_module(f"dbext.query.compile.{name}") for name in ("check_text", "limit_nesting"))

TABLES = tables(SQL_REFERENCE.read_text(encoding="utf-8"))


def rows(heading):
    (found,) = [found for found in TABLES if next(iter(found[0])) == heading]
    return found


def test_commands_and_their_options():
    commands = typer.main.get_command(cli.app).commands
    options = {
        f"dbext {name}": {one for part in command.params for one in part.opts if one.startswith("--")} for name, command in commands.items()
    }
    assert {code(row["command"]): set(re.findall(r"--[\w-]+", row["options"])) for row in rows("command")} == options


def test_exit_codes():
    assert [int(row["exit code"]) for row in rows("exit code")] == sorted(ExitCode)


LIMITS = [
    ("epsilon of a budget, release or question", f"at most {numbers.MAX_EPSILON:,}, at most {numbers.MAX_DIGITS} decimals"),
    ("epsilon of a budget, release or question", f"{planner.MAX_EPSILON:,}"),
    ("name of a release", f"{declare.MAX_NAME_BYTES} bytes"),
    ("name of a constraint", f"{constrain.LONGEST_NAME} bytes"),
    ("text of a declaration or predicate", f"{check_text.MAX_LENGTH:,} characters"),
    ("nesting of conditions", f"{limit_nesting.MAX_DEPTH}"),
    ("text of a list of groups", f"{groups.MAX_LENGTH:,} characters"),
    ("group keys of a release", f"{groups.MAX_KEYS:,}"),
    ("group keys of a release", f"{releases.MAX_CELLS:,}"),
    ("horizon", f"{shape.MAX_HORIZON:,} periods"),
    ("horizon of a running total by default", f"at most {shape.DEFAULT_HORIZON:,}"),
    ("periods in one window", f"{periods.MAX_PERIODS_IN_WINDOW:,}"),
    ("wait of a question for the budget", second_session.LOCK_TIMEOUT.replace("s", " seconds")),
]


@pytest.mark.parametrize(("limit", "value"), LIMITS)
def test_limits(limit, value):
    (row,) = [row for row in rows("limit") if row["limit"] == limit]
    assert value in row["value"]
