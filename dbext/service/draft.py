"""From the arguments of a declaration to everything a plan needs. Reads the catalog and no data of the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dbext.database import bounds, catalog, moments, rights
from dbext.database.catalog import TrackedTable
from dbext.database.ledger import Budget
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported
from dbext.query.bounds import Bounds
from dbext.query.calendar import Span
from dbext.query.column import Column
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.declaration import Declaration
from dbext.query.groups import DataKeys, GroupSource, group_source
from dbext.query.planner import Request
from dbext.query.predicate import columns_of
from dbext.service.literals import check_literals
from dbext.service.numbers import delta_from, epsilon_from
from dbext.service.wish import Wish

#: No error that anybody could mean is larger.
LARGEST_ERROR = 10**18
EXAMPLE = "dp_create_release(..., epsilon => 0.5)"


@dataclass(frozen=True)
class Draft:
    """A declaration bound to its table, with the caller's wishes; `groups` says where its keys come from (None: no groups)."""

    table: TrackedTable
    columns: tuple[Column, ...]
    declaration: Declaration
    groups: Any
    request: Request
    bounds: Mapping[int, Bounds]

    @property
    def key_delta(self) -> Fraction | None:
        """The delta that taking keys from the data may cost; None: they are public."""
        return self.groups.delta if isinstance(self.groups, DataKeys) else None

    @property
    def wish(self) -> Wish:
        """Which noise is asked for, at which epsilon."""
        epsilon = None if self.request.asks_error else self.request.epsilon
        return Wish(self.request.noise, None if epsilon is None else str(epsilon))

    def request_for(self, session: Session, budget: Budget) -> Request:
        """Return the wishes as they stand to a budget now."""
        noise, whole = self.wish.settled(session, budget)
        return replace(self.request, noise=noise, whole=whole)

    @property
    def positions(self) -> frozenset[int]:
        """Positions of the columns that the declaration reads."""
        return positions_of(self.declaration)

    @property
    def kept_positions(self) -> frozenset[int]:
        """Positions of the columns that statements need: those, and one that tells rows of a unit apart."""
        row = self.declaration.row
        return self.positions if row is None else self.positions | {row.column.position}

    @property
    def group_columns(self) -> tuple[Column, ...]:
        """The columns grouped by, beside bins."""
        return tuple(one.column for one in self.declaration.group_by)


def draft(
    session: Session,
    declaration: str | None,
    *,
    every: dict[str, int] | None,
    measure: str | None,
    epsilon: str | None,
    groups: str | None,
    start: str | None,
    horizon: int | None,
    max_error: str | None,
    band: str | None = None,
    levels: list[dict[str, int] | None] | None = None,
    ranges: list[dict[str, int] | None] | None = None,
    at_horizon: str | None = None,
    key_delta: str | None = None,
    noise: str | None = None,
    max_errors: str | None = None,
) -> Draft:
    """Compile a declaration and bind it; refuses whatever the caller may not read."""
    table, columns, bound = _bound(session, declaration)
    request = Request(
        start_tick=_start(session, table, start),
        every=None if every is None else _span("every", every),
        measure=measure,
        epsilon=None if epsilon is None and (max_error, max_errors) != (None, None) else Fraction(epsilon_from(epsilon, EXAMPLE)),
        horizon=horizon,
        max_error=_max_error(max_error),
        aligned=start is None,
        first_tick=table.first_tick,
        band=band,
        levels=_spans("levels", levels),
        ranges=_spans("ranges", ranges),
        at_horizon=at_horizon,
        noise=noise,
        max_errors=_max_errors(max_errors),
    )
    keyed = _key_source(bound, groups, key_delta)
    return Draft(table, tuple(columns), bound, keyed, request, bounds.of_table(session, table.table_id))


def _bound(session: Session, declaration: str | None) -> tuple[TrackedTable, list[Column], Declaration]:
    """Return the table, its columns, and the declaration that names them."""
    if declaration is None:
        raise BadArgument("the declaration is missing")
    parsed = compile_declaration(declaration)
    table = catalog.tracked_by_name(session, parsed.table.schema, parsed.table.name)
    rights.require_captured(table)
    columns = catalog.columns(session, table.table_id)
    return table, columns, _checked(session, table, resolve(parsed, columns))


