"""What other packages reach, at epsilon 1 and one event for each entry: dpcrpy, OpenDP and jax-privacy, where they are installed.

dpcrpy states its exact errors. OpenDP's tree with consistency restates the past: its early totals use late counts. Its error is that of
its own consistency map, which is tried on a sample of the nodes of each level.
jax-privacy's strategies are Gaussian; errors are those that it states itself, or exact ones of the matrix that it would use.

With delta > 0 each gets the smaller of two errors: that of its Laplace noise, if it has one, and that of continuous Gaussian noise at the
exact conversion for one vector (dp-accounting's). Where a package, or one of its methods, does not run, it is said why.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.comparison import gaussian_sigma

PACKAGES = {"dpcrpy": "dpcrpy", "opendp": "opendp", "jax-privacy": "jax_privacy"}
ABSENT = [name for name, module in PACKAGES.items() if find_spec(module) is None]
#: Methods that work early totals out of late counts: no release can that publishes as time goes by.
RESTATING = frozenset({"OpenDP consistent tree"})
#: Nodes of a level, with leaves below them and without, that OpenDP's tree is measured with: all where they are fewer. Counts are whole.
SAMPLE, _UNIT = 300, 10**6
#: Up to here each strategy of jax-privacy is worked out; and that with buffers for the mean error, not the worst one.
LONGEST_DENSE, LONGEST_BANDED, LONGEST_MEAN = 512, 16384, 1024


class Peer(NamedTuple):
    """Errors of a method under Gaussian noise of sigma 1 and Laplace noise of scale 1, at sensitivity 1; infinite where it has none."""

    name: str
    gaussian: float
    laplace: float
    why: str = ""


def peers(periods: int, deltas: Sequence[Fraction], *, quick: bool = False) -> tuple[dict[str, dict[float, float]], dict[str, str]]:
    """Return the errors of other packages by name and delta, at epsilon 1 and one mutation; and why methods are missing."""
    found: dict[str, dict[float, float]] = {}
    missing: dict[str, str] = {}
    for one in (*dpcrpy(periods), *jax_privacy(periods, quick=quick), *opendp(periods)):
        if one.why:
            missing[one.name] = one.why
        else:
            errors = {float(delta): _at(one, float(delta)) for delta in deltas}
            found[one.name] = {delta: error for delta, error in errors.items() if math.isfinite(error)}
    return found, missing


def best_peer(row: dict[str, Any], *, restating: bool) -> tuple[str, float] | None:
    """Return the method in a row of figures that errs least, of those that restate the past or of all others, and its error."""
    errors = {name: error for name, error in row.get("peers", {}).items() if (name in RESTATING) is restating}
    return min(errors.items(), key=lambda one: one[1], default=None)


def _at(one: Peer, delta: float) -> float:
    return min(one.gaussian * gaussian_sigma(1.0, delta), one.laplace) if delta else one.laplace


def dpcrpy(periods: int) -> Iterator[Peer]:
    """Yield the methods of dpcrpy, all of which state their errors."""
    try:
        from dpcrpy.bitMethods.abcrg import ABCRG
        from dpcrpy.bitMethods.aubcr import AuBCRComp
        from dpcrpy.bitMethods.bcrg import BCRG
        from dpcrpy.bitMethods.fda import FDA
        from dpcrpy.framework.noiMech import GaussNoiMech, LapNoiMech
        from dpcrpy.treeMethods.binMech import BinMech
        from dpcrpy.treeMethods.honaker import Honaker
        from dpcrpy.treeMethods.ktcr import KTCRComp
    except ImportError:
        return
    order = math.ceil(math.log2(periods + 1))
    methods = {"BinMech": (BinMech, order), "Honaker": (Honaker, order), "ABCRG": (ABCRG, order), "BCRG": (BCRG, order)}
    methods |= {"FDA": (FDA, order), "AuBCRComp": (AuBCRComp, periods), "KTCRComp": (KTCRComp, periods)}
    for name, (method, size) in methods.items():
        gaussian, laplace = (_stated(method, size, noise, periods) for noise in (GaussNoiMech(sigma0=1), LapNoiMech(b0=1)))
        yield Peer(f"dpcrpy {name}", gaussian, laplace)


def _stated(method: type, size: int, noise: object, periods: int) -> float:
    """Return the root of the mean of the errors that dpcrpy states; infinite where it does not know the noise."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            released = method(size)
            released.setNoiMech(noise)
            released.init()
            return math.sqrt(sum(float(released.dpRelease(0)[1]) for _ in range(periods)) / periods)
        except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
            return math.inf


