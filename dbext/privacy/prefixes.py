"""The filters of reports about a state: everything up to the end of a period, again at every period."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dbext.privacy.grid import MonthGrid, RegularGrid

Filter = tuple[int | None, int]


@dataclass(frozen=True)
class Prefixes:
    """(-infinity, end(n)] for n = 1 ... count: an entry touches every one from its first mutation on, so that there is a last one."""

    grid: RegularGrid | MonthGrid
    count: int

    is_finite = True
    cycle = None

    def filters(self, since: int | None = None, until: int | None = None) -> Iterator[Filter]:  # noqa: ARG002 all of them reach back
        """Yield the filters that hold a tick after `since`, in order."""
        for period in range(1, self.count + 1):
            if since is None or self.grid.end(period) > since:
                yield None, self.grid.end(period)

    def span(self) -> tuple[int | None, int | None]:
        """Return the last filter."""
        return None, self.grid.end(self.count)

    def through(self, period: int) -> Prefixes:
        """Return the filters up to a period."""
        return replace(self, count=min(period, self.count))

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `pattern_from_json` reads."""
        return {"kind": "prefixes", "grid": self.grid.to_json(), "count": self.count}
