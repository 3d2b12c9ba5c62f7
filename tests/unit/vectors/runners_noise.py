"""Vectors of noises, conversions and intervals."""

from __future__ import annotations

import math
from fractions import Fraction

from benchmarks import comparison
from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.error import half_width_95
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.gaussian import gaussian_epsilon, gaussian_rho
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pico import PICOS, picos_up
from dbext.privacy.repeated_laplace import repeated_laplace_epsilon
from tests.literature import epsilon_to_rho, rho_to_epsilon
from tests.unit.vectors.registry import runner
from tests.unit.vectors.runners_accounting import exact

ONCE = [EntryType(1, "any", Constraint(max_mutations=1))]


@runner("rho_to_eps")
def _(inputs):
    rho, delta = exact(inputs["rho"]), exact(inputs["delta"])
    return {
        "simple": comparison.simple_epsilon(float(rho), float(delta)),
        "cks": rho_to_epsilon(picos_up(rho), delta),
        "gaussian_exact": gaussian_epsilon(picos_up(rho), delta),
    }


@runner("eps_delta_to_gaussian")
def _(inputs):
    epsilon, delta = exact(inputs["eps"]), exact(inputs["delta"])
    sigma = comparison.gaussian_sigma(float(epsilon), float(delta))
    return {
        "sigma": sigma,
        "rho_gaussian": gaussian_rho(epsilon, delta) / PICOS,
        "rho_cks": epsilon_to_rho(epsilon, delta) / PICOS,
        "rho_simple": comparison.simple_rho(float(epsilon), float(delta)),
    }


@runner("pure_eps_to_rho")
def _(inputs):
    return [comparison.pure_rho(epsilon) for epsilon in inputs["eps"]]


@runner("advanced_composition_filter")
def _(inputs):
    return comparison.advanced_composition([inputs["eps_each"]] * inputs["n"], float(inputs["delta_prime"]))


@runner("nonadditive_worst_set_flips_with_delta")
def _(inputs):
    deltas = [float(delta) for delta in inputs["deltas"]]
    epsilon, mu = (float(inputs[name].split("=")[1]) for name in ("setA", "setB"))
    return {
        "A": [comparison.laplace_epsilon(epsilon, delta) for delta in deltas],
        "B": [gaussian_epsilon(picos_up(Fraction(mu * mu / 2)), exact(delta)) for delta in inputs["deltas"]],
    }


@runner("pld_8fold_discrete_laplace_param0.25")
def _(inputs):
    return repeated_laplace_epsilon(float(inputs["delta"]), inputs["parameter"], inputs["sensitivity"], inputs["n"])


@runner("discrete_laplace_variance")
def _(inputs):
    return [DiscreteLaplace(exact(scale)).variance for scale in inputs["scale"]]


@runner("discrete_gaussian_variance")
def _(inputs):
    """Of the law that rounded noise is compared with: P(X = x) proportional to exp(-x^2 / (2 sigma^2))."""
    found = []
    for sigma in inputs["sigma"]:
        weights = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(-200, 201)]
        found.append(math.fsum((n - 200) ** 2 * weight for n, weight in enumerate(weights)) / math.fsum(weights))
    return found


@runner("sum_of_4_discrete_laplace_scale5_95pct_halfwidth")
def _(inputs):
    assert inputs["beta"] == 0.05
    return half_width_95(DiscreteLaplace(exact(inputs["scale"])), [1] * inputs["m"])


@runner("tree_prefix_node_counts_T16")
def _(inputs):
    assert inputs["base"] == 2
    tree = BinaryTree(RegularGrid(0, 1), inputs["T"])
    return [len(tree.answer(period)) for period in range(1, inputs["T"] + 1)]


@runner("binary_tree_all_nodes")
def _(inputs):
    """Errors are normalised: times the root of the squared sensitivity, at sigma 1; Laplace noise of continuous variance 2 scale^2."""
    tree = BinaryTree(RegularGrid(0, 1), inputs["T"])
    counts = [len(tree.answer(period)) for period in range(1, inputs["T"] + 1)]
    l1 = _loss(tree, DiscreteLaplace(Fraction(1)), pure=True)
    l2_squared = 2 * _loss(tree, RoundedGaussian(Fraction(1)), pure=False)
    mean = sum(counts) / len(counts)
    return {
        "sens_L1": l1,
        "sens_L2_sq": l2_squared,
        "mean_nodes": mean,
        "max_nodes": max(counts),
        "gaussian_normalised_mean_rmse": math.sqrt(mean * l2_squared),
        "gaussian_normalised_max_rmse": math.sqrt(max(counts) * l2_squared),
        "laplace_rmse_eps1": l1 * math.sqrt(2 * mean),
    }


def _loss(tree: BinaryTree, noise: DiscreteLaplace | RoundedGaussian, *, pure: bool) -> float:
    charges = [Charge(pattern, noise, Measure.NET) for pattern in tree.patterns()]
    return worst_case_loss(charges, ONCE, pure)[1] / PICOS
