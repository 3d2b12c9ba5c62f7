"""Accuracy at equal privacy: what the planner chooses, every other candidate, lower bounds, and other packages where they are installed.

With delta > 0 the release asks for the whole of its budget, so that prices in epsilon and in rho are compared; what is best in rho, for a
budget that holds more, stands beside it. Errors are exact root mean squares over the periods and exact worst ones, at a lifetime epsilon
of 1 for the worst entry; nothing is drawn,
but for OpenDP's least-squares tree, whose error is estimated from draws of its own. Bounds are certified (benchmarks/optimum.py). Other
packages (benchmarks/peers.py) protect one event, so that they are compared at one mutation for each entry. `--empirical` also draws every
mechanism 1,000 times and compares what comes out with the prediction; `--plot FILE` writes the figures as a picture.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.empirical import measured
from benchmarks.optimum import mean_optimum, nuclear_bound, window_optimum, worst_optimum
from benchmarks.peers import ABSENT, peers
from benchmarks.picture import picture
from dbext.mechanisms.signed_tree import best_shape, digit_weights
from dbext.mechanisms.smooth_tree import best_smooth_tree
from dbext.mechanisms.square_root import predicted_errors
from dbext.mechanisms.unequal_budgets import divide, indexed_tree
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import budget_picos
from dbext.privacy.noise import DiscreteGaussian
from dbext.privacy.pico import PICOS
from dbext.query.calendar import Span, Tick
from dbext.query.choose import plan_publication
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.planner import Candidate, Request
from dbext.query.shape import MAX_BUFFERED_HORIZON, MAX_HORIZON

DELTAS = (Fraction(0), Fraction(1, 10**6), Fraction(1, 10**9))
HORIZONS, WINDOWS, MUTATIONS = (16, 64, 256, 1024, 4096, 16384, 65536), (7, 14, 28, 90, 365), (1, 2, 3, 4)
QUICK_HORIZONS, QUICK_WINDOWS, QUICK_MUTATIONS = (16, 64, 256, 1024, 65536), (7, 14, 28, 365), (1, 2, 4)
#: Above this, bounds are the closed form; the worst time's optimum is worked out up to the second.
LONGEST_OPTIMUM, LONGEST_WORST_OPTIMUM = 4096, 256
TOTAL = "SELECT count(*) FROM t WHERE dp_time > '2000-01-03'"
WINDOW = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '{} days'"


def planned(text: str, mutations: int, delta: Fraction, horizon: int | None) -> tuple[Candidate, ...]:
    """Return all candidates of a daily release at epsilon 1, in both units; one of them is chosen."""
    declaration = resolve(compile_declaration(text), ()).with_boundaries({"2000-01-03": 0})
    request = Request(start_tick=0, every=Span(days=1), epsilon=Fraction(1), horizon=horizon, aligned=False, whole=True)
    types = (EntryType(1, "any", Constraint(mutations)),)
    made = plan_publication(declaration, request, Tick("day", 1), types, Decimal(delta.numerator) / delta.denominator)
    return tuple(one.candidate for one in made.options)


def sigma(delta: Fraction) -> float:
    """Return the standard deviation of Gaussian noise on a number of sensitivity 1 at epsilon 1."""
    return math.sqrt(PICOS / (2 * budget_picos(Fraction(1), Decimal(delta.numerator) / delta.denominator)))


def case(kind: str, size: int, mutations: int, delta: Fraction) -> dict[str, Any]:
    """Return our errors for one setting; `best` is the chosen one."""
    total = kind == "running total"
    if total and size > longest(delta):
        return beyond(size, mutations, delta)
    found = planned(TOTAL if total else WINDOW.format(size), mutations, delta, size if total else None)
    errors: dict[str, float] = {}
    for one in found:
        law = "" if isinstance(one.noise, DiscreteGaussian) or not delta else " with Laplace noise"
        name = one.mechanism + law + (" in epsilon" if delta and one.plan.pure else "")
        errors[name] = min(one.mean_std_error, errors.get(name, math.inf))
    chosen = next(one for one in found if one.chosen)
    if total and mutations == 1 and delta and size <= MAX_HORIZON:
        errors |= {f"{name} (left out)": sigma(delta) * error for name, error in left_out(size).items()}
    row = {"kind": kind, "size": size, "mutations": mutations, "delta": float(delta), "chosen": chosen.mechanism, "candidates": errors}
    row |= {"adds_in": "epsilon" if chosen.plan.pure else "rho"}
    row |= {"best_in_rho": min(one.mean_std_error for one in found if not one.plan.pure)} if delta else {}
    return row | {"best": chosen.mean_std_error, "worst_period": chosen.worst_std_error}


def longest(delta: Fraction) -> int:
    """Return how many periods a running total may have."""
    return MAX_BUFFERED_HORIZON if delta else MAX_HORIZON


def left_out(size: int) -> dict[str, float]:
    """Return the errors, at sensitivity 1 and sigma 1, of Gaussian trees that the planner does not try: a square root is always better."""
    shares = divide(indexed_tree(size), pure=False)
    return {
        "smooth binary tree": best_smooth_tree(size).normalised_error,
        "tree with unequal budgets": math.sqrt(shares.total_variance / size),
    }


def beyond(size: int, mutations: int, delta: Fraction) -> dict[str, Any]:
    """Return the errors for more periods than a release may have, from the formulas of its mechanisms, for entries of one mutation."""
    row = {"kind": "running total", "size": size, "mutations": mutations, "delta": float(delta), "candidates": {}}
    shape = best_shape(size)
    blocks = digit_weights(size, shape)
    mean, worst = (shape.levels * math.sqrt(2 * float(one)) for one in (blocks.mean(), blocks.max()))
    pure = row | {"chosen": "signed_tree (formula)", "best": mean, "worst_period": worst, "adds_in": "epsilon"}
    if not delta:
        return pure
    mean, worst = (sigma(delta) * error for error in predicted_errors(size))
    in_rho = row | {"chosen": "square_root (formula)", "best": mean, "worst_period": worst, "adds_in": "rho"}
    return min(pure, in_rho, key=lambda one: one["best"]) | {"best_in_rho": mean}


def bounds_of(kind: str, size: int) -> tuple[float, float | None]:
    """Return the least error of any factorisation, mean and worst, at sensitivity 1 and sigma 1; windows: of any shift-invariant one."""
    if kind == "window":
        return window_optimum(size), window_optimum(size)
    worst = worst_optimum(size, 1e-3).lower if size <= LONGEST_WORST_OPTIMUM else nuclear_bound(size)
    return (mean_optimum(size, 1e-4).lower if size <= LONGEST_OPTIMUM else nuclear_bound(size)), worst


def rows(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row for each kind, size, number of mutations and delta; those of one mutation hold bounds and other packages."""
    sizes = {"running total": QUICK_HORIZONS if quick else HORIZONS, "window": QUICK_WINDOWS if quick else WINDOWS}
    for kind, listed in sizes.items():
        for size in listed:
            others = peers(size, DELTAS) if kind == "running total" else {}
            bound, worst = bounds_of(kind, size)
            for mutations, delta in product(QUICK_MUTATIONS if quick else MUTATIONS, DELTAS[:2] if quick else DELTAS):
                if mutations == 1 or kind == "window" or size <= longest(delta):
                    row = case(kind, size, mutations, delta)
                    if mutations == 1:
                        row["peers"] = {name: errors[float(delta)] for name, errors in others.items() if float(delta) in errors}
                        row |= {"bound": bound * sigma(delta), "worst_bound": worst * sigma(delta)} if delta else {}
                    yield row


