"""The least-squares tree: unbiased totals, the errors of the theory, every node charged once, and a history that can be restated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dbext.mechanisms.assemble import Edge
from dbext.mechanisms.epochs import continuing
from dbext.mechanisms.least_squares_tree import LeastSquaresTree
from dbext.mechanisms.registry import mechanism_from_json
from dbext.mechanisms.restate import restated
from dbext.mechanisms.spread import spread
from dbext.privacy.grid import MonthGrid, RegularGrid
from tests.literature import least_squares_errors


@pytest.mark.parametrize("grid", [RegularGrid(10, 2), MonthGrid(5, 1)])
@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("horizon", [1, 7, 16, 23])
def test_totals_are_unbiased_and_nodes_are_charged_as_drawn(grid, baseline, horizon):
    tree = LeastSquaresTree(grid, horizon, baseline)
    assert mechanism_from_json(tree.to_json()) == tree
    drawn, (pattern,) = {}, tree.patterns()
    for period in range(1, horizon + 1):
        fresh = {node.number: node for node in tree.nodes(period)}
        assert not drawn.keys() & fresh.keys()
        drawn |= fresh
        assert sorted((node.start or -99, node.end) for node in drawn.values()) == sorted(
            (start or -99, end) for start, end in pattern.through(period).filters()
        )
        start, end = tree.window(period)
        for tick in (-50, grid.end(0), grid.end(0) + 1, end, end + 1):
            inside = sum(
                weight for number, weight in tree.answer(period) if (drawn[number].start or -99) < tick <= drawn[number].end
            )
            assert inside == pytest.approx(float((start or -99) < tick <= end))
    assert max(drawn) <= tree.numbers


@pytest.mark.parametrize("horizon", [5, 16, 100])
def test_errors_are_those_of_the_theory(horizon):
    tree = LeastSquaresTree(RegularGrid(0, 1), horizon)
    mean, worst = least_squares_errors(horizon)
    assert math.sqrt(tree.levels * spread(tree).mean) == pytest.approx(mean)
    assert math.sqrt(tree.levels * spread(tree).worst) == pytest.approx(worst)
    direct = [sum(weight**2 for _, weight in tree.answer(period)) for period in range(1, horizon + 1)]
    assert tree.squares() == pytest.approx(direct)


def test_online_estimates_are_the_restated_ones_of_the_last_total_and_history_gains():
    tree = LeastSquaresTree(RegularGrid(0, 1), 23)
    nodes = [node for period in range(1, 24) for node in tree.nodes(period)]
    noise = np.random.default_rng(3).normal(size=(len(nodes), 1))
    values = dict(zip([node.number for node in nodes], noise[:, 0], strict=True))
    edges = [Edge(node.number, node.start, node.end, 1.0) for node in nodes]
    estimates, variances = restated(edges, noise, [tree.window(period) for period in range(1, 24)])
    assert estimates[-1, 0] == pytest.approx(sum(weight * values[number] for number, weight in tree.answer(23)))
    assert variances[-1] == pytest.approx(tree.squares()[-1])
    assert (variances <= np.array(tree.squares()) + 1e-12).all()
    assert variances[14] < 0.7 * tree.squares()[14]


def test_epochs_keep_their_numbers_apart():
    epochs = continuing(LeastSquaresTree(RegularGrid(0, 1), 6, True))
    numbers = [node.number for period in range(1, 20) for node in epochs.nodes(period)]
    assert len(set(numbers)) == len(numbers)
    assert not epochs.whole_answers
