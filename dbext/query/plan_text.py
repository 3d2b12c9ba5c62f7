"""A plan in words: stable text for people, explain views and golden tests. It depends on the plan alone, never on data."""

from __future__ import annotations

from collections.abc import Sequence

from dbext.mechanisms.buffered import Buffered
from dbext.mechanisms.disjoint import DisjointSums
from dbext.mechanisms.encoded import EncodedMechanism
from dbext.mechanisms.epochs import Epochs
from dbext.mechanisms.hierarchical import HierarchicalSums
from dbext.mechanisms.levelled import LevelledSums
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.shared_windows import SharedWindows
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.privacy.constraint import EntryType
from dbext.privacy.grid import RegularGrid
from dbext.privacy.noise import DiscreteLaplace, Noise
from dbext.privacy.pico import to_decimal
from dbext.query.calendar import Span, Tick
from dbext.query.plan import Plan
from dbext.query.publication import Publication
from dbext.query.ranks import rank_notes
from dbext.query.statistic import Formula

#: Widths that are listed one by one.
_LISTED = 8


def plan_text(plan: Plan, tick: Tick, types: Sequence[EntryType] = ()) -> str:
    """One `name: value` a line; losses are named by the types given, or numbered."""
    names = {entry_type.number: entry_type.name for entry_type in types}
    lines = [
        ("kind", plan.kind),
        ("measure", plan.measure.value + (" by group" if plan.grouped else "")),
        ("periods", _periods(plan, tick)),
        ("first window", _first_window(plan, tick)),
        ("mechanism", _mechanism(plan.mechanism)),
        ("noise", _noise(plan)),
        ("error", f"std {plan.std_error(1):.4g}, 95% within {plan.half_width_95(1):.4g} in period 1"),
        ("epsilon", f"{float(plan.epsilon):.6g}"),
        ("loss", ", ".join(f"{names.get(number, number)} {_loss(plan, picos)}" for number, picos in sorted(plan.lifetime.items()))),
        *(("note", note) for note in plan.notes),
    ]
    return "\n".join(f"{name}: {value}" for name, value in lines)


def publication_text(publication: Publication, tick: Tick, types: Sequence[EntryType] = ()) -> str:
    """The text of the one plan of a count; of anything else the figures, and a block for each stream. Errors are in units of the grid."""
    first = publication.streams[0]
    if len(publication.streams) == 1 and first.term is None and first.spread is None and not first.windows:
        return plan_text(publication.main, tick, types)
    names = {entry_type.number: entry_type.name for entry_type in types}
    losses = ", ".join(f"{names[number]} {_loss(publication.main, picos)}" for number, picos in sorted(publication.lifetime.items()))
    lines = [
        "figures: " + ", ".join(f"{one.label} = {_function(one)} of {' and '.join(map(str, one.sources))}" for one in publication.formulas),
        *(f"statistic {place}: {_statistic(publication, place)}" for place in range(len(publication.readings))),
        f"loss together: {losses}",
        *(f"note: {note}" for note in rank_notes(publication)),
    ]
    for number, stream in enumerate(publication.streams):
        values = stream.plan.values
        lines.append(f"--- stream {number}: {stream.share:.3f} of the budget, an entry adds {values.low} to {values.high}")
        lines.append(plan_text(stream.plan, tick, types))
    return "\n".join(lines)


def _function(formula: Formula) -> str:
    return formula.function if formula.fraction is None else f"{formula.function}({float(formula.fraction):g})"


def _statistic(publication: Publication, place: int) -> str:
    reading, statistic = publication.readings[place], publication.statistic(place)
    window = "" if reading.window is None else f" over {reading.window} period{'' if reading.window == 1 else 's'}"
    return f"{statistic.full_name}{window}, stream {reading.stream}"


def noise_text(noise: Noise) -> str:
    """A noise with its parameter, to four digits."""
    if isinstance(noise, DiscreteLaplace):
        return f"discrete Laplace of scale {float(noise.scale):.4g}"
    return f"rounded Gaussian of sigma {float(noise.sigma_squared) ** 0.5:.4g}"


def _noise(plan: Plan) -> str:
    factors = plan.pattern_factors
    by_level = f", by level {', '.join(f'{float(factor):.4g}' for factor in factors)} times that" if len(set(factors)) > 1 else ""
    if len(factors) > _LISTED:
        by_level = f", by level and section {float(min(factors)):.4g} to {float(max(factors)):.4g} times that"
    return noise_text(plan.noise) + by_level + lattice_text(plan)


def lattice_text(plan: Plan) -> str:
    """What the parameter of a plan's noise is measured in, where that is not one count or one step of a grid."""
    if plan.buffered is not None:
        return f" in steps of 2^-{plan.buffered.scale}"
    return "" if plan.whole_numbers else " on encoder rows"


def _loss(plan: Plan, picos: int) -> str:
    return f"{'epsilon' if plan.pure else 'rho'} {float(to_decimal(picos)):.6g}"


def _periods(plan: Plan, tick: Tick) -> str:
    horizon = "without end" if plan.horizon is None else f"{plan.horizon} in {'each epoch' if plan.renews else 'all'}"
    if plan.kind == "once":
        return "one answer"
    length = tick.times(plan.grid.step) if isinstance(plan.grid, RegularGrid) else Span(months=plan.grid.months)
    return f"{length.text} each from boundary {plan.grid.end(0)}, {horizon}"


def _first_window(plan: Plan, tick: Tick) -> str:
    start, end = plan.window(1)
    age = plan.due_tick(1) - end
    length = "everything" if start is None else tick.times(end - start).text
    aged = f", aged {tick.times(age).text}" if age else ""
    return f"({'-infinity' if start is None else start}, {end}], {length}{aged}"


def _mechanism(mechanism: Mechanism | EncodedMechanism) -> str:
    if isinstance(mechanism, Epochs):
        return _mechanism(mechanism.first)
    if isinstance(mechanism, DisjointSums):
        split = f" and {mechanism.remainder} ticks more" if mechanism.remainder else ""
        return f"{mechanism.name} of {mechanism.steps} period{'' if mechanism.steps == 1 else 's'}{split}"
    if isinstance(mechanism, (HierarchicalSums, SignedTree)):
        return f"{mechanism.name} of {mechanism.levels} levels of radix {mechanism.radix}{_baseline(mechanism)}"
    if isinstance(mechanism, LevelledSums):
        widths = ", ".join(f"{float(factor):g}" for factor in mechanism.factors)
        return f"{mechanism.name} of {len(mechanism.levels)} levels, noise {widths} times as wide{_baseline(mechanism)}"
    if isinstance(mechanism, (SlidingRoot, SharedWindows)):
        windows = mechanism.windows if isinstance(mechanism, SharedWindows) else [mechanism.steps]
        return f"{mechanism.name} of {', '.join(map(str, windows))} periods"
    made = f" from {len(mechanism.weights)} buffers" if isinstance(mechanism, Buffered) else ""
    return mechanism.name + made + _baseline(mechanism)


def _baseline(mechanism: Mechanism | EncodedMechanism) -> str:
    return " on the state before period 1" if getattr(mechanism, "baseline", False) else ""
