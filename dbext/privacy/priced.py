"""Charges with the prices that one entry type pays: what the accountant adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from dbext.privacy.cells import PricedFilter
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import most_events
from dbext.privacy.noise import Response
from dbext.privacy.pattern import Filter, Pattern
from dbext.privacy.pico import ceil_divide

#: A pattern, or the one filter that a lifetime price is for.
Filters = Pattern | tuple[int | None, int | None]


@dataclass(frozen=True)
class Priced:
    """A charge as one entry type sees it.

    `per_event` prices a filter at what one event costs. With `lifetime` the charge is one filter over its whole span, which an entry
    that touches it at all pays once and for all.
    """

    charge: Charge
    constraint: Constraint
    pure: bool
    per_event: bool = False
    lifetime: int | None = None

    @property
    def pattern(self) -> Pattern:
        """The charge's filters."""
        return self.charge.pattern

    @property
    def is_endless(self) -> bool:
        """Whether filters go on for ever, each with its own price."""
        return self.lifetime is None and not self.pattern.is_finite

    def filters(self, since: int, until: int) -> Iterator[PricedFilter]:
        """Yield the priced filters of an endless pattern that hold a tick in (since, until]."""
        prices: dict[int | None, tuple[int, int]] = {}
        for start, end in self.pattern.filters(since, until):
            ticks = None if start is None else end - start
            if ticks not in prices:
                prices[ticks] = self.prices(ticks)
            yield PricedFilter(start, end, *prices[ticks])

    def finite(self) -> tuple[Filters, dict[int | None, tuple[int, int]]]:
        """Return where finite filters come from, and the prices of those of each length; a lifetime price is one over the whole span."""
        if self.lifetime is None:
            return self.pattern, {ticks: self.prices(ticks) for ticks in _lengths(self.pattern)}
        # Of two entries in each other's place one may touch this charge and the other one the next: every entry pays all reports.
        start, end = (None, None) if isinstance(self.charge.noise, Response) else self.pattern.span()
        return (start, end), {_length(start, end): (self.lifetime, self.lifetime)}

    def prices(self, ticks: int | None) -> tuple[int, int]:
        """Return the opening and the later price of a filter of `ticks` ticks.

        n <= s events in a filter of sensitivity s cost at most n / s of what s events cost, because cost(n) / n grows with n:
        Laplace in epsilon is linear, Gaussian rho quadratic.
        """
        later = self.charge.cost_per_filter(self.constraint, ticks, self.pure)
        if self.per_event:
            each = ceil_divide(later, most_events(ticks, self.constraint))
            return each, each
        return self.charge.opening_cost(self.constraint, ticks, self.pure), later


class Merged(NamedTuple):
    """Finite filters at prices in whole multiples of a unit: where they come from, and (length, opening, later) for each length.

    Charges of one pattern are one, for whoever touches a filter pays for all of them. Charges that differ in nothing but their noise have
    the same parts, so that the worst entry is looked for once.
    """

    unit: int
    parts: tuple[tuple[Filters, tuple[tuple[int | None, int, int], ...]], ...]


def merged(priced: Iterable[Priced]) -> Merged:
    """Return the filters of charges that end."""
    added: dict[Filters, dict[int | None, tuple[int, int]]] = {}
    for one in priced:
        filters, prices = one.finite()
        known = added.setdefault(filters, {})
        for ticks, (opening, later) in prices.items():
            before = known.get(ticks, (0, 0))
            known[ticks] = before[0] + opening, before[1] + later
    unit = gcd(*(price for prices in added.values() for both in prices.values() for price in both)) or 1
    parts = ((of, tuple((ticks, one // unit, other // unit) for ticks, (one, other) in prices.items())) for of, prices in added.items())
    return Merged(unit, tuple(parts))


def filters_of(parts: Iterable[tuple[Filters, tuple[tuple[int | None, int, int], ...]]], unit: int) -> list[PricedFilter]:
    """Return the filters of parts, whose prices are in a unit."""
    found: list[PricedFilter] = []
    for filters, prices in parts:
        price = {ticks: (unit * opening, unit * later) for ticks, opening, later in prices}
        listed = (filters,) if isinstance(filters, tuple) else _all_filters(filters)
        found += [PricedFilter(start, end, *price[_length(start, end)]) for start, end in listed]
    return found


def _length(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start


@lru_cache(maxsize=8)
def _all_filters(pattern: Pattern) -> tuple[Filter, ...]:
    """Return the filters of a finite pattern: a plan asks for them once for each price that it tries."""
    return tuple(pattern.filters())


@lru_cache(maxsize=256)
def _lengths(pattern: Pattern) -> tuple[int | None, ...]:
    return tuple(dict.fromkeys(_length(start, end) for start, end in _all_filters(pattern)))
