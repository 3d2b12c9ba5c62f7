"""A database put back to an earlier state has forgotten what it charged. Whoever is outside has not."""

from __future__ import annotations

import json
import shutil
import signal
from decimal import Decimal

import psycopg
import pytest

from dbext.control import publishing
from dbext.control.accept import accept
from dbext.control.cluster import Cluster
from dbext.control.database import connect
from dbext.control.outside import Places, outside
from dbext.errors import HistoryLost, NotSupported
from tests.acceptance.conftest import declare_tickets, wait_until
from tests.conftest import create_template

ASK = "SELECT dp_window_count('ticket', (current_date - 4)::text, (current_date - {})::text, epsilon => 0.1)"
RELEASE = """SELECT dp_create_release('{}', $$SELECT count(*) FROM ticket$$, every => '1 day', measure => 'state', epsilon => 0.5, horizon => 20,
    start => (current_date - 3)::text)"""


class Restorable:
    """A cluster whose data folder is copied and put back, as a backup or a snapshot of a machine would be."""

    def __init__(self, cluster, database, folder):
        self.cluster, self.database, self.copy = cluster, database, folder / "copy"

    def back_up(self):
        self.database.superuser.close()
        self.cluster.stop()
        shutil.copytree(self.cluster.data, self.copy, symlinks=True)
        self.cluster.start()

    def restart(self):
        self.database.superuser.close()
        self.cluster.restart()

    def put_back(self):
        self.database.superuser.close()
        self.cluster.stop()
        owner = self.cluster.data.stat()
        shutil.rmtree(self.cluster.data)
        shutil.copytree(self.copy, self.cluster.data, symlinks=True)
        for path in [self.cluster.data, *self.cluster.data.rglob("*")]:
            if not path.is_symlink():
                shutil.chown(path, owner.st_uid, owner.st_gid)
        self.cluster.start()


@pytest.fixture(scope="module")
def own_cluster():
    with Cluster.create("restored", durable=True) as made:
        create_template(made)
        yield made


@pytest.fixture
def restorable(own_cluster, open_database, tmp_path):
    database = open_database(own_cluster)
    declare_tickets(database)
    database.execute("SELECT dp_set_budget('ticket', epsilon => 20)")
    return Restorable(own_cluster, database, tmp_path)


def publish(database, witness=None, target=None, *, new_witness=False):
    """Do what `dbext publish` does, and return the number of periods."""
    places = Places("" if target is None else target.dsn(), witness, new_witness)
    with connect(database.dsn()) as connection, outside(connection, places, thorough=False) as found:
        done = publishing.publish(connection, found)
    assert not done.failed, done
    return sum(one.periods for one in done.publications)


def accepted(database, witness=None, target=None, **options):
    """Do what `dbext accept-restore` does, and return what was lost."""
    with connect(database.dsn()) as connection:
        return accept(connection, "" if target is None else target.dsn(), witness, dry_run=False, **options)[0]


def refused(database, sql):
    with pytest.raises(psycopg.Error) as caught:
        database.execute(sql)
    assert caught.value.sqlstate == "DP032", str(caught.value)
    return str(caught.value)


def test_a_folder_put_back_is_refused_and_accepted_at_its_price(dbext, restorable, tmp_path):
    database, witness = restorable.database, tmp_path / "witness"
    assert publish(database, witness) > 0
    restorable.back_up()
    database.execute(RELEASE.format("later"))
    assert publish(database, witness) > 0
    database.execute(ASK.format(3))
    publish(database, witness)
    spent = database.value("SELECT spent FROM dbext.budget_status")
    restorable.put_back()
    assert database.value("SELECT count(*) FROM dbext.release_status") == 1
    # Nothing inside can know it: until the worker has looked, the copy would answer as it did.
    command = ["--dsn", database.dsn(), "--witness", str(witness)]
    done = dbext("worker", "--once", *command)
    assert done.returncode == 3
    assert "has lost" in done.stderr
    assert "1 answers and periods of later" in done.stderr
    assert "accept-restore" in refused(database, ASK.format(3))
    refused(database, RELEASE.format("other"))
    # Accepting has a price, takes a superuser, and can be looked at first.
    shown = dbext("accept-restore", *command, "--dry-run", "--format", "json")
    assert {row["kind"] for row in json.loads(shown.stdout)} == {"reserve", "publish", "question"}
    with pytest.raises(HistoryLost):
        publish(database, witness)
    before = database.value("SELECT spent FROM dbext.budget_status")
    with connect(database.dsn()) as connection:
        lost, said = accept(connection, "", witness, dry_run=False)
    assert len(lost) == 3
    assert said.endswith("to be made again if they are wanted: declarations")
    after = database.value("SELECT spent FROM dbext.budget_status")
    # 0.1 for the question and 0.5 for the release that was lost, none of which shares anything with what is here.
    assert (spent - before, after - before) == (Decimal("0.6"), Decimal("0.6"))
    assert database.fetch("SELECT kind, epsilon FROM dbext.budget_use WHERE kind = 'lost history'") == [("lost history", Decimal("0.6"))]
    publish(database, witness)
    database.execute(ASK.format(3))
    assert database.value("SELECT spent FROM dbext.budget_status") == after + Decimal("0.1")
    assert accepted(database, witness) == []


