"""Vectors of trees: joint sensitivities, least squares, smooth and signed trees, unequal budgets, ranges."""

from __future__ import annotations

import math

from dbext.mechanisms.honaker import block_variances
from dbext.mechanisms.signed_tree import Shape, digit_weights
from dbext.mechanisms.smooth_tree import best_smooth_tree
from dbext.mechanisms.tree_paths import increment_norms, state_change_norms
from dbext.mechanisms.unequal_budgets import divide, indexed_tree
from tests.unit.vectors.registry import runner


@runner("tree8_all_nodes_L1_state_change")
def _(inputs):
    norms = state_change_norms(_radix(inputs), [1] * inputs["levels"], max(inputs["k"]))
    return [norms[k - 1] for k in inputs["k"]]


@runner("tree8_all_nodes_L1_independent_increments")
def _(inputs):
    norms = increment_norms(2, inputs.get("levels", inputs["T"].bit_length()), max(inputs["k"]))
    return [norms[k - 1][0] for k in inputs["k"]]


@runner("tree8_all_nodes_L2sq_independent_increments")
def _(inputs):
    norms = increment_norms(2, inputs.get("levels", inputs["T"].bit_length()), max(inputs["k"]))
    return [norms[k - 1][1] for k in inputs["k"]]


@runner("honaker_node_variances")
def _(inputs):
    return block_variances(inputs["levels"])


@runner("smooth_binary_best_height_weight")
def _(inputs):
    tree = best_smooth_tree(inputs["T"])
    product = tree.weight * (tree.height - tree.weight)
    return {"product": product, "H": tree.height, "weight": tree.weight, "normalised_rmse": tree.normalised_error}


@runner("laplace_signed_kary")
def _(inputs):
    """Laplace noise of scale levels / eps in every block; its continuous variance is 2 scale^2."""
    levels = inputs["levels"]
    blocks = digit_weights(inputs["T"], Shape(inputs["k"], levels)).tolist()
    mean, most, scale = sum(blocks) / len(blocks), max(blocks), levels / inputs["eps"]
    return {
        "L1": levels,
        "mean_nodes": mean,
        "max_nodes": most,
        "rmse": scale * math.sqrt(2 * mean),
        "max_rmse": scale * math.sqrt(2 * most),
    }


@runner("laplace_unequal_budget_binary_indexed_tree")
def _(inputs):
    return math.sqrt(divide(indexed_tree(inputs["T"]), pure=True).total_variance / inputs["T"]) / inputs["eps"]


def _radix(inputs) -> int:
    """Return the branching of a complete tree with T leaves and this many levels."""
    radix = round(inputs["T"] ** (1 / (inputs["levels"] - 1)))
    assert radix ** (inputs["levels"] - 1) == inputs["T"]
    return radix
