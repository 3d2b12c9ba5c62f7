"""Ticks and spans: how long things last, counted in whole ticks.

A tick is the table's time granule, of one of three kinds:

| kind  | size          | boundary i                                     | spans it understands             |
|-------|---------------|------------------------------------------------|----------------------------------|
| fixed | microseconds  | b_0 + i * size, by the clock                   | hours, minutes, seconds          |
| day   | days          | local midnight of 2000-01-03 + i * size days   | days, weeks; months if size is 1 |
| month | months        | local midnight of the first of a month         | months, years                    |

b_0 is local midnight of Monday 2000-01-03 (of 2000-01-01 for months). Days and hours do not mix: a local day lasts 23, 24 or 25 hours.
PostgreSQL alone turns boundaries into timestamps; here a boundary is its index.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbext.errors import BadArgument

MICROSECONDS_PER_SECOND = 1_000_000
MICROSECONDS_PER_HOUR = 3600 * MICROSECONDS_PER_SECOND
MICROSECONDS_PER_DAY = 24 * MICROSECONDS_PER_HOUR

# Longest span accepted, in each of its parts: about a thousand years. Keeps every tick index far inside a bigint.
_MAX_DAYS = 366_000

_UNITS = {
    "microsecond": ("microseconds", 1),
    "millisecond": ("microseconds", 1000),
    "second": ("microseconds", MICROSECONDS_PER_SECOND),
    "sec": ("microseconds", MICROSECONDS_PER_SECOND),
    "minute": ("microseconds", 60 * MICROSECONDS_PER_SECOND),
    "min": ("microseconds", 60 * MICROSECONDS_PER_SECOND),
    "hour": ("microseconds", MICROSECONDS_PER_HOUR),
    "hr": ("microseconds", MICROSECONDS_PER_HOUR),
    "day": ("days", 1),
    "week": ("days", 7),
    "month": ("months", 1),
    "mon": ("months", 1),
    "year": ("months", 12),
}

_CLOCK = re.compile(r"([0-9]{1,9}):([0-5][0-9])(?::([0-5][0-9]))?", re.ASCII)
_QUANTITY = re.compile(r"([0-9]{1,12})\s*([a-z]+)", re.ASCII)


@dataclass(frozen=True)
class Span:
    """A positive length of time as PostgreSQL's interval keeps it: months, days and microseconds apart, none negative."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __post_init__(self):
        for name in ("months", "days", "microseconds"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise BadArgument("an interval must be positive in all its parts")
        if not (self.months or self.days or self.microseconds):
            raise BadArgument("an interval must be longer than nothing")
        if self.days + 31 * self.months + self.microseconds // MICROSECONDS_PER_DAY > _MAX_DAYS:
            raise BadArgument("an interval may not be longer than about 1000 years")

    @property
    def text(self) -> str:
        """SQL text that `parse_span` reads back to the same span, e.g. '1 month 14 days'."""
        parts = [_counted(self.months, "month"), _counted(self.days, "day"), *_clock_parts(self.microseconds)]
        return " ".join(part for part in parts if part)

    def to_json(self) -> list[int]:
        return [self.months, self.days, self.microseconds]

    @staticmethod
    def from_json(data: list[int]) -> Span:
        return Span(*data)


@dataclass(frozen=True)
class Tick:
    """The time granule of a tracked table: `size` microseconds ('fixed'), days ('day') or months ('month')."""

    kind: str
    size: int

    def __post_init__(self):
        if self.kind not in ("fixed", "day", "month"):
            raise BadArgument(f"a tick is of kind fixed, day or month, not {self.kind}")
        if self.size < 1:
            raise BadArgument("a tick must be longer than nothing")

    @property
    def span(self) -> Span:
        return self.times(1)

    @property
    def text(self) -> str:
        return self.span.text

    def times(self, count: int) -> Span:
        """The span of `count` ticks."""
        field = {"fixed": "microseconds", "day": "days", "month": "months"}[self.kind]
        return Span(**{field: self.size * count})


def parse_span(text: str, name: str = "an interval") -> Span:
    """Read an SQL interval literal: whole numbers with units ('14 days', '1 year 6 months') and clock times ('24:00').

    Raises BadArgument, which calls it `name`, for anything else PostgreSQL would take (signs, fractions, ISO 8601, 'ago'): such lengths
    are rarely meant.
    """
    try:
        return _span(text)
    except BadArgument as refusal:
        raise BadArgument(refusal.message.replace("an interval", name, 1), hint=refusal.hint) from refusal


def _span(text: str) -> Span:
    totals = {"months": 0, "days": 0, "microseconds": 0}
    rest = text.strip().lower()
    if not rest:
        raise BadArgument("an interval is empty", hint="Write it like '14 days'.")
    while rest:
        rest = _take_part(rest, totals).lstrip()
    return Span(**totals)


def tick_from_span(span: Span) -> Tick:
    """The tick that lasts `span`; it must be of one kind."""
    parts = {"month": span.months, "day": span.days, "fixed": span.microseconds}
    used = [(kind, size) for kind, size in parts.items() if size]
    if len(used) != 1:
        raise BadArgument(
            f"a tick cannot mix units: {span.text}",
            hint="Give months, days or hours alone, like tick => '1 day'.",
        )
    return Tick(*used[0])


def whole_ticks(span: Span, tick: Tick, name: str) -> int:
    """How many ticks `span` lasts, at least 1; `name` says in messages which argument it is (e.g. 'the window').

    Raises BadArgument, with the alternative, when the span is of another kind than the tick, shorter than it, or not a multiple.
    """
    _refuse_other_kind(span, tick, name)
    length = span.microseconds if tick.kind == "fixed" else span.days if tick.kind == "day" else span.months
    if length < tick.size:
        raise BadArgument(
            f"{name} of {span.text} is shorter than the tick of {tick.text}",
            hint=f"Nothing shorter than {tick.text} can be told apart in this table.",
        )
    count, remainder = divmod(length, tick.size)
    if remainder:
        raise BadArgument(
            f"{name} of {span.text} is not a multiple of the tick of {tick.text}",
            hint=f"The nearest whole lengths are {tick.times(count).text} and {tick.times(count + 1).text}.",
        )
    return count


def _refuse_other_kind(span: Span, tick: Tick, name: str) -> None:
    """Days, hours and months measure different things; say which one this tick needs."""
    if tick.kind == "fixed" and (span.days or span.months):
        hint = (
            f"A local day may last 23 or 25 hours: write {_in_hours(span)}." if not span.months else "Track the table with tick => '1 day'."
        )
    elif tick.kind == "day" and span.microseconds:
        whole = span.microseconds % MICROSECONDS_PER_DAY == 0
        hint = f"Write {_in_days(span)}." if whole else "Track the table with a tick of hours, like tick => '1 hour'."
    elif tick.kind == "day" and span.months:
        hint = "Months are of unequal length: write days, or track the table with tick => '1 month'."
    elif tick.kind == "month" and (span.days or span.microseconds):
        hint = "Write months, or track the table with tick => '1 day'."
    else:
        return
    raise BadArgument(f"{name} of {span.text} cannot be counted in ticks of {tick.text}", hint=hint)


def _in_hours(span: Span) -> str:
    hours = Span(microseconds=span.days * MICROSECONDS_PER_DAY + span.microseconds)
    return f"'{hours.text}'"


def _in_days(span: Span) -> str:
    days = Span(span.months, span.days + span.microseconds // MICROSECONDS_PER_DAY)
    return f"'{days.text}'"


def _take_part(rest: str, totals: dict[str, int]) -> str:
    """Add the leading part of an interval literal to `totals`; return what follows it."""
    if match := _CLOCK.match(rest):
        hours, minutes, seconds = (int(group or 0) for group in match.groups())
        totals["microseconds"] += hours * MICROSECONDS_PER_HOUR + (minutes * 60 + seconds) * MICROSECONDS_PER_SECOND
    elif match := _QUANTITY.match(rest):
        field, factor = _unit(match[2])
        totals[field] += int(match[1]) * factor
    else:
        raise BadArgument("an interval is not understood", hint="Write whole numbers with units, like '14 days' or '1 month'.")
    return rest[match.end() :]


def _unit(word: str) -> tuple[str, int]:
    unit = _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
    if unit is None:
        raise BadArgument("an interval has an unknown unit", hint="Known units: year, month, week, day, hour, minute, second.")
    return unit


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}" if count else ""


def _clock_parts(microseconds: int) -> list[str]:
    hours, rest = divmod(microseconds, MICROSECONDS_PER_HOUR)
    minutes, rest = divmod(rest, 60 * MICROSECONDS_PER_SECOND)
    seconds, rest = divmod(rest, MICROSECONDS_PER_SECOND)
    units = ((hours, "hour"), (minutes, "minute"), (seconds, "second"), (rest, "microsecond"))
    return [_counted(count, unit) for count, unit in units]
