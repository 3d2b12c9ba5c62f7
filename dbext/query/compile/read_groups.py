"""Read GROUP BY and the plain columns after SELECT: listed in both, and at most one TUMBLE or HOP."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import column_of, expect, offset_of, unwrap
from dbext.query.compile.read_figures import is_figure, require_figures
from dbext.query.compile.read_intervals import interval_of
from dbext.query.declaration import Ago, TimeRange
from dbext.query.predicate import ColumnRef
from dbext.query.refusal import refused

_COUNT_HINT = "Write SELECT county, count(*) with the columns of GROUP BY before it."


def read_groups(draft: Draft) -> Draft:
    """Fill `group_by`, and `range` if a window function states it. Figures are read by the next rule."""
    require_figures(draft)
    selected = [item for item in draft.tree.expressions if not is_figure(item)]
    for item in selected:
        if isinstance(item, exp.Alias):
            raise refused("only figures can be named", offset_of(item), "The release table calls a column of GROUP BY what the table does.")
    grouping = _grouping(draft)
    windows = [item for item in grouping if isinstance(item, exp.Anonymous)]
    group_by = tuple(column_of(draft, item) for item in grouping if item not in windows)
    _check_selected(draft, selected, group_by, windows)
    if len(windows) > 1:
        raise refused("only one TUMBLE or HOP is possible", offset_of(windows[1]))
    return replace(draft, group_by=group_by, range=_window(draft, windows[0]) if windows else None)


def _grouping(draft: Draft) -> list[exp.Expression]:
    group = draft.tree.args.get("group")
    if group is None:
        return []
    items = [unwrap(draft, item) for item in expect(draft, group, exp.Group, "expressions").expressions]
    for item in items:
        if isinstance(item, (exp.Literal, exp.Tuple)):
            raise refused("GROUP BY takes plain columns by name", offset_of(item), "Write the names of the columns, without parentheses.")
    return items


def _check_selected(draft: Draft, selected: list[exp.Expression], group_by: tuple[ColumnRef, ...], windows: list[exp.Expression]) -> None:
    listed = []
    for item in selected:
        if isinstance(item, exp.Anonymous):
            if [item] != windows:
                raise refused("TUMBLE or HOP after SELECT must also stand in GROUP BY", offset_of(item))
        else:
            listed.append(column_of(draft, item))
    if len(set(group_by)) < len(group_by) or len(set(listed)) < len(listed):
        raise refused(
            "a column is named twice",
            offset_of(draft.tree.args.get("group")) if len(set(group_by)) < len(group_by) else offset_of(selected[0]),
        )
    for column in listed:
        if column not in group_by:
            raise refused(f"column {column.name} must also stand in GROUP BY", column.offset)
    for column in group_by:
        if column not in listed:
            raise refused(f"column {column.name} of GROUP BY must also stand after SELECT", column.offset, _COUNT_HINT)


def _window(draft: Draft, call: exp.Expression) -> TimeRange:
    """TUMBLE(dp_time, size) or HOP(dp_time, every, width): the last `width`, published every `every`."""
    call = expect(draft, call, exp.Anonymous, "this", "expressions")
    name, arguments = call.this.lower(), call.expressions
    shape = "TUMBLE(dp_time, INTERVAL '1 day')" if name == "tumble" else "HOP(dp_time, INTERVAL '1 day', INTERVAL '14 days')"
    if len(arguments) != (2 if name == "tumble" else 3):
        raise refused(f"{name.upper()} has other arguments than these", offset_of(call), f"Write {shape}.")
    if column_of(draft, arguments[0]).name != "dp_time":
        raise refused(f"{name.upper()} works on dp_time, the time of a mutation", offset_of(arguments[0]), f"Write {shape}.")
    spans = [interval_of(draft, argument) for argument in arguments[1:]]
    return TimeRange(lower=Ago(spans[-1]), every=spans[0])
