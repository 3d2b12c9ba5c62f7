"""Which figures of a release a reader asks about: `release`, or `release.figure`. Whoever may read their columns may ask."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbext.database import catalog, releases
from dbext.database.catalog import TrackedTable
from dbext.database.identifiers import shown
from dbext.database.releases import Release
from dbext.database.session import Session
from dbext.errors import BadArgument, NotSupported, UnknownObject
from dbext.query.local_plan import LocalPlan, local_plan_from_json
from dbext.query.publication import Publication
from dbext.query.statistic import Formula
from dbext.service import local_publish
from dbext.service.due import Due, due_of
from dbext.service.selected_keys import require_public_keys


@dataclass(frozen=True)
class Asked:
    """A release and the figures asked about; `named` says that one was. Of the local model `local` is its plan, else `due` its parts."""

    release: Release
    table: TrackedTable
    formulas: tuple[Formula, ...]
    named: bool
    due: Due | None
    local: LocalPlan | None

    @property
    def publication(self) -> Publication:
        """What the release publishes; not of the local model."""
        return self.due.publication

    @property
    def places(self) -> list[int]:
        """The statistics that the figures are worked out from."""
        return sorted({place for formula in self.formulas for place in formula.sources})


def asked_figures(session: Session, name: str | None) -> Asked:
    """Return what is asked about. Nothing is drawn, nothing is charged: a caller learns no more than the release table says."""
    release_name, _, figure = (name or "").partition(".")
    release = releases.by_name(session, release_name)
    require_public_keys(release)
    table = catalog.tracked_table(session, release.table_id)
    if local_publish.is_local(release):
        plan = local_plan_from_json(release.content["plan"])
        asked = Asked(release, table, (Formula(plan.measure.value, "count", (0,)),), bool(figure), None, plan)
    else:
        due = due_of(release, table)
        asked = Asked(release, table, due.publication.formulas, bool(figure), due, None)
    asked = _sums(_only(asked, figure) if figure else asked)
    for formula in asked.formulas:
        releases.require_readable(session, release, formula.label)
    return asked


def _sums(asked: Asked) -> Asked:
    """Leave quantiles out: they are in the release table alone."""
    formulas = tuple(formula for formula in asked.formulas if formula.fraction is None)
    if not formulas:
        raise NotSupported(
            f"{asked.formulas[0].label} is a quantile: ranges and restated histories are of figures that are made of a few sums",
            hint="Declare a histogram, with GROUP BY width_bucket(...), for any range: its bins add up.",
        )
    return replace(asked, formulas=formulas)


def _only(asked: Asked, figure: str) -> Asked:
    found = tuple(formula for formula in asked.formulas if formula.label == figure)
    if not found:
        known = ", ".join(formula.label for formula in asked.formulas)
        raise UnknownObject(f"release {asked.release.name} has no figure {shown(figure)}", hint=f"Its figures are: {known}.")
    return Asked(asked.release, asked.table, found, asked.named, asked.due, asked.local)


def require_one(asked: Asked) -> None:
    """Refuse a single number of several figures."""
    if len(asked.formulas) > 1:
        raise BadArgument(
            f"release {asked.release.name} has several figures",
            hint=f"Name one: '{asked.release.name}.{asked.formulas[0].label}'. dp_range_stats returns all of them.",
        )
