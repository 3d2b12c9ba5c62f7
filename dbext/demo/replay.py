"""Replay a scenario: each day's mutations in bulk statements at local noon, then one publication just after midnight."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import psycopg
from psycopg import sql

from dbext.demo.clock import set_clock
from dbext.demo.exact import days
from dbext.demo.scenario import Image, Mutation, Scenario
from dbext.errors import InternalError


@dataclass(frozen=True)
class Round:
    """Mutations of one day of which no two concern the same entry, so that each kind can be one statement."""

    inserts: list[tuple[int, Image]]
    updates: list[tuple[int, Image]]
    deletes: list[int]


@dataclass
class Timing:
    """Seconds spent on each part of the replay, and how much was replayed."""

    writing: float = 0.0
    publishing: float = 0.0
    slowest_publish: float = 0.0
    mutations: int = 0
    days: int = 0


def rounds(mutations: list[Mutation], present: set[int]) -> Iterator[Round]:
    """Split the mutations of one day into rounds, in order of time for each entry; `present` is brought up to date."""
    seen: Counter[int] = Counter()
    numbered = []
    for mutation in mutations:
        numbered.append((seen[mutation.key], mutation))
        seen[mutation.key] += 1
    numbered.sort(key=lambda pair: pair[0])
    for _, pairs in itertools.groupby(numbered, key=lambda pair: pair[0]):
        yield _round([mutation for _, mutation in pairs], present)


def _round(mutations: list[Mutation], present: set[int]) -> Round:
    inserts, updates, deletes = [], [], []
    for mutation in mutations:
        if mutation.image is None:
            deletes.append(mutation.key)
            present.discard(mutation.key)
        elif mutation.key in present:
            updates.append((mutation.key, mutation.image))
        else:
            inserts.append((mutation.key, mutation.image))
            present.add(mutation.key)
    return Round(inserts, updates, deletes)


def replay(connection: psycopg.Connection, scenario: Scenario, on_day: Callable[[date], None]) -> Timing:
    """Replay every day of the scenario on an autocommit connection and publish after each; `on_day` is told when one is done."""
    by_day = {day: list(mutations) for day, mutations in itertools.groupby(scenario.mutations, key=lambda one: one.day)}
    writer, timing, present = _Writer(connection, scenario), Timing(), set()
    for day in days(scenario):
        started = time.perf_counter()
        set_clock(connection, scenario, day)
        with connection.transaction():
            for one in rounds(by_day.get(day, []), present):
                writer.write(one)
        written = time.perf_counter()
        publish(connection, scenario, day + timedelta(days=1))
        published = time.perf_counter()
        timing.writing += written - started
        timing.publishing += published - written
        timing.slowest_publish = max(timing.slowest_publish, published - written)
        timing.mutations += len(by_day.get(day, []))
        timing.days += 1
        on_day(day)
    return timing


def publish(connection: psycopg.Connection, scenario: Scenario, day: date) -> None:
    """Seal and publish all that is due, five minutes into `day`. Raises InternalError if anything could not be published.

    The procedure goes on when one release fails and says so in a warning; a demo had better stop.
    """
    set_clock(connection, scenario, day, "00:05")
    warnings: list[str] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        warnings.append(str(notice.message_primary))

    connection.add_notice_handler(note)
    try:
        connection.execute("CALL dp_publish()")
    finally:
        connection.remove_notice_handler(note)
    if warnings:
        raise InternalError(f"publishing on {day} went wrong: {'; '.join(warnings)}")


class _Writer:
    """The three bulk statements of a scenario's table: COPY, UPDATE ... FROM, DELETE ... USING."""

    def __init__(self, connection: psycopg.Connection, scenario: Scenario):
        self.connection, self.scenario = connection, scenario
        self.updated = [column for column in scenario.columns if column.updated]
        self.copy = self._copy_statement()
        self.update = self._update_statement()
        self.delete = sql.SQL("DELETE FROM {table} AS t USING unnest(%s::bigint[]) AS gone (key) WHERE t.{key} = gone.key").format(
            table=sql.Identifier(scenario.table), key=sql.Identifier(scenario.key)
        )

    def write(self, one: Round) -> None:
        """Apply the mutations of one round."""
        with self.connection.cursor() as cursor:
            if one.inserts:
                with cursor.copy(self.copy) as copy:
                    for key, image in one.inserts:
                        copy.write_row([key, *(image[column.name] for column in self.scenario.columns)])
            if one.updates:
                keys = [key for key, _ in one.updates]
                cursor.execute(self.update, [keys, *([image[c.name] for _, image in one.updates] for c in self.updated)])
            if one.deletes:
                cursor.execute(self.delete, [one.deletes])

    def _copy_statement(self) -> sql.Composed:
        names = [self.scenario.key, *(column.name for column in self.scenario.columns)]
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        return sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(self.scenario.table), columns)

    def _update_statement(self) -> sql.Composed:
        arrays = [sql.SQL("%s::bigint[]"), *(sql.SQL("%s::{}[]").format(sql.SQL(c.type_name)) for c in self.updated)]
        names = [sql.Identifier(column.name) for column in self.updated]
        return sql.SQL("UPDATE {table} AS t SET {sets} FROM unnest({arrays}) AS new (key, {names}) WHERE t.{key} = new.key").format(
            table=sql.Identifier(self.scenario.table),
            key=sql.Identifier(self.scenario.key),
            sets=sql.SQL(", ").join(sql.SQL("{0} = new.{0}").format(name) for name in names),
            arrays=sql.SQL(", ").join(arrays),
            names=sql.SQL(", ").join(names),
        )
