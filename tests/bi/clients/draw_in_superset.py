"""A chart in Superset, made over its REST API and looked at in a real browser: the released series and its band.

    draw_in_superset.py BASE_URL DATABASE_URL SCREENSHOT   (run by Superset's own Python)
"""

import json
import sys
import time

import requests
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

BASE, DATABASE, SCREENSHOT, CHROMIUM, DRIVER = sys.argv[1:]
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1400,800", "--hide-scrollbars",
)  # fmt: skip


#: Whether a chart is there, with something on it.
PAINTED = """return Array.from(document.querySelectorAll("canvas")).some(function (canvas) {
    return canvas.width * canvas.height > 0
        && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(function (value) { return value > 0; });
});"""
#: Seconds after which anything is taken to hang.
HANGS = 600


def is_still(page):
    """Whether the page looks the same twice: the line is animated."""
    before = page.get_screenshot_as_png()
    time.sleep(1)
    return page.get_screenshot_as_png() == before


def post(session, path, **content):
    reply = session.post(f"{BASE}/api/v1/{path}", json=content, timeout=HANGS)
    assert reply.ok, f"{path}: {reply.status_code} {reply.text}"
    return reply.json()


def metric(column, label):
    return {
        "expressionType": "SIMPLE", "column": {"column_name": column}, "aggregate": "MAX", "label": label, "hasCustomLabel": True,
        "optionName": f"metric_{label}",
    }  # fmt: skip


def log_in():
    session = requests.Session()
    token = post(session, "security/login", username="admin", password="admin", provider="db", refresh=True)["access_token"]  # noqa: S106 - of a throw-away server
    session.headers["Authorization"] = f"Bearer {token}"
    return session


def make_chart(session):
    database = post(session, "database/", database_name="Releases", sqlalchemy_uri=DATABASE, expose_in_sqllab=True)["id"]
    dataset = post(session, "dataset/", database=database, schema="dp_release", table_name="confirmed_14d")["id"]
    described = session.get(f"{BASE}/api/v1/dataset/{dataset}", timeout=HANGS).json()["result"]
    # Superset takes a series whose names end like this, as its own forecasts do, for a line with a band around it.
    figures = [metric("entered", "confirmed__yhat"), metric("lower_95", "confirmed__yhat_lower"), metric("upper_95", "confirmed__yhat_upper")]
    form = {
        "datasource": f"{dataset}__table", "viz_type": "echarts_timeseries_line", "x_axis": "window_end", "time_grain_sqla": "P1D",
        "metrics": figures, "groupby": [], "row_limit": 10000, "truncate_metric": True, "show_legend": True, "rich_tooltip": True,
        "adhoc_filters": [
            {"clause": "WHERE", "expressionType": "SIMPLE", "subject": "county", "operator": "==", "comparator": "Tainan"},
            {"clause": "WHERE", "expressionType": "SIMPLE", "subject": "window_end", "operator": "TEMPORAL_RANGE", "comparator": "No filter"},
        ],
        "x_axis_title": "End of the window", "y_axis_title": "Confirmed in 14 days, Tainan", "y_axis_title_margin": 40, "x_axis_title_margin": 30,
    }  # fmt: skip
    chart = post(
        session, "chart/", slice_name="Confirmed cases in 14 days, Tainan", viz_type="echarts_timeseries_line", datasource_id=dataset,
        datasource_type="table", params=json.dumps(form),
    )["id"]  # fmt: skip
    return chart, dataset, described


def values(session, dataset):
    """Ask for the chart's data as the browser does."""
    figures = [metric("entered", "value"), metric("lower_95", "lower"), metric("upper_95", "upper")]
    query = {
        "columns": [{"columnType": "BASE_AXIS", "sqlExpression": "window_end", "label": "window_end", "expressionType": "SQL", "timeGrain": "P1D"}],
        "metrics": figures, "filters": [{"col": "county", "op": "==", "val": "Tainan"}], "row_limit": 1000, "orderby": [],
    }  # fmt: skip
    reply = post(session, "chart/data", datasource={"id": dataset, "type": "table"}, queries=[query], result_format="json", result_type="full")
    return reply["result"][0]["data"]


def draw(chart):
    options = Options()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        browser.get(f"{BASE}/login/")
        wait = WebDriverWait(browser, HANGS)
        wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, "input[name=username], input#username, [data-test=username-input]"))
        browser.find_element(By.CSS_SELECTOR, "input[name=username], input#username, [data-test=username-input]").send_keys("admin")
        browser.find_element(By.CSS_SELECTOR, "input[type=password]").send_keys("admin\n")
        wait.until(lambda page: "/login" not in page.current_url)
        browser.get(f"{BASE}/explore/?slice_id={chart}&standalone=1")
        wait.until(lambda page: page.execute_script(PAINTED))
        wait.until(lambda page: not page.find_elements(By.CSS_SELECTOR, "[data-test=loading-indicator], .loading"))
        wait.until(is_still)
        browser.save_screenshot(SCREENSHOT)
        return browser.find_element(By.TAG_NAME, "body").text
    finally:
        browser.quit()


def main():
    session = log_in()
    chart, dataset, described = make_chart(session)
    data = values(session, dataset)
    page = draw(chart)
    columns = {one["column_name"]: one for one in described["columns"]}
    print(
        json.dumps(
            {
                "main_time": described["main_dttm_col"],
                "times": [name for name, one in columns.items() if one["is_dttm"]],
                "types": {name: one["type"] for name, one in columns.items()},
                "descriptions": {name: one.get("description") for name, one in columns.items()},
                "data": data,
                "page": page,
            },
            default=str,
        )
    )


main()
