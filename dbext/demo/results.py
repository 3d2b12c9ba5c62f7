"""What was published, read back from the release tables as any analyst would, beside the exact series of the demo."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta

import psycopg
from psycopg import sql

from dbext.demo import exact
from dbext.demo.scenario import Scenario, Statistic


@dataclass(frozen=True)
class Point:
    """One published figure with its 95% interval; `exact` under the mutation constraints, `raw` of all mutations."""

    day: date
    group: str | None
    value: float
    lower: float
    upper: float
    exact: int
    raw: int


@dataclass(frozen=True)
class Coverage:
    """How many of `figures` 95% intervals contain the exact value: admitted entries' changes only, and all changes."""

    figures: int
    admitted: int
    raw: int

    @property
    def share(self) -> float:
        """Share of intervals that contain what they estimate."""
        return self.admitted / self.figures if self.figures else 0.0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.figures + other.figures, self.admitted + other.admitted, self.raw + other.raw)


@dataclass(frozen=True)
class Result:
    """All figures of one release, in order of day and group, and the facts of its plan (label -> text)."""

    statistic: Statistic
    points: tuple[Point, ...]
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def coverage(self) -> Coverage:
        """Count the intervals that contain the exact value."""
        return Coverage(
            len(self.points),
            sum(point.lower <= point.exact <= point.upper for point in self.points),
            sum(point.lower <= point.raw <= point.upper for point in self.points),
        )

    @property
    def differing(self) -> int:
        """Number of figures whose exact value under the constraints differs from the raw one."""
        return sum(point.exact != point.raw for point in self.points)

    def on(self, day: date, groups: Iterable[str]) -> list[Point]:
        """Return the figures of one day for some groups (the only figure of that day without groups)."""
        order = {group: place for place, group in enumerate(groups)}
        found = [point for point in self.points if point.day == day and (point.group is None or point.group in order)]
        return sorted(found, key=lambda point: order.get(point.group or "", 0))


def read_results(connection: psycopg.Connection, scenario: Scenario, facts: dict[str, dict[str, str]]) -> list[Result]:
    """Return the published figures of every release beside the exact ones."""
    admitted, raw = exact.all_steps(scenario, admitted=True), exact.all_steps(scenario, admitted=False)
    results = []
    for statistic in scenario.statistics:
        exact_values = exact.series(scenario, statistic, admitted)
        raw_values = exact.series(scenario, statistic, raw)
        points = tuple(
            Point(day, group, value, lower, upper, exact_values[group, day], raw_values[group, day])
            for day, group, value, lower, upper in _published(connection, scenario, statistic)
        )
        results.append(Result(statistic, points, facts.get(statistic.name, {})))
    return results


def _published(
    connection: psycopg.Connection, scenario: Scenario, statistic: Statistic
) -> Iterable[tuple[date, str | None, float, float, float]]:
    group = sql.SQL("NULL") if statistic.group_column is None else sql.Identifier(statistic.group_column)
    query = sql.SQL(
        """SELECT (window_end AT TIME ZONE %s)::date, {group}, {value}::float8, lower_95::float8, upper_95::float8
             FROM {table} ORDER BY 1, 2"""
    ).format(
        group=group,
        value=sql.Identifier(statistic.measure),
        table=sql.Identifier("dp_release", statistic.name),
    )
    for end, key, value, lower, upper in connection.execute(query, [scenario.time_zone]):
        yield end - timedelta(days=1), key, value, lower, upper
