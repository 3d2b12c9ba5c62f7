"""Which runner recomputes a vector record: `@runner("its name")` on a function from its inputs to a value shaped like `expected`.

A runner computes with dbext's own code. It never looks at `expected` and never holds a result.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

Runner = Callable[[dict[str, Any]], Any]

_RUNNERS: dict[str, Runner] = {}


def runner(*names: str) -> Callable[[Runner], Runner]:
    """Register a function as the runner of the records with these names."""

    def register(function: Runner) -> Runner:
        for name in names:
            assert _RUNNERS.setdefault(name, function) is function, f"two runners for {name}"
        return function

    return register


def find_runner(name: str) -> Runner:
    """Return the runner of a record, from any module runners_*.py beside this one."""
    for path in sorted(Path(__file__).parent.glob("runners_*.py")):
        importlib.import_module(f"tests.unit.vectors.{path.stem}")
    assert name in _RUNNERS, f'no runner recomputes the vector "{name}": add one in tests/unit/vectors/runners_*.py'
    return _RUNNERS[name]
