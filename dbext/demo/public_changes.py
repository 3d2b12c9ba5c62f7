"""What happens on each day in the demo's public or made-up data: for simulations, which need no database."""

from __future__ import annotations

from collections import defaultdict

from dbext.control.state import state_folder
from dbext.demo import dengue, tickets
from dbext.demo.exact import all_steps, days, effects
from dbext.demo.scenario import Scenario


def changes(source: str, measure: str) -> list[list[int]]:
    """Return one row a day: what the first statistic of that measure counts, cell by cell."""
    scenario = dengue.load(state_folder()) if source == "dengue" else tickets.load()
    return daily(scenario, measure)


def daily(scenario: Scenario, measure: str) -> list[list[int]]:
    """Return what happens on each day of a scenario; what happened before its first day is left out."""
    statistic = next(one for one in scenario.statistics if one.measure == measure)
    cells = scenario.group_keys if statistic.group_column else (None,)
    counts: dict[tuple[object, object], int] = defaultdict(int)
    for day, before, after in all_steps(scenario, admitted=True):
        for image, sign in effects(measure, statistic.satisfies, before, after):
            counts[(image[statistic.group_column] if statistic.group_column else None, day)] += sign
    return [[counts[(cell, day)] for cell in cells] for day in days(scenario)]
