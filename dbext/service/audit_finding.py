"""What one check of an audit found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PASSED, FAILED, WARNING = "passed", "failed", "warning"
TRANSCRIPT, LEDGER, CLAIM = "transcript", "ledger", "claim"


@dataclass(frozen=True)
class Finding:
    """`area` and `check` say what was looked at in which `subject`; `figure` was measured, `bound` is what it should be or not pass."""

    area: str
    check: str
    subject: str
    verdict: str
    detail: str
    figure: float | None = None
    bound: float | None = None


def judged(area: str, check: str, subject: str, wrong: Sequence[str], right: str, figure: float | None = None) -> Finding:
    """Return a finding that failed if anything is wrong."""
    detail = right if not wrong else "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")  # noqa: PLR2004 enough to act on
    return Finding(area, check, subject, FAILED if wrong else PASSED, detail, figure)
