"""Fresh noise for every window: one node per answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbext.errors import BadArgument
from dbext.mechanisms.protocol import Node, check_period
from dbext.privacy.pattern import Filter, Pattern, Single, Windows


@dataclass(frozen=True)
class IndependentWindows:
    """One window per period, each noised by itself; overlapping windows are charged once each."""

    windows: Windows

    name = "independent_windows"

    def __post_init__(self):
        if self.windows.lead:
            raise BadArgument("independent windows have no older blocks")

    @property
    def horizon(self) -> int | None:
        """Number of periods; None is endless."""
        return self.windows.count

    def window(self, period: int) -> Filter:
        """Return the window of a period."""
        check_period(period, self.horizon)
        return self.windows.filter(period)

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the one node of the period."""
        return (Node(period, *self.window(period)),)

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return the one node of the period."""
        check_period(period, self.horizon)
        return ((period, 1),)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the windows."""
        return (self.windows,)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        return {"kind": self.name, "windows": self.windows.to_json()}


@dataclass(frozen=True)
class OneWindow:
    """One answer about one fixed window."""

    start: int | None
    end: int

    name = "one_window"
    horizon = 1

    def window(self, period: int) -> Filter:
        """Return the window."""
        check_period(period, self.horizon)
        return self.start, self.end

    def nodes(self, period: int) -> tuple[Node, ...]:
        """Return the one node."""
        return (Node(1, *self.window(period)),)

    def answer(self, period: int) -> tuple[tuple[int, int], ...]:
        """Return the one node."""
        check_period(period, self.horizon)
        return ((1, 1),)

    def patterns(self) -> tuple[Pattern, ...]:
        """Return the window."""
        return (Single(self.start, self.end),)

    def to_json(self) -> dict[str, Any]:
        """Return the tagged form that `mechanism_from_json` reads."""
        return {"kind": self.name, "start": self.start, "end": self.end}
