"""The facts of a build in a log choose no files that are listed: only code of the user does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.builds.decision import Reused
from dbt.adapters.silt.engine.builds.passed_tests import PassedTest, PassedTests
from dbt.adapters.silt.engine.builds.present import decide_now
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.file_lists import fingerprint
from dbt.adapters.silt.engine.kernel.identifiers import string_literal
from dbt.adapters.silt.engine.kernel.log.builds import MOST_INPUTS, Build, BuildFacts, TableState
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.materializations.external.declared import DeclaredFiles
from dbt.adapters.silt.runs.logical_run.changed_inputs import changed_inputs
from tests.security import attacks
from tests.security.attacks import House  # type: ignore[attr-defined]

OWNER = "model.shop.hostile"
BUILD = Build(OWNER, "code")
ASKS = ("a node", "a test", "a rerun")
CODE = "select * from main.v join read_files('/data/in/*.csv') on split(path, '/')[1] = 'usr' where x like '/usr/%'"


def stated(house: House, facts: BuildFacts) -> None:
    """Lets a commit of the hostile table, the document of a test, and the reads of a statement state the facts."""
    attacks.changed(house, 1, "commitInfo", **facts.commit_info(), **facts.inputs_info())
    tests = PassedTests(house.catalog, "silt")
    tests.note(PassedTest(BuildFacts(OWNER, "code")))
    (document,) = house.catalog.store("silt").files_below("_tests")
    house.catalog.store("silt").put(document.path, json.dumps(facts.commit_info()).encode())


def of_files(*paths: str) -> BuildFacts:
    return BuildFacts(OWNER, "code", files={path: fingerprint(path, LocalStore) or "x" for path in paths})


def changes(house: House, code: str, declared: Container[str] = ()) -> dict[str, list[str]]:
    """Returns what each decision says that has changed."""
    catalog = House(house.folder).catalog
    catalog.store_at = house.catalog.store_at  # type: ignore[method-assign]
    log = catalog.table(house.name("main.hostile"))
    tests = PassedTests(catalog, "silt")
    decisions = [
        decide_now(catalog, log, BUILD, code, declared),
        tests.decide(BUILD, tests.find(OWNER), code, declared),
    ]
    info = next(iter(log.newest_commits())).info
    found = [[] if isinstance(each, Reused) else list(each.reasons) for each in decisions]
    found.append([each.text for each in changed_inputs(catalog, log.name, info, code, declared)])
    return dict(zip(ASKS, found, strict=True))


@pytest.fixture
def house(tmp_path: Path) -> House:
    return attacks.with_two_tables(tmp_path / "house")


@pytest.fixture
def opened(house: House) -> list[str]:
    """The folders that are opened to be listed."""
    found: list[str] = []
    open_store = house.catalog.store_at

    def recorded(path: str) -> Store:
        found.append(path)
        return open_store(path)

    house.catalog.store_at = recorded  # type: ignore[method-assign]
    return found


@pytest.mark.parametrize(
    "path",
    [
        *("/", "", ".", "usr", "/usr", "/usr/", "/usr/%", "//usr", "/usr/*", "../..", "*", "main.v"),
        *("/data/in", "/data/in/", "/data/in/*", "/data/in/*.cs", "data/in/*.csv", "file:/data/in/*.csv"),
        *("/data/in/*.csv/", "/DATA/in/*.csv", "/data/in/*.csv') on", "s3://attacker/x", "hdfs://h/x"),
        *("https://attacker.example/x", "abfss://x@attacker.dfs.core.windows.net/x"),
        "*a" * 14,
    ],
)
def test_files_that_the_code_does_not_name_are_not_listed(house: House, opened: list[str], path: str) -> None:
    text = f"select * from read_files({string_literal(path)}), text.`{path or 'x'}`"
    house.catalog.put_view(View(house.name("main.v"), text, current_database="silt", current_schema="main"))
    definitions = {"silt.main.v": house.catalog.view(house.name("main.v")).fingerprint}
    stated(house, replace(BuildFacts(OWNER, "code", definitions=definitions), files={path: "x"}))
    said = changes(house, CODE)
    assert opened == []
    assert said == {
        "a node": [f"it reads other files: its code does not name {path}"],
        "a test": [f"it reads other files: its code does not name {path}"],
        "a rerun": [f"the files of {path} may have changed"],
    }


NAMES = {
    "file": "in.csv",
    "folder": "in",
    "slash": "in/",
    "pattern": "in/*.csv",
    "alternatives": "in/{a,b}.[ct]sv",
    "quote": "it's/in",
    "double quote": 'say "in"/in',
    "backslash": r"in\\*",
    "unicode": "Müller 😀/été",
    "link": "link",
}


def path_of(folder: Path, name: str) -> str:
    for each in ("in", "it's/in", 'say "in"/in', "Müller 😀/été"):
        (folder / each).mkdir(parents=True, exist_ok=True)
        (folder / each / "a.csv").write_text("1\n")
    (folder / "in.csv").write_text("1\n")
    (folder / r"in\*").write_text("1\n")
    (folder / "link").symlink_to("in")
    return f"{folder}/{NAMES[name]}"


LITERALS: dict[str, Callable[[str], str]] = {
    "escaped": string_literal,
    "doubled": lambda path: "'" + path.replace("\\", "\\\\").replace("'", "''") + "'",
    "double quotes": lambda path: '"' + path.replace("\\", "\\\\").replace('"', '""') + '"',
    "in parts": lambda path: f"{string_literal(path[:5])}\n {string_literal(path[5:])}",
}


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("name", NAMES)
def test_files_that_the_code_names_are_compared(house: House, tmp_path: Path, name: str, literal: str) -> None:
    path = path_of(tmp_path, name)
    code = f"with x as (select 1) select * from READ_FILES ( {LITERALS[literal](path)}, format => 'csv' /* raw */)"
    stated(house, of_files(path))
    assert changes(house, code) == {"a node": [], "a test": [], "a rerun": []}
    for each in tmp_path.rglob("*.csv"):
        each.write_text("longer\n")
    (tmp_path / r"in\*").write_text("longer\n")
    text = f"the files of {path} changed"
    assert changes(house, code) == {"a node": [text], "a test": [text], "a rerun": [text]}


@pytest.mark.parametrize("prefix", ["file:", "file://"])
def test_files_that_the_code_names_by_a_uri_are_compared(house: House, tmp_path: Path, prefix: str) -> None:
    path = prefix + path_of(tmp_path, "folder")
    stated(house, replace(of_files(), files={path: fingerprint(path, house.catalog.store_at)}))
    assert changes(house, f"select * from read_files('{path}')") == {"a node": [], "a test": [], "a rerun": []}


def test_relative_files_that_the_code_names_are_compared(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path_of(tmp_path, "folder")
    monkeypatch.chdir(tmp_path)
    stated(house, of_files("in"))
    assert changes(house, "select * from read_files('in')") == {"a node": [], "a test": [], "a rerun": []}


def test_files_of_views_of_the_project_are_compared(house: House, opened: list[str], tmp_path: Path) -> None:
    path, other = path_of(tmp_path, "folder"), path_of(tmp_path / "other", "folder")
    stated(house, of_files(path))
    code = f"select * from read_files('{path}')"
    declared = DeclaredFiles(tuple, lambda: [f"select * from {{{{ ref('x') }}}} -- {other}", code])
    assert changes(house, "select * from main.v", declared) == {"a node": [], "a test": [], "a rerun": []}
    assert opened
    opened.clear()
    stated(house, of_files(other))
    assert all(changes(house, "select * from main.v", declared).values()) and opened == []


@pytest.mark.parametrize(
    ("code", "is_declared"),
    [
        ("select * from read_files('/data/x', format => 'csv')", True),
        ("select * from csv.`/data/x`", True),
        ("{% set place = '/data/x' %} select * from read_files('{{ place }}')", True),
        ('{{ rows_of("/data/x") }}', True),
        ("return session.sql(\"select * from read_files('/data/x')\")", True),
        ("select * from t where path = '/data/x'", False),
        ("select '/data/x' as place", False),
        ("select * from read_files('/data/x/y')", False),
        ("-- '/data/x'", False),
    ],
)
def test_a_project_declares_the_files_that_its_code_reads(code: str, is_declared: bool) -> None:
    assert ("/data/x" in DeclaredFiles(tuple, lambda: [code])) is is_declared


@pytest.mark.parametrize("text", ["select split(x, '/') from t", "{{ a ~ '/' ~ b }}", "{{ a ~ '.' ~ '*' ~ '' }}"])
def test_a_string_of_a_project_that_is_no_path_declares_nothing(text: str) -> None:
    declared = DeclaredFiles(tuple, lambda: [text])
    assert not any(each in declared for each in ("/", ".", "*", "", "//", "..", "/*"))


@pytest.mark.parametrize("kind", ["tables", "definitions", "files", "unknown", "settings"])
def test_facts_of_very_many_inputs_are_no_facts(house: House, kind: str) -> None:
    names = [f"silt.main.t{number}" for number in range(100_000)]
    given: dict[str, object] = {
        "tables": dict.fromkeys(names, TableState("id", 0, "columns")),
        "unknown": tuple(names),
    }
    facts = replace(BuildFacts(OWNER, "code"), **{kind: given.get(kind, dict.fromkeys(names, "x"))})  # type: ignore[arg-type]
    stated(house, facts)
    with attacks.limited():
        said = changes(house, CODE)
    assert said["a node"] == ["no earlier build has recorded its inputs"]
    assert said["a test"] == ["it has not passed before"]
    assert len(said["a rerun"]) in ((MOST_INPUTS,) if kind in ("definitions", "files") else (0,))


@pytest.mark.parametrize("versions", [{"silt.main.good": ["a"]}, {"silt.main.good": [1.5]}, {"silt.main.good": [[1]]}])
def test_reads_of_another_form_are_ignored(house: House, versions: dict[str, list[object]]) -> None:
    attacks.changed(house, 1, "commitInfo", readVersions=versions)
    assert CommitInfo.from_json({"readVersions": versions}).read_versions is None
    assert changes(house, "")["a rerun"] == []


@pytest.mark.parametrize("path", ["*a" * 14 + "b", "{a,b}*" * 700, "?*" * 2000, "[" * 4000, "{" * 4000, "a*" * 5000])
def test_a_pattern_is_matched_in_linear_time(tmp_path: Path, path: str) -> None:
    for number in range(50):
        (tmp_path / f"{'a' * 200}{number}").touch()
    before = time.process_time()
    fingerprint(path, lambda folder: LocalStore(str(tmp_path)))
    assert time.process_time() - before < 2


def test_a_very_long_path_has_no_fingerprint(tmp_path: Path) -> None:
    assert fingerprint(f"{tmp_path}/{'a' * 5_000}", LocalStore) is None
