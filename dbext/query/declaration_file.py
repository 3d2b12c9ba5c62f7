"""A declaration in a file, with everything a plan needs beside it: lines `-- name: value`, then the SQL text. No database is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from dbext.errors import BadArgument
from dbext.privacy.constraint import Constraint, EntryType
from dbext.query.calendar import Tick, parse_span, tick_from_span, whole_ticks
from dbext.query.compiler import compile_declaration
from dbext.query.declaration import Declaration
from dbext.query.shape import Request

NAMES = ("tick", "every", "measure", "epsilon", "delta", "horizon", "band", "noise", "max_mutations", "active_within", "groups")
_MONDAY = date(2000, 1, 3)


@dataclass(frozen=True)
class DeclarationFile:
    """What a file says: the declaration, the request, the tick, the one type of entries, delta, and how many group keys there are."""

    declaration: Declaration
    request: Request
    tick: Tick
    types: tuple[EntryType, ...]
    delta: Fraction
    groups: int


def read_declaration(text: str) -> DeclarationFile:
    """Read a file. Columns are not known, so that names and types in it are taken as they stand; dates are those of whole days."""
    settings, sql = _split(text)
    tick = tick_from_span(parse_span(settings.get("tick", "1 day"), "tick"))
    declaration = _placed(compile_declaration(sql), tick)
    if not declaration.is_count:
        raise BadArgument("a declaration file counts with count(*) alone", hint="Put conditions and the window into WHERE.")
    bounds = [bound.tick for bound in (declaration.range.lower, declaration.range.upper) if getattr(bound, "tick", None) is not None]
    request = Request(
        start_tick=min(bounds, default=0),
        every=parse_span(settings["every"], "every") if "every" in settings else None,
        measure=settings.get("measure"),
        epsilon=_number(settings, "epsilon", "1"),
        horizon=_whole(settings, "horizon"),
        band=settings.get("band"),
        noise=settings.get("noise"),
    )
    within = whole_ticks(parse_span(settings["active_within"]), tick, "active_within") if "active_within" in settings else None
    types = (EntryType(1, "any", Constraint(_whole(settings, "max_mutations"), within)),)
    groups = (_whole(settings, "groups") or 1) if declaration.grouped else 1
    return DeclarationFile(declaration, request, tick, types, _number(settings, "delta", "0"), groups)


def _split(text: str) -> tuple[dict[str, str], str]:
    """Return the settings of the leading comment lines, and the rest."""
    settings: dict[str, str] = {}
    lines = text.splitlines()
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("--")):
        name, colon, value = lines.pop(0).strip().removeprefix("--").partition(":")
        if not colon:
            continue
        if name.strip() not in NAMES:
            raise BadArgument(f"a declaration file knows no {name.strip()!r}", hint=f"It knows {', '.join(NAMES)}.")
        settings[name.strip()] = value.strip()
    return settings, "\n".join(lines).strip()


def _placed(declaration: Declaration, tick: Tick) -> Declaration:
    """Put dates on boundaries of ticks of whole days."""
    return declaration.with_boundaries({text: _boundary(text, tick) for text in declaration.fixed_texts})


def _boundary(text: str, tick: Tick) -> int | None:
    try:
        days = (date.fromisoformat(text.strip()) - _MONDAY).days
    except ValueError as fault:
        raise BadArgument("a fixed time in a declaration file is a date, such as 2015-09-01") from fault
    if tick.kind != "day":
        raise BadArgument("dates in a declaration file need a tick of days")
    return days // tick.size if days % tick.size == 0 else None


def _number(settings: Mapping[str, str], name: str, default: str) -> Fraction:
    try:
        return Fraction(settings.get(name, default))
    except (ValueError, ZeroDivisionError) as fault:
        raise BadArgument(f"{name} must be a number") from fault


def _whole(settings: Mapping[str, str], name: str) -> int | None:
    if name not in settings:
        return None
    try:
        return int(settings[name])
    except ValueError as fault:
        raise BadArgument(f"{name} must be a whole number") from fault
