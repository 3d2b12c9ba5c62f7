"""The second session is closed on every way out, even when cancel requests hit the very statement that closes it."""

import signal

import pytest

from dbext.database import second_session
from dbext.database.session import DatabaseError
from dbext.errors import SecondSessionUnavailable

CANCELED = DatabaseError("57014", "canceling statement due to user request")
PARTS = {"second_session": "host=x", "database": "d", "schema": "public", "has_transaction_timeout": True}


class Scripted:
    """A session that knows which of the three steps a statement is, and raises what the script says before it does its part."""

    def __init__(self, **script):
        self.script = {step: list(errors) for step, errors in script.items()}
        self.open = False
        self.closings = 0

    def _step(self, step):
        if self.script.get(step):
            raise self.script[step].pop(0)

    def fetch(self, sql, *params):
        if "dblink(" not in sql:
            return [PARTS]
        self._step("query")
        return [{"reply": "answer"}]

    def execute(self, sql, *params):
        if "dblink_connect_u" in sql:
            self._step("connect")
            self.open = True
            self._step("connected")
        elif "dblink_disconnect" in sql:
            self.closings += 1
            self._step("close")
            if not self.open:
                raise DatabaseError("08003", "connection not available")
            self.open = False
        return 1


def test_an_answer_closes_it():
    session = Scripted()
    assert second_session.call(session, "SELECT 1") == "answer"
    assert not session.open


@pytest.mark.parametrize("step", ["connect", "connected", "query"])
def test_a_cancel_request_at_any_step_closes_it(step):
    session = Scripted(**{step: [CANCELED]})
    with pytest.raises(DatabaseError):
        second_session.call(session, "SELECT 1")
    assert not session.open


def test_cancel_requests_that_hit_the_closing_are_used_up():
    session = Scripted(query=[CANCELED], close=[CANCELED] * 20)
    with pytest.raises(DatabaseError):
        second_session.call(session, "SELECT 1")
    assert (session.open, session.closings) == (False, 21)


def test_a_backend_that_cannot_close_it_ends_itself(monkeypatch):
    ended = []
    monkeypatch.setattr(second_session.os, "kill", lambda pid, number: ended.append((pid, number)))
    session = Scripted(close=[CANCELED] * 100_000)
    second_session.call(session, "SELECT 1")
    assert session.open
    assert ended == [(second_session.os.getpid(), signal.SIGTERM)]


def test_what_went_wrong_is_told_apart():
    with pytest.raises(SecondSessionUnavailable, match="nothing was spent"):
        second_session.call(Scripted(connect=[DatabaseError("08001", "could not connect")]), "SELECT 1")
    with pytest.raises(SecondSessionUnavailable, match="locked"):
        second_session.call(Scripted(query=[DatabaseError("55P03", "lock timeout")]), "SELECT 1")
    with pytest.raises(SecondSessionUnavailable, match="lost"):
        second_session.call(Scripted(query=[DatabaseError("08006", "terminated")]), "SELECT 1")
    with pytest.raises(DatabaseError) as caught:
        second_session.call(Scripted(query=[DatabaseError("DP020", "budget")]), "SELECT 1")
    assert caught.value.sqlstate == "DP020"
