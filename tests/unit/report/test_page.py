"""The page: one file that fetches nothing and never turns data into markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from dbt.adapters.silt.report import page as pages
from dbt.adapters.silt.report.document import Source, document
from dbt.adapters.silt.report.tables import to_json
from tests.unit.cli.house import House
from tests.unit.report import shop


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[str] = []
        self._is_raw = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._is_raw = tag in ("script", "style")
        if self._is_raw:
            self.raw.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_raw = False

    def handle_data(self, data: str) -> None:
        if self._is_raw:
            self.raw[-1] += data


def page_of(house: House, target: Path) -> str:
    shop.build(house, target)
    return pages.page(document(Source(house.catalog, target), 1).json)


def test_hostile_names_create_no_element(house: House, target: Path) -> None:
    elements = Elements(page_of(house, target)).found
    assert [name for name, _ in elements].count("script") == 2
    assert "img" not in [name for name, _ in elements]


def test_the_data_is_unchanged_by_embedding_in_html(house: House, target: Path) -> None:
    elements = Elements(page_of(house, target))
    data = next(text for text in elements.raw if text.startswith("{"))
    assert shop.HOSTILE in json.loads(data)["project"]


def test_json_in_html_has_no_character_that_starts_markup_or_ends_a_line() -> None:
    written = to_json({"<a>&": "\u2028\u2029</script><!--\ud800"})
    assert not re.search("[<>&\u2028\u2029\ud800]", written)
    assert json.loads(written) == {"<a>&": "\u2028\u2029</script><!--\ud800"}


def test_the_page_fetches_nothing(house: House, target: Path) -> None:
    elements = Elements(page_of(house, target)).found
    named = [value for _, attributes in elements for name, value in attributes.items() if name in ("src", "href")]
    assert named and all(value is not None and value.startswith("#/") for value in named)
    assert not {"link", "iframe", "base", "object"} & {name for name, _ in elements}


def test_the_policy_allows_only_the_script_and_the_style_of_the_page(house: House, target: Path) -> None:
    elements = Elements(page_of(house, target))
    [policy] = [each["content"] for name, each in elements.found if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert "default-src 'none'" in policy and "connect-src 'none'" in policy and "unsafe" not in policy
    style, script = elements.raw[0], elements.raw[-1]
    for kind, text in (("style", style), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_scripts_create_no_markup_from_strings() -> None:
    folder = Path(pages.__file__).with_name("static")
    scripts = {path.name: path.read_text() for path in folder.glob("*.js")}
    assert set(scripts) == set(pages._SCRIPTS)
    for name, text in scripts.items():
        found = re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|</script", text)
        assert found is None, f"{name}: {found}"


def test_a_served_page_may_connect_only_to_its_server() -> None:
    text = pages.page("{}", "data.json")
    assert "connect-src 'self'" in text and '{"url": "data.json", "seconds": 2}' in text
