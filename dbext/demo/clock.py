"""The clock of a replay: a session of dbext's administrator may say what time it is, for loads, demos and tests."""

from __future__ import annotations

from datetime import date

import psycopg

from dbext.demo.scenario import Scenario


def set_clock(connection: psycopg.Connection, scenario: Scenario, day: date, time: str = "12:00") -> None:
    """Make it `time` (local, hours and minutes) of `day` for this session. Noon is far from any boundary of a day."""
    connection.execute("SELECT set_config('dbext.now', %s, false)", [f"{day.isoformat()} {time} {scenario.time_zone}"])
