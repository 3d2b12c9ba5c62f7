"""Witnesses: a file of the worker, or the release target, that hold what the ledger was, outside the cluster.

What is shown was noted before: a release's noise is charged and committed, noted by every witness, and only then published. Questions
are noted within seconds. A ledger that does not have what a witness holds was put back to an earlier state.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import psycopg

from dbext.errors import HistoryLost, NotPermitted, NotSupported

FORMAT = "dbext witness 1"
#: A row that is not noted yet has at most so much lower a number than the last noted one: transactions may commit in another order.
OVERLAP = 1000
#: Rows whose charges are of no use any more, from which on a file is written anew.
WASTE = 1000

Row = dict[str, Any]


class Witness(Protocol):
    """What a witness can do. Rows are those of `dbext_private.rows_to_witness`; `mark` tells them apart."""

    name: str

    def rows(self) -> Sequence[Row]:
        """Return every row that is held, in the order of their numbers."""
        ...

    def add(self, rows: Sequence[Row]) -> None:
        """Hold further rows, for good when this returns."""
        ...

    def forget(self, marks: Iterable[str]) -> None:
        """Let go of rows that were lost and charged again."""
        ...


class FileWitness:
    """A file of JSON lines that one process at a time has open: a head line, then one line for each row of the ledger."""

    def __init__(self, path: Path, lineage: str, database: str, *, may_begin: bool):
        self.name, self.path = f"witness file {path}", path
        self._head = {"format": FORMAT, "ledger": lineage, "database": database}
        self._held: dict[str, Row] = {}
        self._file = self._open(may_begin=may_begin)

    def _open(self, *, may_begin: bool) -> IO[str]:
        if not may_begin and not self.path.exists():
            raise NotSupported(
                f"there is no {self.name}, but a witness has seen this ledger before",
                hint="Give the right path; or begin a new one, which takes the ledger as it is for the truth, with --new-witness.",
            )
        if not self.path.parent.is_dir():
            raise NotSupported(f"the folder of {self.name} does not exist", hint="Make it, and let the worker's account write there.")
        file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read(file)
        except BaseException as error:
            file.close()
            if isinstance(error, BlockingIOError):
                raise NotPermitted(f"{self.name} is in use by another worker") from error
            raise
        return file

    def _read(self, file: IO[str]) -> None:
        """Take in what the file holds. A last line that a crash cut off was never relied on, and goes."""
        whole = 0
        for line in file:
            if not line.endswith("\n"):
                break
            content = self._content(line)
            if whole == 0:
                self._check_head(content)
            else:
                self._held[content["mark"]] = content
            whole += len(line.encode())
        file.seek(whole)
        file.truncate()
        if whole == 0:
            self._append(file, [self._head])
            _sync_folder(self.path)

    def _content(self, line: str) -> Row:
        with contextlib.suppress(ValueError):
            content = json.loads(line)
            if isinstance(content, dict) and ("mark" in content or "format" in content):
                return content
        raise NotSupported(f"{self.name} is damaged, or no witness file of dbext", hint="Give the right path, or bring back a copy of it.")

    def _check_head(self, head: Row) -> None:
        if head.get("format") != FORMAT:
            raise NotSupported(f"{self.name} is not a witness file of this version of dbext")
        if head.get("ledger") != self._head["ledger"]:
            raise NotSupported(f'{self.name} is of the ledger of another database, "{head.get("database")}"', hint="Give the right path.")

    def rows(self) -> Sequence[Row]:
        """Return every row that is held."""
        return sorted(self._held.values(), key=lambda row: row["number"])

    def add(self, rows: Sequence[Row]) -> None:
        """Append rows; they are on disk when this returns."""
        self._append(self._file, rows)
        self._held.update((row["mark"], row) for row in rows)
        if self._waste() > WASTE:
            self._rewrite()

    def forget(self, marks: Iterable[str]) -> None:
        """Write the file anew without some rows."""
        gone = set(marks)
        self._held = {mark: row for mark, row in self._held.items() if mark not in gone}
        self._rewrite()

    def close(self) -> None:
        """Let another process have the file."""
        self._file.close()

    def _append(self, file: IO[str], rows: Iterable[Row]) -> None:
        file.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
        file.flush()
        os.fsync(file.fileno())

    def _waste(self) -> int:
        """Return how many rows have charges that a later row of the same release repeats."""
        with_charges = [row for row in self._held.values() if row["kind"] == "publish" and row["charges"]]
        return len(with_charges) - len({row["release_id"] for row in with_charges})

    def _rewrite(self) -> None:
        """Replace the file by one without superseded charges. Whichever of the two a crash leaves is whole."""
        last = {row["release_id"]: row["mark"] for row in self.rows() if row["kind"] == "publish"}
        for row in self._held.values():
            if row["kind"] == "publish" and last[row["release_id"]] != row["mark"]:
                row["charges"] = []
        fresh = self.path.with_name(f".{self.path.name}.new")
        file = os.fdopen(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "r+", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        self._append(file, [self._head, *self.rows()])
        fresh.replace(self.path)
        _sync_folder(self.path)
        self._file.close()
        self._file = file


def _sync_folder(path: Path) -> None:
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class TargetWitness:
    """The release target as a witness: rows are held in a table of ours there."""

    def __init__(self, connection: psycopg.Connection, lineage: str, name: str):
        self.connection, self.lineage, self.name = connection, lineage, f'release target "{name}"'

    def rows(self) -> Sequence[Row]:
        """Return every row that is held."""
        held = "SELECT l.content FROM dbext_target.ledger AS l WHERE l.source = %s ORDER BY l.ledger_no"
        return [content for (content,) in self.connection.execute(held, [self.lineage]).fetchall()]

    def add(self, rows: Sequence[Row]) -> None:
        """Hold rows: in the caller's transaction if there is one, committed else."""
        statement = (
            "INSERT INTO dbext_target.ledger (source, mark, ledger_no, content) "
            "SELECT %s, r ->> 'mark', (r ->> 'number')::pg_catalog.int8, r "
            "FROM pg_catalog.jsonb_array_elements(%s::pg_catalog.jsonb) AS r ON CONFLICT DO NOTHING"
        )
        self.connection.execute(statement, [self.lineage, json.dumps(rows)])

    def forget(self, marks: Iterable[str]) -> None:
        """Let go of rows, and let the periods that are here stay as they are, whatever the source publishes in their place."""
        with self.connection.transaction():
            gone = "DELETE FROM dbext_target.ledger AS l WHERE l.source = %s AND l.mark = ANY (%s)"
            self.connection.execute(gone, [self.lineage, list(marks)])
            self.connection.execute("UPDATE dbext_target.release AS r SET accepted_no = r.last_no WHERE r.source = %s", [self.lineage])


