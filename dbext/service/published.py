"""What of a release's charges has left: the filters of its first periods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dbext.errors import InternalError
from dbext.privacy.charge import Charge
from dbext.privacy.pattern import Several, Single, Tree, Windows


def published_so_far(charges: Iterable[Charge], periods: int) -> list[Charge]:
    """Return the part of a release's charges that its first `periods` (at least 1) periods drew.

    Node n of a window pattern or tree is drawn at period n, older blocks and single windows with the first period: cutting the pattern
    after `periods` leaves exactly the nodes drawn. The part is charged like the whole, so that it never costs more.
    """
    return [replace(charge, pattern=_first(charge.pattern, periods)) for charge in charges]


def _first(pattern: Single | Windows | Tree | Several, periods: int) -> Single | Windows | Tree | Several:
    if isinstance(pattern, Several):
        return Several(tuple(_first(part, periods) for part in pattern.parts))
    if isinstance(pattern, Single):
        return pattern
    if isinstance(pattern, (Windows, Tree)):
        return replace(pattern, count=periods if pattern.count is None else min(pattern.count, periods))
    raise InternalError(f"it is not known which filters of a {type(pattern).__name__} belong to which period")
