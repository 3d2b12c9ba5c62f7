"""Mechanisms by the tag they are stored with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbext.errors import BadArgument
from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.disjoint import DisjointSums
from dbext.mechanisms.hierarchical import HierarchicalSums
from dbext.mechanisms.independent import IndependentWindows, OneWindow
from dbext.mechanisms.protocol import Mechanism
from dbext.privacy.grid import grid_from_json
from dbext.privacy.pattern import pattern_from_json


def mechanism_from_json(data: dict[str, Any]) -> Mechanism:
    """Rebuild a mechanism from its tagged form."""
    if data.get("kind") not in _READERS:
        raise BadArgument(f"unknown mechanism {data.get('kind')!r}")
    return _READERS[data["kind"]](data)


def _independent(data: dict[str, Any]) -> IndependentWindows:
    return IndependentWindows(pattern_from_json(data["windows"]))


def _one_window(data: dict[str, Any]) -> OneWindow:
    return OneWindow(data["start"], data["end"])


def _disjoint(data: dict[str, Any]) -> DisjointSums:
    return DisjointSums(grid_from_json(data["grid"]), data["steps"], data["remainder"], data["age"], data["count"])


def _hierarchical(data: dict[str, Any]) -> HierarchicalSums:
    fields = {name: data[name] for name in ("steps", "radix", "levels", "age", "count")}
    return HierarchicalSums(grid_from_json(data["grid"]), **fields)


def _binary_tree(data: dict[str, Any]) -> BinaryTree:
    return BinaryTree(grid_from_json(data["grid"]), data["horizon"], data["baseline"])


_READERS: dict[str, Callable[[dict[str, Any]], Mechanism]] = {
    IndependentWindows.name: _independent,
    OneWindow.name: _one_window,
    DisjointSums.name: _disjoint,
    HierarchicalSums.name: _hierarchical,
    BinaryTree.name: _binary_tree,
}
