"""Accuracy at equal privacy: what the planner chooses, every other candidate, lower bounds, and other packages where they are installed.

With delta > 0 the release asks for the whole of its budget, so that prices in epsilon and in rho are compared; what is best in rho, for a
budget that holds more, stands beside it. Errors are exact root mean squares over the periods and exact worst ones, at a lifetime epsilon
of 1 for the worst entry; nothing is drawn. Bounds are certified (benchmarks/optimum.py), at the exact conversion of continuous Gaussian
noise. Other packages (benchmarks/peers.py) protect one event, so that they are compared at one mutation for each entry; one that restates
the past is compared with what ours errs by when its history is restated (benchmarks/restated.py). Every row is printed as it comes; at last
the goals are checked, and what misses them is listed.

A full run takes eight minutes of processor time with all packages installed. `--horizon` and `--window` run a part of it, `--read`
puts parts together. `--empirical` also draws every mechanism 10,000 times and compares what comes out with the prediction; `--plot FILE`
writes the figures as a picture, `--table FILE` as Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.comparison import gaussian_sigma
from benchmarks.empirical import measured
from benchmarks.optimum import mean_optimum, window_optimum, worst_optimum
from benchmarks.peers import ABSENT, RESTATING, best_peer, peers
from benchmarks.picture import picture
from benchmarks.restated import Tree, best_restated
from benchmarks.table import restated_table, table
from dbext.mechanisms.smooth_tree import best_smooth_tree
from dbext.mechanisms.spread import spread
from dbext.mechanisms.unequal_budgets import divide, indexed_tree
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.grid import RegularGrid
from dbext.privacy.measure import Measure
from dbext.privacy.noise import DiscreteLaplace
from dbext.query.calendar import Span, Tick
from dbext.query.choose import plan_publication
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.planner import Candidate, Request, blank_plan, for_epsilon
from dbext.query.shape import MAX_BUFFERED_HORIZON, MAX_HORIZON, Shape
from dbext.query.signed_shares import signed_trees

DELTAS = (Fraction(0), Fraction(1, 10**6), Fraction(1, 10**9))
HORIZONS, WINDOWS, MUTATIONS = (16, 64, 256, 1024, 4096, 16384, 65536), (7, 14, 28, 90, 365), (1, 2, 3, 4)
QUICK_HORIZONS, QUICK_WINDOWS, QUICK_MUTATIONS = (16, 64, 256, 1024, 4096), (7, 14, 28, 365), (1, 2, 4)
#: Totals of up to so many periods, and all windows, are to lie this near to their bounds.
LONGEST_GOAL, GOAL = 4096, 1.02
TOTAL = "SELECT count(*) FROM t WHERE dp_time > '2000-01-03'"
WINDOW = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '{} days'"


def planned(text: str, mutations: int, delta: Fraction, horizon: int | None) -> tuple[Candidate, ...]:
    """Return all candidates of a daily release at epsilon 1, in both units; one of them is chosen."""
    declaration = resolve(compile_declaration(text), ()).with_boundaries({"2000-01-03": 0})
    request = Request(start_tick=0, every=Span(days=1), epsilon=Fraction(1), horizon=horizon, aligned=False, whole=True)
    types = (EntryType(1, "any", Constraint(mutations)),)
    made = plan_publication(declaration, request, Tick("day", 1), types, Decimal(delta.numerator) / delta.denominator)
    return tuple(one.candidate for one in made.options)


def case(kind: str, size: int, mutations: int, delta: Fraction) -> dict[str, Any]:
    """Return our errors for one setting; `best` is the chosen one."""
    total = kind == "running total"
    if total and size > longest(delta):
        return beyond(size, mutations)
    found = planned(TOTAL if total else WINDOW.format(size), mutations, delta, size if total else None)
    errors: dict[str, float] = {}
    for one in found:
        law = " with Laplace noise" if delta and isinstance(one.noise, DiscreteLaplace) else ""
        name = one.mechanism + law + (" in epsilon" if delta and one.plan.pure else "")
        errors[name] = min(one.mean_std_error, errors.get(name, math.inf))
    chosen = next(one for one in found if one.chosen)
    if total and mutations == 1 and delta and size <= MAX_HORIZON:
        errors |= {f"{name} (left out)": gaussian_sigma(1.0, float(delta)) * error for name, error in left_out(size).items()}
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


def beyond(size: int, mutations: int) -> dict[str, Any]:
    """Return the errors at delta = 0 for more periods than a release may have: of the trees that it would be offered."""
    types, shape = (EntryType(1, "any", Constraint(mutations)),), Shape("running_total", Measure.NET, RegularGrid(0, 1), size)
    asked, made = Request(start_tick=0, epsilon=Fraction(1)), []
    for tree in signed_trees(shape.grid, size, types, baseline=False):
        plan = for_epsilon(blank_plan(shape, tree, grouped=False, pure=True), asked, types, Decimal(0))
        made.append([math.sqrt(plan.noise.variance * squares) for squares in spread(tree)[:2]])
    mean, worst = min(made)
    row = {"kind": "running total", "size": size, "mutations": mutations, "delta": 0.0, "candidates": {}}
    return row | {"chosen": "signed_tree (not offered)", "best": mean, "worst_period": worst, "adds_in": "epsilon"}


def bounds_of(kind: str, size: int) -> tuple[float, float]:
    """Return the least error of any factorisation, mean and worst, at sensitivity 1 and sigma 1; windows: of any shift-invariant one."""
    if kind == "window":
        return window_optimum(size), window_optimum(size)
    return mean_optimum(size, 1e-4).lower, worst_optimum(size, 1e-3).lower


def rows(sizes: dict[str, Sequence[int]], *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row for each kind, size, number of mutations and delta; those of one mutation hold bounds and other packages."""
    for kind, listed in sizes.items():
        for size in listed:
            others, missing = peers(size, DELTAS, quick=quick) if kind == "running total" else ({}, {})
            bound, worst = bounds_of(kind, size)
            tree = best_restated(size) if kind == "running total" else None
            for mutations, delta in product(QUICK_MUTATIONS if quick else MUTATIONS, DELTAS[:2] if quick else DELTAS):
                if mutations == 1 or kind == "window" or size <= longest(delta):
                    row = case(kind, size, mutations, delta)
                    if mutations == 1:
                        sigma = gaussian_sigma(1.0, float(delta)) if delta else math.inf
                        row["peers"] = {name: errors[float(delta)] for name, errors in others.items() if float(delta) in errors}
                        row |= {"missing_peers": missing} if missing else {}
                        row |= {"bound": bound * sigma, "worst_bound": worst * sigma} if delta else {}
                        row |= {"restated": restated(row, tree)} if tree else {}
                    yield row


