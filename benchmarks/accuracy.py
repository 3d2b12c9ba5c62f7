"""Accuracy at equal privacy: what the planner chooses, every other candidate, lower bounds, and other packages where they are installed.

Errors are exact root mean squares over the periods, at a lifetime epsilon of 1 for the worst entry; nothing is drawn, but for OpenDP's
least-squares tree, whose error is estimated from 100 draws of its own. Bounds are certified (benchmarks/optimum.py). Other packages protect
one event, so that they are compared at one mutation for each entry: dpcrpy states its exact errors, OpenDP's tree restates the past.
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
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.optimum import mean_optimum, window_optimum
from dbext.privacy.constraint import Constraint, EntryType
from dbext.privacy.conversion import budget_picos
from dbext.privacy.pico import PICOS
from dbext.query.calendar import Span, Tick
from dbext.query.compiler import compile_declaration, resolve
from dbext.query.planner import Candidate, Request, candidates

DELTAS = (Fraction(0), Fraction(1, 10**6), Fraction(1, 10**9))
HORIZONS, WINDOWS, MUTATIONS = (16, 64, 256, 1024, 4096), (7, 14, 28, 90, 365), (1, 2, 3, 4)
QUICK_HORIZONS, QUICK_WINDOWS, QUICK_MUTATIONS = (16, 64, 256, 1024), (7, 14, 28, 365), (1, 2, 4)
TOTAL = "SELECT count(*) FROM t WHERE dp_time > '2000-01-03'"
WINDOW = "SELECT count(*) FROM t WHERE dp_time > now() - INTERVAL '{} days'"
LONGEST_ESTIMATE, DRAWS = 1024, 100


def planned(text: str, mutations: int, delta: Fraction, horizon: int | None) -> tuple[Candidate, ...]:
    """Return all candidates of a daily release at epsilon 1."""
    declaration = resolve(compile_declaration(text), ()).with_boundaries({"2000-01-03": 0})
    request = Request(start_tick=0, every=Span(days=1), epsilon=Fraction(1), horizon=horizon, aligned=False)
    types = (EntryType(1, "any", Constraint(mutations)),)
    return candidates(declaration, request, Tick("day", 1), types, Decimal(delta.numerator) / delta.denominator)


def sigma(delta: Fraction) -> float:
    """Return the standard deviation of Gaussian noise on a number of sensitivity 1 at epsilon 1."""
    return math.sqrt(PICOS / (2 * budget_picos(Fraction(1), Decimal(delta.numerator) / delta.denominator)))


def case(kind: str, size: int, mutations: int, delta: Fraction) -> dict[str, Any]:
    """Return our errors for one setting; `best` is the chosen one."""
    total = kind == "running total"
    found = planned(TOTAL if total else WINDOW.format(size), mutations, delta, size if total else None)
    errors: dict[str, float] = {}
    for one in found:
        errors[one.mechanism] = min(one.mean_std_error, errors.get(one.mechanism, math.inf))
    chosen = next(one for one in found if one.chosen)
    row = {"kind": kind, "size": size, "mutations": mutations, "delta": float(delta), "chosen": chosen.mechanism, "candidates": errors}
    return row | {"best": chosen.mean_std_error, "worst_period": chosen.worst_std_error}


def bound_of(kind: str, size: int) -> float:
    """Return the least error of any factorisation, at sensitivity 1 and sigma 1; windows: of any shift-invariant one."""
    return mean_optimum(size, 1e-4).lower if kind == "running total" else window_optimum(size)


def dpcrpy_errors(periods: int) -> Iterator[tuple[str, float, float]]:
    """Yield (method, error under Gaussian noise, under Laplace noise), both for noise of parameter 1 at sensitivity 1."""
    try:
        from dpcrpy.bitMethods.abcrg import ABCRG
        from dpcrpy.bitMethods.aubcr import AuBCRComp
        from dpcrpy.bitMethods.bcrg import BCRG
        from dpcrpy.bitMethods.fda import FDA
        from dpcrpy.framework.noiMech import GaussNoiMech, LapNoiMech
        from dpcrpy.treeMethods.binMech import BinMech
        from dpcrpy.treeMethods.honaker import Honaker
    except ImportError:
        return
    order = math.ceil(math.log2(periods + 1))
    methods = {"BinMech": (BinMech, order), "Honaker": (Honaker, order), "ABCRG": (ABCRG, order), "BCRG": (BCRG, order)}
    for name, (method, size) in (methods | {"AuBCRComp": (AuBCRComp, periods), "FDA": (FDA, order)}).items():
        errors = [_stated(method, size, noise, periods) for noise in (GaussNoiMech(sigma0=1), LapNoiMech(b0=1))]
        yield f"dpcrpy {name}", errors[0], errors[1]


def _stated(method: type, size: int, noise: object, periods: int) -> float:
    """Return the root of the mean of the errors that dpcrpy states; infinite where it does not know the noise."""
    try:
        released = method(size)
        released.setNoiMech(noise)
        released.init()
        return math.sqrt(sum(float(released.dpRelease(0)[1]) for _ in range(periods)) / periods)
    except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
        return math.inf


def opendp_error(periods: int) -> tuple[int, float] | None:
    """Return (levels, error for noise of variance 1 on every node) of OpenDP's tree with consistency, estimated; None without OpenDP."""
    try:
        import numpy as np
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    branching = int(dp.t.choose_branching_factor(size_guess=periods))
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    scale = 1000.0
    noisy = dp.t.make_b_ary_tree(*space, leaf_count=periods, branching_factor=branching) >> dp.m.then_laplace(scale)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
    leaves = np.array([consistent(noisy([0] * periods)) for _ in range(DRAWS)])[:, :periods]
    levels = math.ceil(math.log(periods) / math.log(branching) - 1e-9) + 1
    return levels, float(np.sqrt((np.cumsum(leaves, axis=1) ** 2).mean()) / scale / math.sqrt(2))


