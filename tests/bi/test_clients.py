"""Ordinary clients, logged in as the reader of a release target, see releases as the tables that their authors would expect."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest

from dbext.control import distribution
from tests.bi.conftest import COUNTIES, HERE, PERIODS, program

COLUMNS = ["window_end", "window_start", "county", "entered", "std_error", "lower_95", "upper_95", "release_no", "status"]
DRIVER = "/usr/share/java/postgresql.jar"


def test_psql(served, run):
    psql = program("psql", "postgresql-client")
    listed = run(psql, "-X", "-A", "-t", "-c", r"\d dp_release.*", "-c", r"\dt+ dp_release.*", "-c", r"\d+ dp_release.confirmed_14d")
    assert "End of the window, inclusive" in listed
    assert "Differentially private release of public.cases" in listed
    rows = run(psql, "-X", "--csv", "-c", "TABLE dp_release.confirmed_14d").splitlines()
    assert rows[0].split(",") == COLUMNS
    assert len(rows) - 1 == PERIODS * len(COUNTIES)
    hidden = run(psql, "-X", "-A", "-t", "-c", "SELECT count(*) FROM pg_class WHERE relnamespace::regnamespace::text ~ '^dbext' AND has_table_privilege(oid, 'SELECT')")
    assert hidden.strip() == "0"


def test_sqlalchemy_and_pandas(served, clients, run_json):
    seen = run_json(clients, HERE / "clients" / "read_pandas.py")
    assert seen["tables"] == ["active", "confirmed_14d"]
    assert seen["views"] == ["active_rounded", "confirmed_14d_rounded"]
    assert seen["key"] == ["window_end", "county"]
    assert "lifetime epsilon 1" in seen["comment"]
    assert all(seen["column_comments"].values())
    kinds = {name: kind.split("[")[0].split(",")[0] for name, kind in seen["dtypes"].items()}
    assert kinds["window_end"] == kinds["window_start"] == "datetime64"
    assert kinds["entered"] in ("int64", "float64")
    assert {kinds[name] for name in ("std_error", "lower_95", "upper_95")} == {"float64"}
    assert (seen["nulls"], seen["rows"]) == (0, PERIODS * len(COUNTIES))
    assert seen["sum"] == pytest.approx(float(served.database.value("SELECT sum(entered) FROM dp_release.confirmed_14d")))
    assert seen["pivot"] == [PERIODS, len(COUNTIES)]
    assert seen["weekly"] == 7


def test_jdbc_metadata_and_query(served, run_json):
    java = program("java", "default-jdk-headless")
    if not Path(DRIVER).exists():
        distribution.install_packages(["libpostgresql-jdbc-java"], "the JDBC driver is missing")
    url = f"jdbc:postgresql://127.0.0.1:{served.port}/{served.database.name}?user=bi_reader"
    seen = run_json(java, "-cp", DRIVER, HERE / "clients" / "Crawl.java", url)
    assert "dp_release" in seen["schemas"]
    assert set(seen["tables"]) == {"active", "active_rounded", "confirmed_14d", "confirmed_14d_rounded"}
    assert all(seen["tables"].values())
    assert [name for name, *_ in seen["columns"]] == COLUMNS
    assert [kind for _, kind, *_ in seen["columns"]][:3] == ["TIMESTAMP", "TIMESTAMP", "VARCHAR"]
    assert {kind for _, kind, *_ in seen["columns"][4:7]} == {"DOUBLE"}
    assert all(nullable == 0 and remarks for _, _, nullable, remarks in seen["columns"])
    assert seen["key"] == ["window_end", "county"]
    wanted = served.database.fetch("SELECT count(*), sum(entered)::float8 FROM dp_release.confirmed_14d WHERE county = 'Tainan'")
    assert wanted == [(seen["rows"], pytest.approx(seen["sum"]))]


def test_duckdb(served, clients, run_json, record_property, tmp_path):
    seen = run_json(clients, HERE / "clients" / "read_duckdb.py", HOME=str(tmp_path))
    record_property("way", seen["way"])
    assert seen["types"]["window_end"] == "TIMESTAMP WITH TIME ZONE"
    assert seen["types"]["county"] == "VARCHAR"
    assert seen["types"]["std_error"] == "DOUBLE"
    assert [row[0] for row in seen["rows"]] == sorted(COUNTIES)
    peaks = dict(served.database.fetch("SELECT county, max(entered)::float8 FROM dp_release.confirmed_14d GROUP BY 1"))
    assert {row[0]: row[1] for row in seen["rows"]} == pytest.approx(peaks)
    assert {(row[3], row[4]) for row in seen["rows"]} == {(PERIODS, 1.0)}


@pytest.fixture
def dbt(clients, run, tmp_path):
    """Run dbt on a copy of the project."""
    project = tmp_path / "project"
    shutil.copytree(HERE / "dbt", project)
    options = ["--project-dir", project, "--profiles-dir", project, "--no-use-colors", "--target-path", tmp_path / "out", "--log-path", tmp_path / "log"]

    def carry_out(*command: str) -> dict:
        run(clients.parent / "dbt", *command, *options, DBT_SEND_ANONYMOUS_USAGE_STATS="false", HOME=str(tmp_path))
        name = "sources.json" if command[:2] == ("source", "freshness") else "run_results.json"
        return json.loads((tmp_path / "out" / name).read_text(encoding="utf-8"))

    return carry_out


def test_dbt_freshness_and_an_incremental_model(served, dbt):
    (fresh,) = dbt("source", "freshness")["results"]
    assert fresh["status"] == "pass"
    assert dt.datetime.fromisoformat(fresh["max_loaded_at"]) == served.database.value("SELECT max(window_end) FROM dp_release.confirmed_14d")
    assert {one["status"] for one in dbt("build")["results"]} == {"success", "pass"}
    whole = "SELECT window_end, county, entered FROM {} ORDER BY 1, 2"
    assert served.database.fetch(whole.format("mart.county_day")) == served.database.fetch(whole.format("dp_release.confirmed_14d"))
    served.database.execute("DELETE FROM mart.county_day WHERE window_end > (SELECT max(window_end) - interval '3 days' FROM mart.county_day)")
    (again,) = [one for one in dbt("build")["results"] if one["unique_id"].startswith("model.")]
    assert again["adapter_response"]["rows_affected"] == 3 * len(COUNTIES)
    assert served.database.fetch(whole.format("mart.county_day")) == served.database.fetch(whole.format("dp_release.confirmed_14d"))