def restated(row: dict[str, Any], tree: Tree) -> dict[str, Any]:
    """Return what errs least once the history is restated: a tree with Laplace noise, or what was chosen, which stays as it was.

    A budget with delta > 0 holds the tree as well.
    """
    if row["best"] <= tree.error:
        return {"error": row["best"], "mechanism": row["chosen"], "adds_in": row["adds_in"]}
    levels = [tree.radix**level for level in range(tree.levels)]
    return {"error": tree.error, "published": tree.published, "mechanism": "levelled_sums", "levels": levels, "adds_in": "epsilon"}


def misses(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what is further from its bound than the goal, or errs more than another package."""
    for row in found:
        place = f"{row['kind']} {row['size']} k={row['mutations']} delta={row['delta']:g}"
        if row.get("bound") and (row["kind"] == "window" or row["size"] <= LONGEST_GOAL) and row["best_in_rho"] > GOAL * row["bound"]:
            yield f"{place}: {row['best_in_rho'] / row['bound']:.4f} times the bound in rho"
        for name, error in row.get("peers", {}).items():
            ours = row["restated"]["error"] if name in RESTATING else row["best"]
            if error < ours:
                yield f"{place}: {ours / error:.4f} times the error of {name}"


def line(row: dict[str, Any]) -> str:
    """Return a row as one line of the table."""
    bound = f"in rho {row['best_in_rho'] / row['bound']:.4f} x its bound" if row.get("bound") else ""
    bound += f", worst {row['worst_period'] / row['worst_bound']:.3f}" if row.get("bound") and row["adds_in"] == "rho" else ""
    peer, also = (best_peer(row, restating=restating) for restating in (False, True))
    other = f"  best peer {peer[0]} {peer[1] / row['best']:.3f} x ours" if peer else ""
    other += f"; restated {row['restated']['error']:.2f}" if row.get("restated") else ""
    other += f", {also[0]} {also[1] / row['restated']['error']:.3f} x that" if also else ""
    in_rho = f" in {row['adds_in']}, in rho {row['best_in_rho']:.2f}" if row["delta"] else ""
    listed = ", ".join(f"{name} {error / row['best']:.2f}" for name, error in row["candidates"].items() if name != row["chosen"])
    return (
        f"{row['kind']:<14}{row['size']:>6} k={row['mutations']} delta={row['delta']:<6g} {row['chosen']:<23}{row['best']:>9.2f} "
        f"worst {row['worst_period']:>8.2f}{in_rho}  "
        f"{bound}{other}  (others: {listed or 'none'})"
    )


def sizes_of(options: argparse.Namespace) -> dict[str, Sequence[int]]:
    """Return the sizes of each kind that are asked for; those listed beside none."""
    if options.horizon or options.window:
        return {"running total": options.horizon or (), "window": options.window or ()}
    return {"running total": QUICK_HORIZONS if options.quick else HORIZONS, "window": QUICK_WINDOWS if options.quick else WINDOWS}


def shown(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Print the rows as they come, and after them what misses the goals; return them."""
    begin, found, said = time.process_time(), [], set()
    stored = (row for file in options.read or () for row in json.loads(file.read_text()) if row.get("kind"))
    for row in stored if options.read else rows(sizes_of(options), quick=options.quick):
        found.append(row)
        print(line(row), flush=True)
        for name, why in row.get("missing_peers", {}).items():
            if (name, row["size"]) not in said:
                said.add((name, row["size"]))
                print(f"    {name} {why}", flush=True)
    print(f"{len(found)} settings in {time.process_time() - begin:.0f} s of CPU time")
    for miss in misses(found):
        print("misses:", miss)
    return found


def main() -> None:
    """Print the table, and write it as JSON when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, under 50 seconds")
    parser.add_argument("--horizon", type=int, action="append", help="only running totals of so many periods; may be repeated")
    parser.add_argument("--window", type=int, action="append", help="only windows of so many periods; may be repeated")
    parser.add_argument("--read", type=Path, nargs="+", help="take the rows from files that --json wrote")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--plot", type=Path, help="also draw the figures, as a page with one SVG")
    parser.add_argument("--table", type=Path, help="also write the tables of the accuracy page")
    parser.add_argument("--empirical", action="store_true", help="also draw 10,000 publications of every mechanism")
    options = parser.parse_args()
    for name in ABSENT:
        print(f"{name} is not installed: its figures are left out (pip install {name})")
    found = shown(options)
    if options.empirical:
        for drawn in measured():
            found.append(drawn)
            print(f"{drawn['mechanism']:<24} {drawn['publications']:>6} publications: error {drawn['ratio']:.4f} of the predicted one")
    if options.plot:
        options.plot.write_text(picture([row for row in found if row.get("kind")]))
    if options.table:
        options.table.write_text(table(found) + "\n" + restated_table(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    main()
