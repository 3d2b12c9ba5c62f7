"""Signed trees whose budget is divided anew in every section of the horizon and for every group of places inside the longest blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dbext.mechanisms.signed_tree import Shape, block_uses

#: Sections of one tree. What no total uses is taken for used so much less than what is used most: it gets a hundredth of the budget there.
_MOST_SECTIONS, _UNUSED = 5, 1e-6


class Division(NamedTuple):
    """A tree in sections and places: the widths of its blocks, and half the sum of all variances under a budget of 1."""

    shape: Shape
    sections: tuple[int, ...]
    places: tuple[int, ...]
    widths: tuple[float, ...]
    burden: float


def division(horizon: int, shape: Shape) -> Division | None:
    """Divide the budget of a tree; None if it has but one longest block.

    On each path from a longest block down, shares e add up to 1, and u uses of blocks of a share cost u / e^2 together. Below, in one
    group, that is least for shares proportional to u^(1/3), and then (sum of u^(1/3))^3 = i^3 when they have the whole budget; longest
    blocks that are used u times and hold such insides take u^(1/3) / (u^(1/3) + i^(1/3)), with i the sum of theirs (`unequal_budgets`).
    """
    uses = [block_uses(horizon, shape, level) for level in range(shape.levels)]
    longest = max(-(-len(one) // shape.radix ** (shape.levels - 1 - level)) for level, one in enumerate(uses))
    uses[-1] = np.append(uses[-1], [0] * (longest - len(uses[-1])))  # the last one may be too long to be used
    sections = tuple(range(0, longest, -(-longest // _MOST_SECTIONS)))
    if len(sections) < 2:  # noqa: PLR2004 one section is a tree without
        return None
    section_of = np.searchsorted(sections, np.arange(longest), side="right") - 1
    above = np.maximum(np.bincount(section_of, uses[-1], len(sections)), _UNUSED * horizon) ** (1 / 3)
    by_place = np.empty((shape.levels - 1, len(sections), shape.radix))
    for level in range(shape.levels - 1):
        within, place = np.divmod(np.arange(len(uses[level])) // shape.radix ** (shape.levels - 2 - level), shape.radix)
        number = section_of[within] * shape.radix + place
        by_place[level] = np.bincount(number, uses[level], len(sections) * shape.radix).reshape(-1, shape.radix)
    group_of = _groups(by_place, above)
    below = by_place @ (group_of[:, None] == np.arange(group_of.max() + 1))
    roots = _roots(below, by_place)
    inside = (roots.sum(axis=0) ** 3).sum(axis=1) ** (1 / 3)
    top = above / (above + inside)
    shares = roots / roots.sum(axis=0) * (1 - top)[:, None]
    widths = np.hstack([(1 / shares).transpose(1, 2, 0).reshape(len(sections), -1), 1 / top[:, None]])
    places = tuple(group_of.tolist()) if group_of.any() else ()
    return Division(shape, sections, places, tuple(widths.ravel().tolist()), float(((above + inside) ** 3).sum()))


def _groups(by_place: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Return the group of each place: three of them, cut where that is best between those used most and those used least or never."""
    radix = by_place.shape[2]
    group_of = np.zeros(radix, dtype=int)
    if len(by_place) == 1:
        return group_of  # nothing lies inside blocks of the lowest level
    order = np.argsort(-by_place[-1].sum(axis=0), kind="stable")
    sums = np.concatenate([np.zeros((*by_place.shape[:2], 1)), by_place[:, :, order].cumsum(axis=2)], axis=2)
    within = np.maximum(sums[:, :, None, :] - sums[:, :, :, None], 0)
    insides = _roots(within, by_place).sum(axis=0) ** 3
    split = insides[:, 0, :, None] + insides + insides[:, :, radix][:, None, :]
    burden = ((above[:, None, None] + split ** (1 / 3)) ** 3).sum(axis=0)
    first, second = np.unravel_index(np.argmin(np.where(np.tri(radix + 1, k=0).T * burden > 0, burden, np.inf)), burden.shape)
    group_of[order[first:]] += 1
    group_of[order[second:]] += 1
    return np.unique(group_of, return_inverse=True)[1]


def _roots(uses: np.ndarray, all_uses: np.ndarray) -> np.ndarray:
    """Return the cube roots of uses, of those that are next to nothing as if they were more."""
    return np.maximum(uses, _UNUSED * all_uses.max()) ** (1 / 3)
