"""Samples per second of the exact samplers, in both their forms, beside OpenDP's vector measurements; and what stored noise takes.

One process, one core; CPU time. OpenDP is left out, and said to be, where it is not installed. The memory is that of 1,000 groups over ten
years of days under the mechanism that the planner chooses, as PostgreSQL stores its numbers (`--memory`, starts a private cluster).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from benchmarks.bench import private_database, show
from dbext.mechanisms import sampling

#: How many draws at once, and in all. Numpy is loaded here, so that only a few rounded draws are made without it.
SIZES = {"plain": (50, 10_000), "wide": (200_000, 200_000)}
SCALE, SIGMA_SQUARED = Fraction(3604481, 8192), Fraction(2252801, 512)
GROUPS, DAYS = 1_000, 3_653


def rate(draw: Callable[[int], object], size: int) -> float:
    """Return draws per second of CPU time; the first call is not counted."""
    draw(min(size, 100))
    start = time.process_time()
    draw(size)
    return size / (time.process_time() - start)


def ours() -> dict[str, float]:
    """Return draws per second of each sampler, in small draws (plain Python) and in large ones (numpy)."""
    return {
        f"{name}, {form} ({least} at once)": rate(lambda size, draw=draw, least=least: [draw(least) for _ in range(size // least)], total)
        for form, (least, total) in SIZES.items()
        for name, draw in (
            ("discrete Laplace", lambda size: sampling.discrete_laplace(SCALE, size)),
            ("rounded Gaussian", lambda size: sampling.rounded_gaussian(SIGMA_SQUARED, size)),
        )
    }


def opendp() -> dict[str, float]:
    """Return draws per second of OpenDP's vector measurements on integers; empty without OpenDP."""
    try:
        import opendp.prelude as dp
    except ImportError:
        print("opendp is not installed: its samplers are left out (pip install opendp)")
        return {}
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(SCALE))
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(SIGMA_SQUARED) ** 0.5)
    size = SIZES["wide"][0] // 10
    return {
        f"OpenDP {name} ({size} at once)": rate(lambda size, measure=measure: measure([0] * size), size)
        for name, measure in (("discrete Laplace", laplace), ("discrete Gaussian", gaussian))
    }


def memory() -> dict[str, float]:
    """Return the megabytes that the noisy rows of a square root for 1,000 groups take over ten years, and the rows published from them."""
    days = 365
    sigma = Fraction(2**22) ** 2  # rows of a ten-year total at epsilon 1, delta 1e-6, as in the table that accuracy.py prints
    with private_database("memory") as connection:
        connection.execute("CREATE TABLE stored (node_no bigint PRIMARY KEY, noisy numeric[] NOT NULL)")
        for day in range(days):
            connection.execute("INSERT INTO stored VALUES (%s, %s::numeric[])", (day, sampling.rounded_gaussian(sigma, GROUPS)))
        connection.execute(
            "CREATE TABLE published (window_end timestamptz, window_start timestamptz, county text, state float8, std_error float8,"
            " lower_95 float8, upper_95 float8, release_no bigint, status text, PRIMARY KEY (window_end, county))"
        )
        connection.execute(
            "INSERT INTO published SELECT '2025-01-01'::timestamptz + d * '1 day'::interval, '2025-01-01', 'county ' || g, random() * 100,"
            " 15.4, random(), random() * 200, d, 'ok' FROM generate_series(1, %s) AS d, generate_series(1, %s) AS g",
            (days, GROUPS),
        )
        taken = {
            name: float(connection.execute("SELECT pg_total_relation_size(%s::regclass) / 1e6", (name,)).fetchone()[0])
            for name in ("stored", "published")
        }
    return {
        f"noise of {GROUPS} groups, {days} days, measured (MB)": taken["stored"],
        "noise of ten years (MB)": taken["stored"] * DAYS / days,
        "the release table of ten years (MB)": taken["published"] * DAYS / days,
    }


def main() -> None:
    """Print draws per second, and megabytes when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="accepted for symmetry: a run takes a few seconds")
    parser.add_argument("--memory", action="store_true", help="also store a year of rows and measure them")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    show("samples per second", ours() | opendp(), options.json)
    if options.memory:
        show("stored noise", memory(), options.json)


if __name__ == "__main__":
    main()
