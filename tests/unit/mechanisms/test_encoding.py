"""Encoder rows are exact whole numbers, and the answers put together from them hold the truth and nothing else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.buffered import buffered
from dbext.mechanisms.disjoint import DisjointSums
from dbext.mechanisms.encoding import encode_rows, exact_product, leaf_counts, noisy_table, weighted_sums
from dbext.mechanisms.hierarchical import HierarchicalSums
from dbext.mechanisms.independent import OneWindow
from dbext.mechanisms.plain_sums import PlainSums
from dbext.mechanisms.protocol import Node
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.mechanisms.spread import spread
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.toeplitz import encode
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot
from dbext.privacy.grid import MonthGrid, RegularGrid

WEEKLY = RegularGrid(3, 7)
ENCODED = [
    SquareRoot(WEEKLY, 9),
    SquareRoot(WEEKLY, 9, baseline=True),
    WeightedSquareRoot(WEEKLY, 9),
    WeightedSquareRoot(MonthGrid(240, 1), 9, baseline=True),
    SlidingRoot(WEEKLY, 4),
    SlidingRoot(MonthGrid(240, 1), 3, count=9),
    SlidingRoot(WEEKLY, 2, age=5),
]
WHOLE = [
    PlainSums(WEEKLY, 9, baseline=True),
    BinaryTree(WEEKLY, 9, baseline=True),
    SignedTree(WEEKLY, 40, 4, 3, baseline=True),
    SignedTree(WEEKLY, 40, 4, 3, True, tuple(Fraction(n, 4) for n in range(4, 10)), (2,)),
    HierarchicalSums(WEEKLY, 9, 3, 3),
    HierarchicalSums(WEEKLY, 9, 3, 3, count=4),
    DisjointSums(WEEKLY, 4, remainder=2),
    OneWindow(None, 5),
]


@given(
    st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=6),
    st.integers(1, 4),
    st.data(),
)
def test_products_are_exact_however_large(weights, cells, data):
    number = st.integers(-(2**40), 2**40) | st.integers(-(2**62), 2**62) | st.integers(-9, 9)
    counts = [[data.draw(number) for _ in range(cells)] for _ in weights]
    exact = [sum(weight * row[cell] for weight, row in zip(weights, counts, strict=True)) for cell in range(cells)]
    assert exact_product(np.array(weights, dtype=np.int64), np.array(counts, dtype=np.int64)) == exact


def ticks_of(mechanism, last):
    """Effects on two cells of ticks in and before every window up to a period, with some ticks that have none."""
    end = mechanism.window(last)[1]
    begin = mechanism.leaves(1)[0].start
    begin = mechanism.leaves(1)[0].end if begin is None else begin + 1
    return [(tick, (tick * 7 % 11 - 5, 10**9 + tick)) for tick in range(begin, end + 1) if tick % 3]


def published(mechanism, last, drop_row=None):
    """Rows without noise, encoded as a publication does, and the answers from them."""
    rows = [row for period in range(1, last + 1) for row in mechanism.rows(period)]
    leaves = [leaf for period in range(1, last + 1) for leaf in mechanism.leaves(period)]
    texts = [(tick, ",".join(map(str, sums))) for tick, sums in ticks_of(mechanism, last)]
    encoded = encode_rows(rows, leaves[0].number, leaf_counts(leaves, texts, 2))
    stored = [(row.number, ",".join(map(str, cells))) for row, cells in zip(rows, encoded, strict=True)]
    table = noisy_table(stored)
    if drop_row is not None:
        table[drop_row] += 1 << 30
    return encoded, [weighted_sums(mechanism.answer(period), stored[0][0], table) for period in range(1, last + 1)]


def truth(mechanism, last):
    windows = [mechanism.window(period) for period in range(1, last + 1)]
    ticks = ticks_of(mechanism, last)
    return [[sum(sums[cell] for tick, sums in ticks if (a is None or a < tick) and tick <= b) for cell in (0, 1)] for a, b in windows]


@pytest.mark.parametrize("mechanism", ENCODED, ids=repr)
def test_answers_without_noise_are_the_truth(mechanism):
    _, answers = published(mechanism, 9)
    assert np.allclose(answers, truth(mechanism, 9), rtol=1e-12, atol=1e-6)
    _, harmed = published(mechanism, 9, drop_row=3)
    assert not np.allclose(harmed, truth(mechanism, 9), rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("mechanism", [*ENCODED, buffered(WEEKLY, 9, baseline=True), buffered(MonthGrid(240, 1), 9, baseline=False)], ids=repr)
def test_every_leaf_is_charged_once_and_none_before_its_period(mechanism):
    for period in (1, 5, 9):
        leaves = [(leaf.start, leaf.end) for one in range(1, period + 1) for leaf in mechanism.leaves(one)]
        assert [one for pattern in mechanism.patterns() for one in pattern.through(period).filters()] == leaves


def test_rows_are_the_encoder_times_the_counts():
    mechanism = SquareRoot(RegularGrid(0, 1), 9)
    encoded, _ = published(mechanism, 9)
    counts = dict(ticks_of(mechanism, 9))
    for cell in (0, 1):
        column = [counts.get(tick, (0, 0))[cell] for tick in range(1, 10)]
        assert [row[cell] for row in encoded] == encode(mechanism.coefficients, column)


def test_ticks_outside_every_leaf_are_left_out():
    leaves = [Node(1, 10, 12), Node(2, 12, 14)]
    assert leaf_counts(leaves, [(9, "1"), (10, "1"), (11, "2"), (12, "4"), (13, "8"), (15, "16")], 1).tolist() == [[6], [8]]
    assert leaf_counts([Node(0, None, 10)], [(9, "1"), (10, "1")], 1).tolist() == [[2]]
    assert leaf_counts(leaves, [], 3).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("mechanism", ENCODED + WHOLE, ids=repr)
def test_the_spread_is_that_of_the_answers(mechanism):
    found = spread(mechanism)
    if mechanism.horizon is None and isinstance(mechanism, SlidingRoot):
        squares = [sum(w * w for _, w in mechanism.answer(period)) for period in (200, 300)]
        assert found.mean == found.worst == pytest.approx(squares[1], rel=1e-8)
        return
    factor = getattr(mechanism, "factor", lambda _: 1)
    squares = [sum((w * float(factor(n))) ** 2 for n, w in mechanism.answer(period)) for period in range(1, (mechanism.horizon or 9) + 1)]
    assert found == pytest.approx((sum(squares) / len(squares), max(squares), found.period))
    assert squares[found.period - 1] == pytest.approx(found.worst)


@pytest.mark.parametrize("mechanism", ENCODED + WHOLE, ids=repr)
def test_mechanisms_come_back_from_json(mechanism):
    assert mechanism_from_json(mechanism.to_json()) == mechanism
