"""The page in a real browser: every view opens, filters and links work, and the console shows no error.

It needs Chromium and its driver (`apt-get install chromium chromium-driver`), and Selenium (`pip install selenium`).
"""

from __future__ import annotations

import functools
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.report.document import Source, document
from dbt.adapters.silt.report.page import page
from dbt.adapters.silt.report.server import LiveData, ReportServer
from tests.unit.cli.house import House, rows
from tests.unit.report import shop

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")

VIEWS = {
    "#/": "Runs of shop",
    "#/run/tuesday": "Run tuesday",
    "#/run/monday": "Run monday",
    "#/run/broken": "Run broken",
    "#/run/unknown": "Unknown run",
    "#/graph": "Graph of models",
    "#/graph?focus=model.shop.late": "Graph of models",
    "#/tables": "Tables",
    "#/table/silt.main.orders": "silt.main.orders",
    "#/table/silt.main.customers": "silt.main.customers",
    "#/table/unknown": "Unknown table",
    "#/notes": "Notes",
    "#/%zz/%": "Runs of shop",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window, controlled through its driver."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield found
    found.quit()


@pytest.fixture
def opened(browser: Any, house: House, target: Path, tmp_path: Path) -> Iterator[Any]:
    """The browser with the project's page, opened from disk; afterwards, its console must contain no error."""
    shop.build(house, target)
    broken = house.create("main.broken", rows(0, 1))
    broken.store.put("_delta_log/00000000000000000001.json", b"{")
    file = tmp_path / "page.html"
    now = int(time.time() * 1000)
    file.write_text(page(document(Source(house.catalog, target), now).json), encoding="utf-8")
    browser.get(file.as_uri())
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def go(browser: Any, view: str) -> None:
    browser.execute_script("window.location.hash = arguments[0]", view)
    eventually(lambda: browser.execute_script("return window.location.hash") == view.replace(" ", "%20"))
    # The view is drawn by an event after this script.
    browser.execute_async_script("setTimeout(arguments[0], 0)")


def eventually(holds: Callable[[], object]) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.05)


def find(browser: Any, selector: str) -> list[Any]:
    found: list[Any] = browser.find_elements("css selector", selector)
    return found


def text(browser: Any, selector: str = "main") -> str:
    return "\n".join(element.text for element in find(browser, selector))


@pytest.mark.parametrize(("view", "title"), VIEWS.items())
def test_every_view_opens(opened: Any, view: str, title: str) -> None:
    go(opened, view)
    assert text(opened, "h1").startswith(title)


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 31)")])
@pytest.mark.parametrize("width", [360, 1400])
def test_every_view_fits_its_window_in_light_and_dark(opened: Any, scheme: str, paper: str, width: int) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for view in VIEWS:
        go(opened, view)
        assert opened.execute_script("return document.documentElement.scrollWidth <= window.innerWidth"), view
        assert opened.execute_script("return getComputedStyle(document.body).backgroundColor") == paper
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_hostile_names_are_shown_as_text_and_run_no_script(opened: Any) -> None:
    for view in VIEWS:
        go(opened, view)
        assert find(opened, "main script, main img, main iframe") == []
        assert "taken" != opened.title
    go(opened, "#/run/tuesday")
    assert "<img src=x onerror=" in text(opened, "pre")


