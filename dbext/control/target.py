"""Deliver releases to another database, exactly once.

The target commits first, the source notes it afterwards. What is at the target is decided by the target alone: the number of the last
period is committed together with its rows, so that a crash between the two commits repeats nothing and a target restored from an
old backup is filled again, from rows that the source has kept. Values are copied, never drawn.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from dbext.control import target_tables as tables
from dbext.control.witness import Guard, TargetWitness
from dbext.errors import DbextError, HistoryLost, TargetRefused

log = logging.getLogger("dbext.worker")

#: What makes the text of a value the same on both sides.
_SETTINGS = """
SELECT pg_catalog.set_config(s.name, s.value, {local}) FROM (VALUES ('timezone', 'UTC'), ('datestyle', 'ISO, YMD'),
    ('intervalstyle', 'postgres'), ('extra_float_digits', '1'), ('bytea_output', 'hex'), ('client_encoding', 'UTF8'),
    ('search_path', 'pg_catalog'), ('synchronous_commit', 'on')) AS s (name, value)
"""
RESTORED = (
    "This database was restored to an earlier state, or is a copy: see docs/deployment.md, and accept it with "
    "dbext accept-restore when what was lost is really lost."
)


#: The parts of a release that hold rows, each of some period: its table, and reports of the local model if they are published.
TABLES = ("table", "reports")


@dataclass(frozen=True)
class Targeted:
    """A release as the source knows it. `target`: where it is read (None: here); `published`: periods that it has rows of."""

    release_id: int
    name: str
    target: str | None
    dropped: bool
    published: int
    delivered: int
    identity: str


@dataclass(frozen=True)
class Delivery:
    """What was done for one release: periods copied, and what went wrong (None: nothing)."""

    release: str
    periods: int
    error: str | None = None

    def __str__(self) -> str:
        """What the command line and the log say of it."""
        return f"delivery of {self.release}: {self.error}" if self.error else f"delivered {self.release}: {self.periods} period(s)"


def targeted(source: psycopg.Connection) -> list[Targeted]:
    """Return every release that was ever declared."""
    ((rows,),) = source.execute("SELECT dbext_private.targeted_releases()").fetchall()
    return [Targeted(**row) for row in rows]


class Target:
    """A release target as the worker of one source sees it. `thorough`: compare all that is there at first sight, not its end alone."""

    def __init__(self, source: psycopg.Connection, connection: psycopg.Connection, name: str, *, thorough: bool):
        self.source, self.connection, self.name, self.thorough = source, connection, name, thorough
        self._compared: set[str] = set()
        connection.execute(_SETTINGS.format(local="false"))
        tables.require_plain(connection, name)
        ((self.lineage,),) = source.execute("SELECT dbext_private.own_lineage()::text").fetchall()
        self.guard = Guard(source, TargetWitness(connection, self.lineage, name))

    def require_not_ahead(self) -> None:
        """Refuse to go on if the target holds what the source does not remember: charges, or periods."""
        self.guard.check()
        known = {one.identity: one for one in targeted(self.source)}
        held = (
            "SELECT r.identity, r.name, r.last_no FROM dbext_target.release AS r "
            "WHERE r.source = %s AND NOT r.ended AND r.last_no > r.accepted_no"
        )
        for identity, name, last_no in self.connection.execute(held, [self.lineage]).fetchall():
            published = known[identity].published if identity in known else 0
            if last_no > published:
                self._refuse_ahead(name, last_no, published)

    def _refuse_ahead(self, name: str, last_no: int, published: int) -> None:
        said = f"the release target holds {last_no} periods of {name}, of which this database remembers {published}"
        raise HistoryLost(f"{said}; nothing more is published", hint=RESTORED)

    def deliver(self) -> list[Delivery]:
        """Bring the target up to date with every release; one that fails does not stop the others.

        It holds the charges before it holds what was charged for.
        """
        self.guard.note()
        done = []
        for release in targeted(self.source):
            if release.target != self.name:
                continue
            try:
                done.append(Delivery(release.name, self._remove(release) if release.dropped else self._deliver(release)))
            except HistoryLost:
                raise
            except DbextError as error:
                done.append(Delivery(release.name, 0, error.message))
            except psycopg.Error as error:
                if self.source.broken or self.connection.broken:
                    raise
                done.append(Delivery(release.name, 0, f"{type(error).__name__}, SQLSTATE {error.sqlstate}"))
        return done

    def _deliver(self, release: Targeted) -> int:
        ((structure,),) = self.source.execute("SELECT dbext_private.release_structure(%s)", [release.release_id]).fetchall()
        if not structure or "table" not in structure:
            raise TargetRefused(f"the release table dp_release.{release.name} is gone or renamed in its own database")
        with self.connection.transaction():
            last_no, accepted_no = self._claim(release, structure)
            # Under the lock on our row at the target: what another worker delivered meanwhile was published before.
            (release,) = [one for one in targeted(self.source) if one.release_id == release.release_id]
            if last_no > max(release.published, accepted_no):
                self._refuse_ahead(release.name, last_no, release.published)
            missing = {kind: self._missing(release, structure[kind], last_no, accepted_no) for kind in TABLES if kind in structure}
            for kind, periods in missing.items():
                if periods:
                    self._copy(structure[kind], periods)
            if any(periods and min(periods) <= release.delivered for periods in missing.values()):
                log.warning("the release target lacked periods of %s: filled again from what is stored here", release.name)
            # Every period leaves its number, that without rows too: no key may have been shown by then.
            through = max([release.published, *missing["table"]])
            if through > last_no or missing["table"]:
                self.connection.execute(
                    "UPDATE dbext_target.release AS r SET last_no = greatest(r.last_no, %s), delivered_at = pg_catalog.clock_timestamp() "
                    "WHERE r.source = %s AND r.identity = %s",
                    [through, self.lineage, release.identity],
                )
        self._compared.add(release.identity)
        self.source.execute("SELECT dbext_private.note_delivered(%s, %s)", [release.release_id, release.published])
        return len(missing["table"])

    def _claim(self, release: Targeted, structure: dict[str, Any]) -> tuple[int, int]:
        """Take the release's row at the target and see that its table is there; return the last periods that are there and accepted."""
        key = [self.lineage, release.identity]
        new = self.connection.execute(
            "INSERT INTO dbext_target.release (source, identity, name) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", [*key, release.name]
        ).rowcount
        held = "SELECT r.last_no, r.accepted_no FROM dbext_target.release AS r WHERE r.source = %s AND r.identity = %s FOR UPDATE"
        ((last_no, accepted_no),) = self.connection.execute(held, key).fetchall()
        parts = [structure[kind] for kind in (*TABLES, "view") if kind in structure]
        there = tables.present(self.connection, parts)
        if there and new:
            raise TargetRefused(
                f"the release target has a relation dp_release.{there[0]} that is not of this release",
                hint="Rename or drop it there, or declare the release under another name.",
            )
        for part in parts:
            if part["name"] not in there:
                tables.create(self.connection, part)
            elif not part["definition"]:
                tables.require_structure(self.connection, part)
        if all(structure[kind]["name"] in there for kind in TABLES if kind in structure):
            return last_no, accepted_no
        if last_no:
            self._compared.discard(release.identity)
            log.warning("the release target had lost tables of %s: made anew", release.name)
        made = "UPDATE dbext_target.release AS r SET last_no = 0, accepted_no = 0, relations = %s WHERE r.source = %s AND r.identity = %s"
        self.connection.execute(made, [[part["name"] for part in parts], *key])
        return 0, 0

    def _missing(self, release: Targeted, table: dict[str, Any], last_no: int, accepted_no: int) -> Sequence[int]:
        """Return the periods to copy. At first sight and after a gap, every period there is compared with what is stored here."""
        if release.identity in self._compared and last_no == release.delivered:
            return range(last_no + 1, release.published + 1)
        first = max(accepted_no + 1, 1 if self.thorough or last_no != release.delivered else last_no)
        with self.source.transaction():
            self.source.execute(_SETTINGS.format(local="true"))
            ours = _digests(self.source, table, first)
        theirs = _digests(self.connection, table, first)
        if any(ours.get(number) != digest for number, digest in theirs.items()):
            raise TargetRefused(
                f"dp_release.{release.name} of the release target holds rows that were not published here",
                hint="If this database was restored, see docs/deployment.md. If that table was changed by hand, drop it there: "
                "it is made anew, with the values that were published.",
            )
        return sorted(ours.keys() - theirs.keys())

    def _copy(self, table: dict[str, Any], periods: Sequence[int]) -> None:
        """Copy the rows of some periods, as text; the types on both sides read it alike."""
        columns = sql.SQL(", ").join(sql.Identifier(one["name"]) for one in table["columns"])
        relation = tables.named(table["name"])
        wanted = sql.SQL("SELECT {} FROM {} WHERE release_no = ANY ({}) ORDER BY release_no").format(
            columns, relation, sql.Literal(list(periods))
        )
        with self.source.transaction(), self.source.cursor() as reader, self.connection.cursor() as writer:
            reader.execute(_SETTINGS.format(local="true"))
            with (
                reader.copy(sql.SQL("COPY ({}) TO STDOUT").format(wanted)) as rows,
                writer.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(relation, columns)) as sink,
            ):
                for chunk in rows:
                    sink.write(chunk)

    def _remove(self, release: Targeted) -> int:
        """End a release that was dropped: its table goes, as it went here, unless something there depends on it."""
        with self.connection.transaction():
            held = "SELECT r.ended, r.relations FROM dbext_target.release AS r WHERE r.source = %s AND r.identity = %s FOR UPDATE"
            row = self.connection.execute(held, [self.lineage, release.identity]).fetchone()
            if row is not None and not row[0]:
                if not tables.drop(self.connection, row[1]):
                    log.warning("release %s is dropped; its table stays at the target, where other objects depend on it", release.name)
                end = "UPDATE dbext_target.release AS r SET ended = true WHERE r.source = %s AND r.identity = %s"
                self.connection.execute(end, [self.lineage, release.identity])
        self.source.execute("SELECT dbext_private.note_delivered(%s, NULL)", [release.release_id])
        return 0


def _digests(connection: psycopg.Connection, table: dict[str, Any], first: int) -> dict[int, str]:
    """Return a digest of the rows of every period from `first` on."""
    columns = sql.SQL(", ").join(sql.SQL("r.{}").format(sql.Identifier(one["name"])) for one in table["columns"])
    statement = sql.SQL(
        "SELECT d.release_no, pg_catalog.md5(pg_catalog.string_agg(d.digest, '' ORDER BY d.digest COLLATE pg_catalog.\"C\")) FROM "
        "(SELECT r.release_no, pg_catalog.md5(ROW({})::pg_catalog.text) AS digest FROM {} AS r WHERE r.release_no >= {}) AS d GROUP BY 1"
    ).format(columns, tables.named(table["name"]), sql.Literal(first))
    return dict(connection.execute(statement).fetchall())
