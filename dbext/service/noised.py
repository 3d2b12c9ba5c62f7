"""What is noised: one stream of a release, as all that draws and answers know it."""

from __future__ import annotations

from dataclasses import dataclass

from dbext.database.nodes import Source
from dbext.query.plan import Plan


@dataclass(frozen=True)
class Noising:
    """What is noised: a stream of a release, its plan and its cells. `beginning` lies before every tick sum."""

    source: Source
    plan: Plan
    cells: int
    beginning: int

    @property
    def noise_only(self) -> bool:
        """Whether nodes hold noise alone, and answers add the exact total: it equals the signed sum of noisy blocks exactly."""
        return getattr(self.plan.mechanism, "noise_only", False)
