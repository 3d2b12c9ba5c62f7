"""Exact noise from the operating system's randomness: discrete Laplace noise, and normal noise rounded to whole numbers.

The first is drawn as Canonne, Kamath and Steinke (2020, algorithms 1 and 2) do it, the second as Karney (2016) does. There is no seed
and no state: every draw reads fresh bytes from the kernel, so that a forked process, a restored cluster or a second session never repeats
noise. Small draws run in plain Python, large ones run the same algorithm on numpy arrays (`sampling_wide`, `gaussian_wide`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from fractions import Fraction

from dbext.errors import BadArgument
from dbext.mechanisms import gaussian_plain, sampling_plain
from dbext.privacy.noise import DiscreteLaplace, Noise

Source = Callable[[int], bytes]

#: From this many draws on, loading numpy (some 70 ms in a new session) pays for Laplace noise.
_WIDE_FROM = 2_000
#: The same for rounded Gaussian noise; and from how many on numpy pays that is loaded already.
_LOAD_FROM, _LOADED_FROM = 20_000, 100


def draw(noise: Noise, size: int) -> list[int]:
    """Return `size` independent draws of a noise."""
    if isinstance(noise, DiscreteLaplace):
        return discrete_laplace(noise.scale, size)
    return rounded_gaussian(noise.sigma_squared, size)


def discrete_laplace(scale: Fraction, size: int) -> list[int]:
    """Return `size` independent draws with P(X = x) proportional to exp(-abs(x) / scale), exactly, for a rational scale."""
    return _discrete_laplace(_positive(scale, "scale"), size, wide=size >= _WIDE_FROM)


def rounded_gaussian(sigma_squared: Fraction, size: int) -> list[int]:
    """Return `size` independent draws of round(N(0, sigma_squared)), exactly, for a rational parameter."""
    wide = size >= (_LOADED_FROM if "numpy" in sys.modules else _LOAD_FROM)
    return _rounded_gaussian(_positive(sigma_squared, "sigma_squared"), size, wide=wide)


def _discrete_laplace(scale: Fraction, size: int, *, wide: bool, source: Source = os.urandom) -> list[int]:
    """Draw in one of the two forms. Tests alone name the source."""
    if wide:
        from dbext.mechanisms import sampling_wide

        return sampling_wide.discrete_laplace(sampling_wide.Uniform(source), scale.numerator, scale.denominator, size)
    uniform = sampling_plain.Uniform(source)
    return [sampling_plain.discrete_laplace(uniform, scale.numerator, scale.denominator) for _ in range(size)]


def _rounded_gaussian(
    sigma_squared: Fraction, size: int, *, wide: bool, source: Source = os.urandom, grain: gaussian_plain.Grain = gaussian_plain.GRAIN
) -> list[int]:
    """Draw in one of the two forms. Tests alone name the source and the grain."""
    variance, divisor = sigma_squared.numerator, sigma_squared.denominator
    if wide:
        from dbext.mechanisms import gaussian_wide, sampling_wide

        return gaussian_wide.rounded_gaussian(sampling_wide.Uniform(source), variance, divisor, size, grain)
    uniform = sampling_plain.Uniform(source)
    return [gaussian_plain.rounded_gaussian(uniform, variance, divisor, grain) for _ in range(size)]


def _positive(value: Fraction, name: str) -> Fraction:
    exact = Fraction(value)
    if exact <= 0:
        raise BadArgument(f"{name} must be positive, not {exact}")
    return exact
