"""What other packages reach, at epsilon 1 and one event for each entry: dpcrpy, OpenDP and jax-privacy, where they are installed.

dpcrpy states its exact errors. OpenDP's tree with consistency restates the past; its error is estimated from draws of its own.
jax-privacy's Toeplitz strategies are Gaussian; their errors are exact.

With delta > 0 each gets the smaller of two errors: that of its Laplace noise, if it has one, and that of continuous Gaussian noise at the
exact conversion for one vector (dp-accounting's), 7% less than discrete noise whose rho may be added up adaptively.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from importlib.util import find_spec

from dbext.privacy.comparison import gaussian_sigma

LONGEST_ESTIMATE, DRAWS, LONGEST_STATED = 1024, 40, 4096
PACKAGES = {"dpcrpy": "dpcrpy", "opendp": "opendp", "jax-privacy": "jax_privacy"}
ABSENT = [name for name, module in PACKAGES.items() if find_spec(module) is None]


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


def jax_privacy_errors(periods: int) -> Iterator[tuple[str, float]]:
    """Yield (strategy, root mean square error at sensitivity 1 and sigma 1) of jax-privacy's Toeplitz factorisations."""
    try:
        import jax
        from jax_privacy.matrix_factorization import toeplitz
    except ImportError:
        return
    jax.config.update("jax_enable_x64", True)  # noqa: FBT003 the name of the setting, and its value
    coefficients = toeplitz.optimal_max_error_strategy_coefs(periods)
    squared = float(toeplitz.sensitivity_squared(coefficients))
    yield "jax-privacy optimal Toeplitz", math.sqrt(squared * float(toeplitz.per_query_error(strategy_coef=coefficients, n=periods).mean()))


def peers(periods: int, deltas: Sequence[Fraction]) -> dict[str, dict[float, float]]:
    """Return the errors of other packages by delta, at epsilon 1 and one mutation."""
    found: dict[str, dict[float, float]] = {}

    def sigma(delta: Fraction) -> float:
        return gaussian_sigma(1.0, float(delta))

    for name, gaussian, laplace in dpcrpy_errors(periods) if periods <= LONGEST_STATED else ():
        found[name] = {float(delta): min(gaussian * sigma(delta), laplace) if delta else laplace for delta in deltas}
    for name, gaussian in jax_privacy_errors(periods) if periods <= LONGEST_STATED else ():
        found[name] = {float(delta): gaussian * sigma(delta) for delta in deltas if delta}
    tree = opendp_error(periods) if periods <= LONGEST_ESTIMATE else None
    if tree:
        levels, error = tree
        laplace = math.sqrt(2) * levels
        price = {delta: min(math.sqrt(levels) * sigma(delta), laplace) if delta else laplace for delta in deltas}
        found["OpenDP consistent tree"] = {float(delta): error * price[delta] for delta in deltas}
    return found
