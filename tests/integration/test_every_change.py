"""The matrix of capture: whatever changes a table, its log replayed from the baseline is the table, tick by tick, and so is what is settled."""

from __future__ import annotations

import datetime as dt
import itertools

import psycopg
import pytest

from tests.conftest import TEMPLATE, create_database
from tests.integration.changes import CHANGES, THEN, Change
from tests.integration.changes_of_partitions import PARTITIONS

DAY_ZERO = dt.date(2020, 3, 2)
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def shared(cluster):
    """One database for the whole matrix; every row of it has a schema of its own."""
    database = create_database(cluster, TEMPLATE)
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TYPE pair AS (n integer, j json)")
    database.execute("CREATE DOMAIN positive AS integer CHECK (VALUE > 0); CREATE DOMAIN several AS integer[]")
    database.writer = database.create_role("dbext_admin", name="writer")  # whose dbext.now is heard
    yield database
    database.close()


class Judge:
    """The table `entry` of one row of the matrix, what was captured of it, and whether the two agree."""

    def __init__(self, database, session, change: Change, capture: str, *, clock: bool = False):
        self.database, self.change = database, change
        self.schema = f"change_{next(_numbers)}"
        self.session = session
        self.run(f"CREATE SCHEMA {self.schema}; SET search_path = {self.schema}, public; CREATE TABLE parent (id integer PRIMARY KEY)")
        self.run(f"CREATE TABLE {change.table}")
        self.run(change.before)
        if not clock:
            self.day(0)
        track = f", {change.track}" if change.track else ""
        self.run(f"SELECT dp_track('entry'{track}, capture => '{capture}')")
        ((self.number,),) = self.rows("SELECT table_id FROM dbext_private.tracked_table ORDER BY table_id DESC LIMIT 1")
        self.replayed: dict[str, str] = {}
        self.last_tick = -(10**9)

    def run(self, script: str) -> None:
        """Execute a script; its parts are sent one after the other."""
        script = script.replace("{schema}", self.schema).replace("{writer}", self.database.writer)
        for part in script.split(THEN):
            if part:
                self.session.execute(part)

    def rows(self, sql: str) -> list[tuple]:
        return self.session.execute(sql).fetchall()

    def day(self, number: int) -> None:
        """Let it be noon of a day."""
        self.session.execute("SELECT set_config('dbext.now', %s, false)", (f"{DAY_ZERO + dt.timedelta(days=number)} 12:00 UTC",))

    def lists(self, *kinds: str) -> list[str]:
        """Return one text expression per kind: the columns key_, new_ ... of the run-time tables, or those of the table itself."""
        found = self.rows(
            f"SELECT is_unit, position, CASE WHEN gone THEN 'NULL' ELSE quote_ident(column_name) END FROM dbext_private.tracked_column"
            f" WHERE table_id = {self.number} ORDER BY position"
        )
        texts = []
        for kind in kinds:
            unit = kind in ("key", "own key")
            names = [name if "own" in kind else f"{kind}_{position}" for is_unit, position, name in found if is_unit is unit]
            texts.append(f"ROW({', '.join(names)})::text")
        return texts

    def table(self) -> dict[str, str]:
        """Return what the table holds, key -> image."""
        return dict(self.rows(f"SELECT {', '.join(self.lists('own key', 'own image'))} FROM entry"))

    def log(self) -> dict[str, str]:
        """Replay the changelog from its baseline, in order of number."""
        images: dict[str, str] = {}
        lists = ", ".join(self.lists("key", "new"))
        for op, key, image in self.rows(f"SELECT op::text, {lists} FROM dbext_private.log_{self.number} ORDER BY number"):
            if op == "T":
                images.clear()
            elif op == "D":
                del images[key]
            else:
                assert (key in images) == (op == "U"), (op, key)
                images[key] = image
        return images

    def settled(self) -> dict[str, str]:
        """Return the settled images."""
        return dict(self.rows(f"SELECT {', '.join(self.lists('key', 'image'))} FROM dbext_private.admission_{self.number} WHERE present"))

    def replay_changes(self) -> dict[str, str]:
        """Replay the settled changes of the ticks sealed since; each must begin where the last one ended."""
        key, old, new = self.lists("key", "old", "new")
        for tick, entry, before, after in self.rows(
            f"SELECT tick, {key}, CASE WHEN old_present THEN {old} END, CASE WHEN new_present THEN {new} END"
            f" FROM dbext_private.change_{self.number} WHERE tick > {self.last_tick} ORDER BY tick"
        ):
            assert self.replayed.pop(entry, None) == before, (tick, entry)
            if after is not None:
                self.replayed[entry] = after
            self.last_tick = tick
        return self.replayed

    def seal(self, day: int) -> None:
        """Close the tick of a day, and nothing else."""
        self.day(day + 1)
        (done,) = self.rows(f"SELECT dbext_private.seal_table({self.number})")
        assert done[0]["sealed"]
        assert not done[0]["more"]

    def marks(self) -> tuple[str, ...]:
        """Return the kinds of the public marks that are open."""
        found = self.rows(
            f"SELECT DISTINCT kind FROM dbext_private.schema_event WHERE table_id = {self.number} AND through_tick IS NULL ORDER BY kind"
        )
        return tuple(kind for (kind,) in found)

    def judge(self) -> None:
        """Compare table, log, settled images and settled changes."""
        held = self.table()
        if self.change.in_order:
            assert self.log() == held
        assert self.settled() == held
        assert self.replay_changes() == held
        assert self.rows(f"SELECT count(*) FROM dbext_private.seal WHERE table_id = {self.number} AND mismatched > 0") == [(0,)]


MATRIX = CHANGES | PARTITIONS


IN_ORDER = [name for name, change in MATRIX.items() if change.in_order]


@pytest.mark.parametrize("name", IN_ORDER)
def test_every_change_by_row_and_by_the_clock(shared, name):
    """Where no dbext.now is set, row triggers take their shortest way."""
    change = MATRIX[name]
    if shared.superuser.info.server_version < change.since * 10000:
        return
    with psycopg.connect(shared.dsn(), autocommit=True) as session:
        judge = Judge(shared, session, change, "row", clock=True)
        for script in change.ticks:
            judge.run(script)
            assert judge.log() == judge.table()


@pytest.mark.parametrize("capture", ["statement", "row"])
@pytest.mark.parametrize("name", MATRIX)
def test_every_change_is_replayed_tick_by_tick(shared, name, capture):
    change = MATRIX[name]
    if shared.superuser.info.server_version < change.since * 10000:
        return
    with psycopg.connect(shared.dsn(), autocommit=True) as session:
        judge = Judge(shared, session, change, capture)
        for day, script in enumerate(change.ticks):
            judge.run(script)
            judge.seal(day)
            judge.judge()
        assert judge.marks() == change.marks
