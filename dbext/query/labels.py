"""Names of figures in a release table."""

from __future__ import annotations

from collections.abc import Sequence

from dbext.privacy.measure import Measure
from dbext.query.declaration import Declaration, Figure
from dbext.query.refusal import refused

#: What PostgreSQL calls a figure without a name, where that is not the name of its function here.
DEFAULTS = {"sum_squares": "sum", "var_samp": "variance", "stddev_samp": "stddev"}


def label_of(figure: Figure) -> str:
    """The name of a figure: its own, or that of its function."""
    return figure.label or DEFAULTS.get(figure.function, figure.function)


#: Columns that every release table has.
RESERVED = frozenset({"window_end", "window_start", "release_no", "status"})
SUFFIXES = ("std_error", "lower_95", "upper_95", "rank_error")
#: Names have 63 bytes in PostgreSQL, and _std_error follows.
MAX_BYTES = 53


def columns_of_labels(labels: Sequence[str]) -> list[str]:
    """The columns that figures of these names take in a release table: one alone has short names for its error and bounds."""
    several = len(labels) > 1
    return [*labels, *(f"{label}_{suffix}" if several else suffix for label in labels for suffix in SUFFIXES)]


def columns_of_bins(labels: Sequence[str]) -> list[str]:
    """The columns that bins of these names take in a release table."""
    return [f"{label}{suffix}" for label in labels for suffix in ("", "_low", "_high")]


def labels_of(declaration: Declaration, measure: Measure) -> tuple[str, ...]:
    """The names of all figures; a lone count without a name of its own is called what it means: state, net, entered or left."""
    labels = _labels(declaration.figures, measure)
    columns = columns_of_labels(labels)
    for figure, label in zip(declaration.figures, labels, strict=True):
        if label in RESERVED or columns.count(label) > 1:
            raise refused(f"a release table has a column {label} of its own", figure.offset, "Give the figure another name: count(*) AS n.")
        if len(label.encode()) > MAX_BYTES:
            raise refused(f"a figure's name has at most {MAX_BYTES} bytes", figure.offset)
    return labels


def _labels(figures: Sequence[Figure], measure: Measure) -> tuple[str, ...]:
    if len(figures) == 1 and figures[0].label is None and figures[0].function == "count":
        return (measure.value,)
    return tuple(label_of(figure) for figure in figures)
