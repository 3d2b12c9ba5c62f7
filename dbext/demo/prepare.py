"""Set the scene in the database: tables, tracking, constraints, budget, releases."""

from __future__ import annotations

from datetime import timedelta

import psycopg
from psycopg import sql

from dbext.demo import statements
from dbext.demo.clock import set_clock
from dbext.demo.scenario import Rule, Scenario, Statistic


def create_tables(connection: psycopg.Connection, scenario: Scenario) -> None:
    """Create the key table with all public group keys, and the empty table to be tracked."""
    key_table = sql.Identifier(scenario.key_table)
    connection.execute(sql.SQL("CREATE TABLE {} (name text PRIMARY KEY)").format(key_table))
    connection.execute(sql.SQL("INSERT INTO {} SELECT unnest(%s::text[])").format(key_table), [list(scenario.group_keys)])
    connection.execute(f"CREATE TABLE {scenario.table} (\n    {scenario.columns_sql()}\n)")


def track(connection: psycopg.Connection, scenario: Scenario) -> str:
    """Track the table from the day before the first one; return what the database says is protected."""
    set_clock(connection, scenario, scenario.first_day - timedelta(days=1))
    return answer(connection, statements.track(scenario))


def add_constraint(connection: psycopg.Connection, scenario: Scenario, rule: Rule) -> str:
    """State one mutation constraint; return the database's answer."""
    return answer(connection, statements.add_constraint(scenario, rule))


def set_budget(connection: psycopg.Connection, scenario: Scenario) -> str:
    """Set the budget and mark the key list public; return the database's answer about the budget."""
    said = answer(connection, statements.set_budget(scenario))
    answer(connection, statements.mark_public(scenario))
    return said


def create_release(connection: psycopg.Connection, statistic: Statistic) -> None:
    """Declare one release."""
    answer(connection, statements.create_release(statistic))


def answer(connection: psycopg.Connection, statement: str) -> str:
    """Run a statement that returns one value, and return that value as text."""
    row = connection.execute(statement).fetchone()
    return "" if row is None or row[0] is None else str(row[0])
