"""The columns that a release groups by: decided when it is declared, kept with it, needed by its statements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from dbext.database import release_table, releases
from dbext.database.catalog import TrackedTable
from dbext.database.effects import GroupColumn
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported
from dbext.query.bins import Bins, bins_from_json
from dbext.query.column import Column
from dbext.query.groups import DataKeys, PublicColumn
from dbext.service.bin_cuts import with_cuts


def group_columns(
    session: Session, table: TrackedTable, columns: Sequence[Column], figures: Sequence[str], bins: Sequence[Bins] = ()
) -> tuple[GroupColumn, ...]:
    """Return the columns, then the bins, with their labels in the release table, beside those of the figures, and their collations.

    NotSupported for a type without a default order, and for arrays, composites and the like: reading their keys could run the check
    of a domain inside them with the rights of dbext_owner.
    """
    for column in columns:
        if not column.takes_literals:
            raise NotSupported(f"column {column.name} is of type {column.type_name}, which cannot be grouped by")
        if not {"=", "<"} <= column.operators.keys():
            raise NotSupported(f"column {column.name} has a type without a default order and cannot be grouped by")
    collations = releases.collations(session, table.table_id) if columns else {}
    labels = release_table.labels([one.name for one in columns], figures, [one.label for one in bins])
    plain = (GroupColumn(one, label, collations.get(one.position)) for one, label in zip(columns, labels, strict=True))
    return (*plain, *(GroupColumn(one.column.column, one.label, bins=one) for one in (with_cuts(session, bin_) for bin_ in bins)))


def frozen_keys(session: Session, source: Any, groups: Sequence[GroupColumn]) -> list[list[str | None]]:
    """Return the keys of a public list in their order; one empty key without groups, one that is none if keys are taken from the data.

    Each comes with every bin, if there are any.
    """
    bins = [group.bins for group in groups if group.bins is not None]
    keys = _listed_keys(session, source, [group for group in groups if group.bins is None])
    require_cells(len(keys) * math.prod(one.buckets for one in bins))
    return [[*key, *map(str, numbers)] for key in keys for numbers in product(*(range(one.buckets) for one in bins))]


def require_cells(cells: int) -> None:
    """Refuse more cells than a release can have."""
    if cells > releases.MAX_CELLS:
        said = f"a release has at most {releases.MAX_CELLS} cells, counts by bin or value of every key, and these are {cells}"
        raise BadArgument(said, hint="Use fewer keys or bins, or a coarser grid.")


def _listed_keys(session: Session, source: Any, groups: Sequence[GroupColumn]) -> list[list[str | None]]:
    if not groups:
        return [[]]
    if isinstance(source, DataKeys):
        return [[None] * len(groups)]
    if isinstance(source, PublicColumn):
        return releases.public_keys(session, groups[0], source.table.schema, source.table.name, source.column)
    return releases.distinct_keys(session, groups, source.rows)


def columns_to_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return columns as they are when a release is declared: what its statements are composed of must not change while it lives."""
    return [{**asdict(column), "operators": dict(column.operators)} for column in columns]


def columns_from_json(data: Sequence[dict[str, Any]]) -> tuple[Column, ...]:
    """Rebuild kept columns."""
    return tuple(Column(**{**one, "enum_labels": tuple(one["enum_labels"])}) for one in data)


def groups_to_json(groups: Sequence[GroupColumn]) -> list[dict[str, Any]]:
    """Return what must not change while a release lives: labels and collations, by column position."""
    return [
        {"position": one.column.position, "label": one.label, "collation": one.collation}
        | ({} if one.bins is None else {"bins": one.bins.to_json()})
        for one in groups
    ]


def groups_from_json(data: Sequence[dict[str, Any]], columns: Sequence[Column]) -> tuple[GroupColumn, ...]:
    """Rebuild kept groups over kept columns."""
    by_position = {column.position: column for column in columns}
    return tuple(
        GroupColumn(by_position[one["position"]], one["label"], one["collation"], _bins_from_json(one.get("bins"), columns)) for one in data
    )


def _bins_from_json(data: dict[str, Any] | None, columns: Sequence[Column]) -> Bins | None:
    return None if data is None else bins_from_json(data, columns)
