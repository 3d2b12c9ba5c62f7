"""All that a worker keeps outside the cluster: the release target, and the witnesses of the ledger."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from dbext.control.database import api_schema
from dbext.control.delivery import Deliveries
from dbext.control.target import Delivery
from dbext.control.witness import Guard, file_witness

#: Seconds between two words to the ledger that its witnesses vouch for it, if a lease is much longer; a third of it else.
LONGEST_VOUCH = 300.0


@dataclass(frozen=True)
class Places:
    """Where things outside are: how to reach the release target (empty: none), and the witness file (None: none)."""

    release_dsn: str = ""
    witness: Path | None = None
    new_witness: bool = False


class Outside:
    """What is outside, for one connection to the source."""

    def __init__(self, source: psycopg.Connection, deliveries: Deliveries, file_guard: Guard | None):
        self.source, self.deliveries, self._file_guard = source, deliveries, file_guard
        self._next_vouch = 0.0

    @property
    def has_witness(self) -> bool:
        """Whether anything outside holds what was charged, so that nothing may be shown before it does."""
        return self._file_guard is not None or self.deliveries.is_witness

    def check(self) -> None:
        """Refuse to publish if anything outside holds what the source has forgotten."""
        if self._file_guard is not None:
            self._file_guard.check()
        self.deliveries.check()

    def note(self) -> bool:
        """Let all witnesses hold what was charged; False if one cannot be reached now. If all do, vouch for the ledger."""
        if self._file_guard is not None:
            self._file_guard.note()
        if not self.deliveries.note():
            return False
        if self.has_witness and time.monotonic() >= self._next_vouch:
            ((lease,),) = self.source.execute("SELECT extract(epoch FROM dbext_private.vouch())::float8").fetchall()
            self._next_vouch = time.monotonic() + min(LONGEST_VOUCH if lease is None else lease / 3, LONGEST_VOUCH)
        return True

    def deliver(self) -> tuple[Delivery, ...]:
        """Deliver what is due to be."""
        return self.deliveries.deliver()


@contextlib.contextmanager
def outside(source: psycopg.Connection, places: Places, *, thorough: bool) -> Iterator[Outside]:
    """Open what is outside and check the ledger against it. `thorough`: compare all that the release target has of each release."""
    api_schema(source)
    with contextlib.ExitStack() as opened:
        file_guard = None
        if places.witness is not None:
            file = opened.enter_context(file_witness(source, places.witness, may_begin=places.new_witness))
            file_guard = Guard(source, file)
        deliveries = opened.enter_context(contextlib.closing(Deliveries(source, places.release_dsn, thorough=thorough)))
        found = Outside(source, deliveries, file_guard)
        found.check()
        found.note()
        yield found
