"""A release that is due, with everything its statements are composed of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbext.database.catalog import TrackedTable
from dbext.database.effects import tick_sums_sql
from dbext.database.nodes import Source
from dbext.database.release_table import ReleaseTable
from dbext.database.releases import Release
from dbext.privacy.key_checks import KeyChecks, key_checks_from_json
from dbext.query.plan import Plan
from dbext.query.publication import Publication, publication_from_json
from dbext.service.figures import figure_columns
from dbext.service.grouping import columns_from_json, groups_from_json
from dbext.service.noised import Noising

#: Values drawn, stored or written at once while catching up: bounds memory, whatever was missed.
VALUES_AT_ONCE = 200_000


@dataclass(frozen=True)
class Due:
    """A release whose row is locked, with everything its statements are composed of: a statement and what is noised for each stream.

    `floor` is the tick that stands for all before it. `checks` say when hidden group keys are looked at; None: keys are public.
    """

    release: Release
    publication: Publication
    noisings: tuple[Noising, ...]
    table: ReleaseTable
    sums_sql: tuple[str, ...]
    floor: int
    checks: KeyChecks | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the first stream: when periods end, and whether they do."""
        return self.publication.main

    @property
    def cells(self) -> int:
        """The number of group keys, or 1."""
        return self.noisings[0].cells // self.publication.streams[0].width

    @property
    def values(self) -> int:
        """How many numbers a period stores or writes."""
        return self.cells * sum(self.publication.width(place) for place in range(len(self.publication.readings)))


def due_of(release: Release, table: TrackedTable) -> Due:
    """Return everything that the statements of a release are composed of."""
    columns = columns_from_json(release.content["columns"])
    publication = publication_from_json(release.content["plan"], release.content["publication"], columns)
    groups = groups_from_json(release.content["groups"], columns)
    starts = [node.end for stream in publication.streams for node in stream.plan.leaves(1) if node.start is None]
    floor = max(starts, default=release.summed_through)
    beginning = min(table.first_tick, floor) - 1
    sources = [Source(release.release_id, number) for number in range(1, len(publication.streams) + 1)]
    numbered = list(zip(sources, publication.streams, strict=True))
    checks = key_checks_from_json(release.content["key_checks"]) if release.content.get("key_checks") else None
    measure = publication.main.measure
    return Due(
        release,
        publication,
        tuple(Noising(source, stream.plan, release.content["cells"] * stream.width, beginning) for source, stream in numbered),
        ReleaseTable(release.name, figure_columns(publication), groups, "", selected=checks is not None),
        tuple(
            tick_sums_sql((release.table_id, source.stream_no), measure, stream.predicate, groups, stream.term, stream.spread)
            for source, stream in numbered
        ),
        floor,
        checks,
    )


def batches(periods: Sequence[int], values: int) -> Iterator[Sequence[int]]:
    """Yield periods, or nodes, in pieces that fit into memory; each stands for so many values."""
    size = max(1, VALUES_AT_ONCE // values)
    for start in range(0, len(periods), size):
        yield periods[start : start + size]