def line(row: dict[str, Any]) -> str:
    """Return a row as one line of the table."""
    bound = f"in rho {row['best_in_rho'] / row['bound']:.4f} x its bound" if row.get("bound") else ""
    bound += f", worst {row['worst_period'] / row['worst_bound']:.3f}" if row.get("bound") and row["adds_in"] == "rho" else ""
    finite = {name: error for name, error in row.get("peers", {}).items() if math.isfinite(error)}
    peer = min(finite, key=finite.get, default=None)
    other = f"  best peer {peer} {finite[peer] / row['best']:.3f} x ours" if peer else ""
    in_rho = f" in {row['adds_in']}, in rho {row['best_in_rho']:.2f}" if row["delta"] else ""
    listed = ", ".join(f"{name} {error / row['best']:.2f}" for name, error in row["candidates"].items() if name != row["chosen"])
    return (
        f"{row['kind']:<14}{row['size']:>6} k={row['mutations']} delta={row['delta']:<6g} {row['chosen']:<23}{row['best']:>9.2f} "
        f"worst {row['worst_period']:>8.2f}{in_rho}  "
        f"{bound}{other}  (others: {listed or 'none'})"
    )


def main() -> None:
    """Print the table, and write it as JSON when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, under 50 seconds")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--plot", type=Path, help="also draw the figures, as a page with one SVG")
    parser.add_argument("--empirical", action="store_true", help="also draw 1,000 publications of every mechanism")
    options = parser.parse_args()
    begin, found = time.perf_counter(), []
    for name in ABSENT:
        print(f"{name} is not installed: its figures are left out (pip install {name})")
    for row in rows(quick=options.quick):
        found.append(row)
        print(line(row), flush=True)
    print(f"{len(found)} settings in {time.perf_counter() - begin:.0f} s")
    if options.empirical:
        for drawn in measured():
            found.append(drawn)
            print(f"{drawn['mechanism']:<24} {drawn['publications']:>6} publications: error {drawn['ratio']:.4f} of the predicted one")
    if options.plot:
        options.plot.write_text(picture([row for row in found if row.get("kind")]))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    main()
