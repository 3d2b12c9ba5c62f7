"""Signed, smooth, least-squares and unequal trees against enumeration and explicit linear algebra."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbext.errors import BadArgument, HorizonReached
from dbext.mechanisms.honaker import block_variances, blocks_of, online_weights
from dbext.mechanisms.signed_tree import Shape, SignedTree, digit_weight, digit_weights, signed_blocks
from dbext.mechanisms.smooth_tree import SmoothTree, best_smooth_tree
from dbext.mechanisms.tree_paths import increment_norms, state_change_norms
from dbext.mechanisms.unequal_budgets import divide, indexed_tree
from dbext.privacy.grid import MonthGrid, RegularGrid
from tests.literature import least_squares_errors, restated_totals, signed_family

SHAPES = [Shape(2, 4), Shape(3, 3), Shape(4, 2), Shape(7, 2), Shape(20, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_signed_blocks_add_up_to_the_total(shape):
    weights = digit_weights(40, shape).tolist()
    for total in range(1, 41):
        covered = [0] * 200
        blocks = signed_blocks(total, *shape)
        for level, index, sign in blocks:
            for period in range(index * shape.radix**level, (index + 1) * shape.radix**level):
                covered[period] += sign
        assert covered == [1] * total + [0] * (200 - total)
        assert len(blocks) == weights[total - 1] == digit_weight(total, *shape)


@pytest.mark.parametrize("shape", [Shape(3, 3), Shape(4, 2)])
def test_signed_sums_are_shortest(shape):
    """Breadth-first over sums of blocks that start or end at the total so far: no fewer blocks reach any total."""
    reached, frontier = {0: 0}, [0]
    for steps in range(1, 9):
        frontier = [
            total + sign * shape.radix**level
            for total in frontier
            for level in range(shape.levels)
            for sign in (1, -1)
            if total % shape.radix**level == 0
        ]
        frontier = [total for total in frontier if 0 <= total < 200 and total not in reached]
        reached.update((total, min(steps, reached.get(total, steps))) for total in frontier)
    weights = digit_weights(30, shape)
    assert all(weights[total - 1] == reached[total] for total in range(1, 31) if total in reached)


@pytest.mark.parametrize("grid", [RegularGrid(3, 2), MonthGrid(5, 1)])
@pytest.mark.parametrize("baseline", [False, True])
def test_signed_tree_draws_each_node_once_and_charges_it(grid, baseline):
    tree = SignedTree(grid, 23, 4, 3, baseline)
    drawn = [node for period in range(1, 24) for node in tree.nodes(period)]
    assert len({node.number for node in drawn}) == len(drawn)
    by_number = {node.number: node for node in drawn}
    charged = {found for pattern in tree.patterns() for found in pattern.filters()}
    assert {(node.start, node.end) for node in drawn if node.start != node.end} <= charged
    assert max(node.end for node in drawn) == grid.end(23), "what lies beyond the horizon cancels"
    for period in range(1, 24):
        ticks = {}
        for number, sign in tree.answer(period):
            node = by_number[number]
            for tick in range(-5 if node.start is None else node.start, node.end):
                ticks[tick] = ticks.get(tick, 0) + sign
        start, end = tree.window(period)
        assert {tick for tick, count in ticks.items() if count} == set(range(-5 if start is None else start, end))
        assert set(ticks.values()) <= {0, 1}


def test_signed_tree_refuses_what_it_cannot_be():
    with pytest.raises(HorizonReached):
        SignedTree(RegularGrid(0, 1), 5, 3, 2).answer(6)
    with pytest.raises(BadArgument):
        SignedTree(RegularGrid(0, 1), 5, 1, 2)


@pytest.mark.parametrize("horizon", [1, 2, 10, 100])
def test_smooth_trees_hold_every_period_equally_often(horizon):
    tree = best_smooth_tree(horizon)
    assert tree.horizon >= horizon
    held = dict.fromkeys(range(tree.horizon), 0)
    nodes = set()
    for total in range(1, tree.horizon + 1):
        used = tree.nodes(total)
        assert len(used) <= tree.weight
        assert sorted(period for _, first, last in used for period in range(first, last)) == list(range(total))
        nodes |= set(used)
    for _, first, last in nodes:
        for period in range(first, last):
            held[period] += 1
    assert max(held.values()) <= tree.height - tree.weight
    assert [tree.leaf(number) for number in range(tree.horizon + 1)] == [
        code for code in range(1 << tree.height) if code.bit_count() == tree.weight
    ]


def test_smooth_tree_error_is_the_same_at_all_times():
    assert best_smooth_tree(1024) == SmoothTree(13, 5)
    assert best_smooth_tree(1024).normalised_error == pytest.approx(6.3246, abs=1e-4)
    with pytest.raises(BadArgument):
        SmoothTree(3, 3)


def measurements(total: int):
    """Return all dyadic blocks inside 1 ... total and their 0/1 rows."""
    blocks = [(level, index) for level in range(total.bit_length()) for index in range(total >> level)]
    rows = [[1.0 if index << level <= period < (index + 1) << level else 0.0 for period in range(total)] for level, index in blocks]
    return blocks, np.array(rows)


@pytest.mark.parametrize("total", [1, 2, 5, 8, 13])
def test_online_weights_are_least_squares(total):
    blocks, rows = measurements(total)
    inverse = np.linalg.pinv(rows)
    best = inverse.sum(axis=0)
    weights = online_weights(total)
    assert [weights.get(block, 0.0) for block in blocks] == pytest.approx(best.tolist(), abs=1e-9)
    variance = sum(block_variances(level + 1)[level] for level, _ in blocks_of(total))
    assert sum(weight**2 for weight in weights.values()) == pytest.approx(variance)


@given(st.integers(1, 14), st.data())
def test_restated_totals_are_least_squares(total, data):
    blocks, rows = measurements(total)
    noisy = {block: float(data.draw(st.integers(-9, 9))) for block in blocks}
    solution = np.linalg.lstsq(rows, np.array([noisy[block] for block in blocks]), rcond=None)[0]
    assert restated_totals(noisy, total) == pytest.approx(np.cumsum(solution).tolist(), abs=1e-8)


def test_honaker_error_of_a_thousand_periods():
    assert least_squares_errors(1024)[0] == pytest.approx(5.650, abs=1e-3)


def states(leaves: int, changes: int):
    """Yield 0/1 paths from 0 with at most this many changes."""
    for path in itertools.product((0, 1), repeat=leaves):
        if sum(a != b for a, b in itertools.pairwise((0, *path))) <= changes:
            yield (0, *path)


@pytest.mark.parametrize(("radix", "levels"), [(2, 4), (3, 3), (8, 2), (4, 1)])
@pytest.mark.parametrize("prices", ["equal", "unequal"])
def test_state_change_norms_against_all_paths(radix, levels, prices):
    costs = [1.0] * levels if prices == "equal" else [1.0 + level / 2 for level in range(levels)]
    leaves = radix ** (levels - 1)
    norms = state_change_norms(radix, costs, 4)
    for changes in range(1, 5):
        best = max(
            sum(
                costs[level] * (path[start] != path[start + radix**level])
                for level in range(levels)
                for start in range(0, leaves, radix**level)
            )
            for path in states(leaves, changes)
        )
        assert norms[changes - 1] == best


@pytest.mark.parametrize(("radix", "levels"), [(2, 4), (3, 3), (5, 2)])
def test_increment_norms_against_all_placements(radix, levels):
    leaves = radix ** (levels - 1)
    for events, (l1, l2_squared) in enumerate(increment_norms(radix, levels, min(4, leaves)), 1):
        placements = [
            [
                sum(start <= leaf < start + radix**level for leaf in chosen)
                for level in range(levels)
                for start in range(0, leaves, radix**level)
            ]
            for chosen in itertools.combinations(range(leaves), events)
        ]
        assert l1 == max(map(sum, placements))
        assert l2_squared == max(sum(n * n for n in counts) for counts in placements)


@pytest.mark.parametrize("family", [indexed_tree(7), indexed_tree(12), signed_family(10, Shape(3, 3))])
@pytest.mark.parametrize("pure", [True, False])
def test_unequal_shares_fill_every_path_and_are_locally_best(family, pure):
    division = divide(family, pure=pure)
    used = [node for node, uses in enumerate(family.uses) if uses]

    def path(node):
        while node is not None:
            yield node
            node = family.parents[node]

    def total(shares):
        return sum(2 * family.uses[n] / shares[n] ** 2 if pure else family.uses[n] / shares[n] for n in used)

    inner = {family.parents[node] for node in used}
    for leaf in set(used) - inner:
        assert sum(division.shares[node] for node in path(leaf)) == pytest.approx(1)
    assert total(division.shares) == pytest.approx(division.total_variance)
    for node in used:
        ancestors = [other for other in path(node) if other != node and family.uses[other]]
        if ancestors:
            moved = list(division.shares)
            inside = [n for n in used if ancestors[0] in path(n) and n != ancestors[0]]
            moved[ancestors[0]] += 0.01 * moved[node]
            for n in inside:
                moved[n] *= 1 - 0.01 * moved[ancestors[0]]
            feasible = max(sum(moved[n] for n in path(n)) for n in used) <= 1 + 1e-9
            assert not feasible or total(moved) >= division.total_variance * (1 - 1e-9)


@pytest.mark.parametrize(("horizon", "shape", "error"), [(64, Shape(12, 2), 6.56), (256, Shape(23, 2), 9.33), (1024, Shape(12, 3), 12.56)])
def test_unequal_shares_help_signed_trees_a_little(horizon, shape, error):
    variance = divide(signed_family(horizon, shape), pure=True).total_variance / horizon
    assert variance**0.5 == pytest.approx(error, abs=0.01)
