"""Vectors of the local model, of key selection, of audits and of simultaneous bands."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from dbext.mechanisms.simultaneous import sidak_constant
from dbext.privacy.audit_bound import epsilon_lower_bound
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.local_model import Report, local_loss
from dbext.privacy.pico import PICOS
from tests.unit.vectors.key_selection import ContinualThreshold, laplace_threshold, optimal_probabilities
from tests.unit.vectors.registry import runner


def in_ticks(*lengths) -> list[int]:
    """Return lengths of time as whole numbers of their largest common unit."""
    exact = [Fraction(str(length)) for length in lengths]
    unit = lcm(*(length.denominator for length in exact))
    return [int(length * unit) for length in exact]


def touched(ranges, constraint: Constraint) -> int:
    """Return how many reports, at 1 each, an entry and its replacement touch."""
    reports = [Report(start, end, Fraction(1)) for start, end in ranges]
    return local_loss(reports, [EntryType(1, "any", constraint)]) // PICOS


@runner("local_dcr_at_most_k")
def _(inputs):
    return touched([(n, n + 1) for n in range(inputs["n_ranges"])], Constraint(max_mutations=inputs["k"]))


@runner("local_dcr_time_bounded")
def _(inputs):
    step, within = in_ticks(inputs["tau"], inputs["w"])
    return touched([(n * step, (n + 1) * step) for n in range(inputs["n_ranges"])], Constraint(active_within=within))


@runner("local_swcr_time_bounded")
def _(inputs):
    step, width, within = in_ticks(inputs["P"], inputs["W"], inputs["w"])
    return touched([(n * step - width, n * step) for n in range(inputs["n"])], Constraint(active_within=within))


@runner("optimal_partition_selection_eps1_delta1e-6")
def _(inputs):
    epsilon, delta = float(inputs.get("eps", 1)), float(inputs.get("delta", 1e-6))
    chances = optimal_probabilities(epsilon, delta, max(inputs["n"]))
    return [chances[n - 1] for n in inputs["n"]]


@runner("laplace_key_threshold")
def _(inputs):
    return laplace_threshold(inputs["eps"], float(inputs["delta"]), inputs["keys_per_unit"])


@runner("gaussian_key_threshold_continual")
def _(inputs):
    return ContinualThreshold(inputs["sigma_max"], float(inputs["delta"]), inputs["keys_touched"], inputs["T"]).gaussian


@runner("audit_clopper_pearson_laplace_eps1")
def _(inputs):
    runs = inputs["n_per_side"]
    return epsilon_lower_bound(inputs["hits_with"], runs, inputs["hits_without"], runs)


@runner("sidak_simultaneous_95")
def _(inputs):
    return [sidak_constant(answers) for answers in inputs["T"]]
