"""Restated histories against explicit least squares, and never worse than what was published."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dbext.mechanisms.assemble import Edge
from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.hierarchical import HierarchicalSums
from dbext.mechanisms.levelled import LevelledSums
from dbext.mechanisms.restate import restated
from dbext.privacy.grid import RegularGrid
from tests.literature import restated_totals

DAILY = RegularGrid(10, 1)
FACTORS = (Fraction(1), Fraction(3, 2), Fraction(2))
MECHANISMS = {
    "binary tree": BinaryTree(DAILY, 21, True),
    "levels": LevelledSums(DAILY, (DAILY, DAILY.coarser(3), DAILY.coarser(9)), None, FACTORS, count=30),
    "levels with a state": LevelledSums(DAILY, (DAILY, DAILY.coarser(4)), None, (*FACTORS[:2], FACTORS[2]), baseline=True, count=30),
    "windows": HierarchicalSums(DAILY, 9, 3, 2),
}


def published(mechanism, periods):
    """The nodes that are over, with variances that differ, and the windows."""
    last = mechanism.window(periods)[1]
    nodes = {node.number: node for period in range(1, periods + 1) for node in mechanism.nodes(period)}.values()
    over = [node for node in nodes if node.end <= last and node.start != node.end]
    edges = [Edge(node.number, node.start, node.end, 1.0 + node.number % 3) for node in over]
    return edges, [mechanism.window(period) for period in range(1, periods + 1)]


def explicit(edges, values, windows):
    """Least squares over the effects of single ticks; tick 0 stands for the beginning."""
    ticks = sorted({edge.end for edge in edges} | {edge.start or 0 for edge in edges})
    place = {tick: n for n, tick in enumerate(ticks)}

    def row(start, end):
        found = np.zeros(len(ticks) - 1)
        found[place[start or 0] : place[end]] = 1
        return found

    root = np.array([edge.variance**-0.5 for edge in edges])[:, None]
    design = np.array([row(edge.start, edge.end) for edge in edges]) * root
    wanted = np.array([row(*window) for window in windows])
    inverse = np.linalg.pinv(design)
    return wanted @ inverse @ (values * root), ((wanted @ inverse) ** 2).sum(axis=1)


@pytest.mark.parametrize("periods", [1, 4, 13, 21])
@pytest.mark.parametrize("name", MECHANISMS)
def test_restated_windows_are_those_of_least_squares(name, periods):
    edges, windows = published(MECHANISMS[name], periods)
    values = np.random.default_rng(periods).normal(size=(len(edges), 3))
    estimates, variances = restated(edges, values, windows)
    right, errors = explicit(edges, values, windows)
    assert estimates == pytest.approx(right, abs=1e-9)
    assert variances == pytest.approx(errors, rel=1e-9)


def test_a_complete_binary_tree_is_restated_as_in_two_passes():
    blocks = [(level, index) for level in range(5) for index in range(16 >> level)]
    noise = np.random.default_rng(1).normal(size=(len(blocks), 1))
    edges = [Edge(n, index << level, (index + 1) << level, 1.0) for n, (level, index) in enumerate(blocks)]
    estimates, variances = restated(edges, noise, [(0, end) for end in range(1, 17)])
    assert estimates[:, 0] == pytest.approx(restated_totals({block: value for block, (value,) in zip(blocks, noise, strict=True)}, 16))
    assert variances.max() < 2


def test_long_histories_are_restated_quickly_and_better():
    """Thousands of windows of a year: each has a smaller error than when it was published."""
    release = HierarchicalSums(DAILY, 365, 8, 3)
    edges, windows = published(release, 2000)
    edges = [edge._replace(variance=1.0) for edge in edges]
    _, variances = restated(edges, np.zeros((len(edges), 1)), windows)
    at_publication = np.array([len(release.answer(period)) for period in range(1, 2001)])
    assert (variances <= at_publication + 1e-9).all()
    assert variances.mean() < 0.8 * at_publication.mean()
