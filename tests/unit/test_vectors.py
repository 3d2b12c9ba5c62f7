"""Exact instances of every formula: each record of tests/vectors and of the files named in DBEXT_EXTRA_VECTORS is recomputed."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.vectors.registry import find_runner

OWN = sorted((Path(__file__).resolve().parents[1] / "vectors").glob("*.json"))
EXTRA = [Path(name) for name in os.environ.get("DBEXT_EXTRA_VECTORS", "").split(os.pathsep) if name]


def records() -> list[Any]:
    """Return every record of every file, with an id that says where it stands."""
    found = []
    for path in [*OWN, *EXTRA]:
        for number, record in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            found.append(pytest.param(record, id=f"{path.stem}-{number}-{record['name']}"))
    return found


def assert_agrees(computed: Any, expected: Any, tolerance: float, where: str = "value") -> None:
    """Compare structures; numbers within an absolute (or, for large ones, relative) tolerance, everything else exactly."""
    if isinstance(expected, dict):
        assert set(computed) == set(expected), where
        for key, value in expected.items():
            assert_agrees(computed[key], value, tolerance, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(computed) == len(expected), where
        for number, (one, other) in enumerate(zip(computed, expected, strict=True)):
            assert_agrees(one, other, tolerance, f"{where}[{number}]")
    elif isinstance(expected, int | float) and not isinstance(expected, bool):
        assert math.isclose(float(computed), expected, rel_tol=tolerance, abs_tol=tolerance), f"{where}: {computed} is not {expected}"
    else:
        assert computed == expected, f"{where}: {computed} is not {expected}"


@pytest.mark.parametrize("record", records())
def test_vector(record):
    computed = find_runner(record["name"])(record["inputs"])
    assert_agrees(computed, record["expected"], record.get("tolerance", 0))


def test_a_record_without_a_runner_is_named():
    with pytest.raises(AssertionError, match='no runner recomputes the vector "unheard of"'):
        find_runner("unheard of")


@pytest.mark.parametrize(("computed", "expected"), [(1.01, 1.0), ([1, 2], [1]), ({"a": 1}, {"a": 2}), ("1/3", "1/2"), (2, 3)])
def test_a_wrong_value_is_seen(computed, expected):
    with pytest.raises(AssertionError):
        assert_agrees(computed, expected, 1e-3)