def opendp(periods: int) -> Iterator[Peer]:
    """Yield OpenDP's tree with consistency: the root of the sum, over all nodes, of what noise of one on a node does to the totals."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return
    dp.enable_features("contrib")
    branching = int(dp.t.choose_branching_factor(size_guess=periods))
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)
    levels = math.ceil(math.log(periods) / math.log(branching) - 1e-9) + 1
    sizes = [branching**level for level in range(levels - 1)] + [periods]
    variance, first, random = 0.0, 0, np.random.default_rng(1)
    for level, size in enumerate(sizes):
        used = -(-periods // branching ** (levels - 1 - level))
        for nodes in (range(first, first + used), range(first + used, first + size)):
            some = nodes if len(nodes) <= SAMPLE else (nodes[place] for place in random.choice(len(nodes), SAMPLE, replace=False))
            variance += len(nodes) * float(np.mean([_response(consistent, node, sum(sizes), periods) for node in some] or [0.0]))
        first += size
    yield Peer("OpenDP consistent tree", math.sqrt(variance * levels), math.sqrt(2 * variance) * levels)


def _response(consistent: Callable[[list[int]], list[float]], node: int, nodes: int, periods: int) -> float:
    """Return the mean over the totals of the squared effect of one on a node."""
    values = [0] * nodes
    values[node] = _UNIT
    return float((np.cumsum(consistent(values)[:periods]) ** 2).mean()) / _UNIT**2


def jax_privacy(periods: int, *, quick: bool) -> Iterator[Peer]:
    """Yield jax-privacy's strategies for one participation: Toeplitz, buffered, with columns of equal norm, and without any structure."""
    try:
        import jax
    except ImportError:
        return
    if find_spec("jax_privacy") is None:
        return
    jax.config.update("jax_enable_x64", True)  # noqa: FBT003 the name of the setting, and its value
    yield Peer("jax-privacy optimal Toeplitz", toeplitz_error(periods), math.inf)
    yield _limited("jax-privacy banded, equal columns", periods, LONGEST_BANDED, banded_error, "its n x n parameters alone take 34 GB")
    if quick:
        for name in ("dense", "buffered"):
            yield Peer(f"jax-privacy {name}", math.inf, math.inf, "is left out of a quick run: its optimiser takes up to a minute")
        return
    yield _limited("jax-privacy dense", periods, LONGEST_DENSE, dense_error, "its optimiser takes minutes, and hours from 4096 on")
    yield Peer("jax-privacy buffered", buffered_error(periods), math.inf)


def _limited(name: str, periods: int, longest: int, error: Callable[[int], float], why: str) -> Peer:
    if periods > longest:
        return Peer(name, math.inf, math.inf, f"does not run beyond {longest}: {why}")
    return Peer(name, error(periods), math.inf)


def toeplitz_error(periods: int) -> float:
    """Return the error of the Toeplitz strategy that is optimal for the worst time."""
    from jax_privacy.matrix_factorization import toeplitz

    squared = float(toeplitz.sensitivity_squared(toeplitz.optimal_max_error_strategy_coefs(periods)))
    noising = toeplitz.optimal_max_error_noising_coefs(periods)
    return math.sqrt(squared * float(toeplitz.per_query_error(noising_coef=noising, n=periods).mean()))


def buffered_error(periods: int) -> float:
    """Return the error of the buffers that it finds: for the mean, or where that takes too long, for the worst time."""
    from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz

    found = buffered_toeplitz.optimize(n=periods, error="mean" if periods <= LONGEST_MEAN else "max")
    squared = float(toeplitz.sensitivity_squared(found.toeplitz_coefs(periods)))
    errors = toeplitz.per_query_error(noising_coef=found.inverse().toeplitz_coefs(periods), n=periods)
    return math.sqrt(squared * float(errors.mean()))


def dense_error(periods: int) -> float:
    """Return the error of the matrix that it finds without any structure."""
    from jax_privacy.matrix_factorization import dense

    matrix = dense.optimize(periods)
    sensitivity = float(np.linalg.norm(np.asarray(matrix), axis=0).max())
    return sensitivity * math.sqrt(float(dense.per_query_error(strategy_matrix=matrix, skip_checks=True).mean()))


def banded_error(periods: int) -> float:
    """Return the error of its banded matrix with all bands and columns of norm 1: the coefficients are its own, the sum is worked out here.

    Its own sum takes O(n^3), this one O(n^2): L = M D^-1 C^-1 row by row, D^-1 being the column norms before they are made equal.
    """
    from jax_privacy.matrix_factorization import toeplitz

    norms = np.sqrt(np.cumsum(np.asarray(toeplitz.optimal_max_error_strategy_coefs(periods)) ** 2))[::-1]
    inverse = np.asarray(toeplitz.optimal_max_error_noising_coefs(periods))
    row, total = np.zeros(periods), 0.0
    for t in range(periods):
        row[: t + 1] += norms[t] * inverse[t::-1]
        total += float(row[: t + 1] @ row[: t + 1])
    return math.sqrt(total / periods)
