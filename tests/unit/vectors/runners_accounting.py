"""Vectors of section 2 of the theory and of the release kinds: every count comes out of the accountant."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dbext.mechanisms.disjoint import disjoint_sums
from dbext.mechanisms.hierarchical import cover
from dbext.mechanisms.independent import IndependentWindows
from dbext.privacy.accountant import worst_case_loss
from dbext.privacy.calibrate import noise_for
from dbext.privacy.cells import PricedFilter
from dbext.privacy.charge import Charge
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.coverage import deepest_window, heaviest_points
from dbext.privacy.coverage_joint import heaviest_points_within
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace, RoundedGaussian
from dbext.privacy.pattern import Windows
from dbext.privacy.pico import PICOS, picos_up
from tests.unit.vectors.registry import runner


def exact(value: Any) -> Fraction:
    """Read a number as it is written, not as its float."""
    return Fraction(str(value))


def in_ticks(*values: Any) -> list[int]:
    """Scale times to a common tick."""
    times = [exact(value) for value in values]
    unit = math.lcm(*(time.denominator for time in times))
    return [int(time * unit) for time in times]


def figure(filters: Sequence[PricedFilter], k: int | None = None, w: int | None = None) -> int:
    """Return the loss of the worst entry of plain touched-filter accounting."""
    if w is None:
        return heaviest_points(filters, k)
    return deepest_window(filters, w) if k is None else heaviest_points_within(filters, k, w)


def disjoint(boundaries: Sequence[int], prices: Sequence[int] | None = None) -> list[PricedFilter]:
    """Return the filters between neighbouring boundaries."""
    prices = prices or [1] * (len(boundaries) - 1)
    return [PricedFilter(a, b, price, price) for (a, b), price in zip(itertools.pairwise(boundaries), prices, strict=True)]


def windows(windows_: Windows, price: int = 1) -> list[PricedFilter]:
    return [PricedFilter(a, b, price, price) for a, b in windows_.filters()]


def priced(inputs: dict[str, Any]) -> list[PricedFilter]:
    prices = [picos_up(exact(cost)) for cost in inputs["cost"]]
    return [PricedFilter(a, b, price, price) for (a, b), price in zip(inputs["intervals"], prices, strict=True)]


@runner("dcr_time_bounded_regular")
def _(inputs):
    step, within = in_ticks(inputs["tau"], inputs["w"])
    return figure(windows(Windows(RegularGrid(0, step), width_steps=1, count=inputs["ranges"])), w=within)


@runner("dcr_at_most_k")
def _(inputs):
    return figure(windows(Windows(RegularGrid(0, 7), width_steps=1, count=inputs["n_ranges"])), k=inputs["k"])


@runner("dcr_time_bounded_irregular")
def _(inputs):
    return figure(disjoint(inputs["boundaries"]), w=inputs["w"])


@runner("dcr_irregular_unequal_eps_at_most_2")
def _(inputs):
    return figure(disjoint(inputs["boundaries"], [picos_up(exact(one)) for one in inputs["eps"]]), k=inputs["k"]) / PICOS


@runner("dcr_irregular_unequal_eps_time_bounded_5")
def _(inputs):
    return figure(disjoint(inputs["boundaries"], [picos_up(exact(one)) for one in inputs["eps"]]), w=inputs["w"]) / PICOS


@runner("dcr_discrete_clock_half_open_window")
def _(inputs):
    """w stamps in a row are a closed span of w - 1 ticks."""
    return figure(windows(Windows(RegularGrid(0, inputs["tau"]), width_steps=1, count=60)), w=inputs["w_timestamps"] - 1)


def hierarchy(inputs: dict[str, Any], shares: Sequence[Any], unit: int = 1) -> list[PricedFilter]:
    """Return the nodes of nested levels over leaves of `unit` ticks, with the cost of their level."""
    base, levels, top = inputs["base"], inputs["levels"], inputs["top_nodes"]
    return [
        node
        for level, share in zip(range(levels), shares, strict=True)
        for node in windows(
            Windows(RegularGrid(0, unit * base**level), width_steps=1, count=top * base ** (levels - 1 - level)), picos_up(exact(share))
        )
    ]


@runner("hdcr_at_most_k")
def _(inputs):
    return figure(hierarchy(inputs, inputs["eps_per_level"]), k=inputs["k"]) / PICOS


@runner("hdcr_time_bounded")
def _(inputs):
    unit, within = in_ticks(1, inputs["w"])
    return figure(hierarchy(inputs, inputs["eps_per_level"], unit), w=within) / PICOS


@runner("hdcr_single_root_time_bounded")
def _(inputs):
    return figure(hierarchy(inputs, [inputs["eps_all"]] * inputs["levels"]), w=inputs["w"]) / PICOS


def sliding(inputs: dict[str, Any]) -> tuple[Windows, int | None]:
    """Return windows of W every P, and w, in ticks."""
    step, width, within = in_ticks(inputs["P"], inputs["W"], inputs.get("w", 0))
    return Windows(RegularGrid(0, step), width_ticks=width, count=inputs.get("n")), within if "w" in inputs else None


@runner("swcr_at_most_k", "swcr_time_bounded")
def _(inputs):
    shape, within = sliding(inputs)
    return figure(windows(shape), k=inputs.get("k"), w=within)


@runner("swcr_via_refined_dcr_boundaries_P7_W10")
def _(inputs):
    """Return the boundaries of all windows up to the end of the last one asked for."""
    shape = Windows(RegularGrid(inputs["t1"] - inputs["P"], inputs["P"]), width_ticks=inputs["W"])
    last = shape.filter(inputs["n"])[1]
    return sorted({bound for window in shape.filters(until=last) for bound in window if bound <= last})


@runner("swcr_via_refined_dcr_parts_per_window")
def _(inputs):
    return len(disjoint_sums(Windows(RegularGrid(0, inputs["P"]), width_ticks=inputs["W"])).answer(1))


@runner("swcr_via_refined_dcr_time_bounded")
def _(inputs):
    charges = [
        Charge(pattern, DiscreteLaplace(Fraction(1)), Measure.NET)
        for pattern in disjoint_sums(Windows(RegularGrid(0, inputs["P"]), width_ticks=inputs["W"])).patterns()
    ]
    return worst_case_loss(charges, [EntryType(1, "any", Constraint(active_within=inputs["w"]))], pure=True)[1] / PICOS


@runner(*(f"accountant_instance{number}_{kind}" for number in range(3) for kind in ("at_most_k", "time_bounded", "k2_and_w3")))
def _(inputs):
    return figure(priced(inputs), k=inputs.get("k"), w=inputs.get("w")) / PICOS


@runner("tree_range_max_nodes_T16_base2", "tree_range_max_nodes_T27_base3")
def _(inputs):
    base, total = inputs["base"], inputs["T"]
    levels = round(math.log(total, base)) + 1
    return max(len(cover(start, end, base, levels)) for end in range(1, total + 1) for start in range(end))


@runner("composite_G_per_entry_type")
def _(inputs):
    per_type = [figure(priced(inputs), k=one.get("k"), w=one.get("w")) / PICOS for one in inputs["G"]]
    return {"per_type": per_type, "overall": max(per_type)}


@runner("swcr_direct_vs_dcr_sum_time_bounded")
def _(inputs):
    """Root mean square errors at total epsilon 1 and variances in units of 1 / (2 rho), from calibrated noise."""
    shape, within = sliding(inputs)
    types = [EntryType(1, "any", Constraint(active_within=within))]
    result = {}
    for name, variance, mechanism in (
        ("direct", "direct", IndependentWindows(shape)),
        ("dcr", "dcr_sum", disjoint_sums(shape)),
    ):
        charges = [Charge(pattern, DiscreteLaplace(Fraction(1)), Measure.NET) for pattern in mechanism.patterns()]
        fold = worst_case_loss(charges, types, pure=True)[1] // PICOS
        nodes = len(mechanism.answer(1))
        result[f"{name}_fold"] = fold
        scale = noise_for(mechanism.patterns(), Measure.NET, False, types, PICOS * 10**9, True, DiscreteLaplace).scale * 10**9
        result[f"pure_rmse_{variance}"] = math.sqrt(2 * nodes) * round(float(scale), 3)
        unit = noise_for(mechanism.patterns(), Measure.NET, False, types, PICOS // 2, False, RoundedGaussian).sigma_squared
        result[f"zcdp_var_{variance}"] = nodes * round(float(unit), 3)
    return result
