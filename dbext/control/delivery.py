"""What a worker does about a release target: find it, look whether it is ahead of us, deliver, and live through its outages."""

from __future__ import annotations

import contextlib

import psycopg

from dbext.control.database import connect
from dbext.control.failures import CannotConnect, is_connection_loss
from dbext.control.target import Delivery, Target, targeted
from dbext.control.target_tables import known_name
from dbext.errors import DbextError

APPLICATION_NAME = "dbext delivery"


class Deliveries:
    """The deliveries of one connection to the source. `dsn`: the release target, empty if none was given.

    Once the target was seen not to be ahead, its outages only delay deliveries: the source cannot be restored under a connection.
    """

    def __init__(self, source: psycopg.Connection, dsn: str, *, thorough: bool):
        self.source, self.dsn, self.thorough = source, dsn, thorough
        self._target: Target | None = None
        self._looked = False

    def check(self) -> None:
        """Refuse to publish if the target holds more than the source remembers, or cannot be asked."""
        self._open()

    def note(self) -> bool:
        """Let the target hold what was charged; False if it cannot be reached now."""
        try:
            target = self._open()
            if target is not None:
                target.guard.note()
        except psycopg.Error:
            if self.source.broken or self.source.closed:
                raise
            self.close()
            return False
        except CannotConnect:
            return False
        return True

    @property
    def is_witness(self) -> bool:
        """Whether there is a target, which holds what was charged."""
        return self._target is not None

    def deliver(self) -> tuple[Delivery, ...]:
        """Deliver what is due to be; whatever keeps the target from taking it is an error of the delivery, not ours."""
        name = self._name()
        if name is None:
            return ()
        if not self.dsn:
            return (Delivery(name, 0, "no --release-dsn was given, so that nobody delivers to it"),)
        try:
            target = self._open()
            return tuple(target.deliver()) if target else ()
        except psycopg.Error as error:
            if self.source.broken or self.source.closed:
                raise
            self.close()
            said = "the connection was lost" if is_connection_loss(error) else f"{type(error).__name__}, SQLSTATE {error.sqlstate}"
            return (Delivery(name, 0, said),)
        except DbextError as error:
            if error.sqlstate == "DP032":
                raise
            return (Delivery(name, 0, error.message),)

    def close(self) -> None:
        """Let go of the target."""
        if self._target is not None:
            with contextlib.suppress(psycopg.Error):
                self._target.connection.close()
            self._target = None

    def _name(self) -> str | None:
        """Return the target's name; releases of a database share one."""
        return next((one.target for one in targeted(self.source) if one.target is not None), None)

    def _open(self) -> Target | None:
        name = self._name()
        if not self.dsn or (name is None and self._looked):
            return None
        if self._target is None or self._target.connection.closed or self._target.name != name:
            self.close()
            connection = connect(self.dsn, APPLICATION_NAME, "--release-dsn")
            try:
                # A source that sends nothing there may have forgotten that it did.
                name = name or known_name(connection)
                self._looked = True
                if name is None:
                    connection.close()
                    return None
                target = Target(self.source, connection, name, thorough=self.thorough)
                target.require_not_ahead()
            except BaseException:
                connection.close()
                raise
            self._target = target
        return self._target
