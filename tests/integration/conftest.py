"""A tracked table whose history a test writes day by day, and roles to look at it with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from tests.integration.tracked import Tracked

#: Day 0 of every history: a Wednesday.
DAY_ZERO = dt.date(2020, 1, 1)
ZONE = "Asia/Taipei"


class Cases:
    """Table `cases` (id, county, status, reported), tracked by days in a zone that is not the session's.

    It is tracked empty, the day before day 0: releases begin with the first day that is captured as a whole.
    """

    def __init__(self, database):
        self.database = database
        self.session = database.superuser
        self.warnings: list[str] = []
        self.session.add_notice_handler(lambda notice: self.warnings.append(f"{notice.severity}: {notice.message_primary}"))
        self.session.execute("CREATE TABLE cases (id integer PRIMARY KEY, county text, status text NOT NULL, reported date)")
        self.day(-1)
        self.session.execute("SELECT dp_track('cases', time_zone => %s)", (ZONE,))
        self.day(0)

    def day(self, number: int, hour: int = 12) -> None:
        """Let it be `hour` o'clock of a day of the history in the superuser's session."""
        moment = dt.datetime.combine(DAY_ZERO + dt.timedelta(days=number), dt.time(hour))
        self.session.execute("SELECT set_config('dbext.now', %s, false)", (f"{moment.isoformat()}+08",))

    def midnight(self, number: int) -> str:
        """Return the moment at which a day begins."""
        return f"{(DAY_ZERO + dt.timedelta(days=number)).isoformat()} 00:00+08"

    def insert(self, *rows: Sequence[Any]) -> None:
        """Insert (id, county, status) rows in one statement."""
        values = ", ".join(["(%s, %s, %s)"] * len(rows))
        self.session.execute(f"INSERT INTO cases (id, county, status) VALUES {values}", [value for row in rows for value in row])

    def publish(self, failures: Sequence[str] = ()) -> None:
        """Seal and publish all that is due; the warnings must name exactly the releases expected to fail."""
        self.warnings.clear()
        self.session.execute("CALL dp_publish()")
        assert [name for name in failures if any(f"release {name} " in said for said in self.warnings)] == list(failures)
        assert len(self.warnings) == len(failures), self.warnings

    def constrain(self, **limits: Any) -> None:
        """Add the default entry type; at most three mutations unless said otherwise."""
        limits = limits or {"max_mutations": 3}
        named = ", ".join(f"{name} => %s" for name in limits)
        self.session.execute(f"SELECT dp_add_constraint('cases', 'any', {named})", list(limits.values()))

    def budget(self, epsilon: float | str, delta: float | str = 0) -> None:
        """Set the table's budget."""
        self.session.execute("SELECT dp_set_budget('cases', %s::numeric, %s::numeric)", (str(epsilon), str(delta)))

    def declare(self, name: str, text: str, **options: Any) -> str:
        """Create a release and return what was said."""
        named = "".join(f", {option} => %s" for option in options)
        return self.session.execute(f"SELECT dp_create_release(%s, %s{named})", [name, text, *options.values()]).fetchone()[0]

    def ask(self, start: str | None, end: str, **options: Any) -> float:
        """Ask dp_window_count in the superuser's session."""
        named = "".join(f", {option} => %s" for option in options)
        return self.session.execute(f"SELECT dp_window_count('cases', %s, %s{named})", [start, end, *options.values()]).fetchone()[0]


@pytest.fixture
def cases(database) -> Cases:
    """The tracked table alone."""
    return Cases(database)


@pytest.fixture
def make_cases():
    """Make the tracked table in a database of the test's own."""
    return Cases


@pytest.fixture
def ready(cases) -> Cases:
    """The tracked table with its default entry type (three mutations) and a budget of 10."""
    cases.constrain()
    cases.budget(10)
    return cases


@pytest.fixture
def analyst(database) -> str:
    """A role that may ask about `cases` once the table exists."""
    role = database.create_role("dbext_analyst", name="ann")
    database.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    database.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {role}")
    return role


@pytest.fixture
def tracked(database):
    """Make tracked tables in the test's database: tracked('id integer PRIMARY KEY, value text')."""

    def make(definition: str = "id integer PRIMARY KEY, value text", **options: Any) -> Tracked:
        return Tracked(database, definition, **options)

    return make


@pytest.fixture
def told(ready):
    """One entry, and two sealed days that are published."""
    ready.insert((1, "A", "open"))
    ready.day(2)
    ready.publish()
    return ready
