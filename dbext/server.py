"""What the SQL functions call: the plpy session, the table of entries, and the one place where errors become replies.

The only importer of plpy. Nothing of the database outlives a call: a backend keeps prepared plans and imported code, no data.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import Any

import plpy  # exists inside a PL/Python backend only

from dbext import __version__
from dbext.database.session import DatabaseError, as_text
from dbext.errors import DbextError, InternalError, VersionMismatch

# A backend is one process among many: numpy, which is imported later and where it pays, gets no pool of threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: Prepared plans kept per backend. A plan depends on the text of a statement alone.
KEPT_PLANS = 500

#: Entry name -> function(session, **arguments). Imported when first called: a question should not pay for the compiler.
ENTRIES = {
    "set_budget": "dbext.service.budget:set_budget",
    "budget_status": "dbext.service.status:budget_status",
    "budget_use": "dbext.service.status:budget_use",
    "set_allowance": "dbext.service.allow:set_allowance",
    "allowance_status": "dbext.service.allow:allowance_status",
    "grant": "dbext.service.allow:grant",
    "revoke": "dbext.service.allow:revoke",
    "mark_public": "dbext.service.declare:mark_public",
    "declare_bounds": "dbext.service.bound:declare_bounds",
    "plan_release": "dbext.service.explain:plan_release",
    "explain_release": "dbext.service.explain:explain_release",
    "create_release": "dbext.service.declare:create_release",
    "confirm_restore": "dbext.service.restore:confirm_restore",
    "publish_to": "dbext.service.target:publish_to",
    "drop_release": "dbext.service.declare:drop_release",
    "draw_release": "dbext.service.publish:draw_release",
    "publish_release": "dbext.service.publish:publish_release",
    "range_stats": "dbext.service.range:range_stats",
    "range_value": "dbext.service.range:range_value",
    "restated_history": "dbext.service.restate:restated_history",
    "window_stats": "dbext.service.ask:window_stats",
    "answer_question": "dbext.service.answer:answer_question",
    "reserve_release": "dbext.service.reserve:reserve_release",
    "in_second_session": "dbext.database.second_session:in_second_session",
    "add_constraint": "dbext.service.constrain:add_constraint",
    "alter_constraint": "dbext.service.constrain:alter_constraint",
    "seal": "dbext.service.seal:seal",
    "set_process": "dbext.service.ageing:set_process",
    "age_risks": "dbext.service.ageing:age_risks",
    "risk_curve": "dbext.service.ageing:risk_curve",
    "plan_ageing": "dbext.service.ageing:plan_ageing_of",
    "audit": "dbext.service.audit:audit",
    "accept_delta": "dbext.service.audit:accept_delta",
    "set_tolerance": "dbext.service.audit:set_tolerance",
}

#: PostgreSQL errors that a caller must be able to tell apart; their own text may hold data and is replaced.
PASSED_ON = {
    "25006": "this session or server is read-only",
    "40001": "could not serialize access: run the transaction again",
    "40P01": "deadlock detected: run the transaction again",
    "42501": "permission denied",
    "53100": "the disk is full",
    "53200": "out of memory",
    "55P03": "a lock was not available in time",
    "57014": "canceled on request or by a timeout",
}


class PlpySession:
    """The `Session` protocol over plpy. Statements run in the caller's transaction, each in a subtransaction of its own."""

    def fetch(self, sql: str, *params: object) -> list[dict[str, Any]]:
        """Run a statement and return its rows as dicts."""
        return list(self._run(sql, params))

    def execute(self, sql: str, *params: object) -> int:
        """Run a statement and return the number of rows it touched."""
        return self._run(sql, params).nrows()

    def _run(self, sql: str, params: tuple[object, ...]) -> Any:
        try:
            return plpy.execute(_plan(sql, len(params)), [as_text(value) for value in params])
        except plpy.SPIError as fault:
            raise _database_error(fault) from fault


def _database_error(fault: Any) -> DatabaseError:
    """Turn a plpy.SPIError into our own; its SQLSTATE is unpacked from PostgreSQL's six bits for each character."""
    packed, detail, hint = (getattr(fault, "spidata", None) or (0, None, None))[:3]
    sqlstate = "".join(chr(((packed >> 6 * place) & 0x3F) + ord("0")) for place in range(5))
    return DatabaseError(sqlstate, str(fault), detail, hint)


_plans: OrderedDict[str, Any] = OrderedDict()


def _plan(sql: str, parameters: int) -> Any:
    """Return the saved plan of a statement, all of whose parameters are text."""
    plan = _plans.get(sql)
    if plan is None:
        plan = _plans[sql] = plpy.prepare(sql, ["text"] * parameters)
        if len(_plans) > KEPT_PLANS:
            _plans.popitem(last=False)
    else:
        _plans.move_to_end(sql)
    return plan


def run(script_version: str, entry: str, arguments: str) -> str:
    """Run an entry and return its reply as JSON: `{"value": ...}` or `{"refusal": {sqlstate, message, detail, hint}}`.

    Errors are replies because PL/pgSQL can raise them cleanly; raised here they would carry a Python traceback to the client.
    """
    try:
        _check_version(script_version)
        value = _entry(entry)(PlpySession(), **json.loads(arguments))
    except DbextError as refusal:
        return _refusal(refusal.sqlstate, refusal.message, refusal.detail, refusal.hint)
    except DatabaseError as fault:
        return _database_refusal(fault)
    except Exception as fault:  # noqa: BLE001 - the text of an unknown error may hold data: only its kind and place leave
        return _internal(type(fault).__name__, fault)
    return json.dumps({"value": value}, default=str)


def _check_version(script_version: str) -> None:
    if script_version != __version__:
        raise VersionMismatch(
            f"the extension is of version {script_version}, the Python package in this session of version {__version__}",
            hint='Reconnect; if that does not help, run "dbext install" and ALTER EXTENSION dbext UPDATE.',
        )


def _entry(name: str) -> Callable[..., Any]:
    module, function = ENTRIES[name].split(":")
    return getattr(import_module(module), function)


def _refusal(sqlstate: str, message: str, detail: str | None = None, hint: str | None = None) -> str:
    return json.dumps({"refusal": {"sqlstate": sqlstate, "message": message, "detail": detail, "hint": hint}})


def _database_refusal(fault: DatabaseError) -> str:
    """Pass on what the caller must be able to act on; everything else is a fault of ours, named by its SQLSTATE alone."""
    if fault.sqlstate.startswith("DP"):
        return _refusal(fault.sqlstate, fault.message, fault.detail, fault.hint)
    if fault.sqlstate in PASSED_ON:
        return _refusal(fault.sqlstate, PASSED_ON[fault.sqlstate])
    return _internal(f"SQLSTATE {fault.sqlstate}", fault)


def _internal(kind: str, fault: BaseException) -> str:
    """Describe an unexpected error by its kind and the place in our own code, without any of its text."""
    trace, place = fault.__traceback__, "unknown place"
    while trace is not None:
        parts = trace.tb_frame.f_code.co_filename.split("/")
        if "dbext" in parts and parts[-1] != "server.py":
            place = f"{'/'.join(parts[-2:])}, line {trace.tb_lineno}"
        trace = trace.tb_next
    message = f"dbext met an unexpected error ({kind})"
    return _refusal(InternalError.sqlstate, message, f"in {place}", "Please report it with the detail line.")
