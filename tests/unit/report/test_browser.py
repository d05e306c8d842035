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

from dbt.adapters.silt.records.run_registry import RunRegistry
from dbt.adapters.silt.report.document import Source, document
from dbt.adapters.silt.report.page import page
from dbt.adapters.silt.report.server import LiveData, ReportServer
from tests.unit.cli.house import House, rows
from tests.unit.report import night, shop

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")

VIEWS = {
    "#/": "Runs of shop",
    "#/run/tuesday": "dbt build, dev, ",
    "#/run/monday": "dbt build, dev, ",
    "#/run/broken": "dbt build, dev, ",
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


WIDTHS = (600, 1000, 1700)

RIGHT = "return document.querySelector(arguments[0]).getBoundingClientRect().right"

CROSSED = """
const boxes = [...document.querySelectorAll("rect.node")].map((each) => each.getBBox());
return [...document.querySelectorAll("path.edge")].filter((edge) => {
  const length = edge.getTotalLength();
  return Array.from({length: 60}, (_, at) => edge.getPointAtLength(length * at / 59)).some(({x, y}) =>
    boxes.some((box) => x > box.x + 1 && x < box.x + box.width - 1 && y > box.y + 1 && y < box.y + box.height - 1));
}).map((edge) => edge.getAttribute("d"));
"""
"""Returns the edges of the graph that run behind a box."""

CUT = """
const found = [];
const shown = [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility());
for (const each of shown) {
  const scrolls = getComputedStyle(each).overflowX !== "visible";
  const isCut = scrolls && each.clientWidth && each.scrollWidth > each.clientWidth + 1;
  if (isCut && !each.closest("select, input")) found.push(each.outerHTML.slice(0, 120));
}
for (const text of shown.filter((each) => each.localName === "text")) {
  const [inner, outer] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
  const box = text.matches(".inside, .graph text") ? text.parentElement.querySelector("rect.node, rect.bar") : null;
  const right = box ? box.getBoundingClientRect().right : outer.right;
  const isInside = inner.left > outer.left - 1 && inner.top > outer.top - 1 && inner.bottom < outer.bottom + 1;
  if (!isInside || inner.right > right + 1) found.push(text.textContent);
}
for (const chart of [...document.querySelectorAll(".chart svg")].filter((each) => each.checkVisibility())) {
  if (Math.abs(chart.getBoundingClientRect().width - chart.getAttribute("width")) > 2) found.push("a chart is scaled");
  const labels = [...chart.querySelectorAll("text.axis, text.value")].map((each) => each.getBoundingClientRect());
  labels.forEach((one, at) => labels.slice(at + 1).forEach((other) => {
    const isBeside = one.right <= other.left || other.right <= one.left;
    if (!isBeside && one.top + 3 < other.bottom && other.top + 3 < one.bottom) found.push("labels overlap");
  }));
}
return found;
"""
"""Returns what is cut off, or hidden until it is scrolled, and labels on top of each other."""


UNNAMED = """
const found = [...document.querySelectorAll("a, button, [tabindex='0']")];
return found.filter((each) => !(each.textContent.trim() || each.ariaLabel)).map((each) => each.outerHTML);
"""
"""Returns the elements that can be focused and have no name."""


def resize(browser: Any, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.refresh()


@pytest.fixture(autouse=True)
def usual_size(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ends a test's emulation of a window."""
    yield
    if "browser" in request.fixturenames:
        request.getfixturevalue("browser").execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
    open_page(browser, house, target, tmp_path)
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []


@pytest.fixture
def at_night(browser: Any, house: House, target: Path, tmp_path: Path) -> Iterator[Any]:
    """As `opened`, after a night whose run is held, and after `dbt compile`."""
    shop.build(house, target)
    night.build(house, target)
    open_page(browser, house, target, tmp_path)
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def open_page(browser: Any, house: House, target: Path, folder: Path) -> None:
    file = folder / "page.html"
    now = int(time.time() * 1000)
    file.write_text(page(document(Source(house.catalog, target), now).json), encoding="utf-8")
    browser.get(file.as_uri())


def go(browser: Any, view: str) -> None:
    browser.execute_script("window.location.hash = arguments[0]", view)
    eventually(lambda: browser.execute_script("return window.location.hash") == view.replace(" ", "%20"))
    # The view is drawn by an event after this script.
    browser.execute_async_script("setTimeout(arguments[0], 0)")


def eventually(holds: Callable[[], object]) -> None:
    limit = time.monotonic() + 300
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
    assert ["broken" in row.text for row in find(opened, "tbody tr")] == [True]


def test_a_click_on_the_name_of_a_column_sorts_by_it(opened: Any) -> None:
    go(opened, "#/tables")
    head = next(each for each in find(opened, "th button") if each.text == "rows")
    head.click()
    first = find(opened, "tbody tr")[0].text
    head.click()
    assert first.startswith("main.orders") and not find(opened, "tbody tr")[0].text.startswith("main.orders")


def test_a_run_shows_threads_failures_and_the_node_that_a_node_waited_for(opened: Any) -> None:
    go(opened, "#/run/tuesday")
    assert len(find(opened, ".chart rect.bar")) == 5
    assert {"Thread-1", "Thread-2"} <= {element.text for element in find(opened, "svg text.name")}
    row = next(each.text for each in find(opened, "tbody tr") if each.text.startswith("late"))
    assert "failed" in row and "orders" in row
    assert len(find(opened, "svg circle.again")) == 1
    held = next(each.text for each in find(opened, "tbody tr") if each.text.startswith("held"))
    assert "skipped" in held and "because late failed" in held


def test_the_graph_shows_the_state_of_each_node_and_the_details_of_a_selected_node(opened: Any) -> None:
    go(opened, "#/graph")
    states = {each.get_attribute("aria-label") for each in find(opened, ".graph a")}
    assert {
        "late: failed, table",
        "held: skipped, view",
        "customers: done earlier, table",
        "orders: built, incremental, ✗ 1 of 3 tests",
        "raw.orders: stale, source",
        "seen: built earlier, view",
        "inner: ephemeral, ephemeral",
        "board: affected, exposure: dashboard",
    } <= states
    find(opened, ".graph a[aria-label^=late] rect")[0].click()
    eventually(lambda: find(opened, ".panel"))
    assert "Division by zero" in text(opened, ".panel pre") and "silt.main.late" in text(opened, ".panel")
    assert [each.get_attribute("class") for each in find(opened, ".node.distrusted")] == ["node built distrusted"]
    go(opened, "#/graph?state=failed&around=1")
    around = {each.get_attribute("aria-label").partition(":")[0] for each in find(opened, ".graph a")}
    assert around == {"late", "held", "customers", "orders"}


def test_a_table_shows_its_versions_columns_and_model(opened: Any) -> None:
    go(opened, "#/table/silt.main.orders")
    shown = text(opened)
    for part in ("CREATE TABLE AS SELECT", "the key", "unique", "tried again 2 times", "A look-up of one value of id"):
        assert part in shown
    assert [each.text for each in find(opened, ".tile a")] == ["orders"]


def test_maintenance_is_advised_only_if_its_effect_would_be_noticed(opened: Any) -> None:
    go(opened, "#/table/silt.main.orders")
    assert "11 small files with" in text(opened) and "too little to be worth a command" in text(opened)
    assert find(opened, "code.command") == []
    table = {"name": "silt.main.orders", "bytes": 7_000_000, "rows": 96, "overlaps": [], "small": None, "dead": None}
    for name, few, many, command in (
        ("small", [8, 1, 14_800], [60, 1, 14_800], "dbt run-operation silt_optimize --args '{table: main.orders}'"),
        ("small", [9, 1, 100_000_000], [9, 1, 400_000_000], "dbt run-operation silt_optimize"),
        ("dead", [9, 9, 9, 90_000_000], [9, 900_000_000, 9, 900_000_000], "dbt run-operation silt_vacuum"),
    ):
        assert commands(opened, {**table, name: few}) == []
        [found] = commands(opened, {**table, name: many})
        assert found.startswith(command)


def commands(browser: Any, table: Any) -> list[str]:
    """The commands that the page advises for a table."""
    script = "return Silt.advice(arguments[0]).map((each) => each.command).filter(Boolean)"
    found: list[str] = browser.execute_script(script, table)
    return found


def test_the_first_screen_says_what_failed_since_when_what_it_affects_and_what_waits(at_night: Any) -> None:
    resize(at_night, 1000)
    bottom = at_night.execute_script("return document.querySelector('.status').getBoundingClientRect().bottom")
    assert bottom < 900
    nightly, dev = (each.text for each in find(at_night, ".outcome"))
    assert "held" in nightly and "dbt build, nightly, " in nightly and "unique of orders.id" in nightly
    assert "Affected: orders, late" in nightly and "just now" in nightly
    assert "failed" in dev and "The run before succeeded: dbt build, dev, " in dev and "board (dashboard)" in dev
    waiting = find(at_night, ".card")[1].text
    assert "held" in waiting and f"silt publish {night.RUN}" in waiting and f"silt drop-run {night.RUN}" in waiting
    assert "broken off" in waiting and "stale" in waiting


def test_a_small_good_run_hides_no_earlier_failure_on_the_first_screen(
    browser: Any, house: House, target: Path, tmp_path: Path
) -> None:
    shop.build(house, target)
    shop.rerun(target, "model.shop.orders")
    open_page(browser, house, target, tmp_path)
    shown = text(browser, ".outcome")
    assert "succeeded dbt run, dev, " in shown and "earlier, and not run since: late (dbt build, dev, " in shown
    assert "Affected: late" in shown and "board (dashboard)" in shown


def test_a_tab_names_the_project_and_the_target(at_night: Any) -> None:
    assert at_night.title.startswith("shop ") and " nightly: Runs of shop" in at_night.title
    go(at_night, "#/tables")
    assert " nightly: Tables" in at_night.title


def test_a_command_that_builds_nothing_changes_no_state(at_night: Any) -> None:
    go(at_night, "#/graph")
    assert "After dbt build, nightly, " in text(at_night)
    states = {each.get_attribute("aria-label").partition(",")[0] for each in find(at_night, ".graph a")}
    assert {"orders: held", "countries: held", "seen: built earlier", "late: not built"} <= states


def test_a_run_that_was_dropped_or_rolled_back_leaves_no_state(
    browser: Any, house: House, target: Path, tmp_path: Path
) -> None:
    shop.build(house, target)
    night.build(house, target)
    RunRegistry(target).mark_rolled_back(night.RUN)
    open_page(browser, house, target, tmp_path)
    go(browser, "#/graph")
    assert "After dbt build, dev, " in text(browser)
    assert not [each for each in find(browser, ".graph a") if ": held" in each.get_attribute("aria-label")]
    go(browser, f"#/run/{night.RUN}")
    assert text(browser, "summary").count("rolled back or dropped") == 3


def test_each_command_of_a_run_is_shown_and_the_sum_is_not_called_a_duration(at_night: Any) -> None:
    go(at_night, f"#/run/{night.RUN}")
    assert len(find(at_night, "details.command-of-run")) == 3
    assert len(find(at_night, "details.command-of-run[open] rect.bar")) == 6
    tiles = text(at_night, ".tile")
    assert "time that commands took" in tiles and "3 commands within" in tiles and "\ntook" not in tiles


def test_states_have_the_same_words_in_tiles_rows_and_legends(at_night: Any) -> None:
    go(at_night, f"#/run/{night.RUN}")
    words = [{each.text for each in find(at_night, f"{place} .badge")} for place in (".tile", "tbody")]
    assert words[0] == words[1] == {"✗ failed", "‖ held", "✓ passed"}
    go(at_night, "#/")
    legend, listed = ({each.text for each in find(at_night, f"{place} .badge")} for place in (".legend", "tbody"))
    assert legend == listed == {"‖ held", "✗ failed", "✓ succeeded", "÷ broken off"}
    assert {each.text for each in find(at_night, ".night")} == {"‖", "✗", "✓", "÷"}


def test_a_node_waits_for_its_unit_test_and_for_a_thread_only_while_all_are_at_work(at_night: Any) -> None:
    go(at_night, f"#/run/{night.RUN}")
    cells = {}
    for row in find(at_night, "tbody tr"):
        name, *waits = row.find_elements("css selector", "td:first-child, [data-name^=started], [data-name^=wait]")
        cells[name.text] = [each.text for each in waits]
    none = at_night.execute_script("return Silt.UNKNOWN")
    assert cells["orders"] == ["unit test counts of orders", none]
    assert cells["customers"] == ["countries", none]
    assert cells["unique of orders.id"] == ["orders", "2 s"]


def test_names_have_neither_prefixes_nor_hashes_and_ids_are_small(at_night: Any) -> None:
    for view in ("#/", f"#/run/{night.RUN}", "#/graph", "#/tables"):
        go(at_night, view)
        shown = [each.text for each in find(at_night, "main a, main th, main td:first-child")]
        assert not [each for each in shown if "model." in each or "test." in each or each.startswith("silt.")]
    named = "return Silt.nameOf({nodeById: new Map(), testById: new Map()}, arguments[0])"
    assert at_night.execute_script(named, "test.shop.unique_orders_id.3febdd1de8") == "unique_orders_id"
    short = at_night.execute_script("return Silt.shortId(arguments[0])", "6b7f03ad-cf59-4247-aff7-71582f4b3366")
    assert short == "6b7f03ad"


def test_edges_run_beside_boxes_end_in_arrows_and_the_graph_fits(at_night: Any) -> None:
    go(at_night, "#/graph")
    assert at_night.execute_script(CROSSED) == []
    heads = [each.get_attribute("d").count("L") for each in find(at_night, "path.edge")]
    assert heads.count(2) == 10, "an arrow for each edge"
    for width in WIDTHS:
        resize(at_night, width)
        inner, outer = (at_night.execute_script(RIGHT, each) for each in (".graph svg", ".graph"))
        assert inner <= outer


def test_times_are_local_and_a_button_shows_utc(opened: Any) -> None:
    opened.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    opened.refresh()
    made = "return Silt.time(1767225600000)"
    assert opened.execute_script(made) == "2026-01-01 05:30:00" and "Kolkata" in text(opened, "#zone").replace(
        "Calcutta", "Kolkata"
    )
    find(opened, "#zone")[0].click()
    assert opened.execute_script(made) == "2026-01-01 00:00:00" and text(opened, "#zone") == "UTC"
    opened.refresh()
    assert text(opened, "#zone") == "UTC", "the choice is kept"
    find(opened, "#zone")[0].click()
    opened.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_charts_have_dates_and_a_zero_and_each_bar_has_its_value(at_night: Any) -> None:
    resize(at_night, 1000)
    for chart in find(at_night, ".chart"):
        labels = [each.text for each in chart.find_elements("css selector", "text.axis")]
        assert labels[0] == "0" and any(":" in each for each in labels)
        values = [each.text for each in chart.find_elements("css selector", "text.value")]
        assert len(values) == len(chart.find_elements("css selector", "rect.bar"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [600, 1000, 1700])
def test_no_text_is_cut_and_nothing_is_scrolled_sideways(at_night: Any, width: int, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    at_night.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    resize(at_night, width)
    for view in (*VIEWS, f"#/run/{night.RUN}"):
        go(at_night, view)
        assert at_night.execute_script(CUT) == [], view


def test_every_row_has_few_lines(at_night: Any) -> None:
    resize(at_night, 1000)
    for view in ("#/", f"#/run/{night.RUN}", "#/tables"):
        go(at_night, view)
        heights = at_night.execute_script("return [...document.querySelectorAll('tr')].map((row) => row.offsetHeight)")
        assert max(heights) < 80, view


def test_the_page_is_used_by_keyboard(at_night: Any) -> None:
    go(at_night, "#/graph")
    assert at_night.execute_script(UNNAMED) == []
    at_night.execute_script("document.querySelector('.graph a').focus()")
    at_night.switch_to.active_element.send_keys("\n")
    eventually(lambda: find(at_night, ".panel"))


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
