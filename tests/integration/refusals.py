"""What must be refused, and what is said then."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


def refused(connection: Any, sqlstate: str, sql: str, params: Any = None) -> str:
    """Run a statement that must be refused with an SQLSTATE; return the message, hint included."""
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql, params)
    assert caught.value.sqlstate == sqlstate, str(caught.value)
    return str(caught.value)
