"""Errors of restated trees, worked out level by level, against explicit least squares and against dp_restated's own net."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.restated import best_restated, restated_variances
from dbext.mechanisms.assemble import Edge
from dbext.mechanisms.levelled import LevelledSums
from dbext.mechanisms.restate import restated
from dbext.privacy.grid import RegularGrid

SHAPES = [(1, 2, [1.0]), (7, 2, [1.0, 3.0, 0.5]), (27, 3, [1.0, 1.0, 1.0, 1.0]), (100, 3, [1.0, 2.0, 0.7, 1.5]), (90, 10, [2.0, 1.0])]


@pytest.mark.parametrize(("periods", "radix", "variances"), SHAPES)
def test_levels_at_once_give_the_errors_of_least_squares(periods, radix, variances):
    blocks = [(n * radix**level, (n + 1) * radix**level, own) for level, own in enumerate(variances) for n in range(periods // radix**level)]
    ticks = np.arange(periods)
    design = np.array([((start <= ticks) & (ticks < end)) / own**0.5 for start, end, own in blocks])
    covariance = np.tri(periods) @ np.linalg.inv(design.T @ design) @ np.tri(periods).T
    assert restated_variances(periods, radix, variances) == pytest.approx(np.diag(covariance), rel=1e-9)


def test_they_are_those_that_a_restated_release_states():
    """Over 5,000 periods, where the net of all blocks takes well under a second too."""
    daily, variances = RegularGrid(0, 1), [1.0, 2.0, 0.7, 1.5]
    tree = LevelledSums(daily, tuple(RegularGrid(0, 8**level) for level in range(4)), None, (Fraction(1),) * 4, count=5000)
    nodes = [node for period in range(1, 5001) for node in tree.nodes(period)]
    edges = [Edge(node.number, node.start, node.end, variances[node.number % 4]) for node in nodes]
    _, stated = restated(edges, np.zeros((len(edges), 1)), [tree.window(period) for period in range(1, 5001)])
    assert stated == pytest.approx(restated_variances(5000, 8, variances), rel=1e-9)


def test_the_best_tree_errs_less_than_it_did_when_published():
    best = best_restated(1000)
    assert best.error < 0.8 * best.published
    assert best.error < best.worst
