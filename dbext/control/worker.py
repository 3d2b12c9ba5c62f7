"""The worker: publishes whatever falls due, for ever, as one leader among any number of workers.

The leader holds a session-level advisory lock on the very connection it publishes over, so a worker that lost its
connection has lost the lead with it. Its log names releases and counts periods; it never holds data.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone

import psycopg

from dbext.control.database import connect
from dbext.control.failures import ExitCode, is_connection_loss
from dbext.control.outside import Outside, Places, outside
from dbext.control.publishing import Outcome, publish
from dbext.errors import DbextError

#: Keys of the leader's advisory lock in each database: the letters "dbex", and 1.
LEADER_LOCK = (0x64626578, 1)
APPLICATION_NAME = "dbext worker"
#: Seconds between two looks at the schedule when nothing is due sooner: releases may be declared at any time.
LONGEST_WAIT = 30.0
#: Seconds between two attempts of a worker that stands by to take the lead.
STANDBY_WAIT = 2.0
#: Seconds after a due time before it is tried, so that clocks of client and server need not agree exactly.
GRACE = 0.5
#: Seconds before a second attempt after a failure, doubled each time up to the last.
FIRST_PAUSE, LAST_PAUSE = 1.0, 60.0
#: Seconds until a failed delivery is tried again.
RETRY = 5.0
#: Seconds between two looks at the ledger for charges that a witness does not hold yet.
WATCH = 2.0
#: For workers that keep nothing outside.
NOWHERE = Places()

log = logging.getLogger("dbext.worker")


class Worker:
    """One worker process. `every`: seconds between publications, None to follow the releases' own schedule.

    `places`: what it keeps outside the cluster.
    """

    def __init__(self, dsn: str, every: float | None = None, places: Places = NOWHERE):
        self.dsn, self.places, self.every = dsn, places, every
        self._stopping = threading.Event()
        self._connection: psycopg.Connection | None = None
        self._pause = FIRST_PAUSE

    def stop(self, *_: object) -> None:
        """Stop soon: cancel the statement that runs (its transaction leaves nothing behind) and begin no other."""
        self._stopping.set()
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=5)

    def run(self) -> ExitCode:
        """Work until stopped, through lost connections and restarted servers."""
        while not self._stopping.is_set():
            try:
                with self._connected() as connection:
                    self._serve(connection)
            except (psycopg.Error, DbextError) as error:
                self._after(error)
        log.info("stopped")
        return ExitCode.DONE

    def run_once(self) -> ExitCode:
        """Publish what is due now, if no other worker leads, and return."""
        with self._connected() as connection:
            if not self._lead(connection):
                log.info("another worker leads this database")
                return ExitCode.NOTHING_TO_DO
            with outside(connection, self.places, thorough=True) as found:
                done = self._publish(connection, found)
        if done.failed:
            return ExitCode.FAILED
        return ExitCode.DONE if done.periods else ExitCode.NOTHING_TO_DO

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        with connect(self.dsn, APPLICATION_NAME) as connection:
            log.info("connected to database %s", connection.info.dbname)
            self._connection = connection
            try:
                yield connection
            finally:
                self._connection = None

    def _serve(self, connection: psycopg.Connection) -> None:
        """Wait for the lead, then publish time and again; returns when stopping, raises when the connection is lost."""
        stands_by = False
        while not self._stopping.is_set() and not self._lead(connection):
            if not stands_by:
                log.info("standing by: another worker has the lead")
            stands_by = True
            self._stopping.wait(STANDBY_WAIT)
        if self._stopping.is_set():
            return
        with outside(connection, self.places, thorough=True) as found:
            while not self._stopping.is_set():
                done = self._publish(connection, found)
                self._pause = FIRST_PAUSE
                self._rest(self._time_to_next(done), found)

    def _rest(self, seconds: float, found: Outside) -> None:
        """Wait; meanwhile let witnesses hold what questions were charged."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._stopping.wait(min(left, WATCH) if found.has_witness else left):
            if found.has_witness:
                found.note()

    def _lead(self, connection: psycopg.Connection) -> bool:
        ((leads,),) = connection.execute("SELECT pg_catalog.pg_try_advisory_lock(%s, %s)", LEADER_LOCK).fetchall()
        if leads:
            log.info("this worker leads")
        return leads

    def _publish(self, connection: psycopg.Connection, found: Outside) -> Outcome:
        done = publish(connection, found)
        for one in done.publications:
            if one.periods:
                log.info("published %s: %d period(s)", one.release, one.periods)
            if one.error:
                log.error("release %s: %s", one.release, one.error)
        for warning in done.warnings:
            log.warning("%s", warning)
        for one in done.deliveries:
            if one.error or one.periods:
                log.log(logging.ERROR if one.error else logging.INFO, "%s", one)
        return done

    def _time_to_next(self, done: Outcome) -> float:
        """Return the seconds to wait: the fixed interval, or until the first release is due (at most LONGEST_WAIT)."""
        if self.every is not None:
            return self.every
        now = datetime.now(timezone.utc)
        waits = [(one.next_due - now).total_seconds() + GRACE for one in done.publications if one.next_due is not None and not one.error]
        retry = [RETRY] if any(one.error for one in done.deliveries) else []
        return min([LONGEST_WAIT, *retry, *(max(wait, GRACE) for wait in waits)])

    def _after(self, error: psycopg.Error | DbextError) -> None:
        """Say what went wrong and pause; a cancelled statement during a stop is no error."""
        if self._stopping.is_set():
            return
        log.warning("%s; trying again in %g s", _without_data(error), self._pause)
        self._stopping.wait(self._pause)
        self._pause = min(self._pause * 2, LAST_PAUSE)


def _without_data(error: psycopg.Error | DbextError) -> str:
    """Describe an error for the log. Our own messages hold no data; those of the database may, so only their code is kept."""
    if isinstance(error, DbextError):
        return error.message
    if is_connection_loss(error):
        return "connection lost"
    is_ours = (error.sqlstate or "").startswith("DP")
    return error.diag.message_primary if is_ours else f"{type(error).__name__}, SQLSTATE {error.sqlstate}"


def run_worker(dsn: str, places: Places, every: float | None, *, once: bool) -> ExitCode:
    """Run a worker that SIGTERM and SIGINT stop cleanly."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    worker = Worker(dsn, every, places)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, worker.stop)
    return worker.run_once() if once else worker.run()
