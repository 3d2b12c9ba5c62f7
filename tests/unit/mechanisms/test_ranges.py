"""Ranges from published nodes: the weights are those of generalised least squares, worked out here by brute force."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dbext.mechanisms.assemble import Edge, assemble
from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.disjoint import DisjointSums
from dbext.mechanisms.hierarchical import HierarchicalSums
from dbext.mechanisms.independent import IndependentWindows, OneWindow
from dbext.mechanisms.plain_sums import PlainSums
from dbext.mechanisms.ranges import combination, range_boundaries
from dbext.mechanisms.shared_windows import SharedWindows, shared_root
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot
from dbext.privacy.grid import MonthGrid, RegularGrid
from dbext.privacy.pattern import Windows

GRID = RegularGrid(100, 2)


def least_squares(edges, start, end):
    """Return the least variance of an unbiased estimate of (start, end], or None if there is none: pseudo-inverse over elementary cells."""
    bounds = sorted({one.start for one in edges} | {one.end for one in edges})
    if start not in bounds or end not in bounds:
        return None
    cells = list(itertools.pairwise(bounds))
    matrix = np.array([[one.start <= left and right <= one.end for left, right in cells] for one in edges], dtype=float)
    wanted = np.array([start <= left and right <= end for left, right in cells], dtype=float)
    scaled = matrix / np.sqrt([one.variance for one in edges])[:, None]
    weights, *_ = np.linalg.lstsq(scaled.T, wanted, rcond=None)
    return float(weights @ weights) if np.allclose(scaled.T @ weights, wanted, atol=1e-8) else None


def check(edges, start, end):
    found, best = assemble(edges, start, end), least_squares(edges, start, end)
    assert (found is None) == (best is None), (start, end)
    if found is None:
        return False
    weights, by_number = dict(found), {one.number: one for one in edges}
    bounds = sorted({one.start for one in edges} | {one.end for one in edges})
    for left, right in itertools.pairwise(bounds):
        held = sum(weight for number, weight in found if by_number[number].start <= left and right <= by_number[number].end)
        assert held == pytest.approx(float(start <= left and right <= end), abs=1e-8)
    assert sum(w * w * by_number[n].variance for n, w in weights.items()) == pytest.approx(best)
    return True


def test_weights_are_those_of_least_squares_for_any_nodes():
    generator = np.random.default_rng(5)
    answered = 0
    for _ in range(120):
        size = generator.integers(2, 14)
        pairs = generator.integers(0, 10, (size, 2))
        edges = [Edge(n, int(min(a, b)), int(max(a, b)), float(generator.uniform(0.5, 3))) for n, (a, b) in enumerate(pairs) if a != b]
        if edges:
            start, end = sorted(generator.choice(10, 2, replace=False).tolist())
            answered += check(edges, start, end)
    assert answered > 30


def blocks(*levels):
    """Return nested blocks over 16 periods: (length, variance) of each level."""
    number = iter(range(1000))
    return [Edge(next(number), a, a + length, variance) for length, variance in levels for a in range(0, 16, length)]


@pytest.mark.parametrize("levels", [((1, 1.0), (4, 1.0)), ((1, 2.0), (2, 1.0), (8, 0.5)), ((1, 1.0), (3, 1.0), (5, 1.0))])
def test_every_range_of_a_hierarchy_is_answered_with_least_variance(levels):
    edges = blocks(*levels)
    for start in range(16):
        for end in range(start + 1, 17):
            assert check(edges, start, end)


def test_weights_of_plain_sums_are_whole_numbers():
    found = assemble(blocks((1, 1.7)), 3, 9)
    assert found == tuple((n, 1) for n in range(3, 9))
    assert all(isinstance(weight, int) for _, weight in found)


def test_the_beginning_is_a_boundary_like_any_other():
    edges = [Edge(0, None, 4, 1.0), Edge(1, 4, 6, 1.0), Edge(2, 6, 8, 1.0)]
    assert assemble(edges, None, 8) == ((0, 1), (1, 1), (2, 1))
    assert assemble(edges, 4, 8) == ((1, 1), (2, 1))
    assert assemble(edges, None, 5) is None


MONTHS = MonthGrid(240, 1)
INTERVAL = [
    IndependentWindows(Windows(GRID, 2, None, 0)),
    IndependentWindows(Windows(GRID, 6, None, 0, 30)),
    OneWindow(3, 9),
    DisjointSums(GRID, 3, 0, 0, 20),
    DisjointSums(GRID, 3, 1, 2, None),
    DisjointSums(MONTHS, 2, 0, 0, None),
    HierarchicalSums(GRID, 12, 4, 2, 0, None),
    HierarchicalSums(MONTHS, 12, 3, 2, 0, None),
    BinaryTree(GRID, 25),
    PlainSums(GRID, 9),
]


@pytest.mark.parametrize("mechanism", INTERVAL, ids=lambda one: type(one).__name__)
def test_interval_mechanisms_answer_what_least_squares_answers(mechanism):
    published = mechanism.horizon or 24
    nodes = [node for period in range(1, published + 1) for node in mechanism.nodes(period)]
    edges = [Edge(node.number, node.start, node.end, 1.0) for node in nodes]
    bounds = sorted({one.start for one in edges} | {one.end for one in edges})
    for start, end in [(bounds[0], bounds[-1]), (bounds[0], bounds[1]), (bounds[1], bounds[-1]), (bounds[1], bounds[len(bounds) // 2])]:
        if start >= end:
            continue
        found, best = combination(mechanism, published, lambda _: 1.0, start, end), least_squares(edges, start, end)
        assert (found is None) == (best is None)
        if found is not None:
            assert sum(w * w for _, w in found) == pytest.approx(best)


TOTALS = [
    SquareRoot(GRID, 40),
    SquareRoot(GRID, 40, baseline=True),
    WeightedSquareRoot(GRID, 40),
    SlidingRoot(GRID, 5, 3, None),
    SlidingRoot(GRID, 5, 0, 40),
    SharedWindows(GRID, (3, 7), shared_root((3, 7)), 1, None),
]


@pytest.mark.parametrize("mechanism", TOTALS, ids=lambda one: type(one).__name__)
def test_rows_add_up_to_every_range_between_their_leaves(mechanism):
    leaves = [leaf for period in range(1, 41) for leaf in mechanism.leaves(period)]
    rows = {row.number: row for period in range(1, 41) for row in mechanism.rows(period)}
    bounds = range_boundaries(mechanism, 40, leaves[-1].end)
    assert bounds[-1] == leaves[-1].end
    for start, end in [(bounds[0], bounds[1]), (bounds[0], bounds[-1]), (bounds[7], bounds[20]), (bounds[10], bounds[11])]:
        held = dict.fromkeys((leaf.number for leaf in leaves), 0)
        for number, weight in combination(mechanism, 40, lambda _: 1.0, start, end):
            for leaf, part in rows[number].weights:
                held[leaf] += Fraction(weight) * part
        for leaf in leaves:
            inside = leaf.start is not None and start <= leaf.start and leaf.end <= end
            assert float(held[leaf.number]) == pytest.approx(float(inside), abs=1e-7)


@pytest.mark.parametrize("baseline", [False, True])
def test_signed_trees_answer_differences_of_totals(baseline):
    tree = SignedTree(GRID, 30, 4, 2, baseline)
    upper, lower = dict(tree.answer(23)), dict(tree.answer(9))
    found = dict(combination(tree, 30, lambda _: 1.0, GRID.end(9), GRID.end(23)))
    assert found == {n: upper.get(n, 0) - lower.get(n, 0) for n in {*upper, *lower} if upper.get(n, 0) != lower.get(n, 0)}
    whole = combination(tree, 30, lambda _: 1.0, None if baseline else GRID.end(0), GRID.end(23))
    assert dict(whole) == upper
    assert combination(tree, 30, lambda _: 1.0, GRID.end(9) + 1, GRID.end(23)) is None


@pytest.mark.parametrize("mechanism", [*INTERVAL[3:], *TOTALS[:-1]], ids=lambda one: type(one).__name__)
def test_what_is_not_published_is_not_used(mechanism):
    full = range_boundaries(mechanism, 8, 0 if mechanism.horizon else mechanism.grid.end(8))
    part = range_boundaries(mechanism, 5, 0 if mechanism.horizon else mechanism.grid.end(5))
    beyond = next(one for one in full if one > part[-1])
    assert combination(mechanism, 5, lambda _: 1.0, part[0], beyond) is None
    assert combination(mechanism, 0, lambda _: 1.0, part[0], part[1]) is None


def test_an_endless_release_looks_at_nearby_periods_only():
    hourly = HierarchicalSums(RegularGrid(0, 1), 24, 24, 2, 0, None)
    far = 500_000
    found = combination(hourly, 600_000, lambda _: 1.0, far + 5, far + 77)
    near = combination(hourly, 600_000, lambda _: 1.0, 5 + 24 * 100, 77 + 24 * 100)
    assert sum(w * w for _, w in found) <= 72
    assert sum(w * w for _, w in near) < 72
