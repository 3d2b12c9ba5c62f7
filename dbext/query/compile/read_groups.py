"""Read GROUP BY and what of it stands after SELECT: columns and bins, listed in both, and at most one TUMBLE or HOP."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbext.query.bins import Bins
from dbext.query.compile.draft import Draft
from dbext.query.compile.nodes import column_of, expect, name_of, offset_of, unwrap
from dbext.query.compile.read_bins import bins_of
from dbext.query.compile.read_figures import is_figure, require_figures
from dbext.query.compile.read_intervals import interval_of
from dbext.query.declaration import Ago, TimeRange
from dbext.query.predicate import ColumnRef
from dbext.query.refusal import refused

_COUNT_HINT = "Write SELECT county, count(*) with the columns of GROUP BY before it."
_PLACE_HINT = "Count the items after SELECT from 1, or write the name of a column."


def read_groups(draft: Draft) -> Draft:
    """Fill `group_by` and `bins`, and `range` if a window function states it. Figures are read by the next rule."""
    require_figures(draft)
    selected = [_selected(draft, item) for item in draft.tree.expressions if not is_figure(item)]
    grouping = [_grouped(draft, item, selected) for item in _grouping(draft)]
    windows = [item for item in grouping if isinstance(item, exp.Anonymous)]
    bins = tuple(item for item in grouping if isinstance(item, Bins))
    group_by = tuple(column_of(draft, item) for item in grouping if not isinstance(item, Bins) and item not in windows)
    _check_bins(draft, [item for item in selected if isinstance(item, Bins)], bins)
    _check_selected(draft, [item for item in selected if not isinstance(item, Bins)], group_by, windows)
    if len(windows) > 1:
        raise refused("only one TUMBLE or HOP is possible", offset_of(windows[1]))
    return replace(draft, group_by=group_by, bins=bins, range=_window(draft, windows[0]) if windows else None)


def _selected(draft: Draft, item: exp.Expression) -> exp.Expression | Bins:
    """An item of the list after SELECT; bins may have a name."""
    label, inner = None, item
    if isinstance(item, exp.Alias):
        alias = expect(draft, item, exp.Alias, "this", "alias")
        inner, label = unwrap(draft, alias.this), name_of(draft, alias.args["alias"])
        if not isinstance(inner, exp.WidthBucket):
            raise refused(
                "only figures and bins can be named", offset_of(item), "The release table calls a column of GROUP BY what the table does."
            )
    return bins_of(draft, inner, label) if isinstance(unwrap(draft, inner), exp.WidthBucket) else inner


def _grouping(draft: Draft) -> list[exp.Expression]:
    group = draft.tree.args.get("group")
    if group is None:
        return []
    return [unwrap(draft, item) for item in expect(draft, group, exp.Group, "expressions").expressions]


def _grouped(draft: Draft, item: exp.Expression, selected: list[exp.Expression | Bins]) -> exp.Expression | Bins:
    """An item of GROUP BY: itself, or what it refers to after SELECT by place or (bins) by name or by saying the same."""
    bins = [one for one in selected if isinstance(one, Bins)]
    if isinstance(item, exp.Literal) and not item.is_string and item.this.isdigit():
        listed = draft.tree.expressions
        place = int(item.this[:6])
        if not 0 < place <= len(listed) or is_figure(listed[place - 1]):
            raise refused("this place after SELECT holds no column and no bins", offset_of(item), _PLACE_HINT)
        return _selected(draft, listed[place - 1])
    if isinstance(item, exp.WidthBucket):
        said = bins_of(draft, item)
        return next((one for one in bins if replace(one, label=said.label) == said), said)
    if isinstance(item, exp.Column) and item.args.get("table") is None:
        return next((one for one in bins if one.label == item.name), item)
    if isinstance(item, (exp.Literal, exp.Tuple)):
        raise refused("GROUP BY takes plain columns by name", offset_of(item), "Write the names of the columns, without parentheses.")
    return item


def _check_bins(draft: Draft, selected: list[Bins], grouped: tuple[Bins, ...]) -> None:
    """Bins stand once in both places."""
    if len(set(grouped)) < len(grouped) or len({one.label for one in selected}) < len(selected):
        raise refused("bins are named twice", offset_of(draft.tree.args.get("group")), "Give each a name: width_bucket(...) AS bin.")
    for one in (*selected, *grouped):
        if one not in grouped:
            raise refused("bins must also stand in GROUP BY", one.offset, f"Write GROUP BY {one.label}.")
        if one not in selected:
            raise refused("bins of GROUP BY must also stand after SELECT", one.offset, _COUNT_HINT)


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
