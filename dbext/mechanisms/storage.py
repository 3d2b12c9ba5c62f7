"""How many noisy numbers a mechanism keeps for each group: what its accuracy costs in space, and in reading."""

from __future__ import annotations

from dbext.mechanisms.buffered import Buffered
from dbext.mechanisms.encoded import EncodedMechanism
from dbext.mechanisms.epochs import Epochs
from dbext.mechanisms.protocol import Mechanism
from dbext.mechanisms.totals import Totals

#: Beside its buffers: the noise of the last total, and the exact total.
_BESIDE_BUFFERS = 2


def numbers_kept(mechanism: Mechanism | EncodedMechanism) -> int | None:
    """Return the numbers per cell that are stored when the horizon (of one epoch) is reached; None if there is no horizon."""
    if isinstance(mechanism, Epochs):
        return numbers_kept(mechanism.first)
    if isinstance(mechanism, Buffered):
        return len(mechanism.weights) + _BESIDE_BUFFERS
    if isinstance(mechanism, Totals):
        return mechanism.numbers + mechanism.baseline
    if mechanism.horizon is None:
        return None
    return sum(1 for pattern in mechanism.patterns() for _ in pattern.filters())