class Guard:
    """The ledger and one witness of it, over one connection: a database cannot be put back under an open connection."""

    def __init__(self, source: psycopg.Connection, witness: Witness):
        self.source, self.witness = source, witness
        self._known: set[int] = set()

    def lost(self) -> list[Row]:
        """Return the rows that the witness holds and the ledger neither has nor has accepted as lost; accepted ones are let go."""
        held = self.witness.rows()
        self._known = {row["number"] for row in held}
        if not held or self._ask("dbext_private.knows_ledger(%s, %s, %s)", held[-1]["number"], held[-1]["mark"], len(held)):
            return []
        unknown = set(self._ask("dbext_private.unknown_rows(%s)", [row["mark"] for row in held]))
        accepted = set(self._ask("dbext_private.accepted_rows(%s)", sorted(unknown)))
        if accepted:
            self.witness.forget(accepted)
            self._known = {row["number"] for row in held if row["mark"] not in accepted}
        return [row for row in held if row["mark"] in unknown - accepted]

    def check(self) -> None:
        """Stop everything that draws noise, whoever asks, if the ledger has lost what the witness holds."""
        if lost := self.lost():
            self.source.execute("SELECT dbext_private.note_behind()")
            periods = sorted({row["release"] for row in lost if row["kind"] == "publish" and row["release"]})
            answers = sum(row["kind"] == "question" for row in lost)
            what = f"{answers} answers and periods of {', '.join(periods) or 'no release'}"
            raise HistoryLost(
                f"the ledger of this database has lost {len(lost)} rows that {self.witness.name} holds, with {what}; "
                "publication and questions stop",
                hint="It was put back to an earlier state or is a copy. Bring the present one back; or, if what was lost is really lost, "
                "accept that as a superuser: dbext accept-restore charges again what had left.",
            )

    def note(self) -> None:
        """Let the witness hold whatever the ledger has and it has not."""
        while rows := self._unknown_to_witness():
            self.witness.add(rows)
            self._known.update(row["number"] for row in rows)

    def _unknown_to_witness(self) -> list[Row]:
        after = max(self._known, default=0) - OVERLAP
        return self._ask("dbext_private.rows_to_witness(%s, %s)", after, [number for number in self._known if number > after])

    def _ask(self, call: str, *arguments: object) -> Any:
        ((value,),) = self.source.execute(f"SELECT {call}", arguments).fetchall()
        return value


@contextlib.contextmanager
def file_witness(source: psycopg.Connection, path: Path, *, may_begin: bool) -> Iterator[FileWitness]:
    """Open the witness file of a database; one that holds nothing is begun only if no witness has ever seen this ledger, or on demand."""
    ((lineage, seen),) = source.execute("SELECT dbext_private.own_lineage()::text, dbext_private.was_witnessed()").fetchall()
    with contextlib.closing(FileWitness(path, lineage, source.info.dbname, may_begin=may_begin or not seen)) as witness:
        yield witness
