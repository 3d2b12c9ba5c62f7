"""A release under audit, and its streams of noise: what was drawn, and what was published."""

from __future__ import annotations

from dataclasses import dataclass

from dbext.database.catalog import TrackedTable
from dbext.database.releases import Release
from dbext.query.plan import Plan
from dbext.service.due import Due, due_of
from dbext.service.noised import Noising


@dataclass(frozen=True)
class Audited:
    """A release under audit: all that was drawn of it, and all that was published."""

    release: Release
    table: TrackedTable
    due: Due

    @property
    def drawn(self) -> range:
        """Periods whose nodes were drawn."""
        return range(1, self.release.next_period)

    @property
    def answered(self) -> range:
        """Periods that are in the release table."""
        return range(1, self.release.next_answer)

    @property
    def streams(self) -> tuple[AuditedStream, ...]:
        """The streams of noise behind the release."""
        return tuple(AuditedStream(self, number) for number in range(len(self.due.noisings)))


@dataclass(frozen=True)
class AuditedStream:
    """One stream of a release under audit."""

    one: Audited
    number: int

    @property
    def noising(self) -> Noising:
        """What was noised."""
        return self.one.due.noisings[self.number]

    @property
    def plan(self) -> Plan:
        """With what."""
        return self.noising.plan

    @property
    def name(self) -> str:
        """The release, and the number of the stream if there are several."""
        name = self.one.release.name
        return name if len(self.one.due.noisings) == 1 else f"{name}, stream {self.number + 1}"


def audited(release: Release, table: TrackedTable) -> Audited:
    """Return a release with everything its statements are composed of."""
    return Audited(release, table, due_of(release, table))
