"""Changes of alternating sign under a stationary encoder (sliding windows, endless): a certified price per change.

A stationary encoder has G(i, j) = g_(j-i) with g the autocorrelation of its finitely many coefficients. For the square root of a window's
sum some g are negative, and k changes can cost more than k g_0. What is proven here:

**Discounts.** Let v_1 >= v_2 >= ... >= 0 and let x alternate in sign with k changes. Then the sum over i < j of x_i x_j v_(p_j - p_i) is at
most 0, because every row of it is an alternating sum of falling terms that starts with -v. Therefore
    x'Gx <= x'(G - V)x <= k sup over theta of phi(theta) - 2 sum of v_d cos(d theta),     phi(theta) = g_0 + 2 sum of g_d cos(d theta),
for every such v. The best v is found by a small minimax problem, and the supremum is then bounded rigorously: a trigonometric
polynomial of degree n whose values on M equally spaced points stay within r of their middle stays within r / cos(pi n / M) of it everywhere
(Ehlich and Zeller 1964). With v = 0 this is the bound k sup |R|^2; for window roots it is up to 9 times smaller, and within 1 to 8
percent of what changes W periods apart attain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbext.mechanisms.minimax import flattest

if TYPE_CHECKING:
    import numpy as np

_GRID = 128
_ROUNDING = 1e-9


def price_per_change(products: np.ndarray, corner: int) -> float:
    """Return a proven lambda with x'Gx <= k * lambda for all alternating x with k changes; `products` are g_0 ... g_n, 0 beyond.

    `corner` is the distance up to which discounts are worth searching (the window's width). Never below g_0; equal to it if g declines.
    """
    import numpy as np

    if (products >= 0).all() and (np.diff(products[1:]) <= 0).all():
        return float(products[0]) * (1 + _ROUNDING)
    discounts = _discounts(len(products), corner)
    points = 8 * max(len(products), 64)
    basis = np.array([_transform(np, discount, points) for discount in discounts]).T
    weights = flattest(_transform(np, products, points), basis)
    return certified_supremum(products - weights @ discounts)


def certified_supremum(products: np.ndarray) -> float:
    """Return a bound on h_0 + 2 sum of h_d cos(d theta) over all theta; at least h_0."""
    import numpy as np

    degree = len(products) - 1
    values = _transform(np, products, 1 << (_GRID * max(degree, 1) - 1).bit_length())
    middle, reach = (values.max() + values.min()) / 2, (values.max() - values.min()) / 2
    return float(middle + reach / np.cos(np.pi / _GRID) + _ROUNDING * np.abs(products).sum())


def worst_three(products: np.ndarray, width: int) -> float:
    """Return the largest 3 g_0 - 2 g_d - 2 g_e + 2 g_(d+e) over distances with d + e < width: three changes, exactly (but for rounding)."""
    import numpy as np

    reach = min(width - 1, len(products))
    padded = np.concatenate([products, np.zeros(2 * reach + 2)])
    worst = -np.inf
    for d in range(1, reach + 1):
        e = np.arange(1, min(reach, width - 1 - d) + 1)
        if e.size:
            worst = max(worst, float((padded[d + e] - padded[e]).max() - padded[d]))
    return 3 * float(products[0]) + 2 * worst + _ROUNDING * float(products[0])


def worst_two(products: np.ndarray, width: int) -> float:
    """Return the largest 2 g_0 - 2 g_d over distances d < width: two changes, exactly (but for rounding)."""
    import numpy as np

    padded = np.append(products, 0.0)
    return float(2 * products[0] - 2 * padded[1:width].min()) + _ROUNDING * float(products[0])


def _discounts(length: int, corner: int) -> np.ndarray:
    """Return candidate v as rows over d = 0 ... length - 1 (v_0 = 0): boxes and ramps, all non-negative and non-increasing from d = 1."""
    import numpy as np

    d = np.arange(length)
    ramps = np.unique(np.round(np.geomspace(2, max(corner, 2), 16)).astype(int))
    boxes = {1, 2, 3, 4, corner - 2, corner - 1, corner, 2 * corner, length - 1}
    shapes = [np.maximum(n - d, 0) / n for n in ramps] + [(d <= n) * 1.0 for n in sorted(boxes) if 1 <= n < length]
    rows = np.array(shapes)
    rows[:, 0] = 0.0
    return rows


def _transform(np, products: np.ndarray, points: int) -> np.ndarray:  # noqa: ANN001 the module, imported late
    """Return p_0 + 2 sum of p_d cos(d theta) at theta = 2 pi j / points, j = 0 ... points / 2."""
    return 2 * np.fft.rfft(products, points).real - products[0]
