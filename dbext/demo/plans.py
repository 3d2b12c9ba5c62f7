"""What the database says about plans and budget, condensed for the reader."""

from __future__ import annotations

import psycopg
from psycopg.rows import dict_row

from dbext.demo.scenario import Scenario, Statistic
from dbext.demo.story import Budget, Spending


def plan_facts(connection: psycopg.Connection, statistic: Statistic) -> dict[str, str]:
    """Return the chosen candidate of a release as label -> text: mechanism, noise, error, price by entry type, alternatives."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute("SELECT * FROM dp_explain_release(%s)", [statistic.name]).fetchall()
    chosen = next(row for row in rows if row["chosen"])
    others = sorted((row for row in rows if not row["chosen"]), key=lambda row: row["mean_std_error"])
    prices = ", ".join(f"{name} {float(epsilon):.3g}" for name, epsilon in chosen["epsilon_by_type"].items())
    return {
        "mechanism": _words(chosen["mechanism"]),
        "noise": chosen["noise"],
        "standard error": _error(chosen["mean_std_error"], chosen["worst_std_error"]),
        "lifetime loss by type": prices,
        "next best": f"{_words(others[0]['mechanism'])} ({others[0]['noise']}): {others[0]['reason']}" if others else "none",
    }


def in_a_line(facts: dict[str, str]) -> str:
    """Return the facts of a plan as a few words on two lines."""
    mechanism, noise, *others = facts.items()
    return f"{mechanism[1]}, {noise[1]}\n" + "; ".join(f"{label}: {text}" for label, text in others)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _error(mean: float, worst: float) -> str:
    return f"{mean:.1f}" if f"{mean:.1f}" == f"{worst:.1f}" else f"{mean:.1f} on average, {worst:.1f} at worst"


def read_budget(connection: psycopg.Connection, scenario: Scenario) -> Budget:
    """Return the state of the table's budget and its uses, in the order in which they were made."""
    with connection.cursor(row_factory=dict_row) as cursor:
        status = cursor.execute("SELECT * FROM dbext.budget_status WHERE table_name = %s", [f"public.{scenario.table}"]).fetchone()
        uses = cursor.execute("SELECT * FROM dbext.budget_use WHERE table_name = %s", [f"public.{scenario.table}"]).fetchall()
    if status is None:
        raise psycopg.DataError("the table has no budget")
    return Budget(
        epsilon=float(status["epsilon"]),
        spent=float(status["spent"]),
        reserved=float(status["reserved"]),
        left=float(status["left"]),
        uses=tuple(Spending(use["name"], float(use["epsilon"]), float(use["share"])) for use in uses),
    )
