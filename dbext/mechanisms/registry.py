"""Mechanisms by the tag they are stored with."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dbext.errors import BadArgument
from dbext.mechanisms.binary_tree import BinaryTree
from dbext.mechanisms.buffered import Buffered
from dbext.mechanisms.disjoint import DisjointSums
from dbext.mechanisms.encoded import EncodedMechanism
from dbext.mechanisms.epochs import Epochs, continuing
from dbext.mechanisms.hierarchical import HierarchicalSums
from dbext.mechanisms.independent import IndependentWindows, OneWindow
from dbext.mechanisms.least_squares_tree import LeastSquaresTree
from dbext.mechanisms.levelled import LevelledSums
from dbext.mechanisms.plain_sums import PlainSums
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.shared_windows import SharedWindows
from dbext.mechanisms.signed_tree import SignedTree
from dbext.mechanisms.sliding_root import SlidingRoot
from dbext.mechanisms.snapshots import Snapshots
from dbext.mechanisms.square_root import SquareRoot
from dbext.mechanisms.weighted_square_root import WeightedSquareRoot
from dbext.privacy.grid import grid_from_json
from dbext.privacy.pattern import pattern_from_json


def mechanism_from_json(data: dict[str, Any]) -> Mechanism | EncodedMechanism:
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


def _levelled(data: dict[str, Any]) -> LevelledSums:
    levels, factors = tuple(grid_from_json(one) for one in data["levels"]), tuple(Fraction(one) for one in data["factors"])
    fields = {name: data[name] for name in ("steps", "baseline", "age", "count")}
    return LevelledSums(grid_from_json(data["grid"]), levels, factors=factors, ranges=tuple(data["ranges"]), **fields)


def _binary_tree(data: dict[str, Any]) -> BinaryTree:
    return BinaryTree(grid_from_json(data["grid"]), data["horizon"], data["baseline"])


def _least_squares_tree(data: dict[str, Any]) -> LeastSquaresTree:
    return LeastSquaresTree(grid_from_json(data["grid"]), data["horizon"], data["baseline"])


def _plain_sums(data: dict[str, Any]) -> PlainSums:
    return PlainSums(grid_from_json(data["grid"]), data["horizon"], data["baseline"])


def _square_root(data: dict[str, Any]) -> SquareRoot:
    kind = WeightedSquareRoot if data["kind"] == WeightedSquareRoot.name else SquareRoot
    return kind(grid_from_json(data["grid"]), data["horizon"], data["baseline"])


def _buffered(data: dict[str, Any]) -> Buffered:
    circuit = {"weights": tuple(data["weights"]), "decays": tuple(data["decays"]), "scale": data["scale"], "guard": data["guard"]}
    return Buffered(grid_from_json(data["grid"]), data["horizon"], data["baseline"], **circuit)


def _signed_tree(data: dict[str, Any]) -> SignedTree:
    factors = tuple(Fraction(factor) for factor in data.get("factors", ()))
    shape = (data["horizon"], data["radix"], data["levels"], data["baseline"])
    return SignedTree(grid_from_json(data["grid"]), *shape, factors, tuple(data.get("sections", ())), tuple(data.get("places", ())))


def _epochs(data: dict[str, Any]) -> Epochs:
    return continuing(mechanism_from_json(data["first"]))


def _sliding_root(data: dict[str, Any]) -> SlidingRoot:
    return SlidingRoot(grid_from_json(data["grid"]), data["steps"], data["age"], data["count"])


def _shared_windows(data: dict[str, Any]) -> SharedWindows:
    windows, coefficients = tuple(data["windows"]), tuple(data["coefficients"])
    return SharedWindows(grid_from_json(data["grid"]), windows, coefficients, data["age"], data["count"])


_READERS: dict[str, Callable[[dict[str, Any]], Mechanism | EncodedMechanism]] = {
    IndependentWindows.name: _independent,
    OneWindow.name: _one_window,
    DisjointSums.name: _disjoint,
    HierarchicalSums.name: _hierarchical,
    LevelledSums.name: _levelled,
    Snapshots.name: lambda data: Snapshots(grid_from_json(data["grid"]), data["horizon"]),
    BinaryTree.name: _binary_tree,
    PlainSums.name: _plain_sums,
    LeastSquaresTree.name: _least_squares_tree,
    SquareRoot.name: _square_root,
    WeightedSquareRoot.name: _square_root,
    Buffered.name: _buffered,
    SignedTree.name: _signed_tree,
    SlidingRoot.name: _sliding_root,
    SharedWindows.name: _shared_windows,
    "epochs": _epochs,
}
