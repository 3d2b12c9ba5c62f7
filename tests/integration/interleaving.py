"""Several sessions whose steps are run in every order that keeps each session's own, waiting on locks and never on a clock."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any

import psycopg

#: Seconds until a step counts as hanging.
PATIENCE = 60


def orders(*lengths: int) -> list[tuple[int, ...]]:
    """Return every order of the steps of sessions with so many steps, as numbers of sessions."""
    tickets = [session for session, length in enumerate(lengths) for _ in range(length)]
    return sorted(set(itertools.permutations(tickets)))


class Actor:
    """A session with a thread of its own, which runs one step at a time."""

    def __init__(self, database: Any, now: str = ""):
        self.session = database.connect()
        self.session.execute("SELECT set_config('dbext.now', %s, false)", (now,))
        self.error: psycopg.Error | None = None
        self._running: threading.Thread | None = None

    def begin(self, statement: str) -> None:
        """Run a step once the one before it is through."""
        self.finish()
        self._running = threading.Thread(target=self._run, args=(statement,), daemon=True)
        self._running.start()

    def finish(self) -> None:
        """Wait until the step that runs is through."""
        if self._running is not None:
            self._running.join(PATIENCE)
            assert not self._running.is_alive(), "a step hangs"

    @property
    def is_busy(self) -> bool:
        return self._running is not None and self._running.is_alive()

    def _run(self, statement: str) -> None:
        try:
            self.session.execute(statement)
        except psycopg.Error as error:
            self.error = self.error or error


def settle(watch: Any, actors: Sequence[Actor]) -> None:
    """Wait until every session is through with its step or waits for a lock of another."""
    deadline = time.monotonic() + PATIENCE
    while any(actor.is_busy and not waits(watch, actor) for actor in actors):
        assert time.monotonic() < deadline, "a step neither ends nor waits for a lock"
        time.sleep(0.001)


def waits(watch: Any, actor: Actor) -> bool:
    """Whether a session waits for another one, according to the server."""
    return bool(watch.execute("SELECT pg_blocking_pids(%s) <> '{}'", (actor.session.info.backend_pid,)).fetchone()[0])


def play(database: Any, order: Sequence[int], steps: Sequence[Sequence[str]], now: Sequence[str] = ("", "")) -> list[Actor]:
    """Run the steps of each session in the given order; a step of a session that waits is run when its session is free again.

    Returns the sessions when all are through.
    """
    watch = database.superuser
    actors = [Actor(database, moment) for _, moment in zip(steps, now, strict=True)]
    waiting = [list(mine) for mine in steps]
    for number in order:
        if not actors[number].is_busy:
            actors[number].begin(waiting[number].pop(0))
            settle(watch, actors)
    deadline = time.monotonic() + PATIENCE
    while any(waiting) or any(actor.is_busy for actor in actors):
        free = [number for number, actor in enumerate(actors) if waiting[number] and not actor.is_busy]
        if free:
            actors[free[0]].begin(waiting[free[0]].pop(0))
        settle(watch, actors)
        assert time.monotonic() < deadline, "sessions wait for each other for ever"
    for actor in actors:
        actor.session.close()
    return actors