def _checked(session: Session, table: TrackedTable, resolved: Declaration) -> Declaration:
    """Return a declaration with its fixed times on boundaries; refuses columns that the caller may not ask about, and bad literals."""
    bound = _with_boundaries(session, table, resolved)
    rights.require_asking(session, table.table_id, table.shown_name, positions_of(bound))
    for predicate in (bound.predicate, *(figure.predicate for figure in bound.figures)):
        check_literals(session, table, predicate)
    return bound


def _key_source(declaration: Declaration, groups: str | None, key_delta: str | None) -> GroupSource | None:
    """Return where keys come from; None without groups. Refuses a key_delta that nothing is to be spent on."""
    if key_delta is None:
        return group_source(declaration, groups) if declaration.grouped or groups is not None else None
    if groups is not None:
        raise BadArgument("keys are listed with groups, or taken from the data with key_delta: not both")
    if not declaration.grouped:
        raise BadArgument("key_delta is for keys of a GROUP BY, and the declaration has none")
    if declaration.row is not None:
        raise NotSupported(
            "keys are not taken from the data of units of several rows: one unit alone could show several", hint="List them with groups =>."
        )
    if declaration.bins:
        raise NotSupported("keys are not taken from the data beside bins, which are public", hint="List the other keys with groups =>.")
    value = delta_from(key_delta, "key_delta")
    if value == 0:
        raise BadArgument("key_delta must be above 0: without it no key of the data can be shown")
    return DataKeys(Fraction(value))


def positions_of(declaration: Declaration) -> frozenset[int]:
    """Return the positions of the columns that a resolved declaration reads."""
    found = columns_of(declaration.predicate) | {one.column.position for one in declaration.group_by}
    found |= {one.column.column.position for one in declaration.bins}
    for figure in declaration.figures:
        found |= columns_of(figure.predicate) | ({figure.column.column.position} if figure.column is not None else set())
    return frozenset(found)


def _with_boundaries(session: Session, table: TrackedTable, declaration: Declaration) -> Declaration:
    name = "a fixed time of dp_time"
    ticks = {text: moments.boundary(session, table, name, text) for text in declaration.fixed_texts}
    for boundary in ticks.values():
        _require_history(session, table, name, table.first_tick if boundary is None else boundary)
    return declaration.with_boundaries(ticks)


def _span(name: str, parts: dict[str, int]) -> Span:
    if any(value < 0 for value in parts.values()):
        raise BadArgument(f"{name} must be positive")
    return Span(**parts)


def _spans(name: str, given: list[dict[str, int] | None] | None) -> tuple[Span, ...]:
    if given is None:
        return ()
    if not given or None in given:
        raise BadArgument(f"{name} must be a list of intervals", hint=f"Write it like {name} => '{{1 day, 7 days, 28 days}}'.")
    return tuple(_span(name, parts) for parts in given)


def _start(session: Session, table: TrackedTable, start: str | None) -> int:
    if start is None:
        return max(moments.present_boundary(session, table), table.history_begins)
    floor, ceiling = moments.snap(session, table, "start", start)
    if floor != ceiling:
        before, after = (moments.shown(session, table, boundary) for boundary in (floor, ceiling))
        raise BadArgument("start is not a tick boundary", hint=f"The nearest ones are {before} and {after}.")
    _require_history(session, table, "start", floor)
    return floor


def _require_history(session: Session, table: TrackedTable, name: str, boundary: int) -> None:
    if boundary < table.history_begins:
        begins = moments.shown(session, table, table.history_begins)
        raise BadArgument(f"{name} lies before the history of table {table.shown_name}, which begins at {begins}")


def _max_error(given: str | Decimal | None, name: str = "max_error") -> Fraction | None:
    if given is None:
        return None
    try:
        value = Fraction(given)
    except ValueError as fault:
        raise BadArgument(f"{name} must be a finite number") from fault
    if not 0 < value <= LARGEST_ERROR:
        raise BadArgument(f"{name} must be positive, and at most {LARGEST_ERROR}")
    return value


def _max_errors(text: str | None) -> tuple[tuple[str, Fraction], ...]:
    """Return errors by the name of a figure, from a JSON object of numbers, which are read as they are written."""
    if text is None:
        return ()
    given = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    if not isinstance(given, dict) or not given or not all(isinstance(value, Decimal) for value in given.values()):
        raise BadArgument("max_errors must give numbers by the names of figures", hint="Write it like max_errors => '{\"n\": 10}'.")
    return tuple((name, _max_error(value, "each of max_errors")) for name, value in given.items())
