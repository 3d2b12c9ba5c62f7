"""Charges with the prices that one entry type pays: what the accountant adds up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from dbext.privacy.cells import PricedFilter
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint
from dbext.privacy.measure import most_events
from dbext.privacy.noise import Response
from dbext.privacy.pattern import Filter, Pattern
from dbext.privacy.pico import ceil_divide


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

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[PricedFilter]:
        """Yield the priced filters that hold a tick in (since, until]; a lifetime price is one filter over the whole span."""
        if self.lifetime is not None:
            # Of two entries in each other's place one may touch this charge and the other one the next: every entry pays all reports.
            span = (None, None) if isinstance(self.charge.noise, Response) else self.pattern.span()
            yield PricedFilter(*span, self.lifetime, self.lifetime)
            return
        prices: dict[int | None, tuple[int, int]] = {}
        whole = since is None and until is None and self.pattern.is_finite
        for start, end in _all_filters(self.pattern) if whole else self.pattern.filters(since, until):
            ticks = None if start is None else end - start
            if ticks not in prices:
                prices[ticks] = self._prices(ticks)
            yield PricedFilter(start, end, *prices[ticks])

    def _prices(self, ticks: int | None) -> tuple[int, int]:
        """Return the opening and the later price of a filter of `ticks` ticks.

        n <= s events in a filter of sensitivity s cost at most n / s of what s events cost, because cost(n) / n grows with n:
        Laplace in epsilon is linear, Gaussian rho quadratic, and what a pure step costs in rho grows faster than epsilon (`gaussian`).
        """
        later = self.charge.cost_per_filter(self.constraint, ticks, self.pure)
        if self.per_event:
            each = ceil_divide(later, most_events(ticks, self.constraint))
            return each, each
        return self.charge.opening_cost(self.constraint, ticks, self.pure), later


@lru_cache(maxsize=8)
def _all_filters(pattern: Pattern) -> tuple[Filter, ...]:
    """Return the filters of a finite pattern: a plan asks for them once for each price that it tries."""
    return tuple(pattern.filters())