def test_every_link_of_every_view_opens_a_known_view(opened: Any) -> None:
    seen: set[str] = set()
    left = ["#/"]
    while left:
        view = left.pop()
        seen.add(view)
        go(opened, view)
        assert "Unknown" not in text(opened, "h1"), view
        links = opened.execute_script("return [...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
        assert all(link.startswith("#/") for link in links)
        left.extend(link for link in set(links) - seen - set(left))
    assert {"#/run/monday", "#/table/silt.main.orders", "#/graph?focus=model.shop.late"} <= seen


def test_a_filter_selects_runs_and_is_kept_in_the_address(opened: Any) -> None:
    go(opened, "#/")
    find(opened, "input[name=q]")[0].send_keys("mon")
    eventually(lambda: len(find(opened, "tbody tr")) == 1)
    assert opened.execute_script("return window.location.hash") == "#/?q=mon"
    go(opened, "#/?state=broken+off")
    assert [row.text.split()[0] for row in find(opened, "tbody tr")] == ["broken"]


def test_a_click_on_the_name_of_a_column_sorts_by_it(opened: Any) -> None:
    go(opened, "#/tables")
    head = next(each for each in find(opened, "th button") if each.text == "rows")
    head.click()
    first = find(opened, "tbody tr")[0].text
    head.click()
    assert first.startswith("silt.main.orders") and not find(opened, "tbody tr")[0].text.startswith("silt.main.orders")


def test_a_run_shows_threads_failures_and_the_node_that_a_node_waited_for(opened: Any) -> None:
    go(opened, "#/run/tuesday")
    assert len(find(opened, ".chart rect.bar")) == 5
    assert {"Thread-1", "Thread-2"} <= {element.text for element in find(opened, "svg text.name")}
    row = next(each.text for each in find(opened, "tbody tr") if each.text.startswith("model.shop.late"))
    assert "failed" in row and "orders" in row and "1.0 s" in row
    assert len(find(opened, "svg circle.again")) == 1
    held = next(each.text for each in find(opened, "tbody tr") if each.text.startswith("model.shop.held"))
    assert "blocked by model.shop.late" in held


def test_the_graph_shows_the_state_of_each_node_and_the_details_of_a_selected_node(opened: Any) -> None:
    go(opened, "#/graph")
    states = {each.get_attribute("aria-label") for each in find(opened, ".graph a")}
    assert {"late: failed", "held: blocked", "customers: skipped", "orders: built", "raw.orders: stale"} <= states
    find(opened, ".graph a[aria-label^=late] rect")[0].click()
    eventually(lambda: find(opened, ".panel"))
    assert "Division by zero" in text(opened, ".panel pre") and "silt.main.late" in text(opened, ".panel")
    assert [each.get_attribute("class") for each in find(opened, ".node.distrusted")] == ["node built distrusted"]
    go(opened, "#/graph?state=failed&around=1")
    assert {each.get_attribute("aria-label") for each in find(opened, ".graph a")} == {
        "late: failed",
        "held: blocked",
        "customers: skipped",
        "orders: built",
    }


def test_a_table_shows_versions_columns_and_the_command_that_improves_its_layout(opened: Any) -> None:
    go(opened, "#/table/silt.main.orders")
    assert "dbt run-operation silt_optimize --args '{table: main.orders}'" in text(opened, "code")
    shown = text(opened)
    for part in ("CREATE TABLE AS SELECT", "the key", "unique", "tried again 2 times", "The range of a file overlaps"):
        assert part in shown


def test_two_versions_are_compared(opened: Any) -> None:
    go(opened, "#/table/silt.main.orders?a=0&b=3")
    cells = [row.text for row in find(opened, "section tbody tr") if row.text.startswith("rows ")]
    assert cells[0] == "rows 40 160 +120"


def test_a_damaged_table_is_named_with_its_problem(opened: Any) -> None:
    go(opened, "#/notes")
    assert "silt.main.broken" in text(opened) and "SILT_CORRUPT_LOG" in text(opened)


def test_a_served_page_shows_a_new_commit_without_a_reload(browser: Any, house: House, target: Path) -> None:
    shop.build(house, target)
    log = house.create("main.live", rows(0, 3))
    read = functools.partial(document, Source(house.catalog, target))
    live = LiveData(read, time.monotonic, lambda: int(time.time() * 1000), least=0.1)
    # One script, because the page may be redrawn between two scripts.
    shown = functools.partial(browser.execute_script, "return document.querySelector('.tile b').textContent")
    with ReportServer(0, live) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            browser.get(f"{server.url}#/table/silt.main.live")
            assert shown() == "3"
            house.append(log, rows(3, 4))
            eventually(lambda: shown() == "7")
        finally:
            server.shutdown()
    errors = [json.dumps(entry) for entry in browser.get_log("browser") if "favicon" not in json.dumps(entry)]
    assert [each for each in errors if "ERR_CONNECTION_REFUSED" not in each] == []
