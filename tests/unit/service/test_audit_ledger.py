"""The audit's own view of encoded mechanisms: what each row holds of a tick, worked out without keeping all rows."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from dbext.mechanisms.epochs import continuing
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.mechanisms.square_root import SquareRoot
from dbext.privacy.grid import RegularGrid
from dbext.service.audit_ledger import encoded_columns

GRID = RegularGrid(0, 2)


def seen(mechanism, periods, ticks):
    return encoded_columns(SimpleNamespace(mechanism=mechanism, buffered=None), periods, ticks)


def by_matrices(mechanism, periods, ticks):
    """All weights at once: (ticks in leaves) times (leaves in rows)."""
    leaves = [leaf for period in range(1, periods + 1) for leaf in mechanism.leaves(period)]
    rows = [dict(row.weights) for period in range(1, periods + 1) for row in mechanism.rows(period)]
    held = np.array([[leaf.start is None or leaf.start < tick for leaf in leaves] for tick in ticks])
    held &= np.array([[tick <= leaf.end for leaf in leaves] for tick in ticks])
    return held.astype(float) @ np.array([[row.get(leaf.number, 0) for row in rows] for leaf in leaves], float)


@pytest.mark.parametrize(
    ("mechanism", "periods"),
    [
        (SquareRoot(GRID, 20, baseline=True), 20),
        (SquareRoot(GRID, 20, baseline=False), 13),
        (continuing(SquareRoot(GRID, 4, baseline=True)), 11),
        (SlidingRoot(GRID, 3, 0, None), 9),
    ],
    ids=["with a baseline", "unfinished", "renewed", "sliding"],
)
def test_rows_hold_what_their_weights_say(mechanism, periods):
    ticks = [-5, 0, 1, 2, 3, 4, 9, 10, 17, 25, 26, 40, 99]
    assert (seen(mechanism, periods, ticks) == by_matrices(mechanism, periods, ticks)).all()


def test_rows_are_not_kept():
    """All weights of a square root are as many as half the square of its periods: 17 MB here."""
    mechanism = SquareRoot(GRID, 600, baseline=True)
    seen(mechanism, 600, [1])
    tracemalloc.start()
    columns = seen(mechanism, 600, list(range(1, 1200, 10)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert columns.shape == (120, 601)
    assert peak < 6_000_000, peak