def test_the_release_target_is_a_witness_too(restorable, empty_database):
    database, target = restorable.database, empty_database
    restorable.back_up()
    database.execute("SELECT dp_publish_to('warehouse')")
    assert publish(database, target=target) > 0
    published = target.fetch("SELECT * FROM dp_release.valid_now ORDER BY window_end")
    restorable.put_back()
    # It does not even remember that it sent its releases there.
    assert database.value("SELECT count(*) FROM dbext.release_status WHERE target IS NOT NULL") == 0
    with pytest.raises(HistoryLost, match="has lost"):
        publish(database, target=target)
    refused(database, RELEASE.format("other"))
    assert len(accepted(database, target=target)) == 1
    database.execute("SELECT dp_publish_to('warehouse')")
    assert publish(database, target=target) == len(published)
    # What the public has stays; the source has drawn and paid anew.
    assert target.fetch("SELECT * FROM dp_release.valid_now ORDER BY window_end") == published
    assert database.value("SELECT max(release_no) FROM dp_release.valid_now") == len(published)
    assert publish(database, target=target) == 0


def test_a_loss_that_the_budget_cannot_take_is_not_accepted(tickets, tmp_path):
    witness = tmp_path / "witness"
    publish(tickets, witness)
    rows = [json.loads(line) for line in witness.read_text().splitlines()]
    (published,) = [row for row in rows[1:] if row["kind"] == "publish"]
    with witness.open("a") as file:
        for number in range(4):
            lost = {**published, "mark": f"lost {number}", "number": 50 + number, "release_id": 50 + number}
            file.write(json.dumps(lost) + "\n")
    with pytest.raises(HistoryLost):
        publish(tickets, witness)
    with pytest.raises(psycopg.Error, match="dp_set_budget") as caught:
        accepted(tickets, witness)
    assert caught.value.sqlstate == "DP020"
    refused(tickets, ASK.format(3))
    tickets.execute("SELECT dp_set_budget('ticket', epsilon => 6)")
    assert len(accepted(tickets, witness)) == 4
    # Four releases of another history, for a life of its own: their worst case is added to what is spent here.
    alone = tickets.value("SELECT sum(epsilon) FROM dbext.budget_use WHERE kind = 'release'")
    lost = tickets.value("SELECT sum(epsilon) FROM dbext.budget_use WHERE kind = 'lost history'")
    assert (alone, lost) == (1, 4)
    assert tickets.fetch("SELECT spent + reserved FROM dbext.budget_status") == [(5,)]
    with pytest.raises(psycopg.Error, match="cannot take this"):
        tickets.execute(ASK.format(3).replace("0.1", "1.5"))