def peers(periods: int) -> dict[str, dict[float, float]]:
    """Return the errors of other packages by delta, at epsilon 1 and one mutation."""
    found: dict[str, dict[float, float]] = {}
    for name, gaussian, laplace in dpcrpy_errors(periods):
        found[name] = {float(delta): gaussian * sigma(delta) if delta else laplace for delta in DELTAS}
    tree = opendp_error(periods) if periods <= LONGEST_ESTIMATE else None
    if tree:
        levels, error = tree
        price = {delta: math.sqrt(levels) * sigma(delta) if delta else math.sqrt(2) * levels for delta in DELTAS}
        found["OpenDP consistent tree"] = {float(delta): error * price[delta] for delta in DELTAS}
    return found


def rows(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row for each kind, size, number of mutations and delta; those of one mutation hold bounds and other packages."""
    sizes = {"running total": QUICK_HORIZONS if quick else HORIZONS, "window": QUICK_WINDOWS if quick else WINDOWS}
    for kind, listed in sizes.items():
        for size in listed:
            others = peers(size) if kind == "running total" else {}
            bound = bound_of(kind, size)
            for mutations in QUICK_MUTATIONS if quick else MUTATIONS:
                for delta in DELTAS[:2] if quick else DELTAS:
                    row = case(kind, size, mutations, delta)
                    if mutations == 1:
                        row["peers"] = {name: errors[float(delta)] for name, errors in others.items()}
                        row["bound"] = bound * sigma(delta) if delta else None
                    yield row


def line(row: dict[str, Any]) -> str:
    """Return a row as one line of the table."""
    bound = f"{row['best'] / row['bound']:.4f} x bound" if row.get("bound") else ""
    finite = {name: error for name, error in row.get("peers", {}).items() if math.isfinite(error)}
    peer = min(finite, key=finite.get, default=None)
    other = f"  best peer {peer} {finite[peer] / row['best']:.3f} x ours" if peer else ""
    listed = ", ".join(f"{name} {error / row['best']:.2f}" for name, error in row["candidates"].items() if name != row["chosen"])
    return (
        f"{row['kind']:<14}{row['size']:>6} k={row['mutations']} delta={row['delta']:<6g} {row['chosen']:<23}{row['best']:>9.2f}  "
        f"{bound}{other}  (others: {listed or 'none'})"
    )


def main() -> None:
    """Print the table, and write it as JSON when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, under 50 seconds")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    begin, found = time.perf_counter(), []
    for row in rows(quick=options.quick):
        found.append(row)
        print(line(row), flush=True)
    print(f"{len(found)} settings in {time.perf_counter() - begin:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, default=str))


if __name__ == "__main__":
    main()
