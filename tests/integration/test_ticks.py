"""Ticks: PostgreSQL's calendar arithmetic against Python's, in zones with odd clocks."""

from __future__ import annotations

import datetime as dt
import itertools
import zoneinfo

import pytest

#: Clock changes at midnight, skipped days, half hours, none at all.
ZONES = (
    "UTC",
    "Asia/Taipei",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Pacific/Apia",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "America/New_York",
)
MINUTE, HOUR = 60_000_000, 3_600_000_000
KINDS = (
    ("day", 1),
    ("day", 7),
    ("day", 10),
    ("month", 1),
    ("month", 3),
    ("fixed", HOUR),
    ("fixed", 15 * MINUTE),
    ("fixed", 36 * HOUR),
    ("fixed", 1_000_000),
)


def boundary(kind: str, size: int, zone: str, tick: int) -> dt.datetime:
    """Return b_tick: local midnight, or by the clock from the local midnight of 2000-01-03."""
    home = zoneinfo.ZoneInfo(zone)
    if kind == "fixed":
        start = dt.datetime(2000, 1, 3, tzinfo=home).astimezone(dt.timezone.utc)
        return start + dt.timedelta(microseconds=size * tick)
    if kind == "day":
        date = dt.date(2000, 1, 3) + dt.timedelta(days=size * tick)
    else:
        year, month = divmod(size * tick, 12)
        date = dt.date(2000 + year, month + 1, 1)
    # Where a midnight does not exist, the offset before the change (fold 0) gives the moment of the change.
    return dt.datetime(date.year, date.month, date.day, tzinfo=home).astimezone(dt.timezone.utc)


@pytest.mark.parametrize("zone", ZONES)
def test_boundaries_are_local_midnights(database, zone):
    for kind, size in KINDS:
        # From 1998 to 2036, in steps that meet every hour and season.
        shortest = {"day": 24 * HOUR * size, "month": 28 * 24 * HOUR * size, "fixed": size}[kind]
        first, step = -2 * 365 * 24 * HOUR // shortest, max(1, (34 * 24 + 5) * HOUR // shortest)
        ticks = [first + step * count for count in range(410) if (first + step * count) * shortest < 36 * 365 * 24 * HOUR]
        found = database.fetch(
            "SELECT tick, dbext_private.tick_end(%s, %s, %s, tick) FROM unnest(%s::bigint[]) AS tick", (kind, size, zone, ticks)
        )
        assert found == [(tick, boundary(kind, size, zone, tick)) for tick in ticks]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia"])
def test_a_moment_lies_in_its_tick(database, zone):
    """b_(i-1) < moment <= b_i, at boundaries and beside them, through a year with all its clock changes."""
    for kind, size in KINDS:
        wrong = database.fetch(
            """
            WITH moments AS (
                SELECT timestamptz '2010-12-30 00:00+00' + hours * interval '61 minutes' + beside * interval '1 microsecond' AS moment
                FROM generate_series(0, 9000, 29) AS hours CROSS JOIN unnest(ARRAY[-1, 0, 1]) AS beside
                UNION ALL
                SELECT dbext_private.tick_end(%(kind)s, %(size)s, %(zone)s, dbext_private.tick_of(%(kind)s, %(size)s, %(zone)s, m)) + beside * interval '1 microsecond'
                FROM generate_series(timestamptz '2010-12-30', '2012-01-02', '61 hours') AS m CROSS JOIN unnest(ARRAY[-1, 0, 1]) AS beside
            ), placed AS (SELECT moment, dbext_private.tick_of(%(kind)s, %(size)s, %(zone)s, moment) AS tick FROM moments)
            SELECT moment, tick FROM placed
            WHERE NOT (dbext_private.tick_end(%(kind)s, %(size)s, %(zone)s, tick - 1) < moment AND moment <= dbext_private.tick_end(%(kind)s, %(size)s, %(zone)s, tick))
            LIMIT 5
            """,
            {"kind": kind, "size": size, "zone": zone},
        )
        assert wrong == []


def test_a_day_that_a_zone_skipped_is_an_empty_tick(database):
    """Samoa had no 2011-12-30."""
    ends = database.fetch(
        "SELECT dbext_private.tick_end('day', 1, 'Pacific/Apia', (date '2011-12-29' + d) - date '2000-01-03') FROM generate_series(0, 3) AS d"
    )
    days = [(later - earlier).total_seconds() / 3600 for (earlier,), (later,) in itertools.pairwise(ends)]
    assert days == [24, 0, 24]
    moment = ends[1][0]
    assert database.value("SELECT date '2000-01-03' + dbext_private.tick_of('day', 1, 'Pacific/Apia', %s)::integer", (moment,)) == dt.date(
        2011, 12, 30
    )