def test_only_a_superuser_accepts(tickets):
    person = tickets.create_role("dbext_admin")
    tickets.execute(f"GRANT USAGE ON SCHEMA dbext, dp_release TO {person}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tickets.connect(person).execute("SELECT dp_confirm_restore('[]')")
    with pytest.raises(psycopg.Error, match="accept-restore"):
        tickets.execute("SELECT dp_confirm_restore('{}')")


def test_nothing_is_shown_before_the_witness_holds_its_charge(start, tickets, tmp_path):
    """Killed where it would show rows, the worker has noted them; killed where it charges, it has shown none."""
    witness = tmp_path / "witness"
    for lock in ("LOCK dp_release.valid_now IN ACCESS EXCLUSIVE MODE", "LOCK dbext_private.ledger IN EXCLUSIVE MODE"):
        other = tickets.connect(autocommit=False)
        other.execute(lock)
        worker = start("worker", "--dsn", tickets.dsn(), "--witness", str(witness))
        waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'dbext worker' AND wait_event_type = 'Lock'"
        wait_until(lambda: tickets.value(waiting), lambda: f"never waited: {worker.lines}")  # noqa: B023 - called before the next turn
        if "dp_release" in lock:
            assert '"kind":"publish"' in witness.read_text()
            assert other.execute("SELECT count(*) FROM dp_release.valid_now").fetchone() == (0,)
        worker.end(signal.SIGKILL)
        other.rollback()
        tickets.execute(RELEASE.format("second") if "dp_release" in lock else "SELECT 1")
    assert publish(tickets, witness) > 0
    held = {json.loads(line)["mark"] for line in witness.read_text().splitlines()[1:]}
    assert held == {mark for (mark,) in tickets.fetch("SELECT dbext_private.fingerprint(l) FROM dbext_private.ledger AS l")}


def test_questions_are_noted_while_the_worker_waits(start, tickets, tmp_path):
    witness = tmp_path / "witness"
    worker = start("worker", "--dsn", tickets.dsn(), "--witness", str(witness))
    worker.wait_for("published valid_now")
    tickets.execute(ASK.format(3))
    wait_until(lambda: '"kind":"question"' in witness.read_text(), lambda: f"never noted: {worker.lines}")
    assert worker.end(signal.SIGTERM) == 0


def test_a_required_witness_must_have_seen_this_very_server(restorable, tmp_path):
    database, witness = restorable.database, tmp_path / "witness"
    publish(database, witness)
    database.execute("SELECT dp_require_witness('1 hour')")
    assert "no witness" in refused(database, ASK.format(3))
    publish(database, witness)
    database.execute(ASK.format(3))
    # A restart is all that a copy put back would look like from inside, so that it takes the worker's word again.
    restorable.restart()
    assert "no witness" in refused(database, ASK.format(2))
    publish(database, witness)
    database.execute(ASK.format(2))
    database.execute("UPDATE dbext_private.witness SET vouched_until = now() - interval '1 second'")
    refused(database, ASK.format(1))
    database.execute("SELECT dp_require_witness(NULL)")
    database.execute(ASK.format(1))
    with pytest.raises(psycopg.Error, match="10 seconds"):
        database.execute("SELECT dp_require_witness('1 second')")


def test_witness_files_are_told_apart(tickets, tmp_path):
    witness = tmp_path / "witness"
    publish(tickets, witness)
    assert witness.stat().st_mode & 0o777 == 0o600
    with pytest.raises(NotSupported) as caught:
        publish(tickets, tmp_path / "elsewhere")
    assert "--new-witness" in caught.value.hint
    publish(tickets, tmp_path / "elsewhere", new_witness=True)
    with pytest.raises(NotSupported, match=r"folder of witness file .* does not exist"):
        publish(tickets, tmp_path / "no folder" / "witness", new_witness=True)
    head, *rows = witness.read_text().splitlines(keepends=True)
    witness.write_text(head.replace(json.loads(head)["ledger"], "another"))
    with pytest.raises(NotSupported, match="of another database"):
        publish(tickets, witness)
    # A line that a crash cut off was never relied on.
    witness.write_text("".join([head, *rows[:-1], rows[-1][:20]]))
    publish(tickets, witness)
    assert witness.read_text() == head + "".join(rows)
    for damaged in ("something else\n", head + '{"mark"\n'):
        witness.write_text(damaged)
        with pytest.raises(NotSupported, match="damaged"):
            publish(tickets, witness)


def test_a_witness_file_drops_charges_that_later_ones_repeat(tmp_path, monkeypatch):
    from dbext.control import witness

    monkeypatch.setattr(witness, "WASTE", 3)
    file = witness.FileWitness(tmp_path / "witness", "ledger", "shop", may_begin=True)
    for number in range(1, 9):
        file.add([{"number": number, "mark": str(number), "kind": "publish", "release_id": 1, "charges": [number]}])
    held = [json.loads(line) for line in (tmp_path / "witness").read_text().splitlines()[1:]]
    assert [row["mark"] for row in held] == [str(number) for number in range(1, 9)]
    assert [row["charges"] for row in held if row["charges"]] == [[5], [6], [7], [8]]
    with pytest.raises(Exception, match="in use"):
        witness.FileWitness(tmp_path / "witness", "ledger", "shop", may_begin=True)
    file.forget(["8"])
    file.close()
    again = witness.FileWitness(tmp_path / "witness", "ledger", "shop", may_begin=True)
    assert [row["mark"] for row in again.rows()] == [str(number) for number in range(1, 8)]
    again.close()
