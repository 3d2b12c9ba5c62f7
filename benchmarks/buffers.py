"""Choose the buffers of running totals by horizon, and write `dbext/mechanisms/buffered_table.py`. Needs scipy; takes half a minute.

For each horizon the product of the encoder's column norm and the root mean square error of the totals is minimised over the weights and
decays of five buffers, from closed forms of both (sums of powers of the poles of R and of 1 / ((1 - z) R)).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

BUFFERS, BITS = 5, 24
#: Horizons from 2^6 to 2^18.75, four to the octave: up to four times the longest one that a release can have.
HORIZONS = [round(2 ** (quarter / 4)) for quarter in range(24, 76)]
TABLE = Path(__file__).parent.parent / "dbext" / "mechanisms" / "buffered_table.py"

HEADER = '''"""The buffers of running totals by horizon, in units of 2^-24: written by `python -m benchmarks.buffers --write`."""

from __future__ import annotations

from bisect import bisect_left

#: (horizon, weights, decays)
TABLE: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...] = (
'''
FOOTER = ''')


#: Buffers of so many times the horizon err least where entries change again.
_AGAIN = 4


def parameters(horizon: int, *, again: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return weights and decays for the listed horizon next to this one: within 0.1% of the error that its own would have.

    They are chosen for entries that change once. Later changes of those that change `again` cost less where coefficients fall more slowly.
    """
    wanted = horizon * _AGAIN if again else horizon
    place = bisect_left([listed for listed, _, _ in TABLE], wanted)
    near = TABLE[max(0, place - 1) : place + 1]
    _, weights, decays = min(near, key=lambda one: max(one[0], wanted) / min(one[0], wanted))
    return weights, decays
'''


def error(weights: np.ndarray, decays: np.ndarray, periods: int) -> float:
    """Return the root mean square error of the totals of so many periods, at sensitivity 1 and sigma 1."""
    products = np.outer(decays, decays)
    norm = 1 + (np.outer(weights, weights) * -np.expm1((periods - 1) * np.log(products)) / (1 - products)).sum()
    poles, vectors = np.linalg.eig(np.diag(decays) - np.outer(np.ones(len(weights)), weights))
    shares = (weights @ vectors) * np.linalg.solve(vectors, np.ones(len(weights), complex)) / (1 - poles)
    poles, shares = np.append(poles, 1.0), np.append(shares, 1 - shares.sum())
    products = np.outer(poles, poles)
    single = abs(1 - products) < 1e-13  # noqa: PLR2004 the pole at 1, twice
    safe = np.where(single, 0, products)
    sums = np.where(single, periods * (periods + 1) / 2, (periods - safe * (1 - safe**periods) / (1 - safe)) / (1 - safe))
    return float(np.sqrt(norm * (np.outer(shares, shares) * sums).sum().real / periods))


def best(periods: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and decays of least error, slowest buffer first."""
    from scipy.optimize import minimize

    def logarithm(point: np.ndarray) -> float:
        weights, rates = np.exp(point[:BUFFERS]), np.exp(point[BUFFERS:])
        return np.log(error(weights, 1 - rates, periods)) if rates.max() < 1 else 9.0

    rates = np.geomspace(1.5 / periods, 0.6, BUFFERS)
    point = np.concatenate([np.log(0.5 * np.sqrt(rates) / np.sqrt(rates).sum()), np.log(rates)])
    for _ in range(3):
        options = {"maxiter": 6000, "maxfev": 6000, "xatol": 1e-6, "fatol": 1e-10, "adaptive": True}
        point = minimize(logarithm, point, method="Nelder-Mead", options=options).x
        point = minimize(logarithm, point, method="BFGS").x
    weights, rates = np.exp(point[:BUFFERS]), np.exp(point[BUFFERS:])
    order = np.argsort(rates)
    return weights[order], 1 - rates[order]


def main() -> None:
    """Print the table, or write it into the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    lines = []
    for periods in HORIZONS:
        weights, decays = best(periods)
        rounded = [tuple(int(value) for value in np.rint(one * (1 << BITS))) for one in (weights, decays)]
        lines.append(f"    ({periods}, {rounded[0]}, {rounded[1]}),\n")
        print(f"{periods:>7} {error(*(np.array(one) / (1 << BITS) for one in rounded), periods):.5f}", flush=True)
    if options.write:
        TABLE.write_text(HEADER + "".join(lines) + FOOTER)


if __name__ == "__main__":
    main()
