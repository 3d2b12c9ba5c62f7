"""A tracked table whose days a test counts, whose ticks it seals, and whose private tables it reads as superuser."""

from __future__ import annotations

import datetime as dt
from typing import Any

#: Day 0 of every history; a tick of one day holds (midnight, next midnight].
DAY_ZERO = dt.date(2020, 3, 2)


class Tracked:
    """Table `name` of a test database, tracked on day 0 at noon of `zone` in the superuser's session."""

    def __init__(self, database: Any, definition: str, *, name: str = "entry", zone: str = "UTC", rows: str | None = None, **options: Any):
        real_time = options.pop("real_time", False)
        self.database, self.name, self.zone = database, name, zone
        self.session = database.superuser
        self.session.execute(f"CREATE TABLE {name} ({definition})")
        if rows is not None:
            self.session.execute(f"INSERT INTO {name} {rows}")
        if not real_time:
            self.day(0)
        self.track(**options)
        self.number = database.value("SELECT table_id FROM dbext_private.tracked_table WHERE table_name = %s", (name,))
        self.first = self.head()

    def track(self, **options: Any) -> str:
        """Call dp_track on the table."""
        named = "".join(f", {option} => %s" for option in options)
        (said,) = self.session.execute(f"SELECT dp_track('{self.name}', time_zone => %s{named})", [self.zone, *options.values()]).fetchone()
        return said

    def day(self, number: int, time: str = "12:00") -> None:
        """Let it be a time of a day in the superuser's session, in the table's zone."""
        date = DAY_ZERO + dt.timedelta(days=number)
        self.set_now(f"{date} {time} {self.zone}")

    def set_now(self, moment: str, session: Any = None) -> None:
        """Set dbext.now in a session; an empty text is the clock."""
        (session or self.session).execute("SELECT set_config('dbext.now', %s, false)", (moment,))

    def execute(self, sql: str, params: Any = None) -> None:
        """Run a statement in the superuser's session."""
        self.session.execute(sql, params)

    def fetch(self, sql: str) -> list[tuple]:
        """Return rows; {log}, {change} and so on stand for the run-time tables."""
        names = {kind: f"dbext_private.{kind}_{self.number}" for kind in ("log", "deferred", "admission", "change", "row")}
        return self.session.execute(sql.format(**names)).fetchall()

    def seal(self, session: Any = None) -> int:
        """Close all ticks that have ended, as often as there are more; returns the day of the last closed one."""
        while True:
            (done,) = (session or self.session).execute("SELECT dbext_private.seal_table(%s)", (self.number,)).fetchone()
            if not done["more"]:
                return done["tick"] - self.first

    def seal_through(self, day: int) -> None:
        """Seal at noon after a day."""
        self.day(day + 1)
        assert self.seal() == day

    def head(self) -> int:
        """Return the first tick that is not sealed."""
        return self.database.value(
            "SELECT dbext_private.open_tick(table_id) FROM dbext_private.tracked_table WHERE table_name = %s", (self.name,)
        )

    def changes(self) -> list[tuple]:
        """Return (day, key_1, old value or None, new value or None) of every settled change, for tables (key, value)."""
        rows = self.fetch("SELECT tick, key_1, old_present, old_2, new_present, new_2 FROM {change} ORDER BY tick, key_1")
        return [(tick - self.first, key, old if was else None, new if is_there else None) for tick, key, was, old, is_there, new in rows]

    def settled(self) -> dict:
        """Return the settled image of every present entry, for tables (key, value)."""
        return dict(self.fetch("SELECT key_1, image_2 FROM {admission} WHERE present"))

    def events(self) -> list[tuple]:
        """Return (day from, day through or None, kind, description) of the marks on this table, disabled event triggers aside."""
        rows = self.database.fetch(
            "SELECT from_tick, through_tick, kind, description FROM dbext_private.schema_event WHERE table_id = %s AND kind <> 'event trigger' ORDER BY event_no",
            (self.number,),
        )
        return [(begin - self.first, None if end is None else end - self.first, kind, text) for begin, end, kind, text in rows]
