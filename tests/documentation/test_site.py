"""The site is built without a warning, and its generated pages agree with the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.table.properties import OTHERS
from dbt.adapters.silt.impl import SiltConfig
from dbt.adapters.silt.materializations.unused_configs import UNUSED
from docs import generate, nav
from docs.configs_page import DBT_CONFIGS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LOADED = re.compile(r'<(?:link rel="stylesheet" href|script src)="([^"]+)"')
SET_BY_DBT = {"expected_sql", "snapshot_table_column_names"}
"""Configs that dbt itself sets on a node; users set them by other names."""
READS_CONFIG = re.compile(r"""\bconfig(?:\.get\(|\[)['"](\w+)['"]""")


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_generated_page_agrees_with_the_code(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == generate.PAGES[name](), "run `make docs`"


def test_every_field_of_the_profile_is_described() -> None:
    described = [name for names in generate.PROFILE_GROUPS.values() for name in names]
    assert sorted(described) == sorted(each.name for each in fields(SiltCredentials))


def test_every_config_that_is_read_is_described() -> None:
    files = [*ROOT.glob("macros/**/*.sql"), *(ROOT / "dbt").rglob("*.py")]
    read = {name for file in files for name in READS_CONFIG.findall(file.read_text(encoding="utf-8"))}
    dbts = {name for configs in DBT_CONFIGS.values() for name in configs}
    assert len(read) > 30
    assert sorted(read - {each.name for each in fields(SiltConfig)} - dbts - set(UNUSED) - SET_BY_DBT) == []


def test_every_error_is_on_the_page_of_errors_below_its_kind() -> None:
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    for kind in generate.kinds():
        section = page.partition(f"\n## {kind.__name__}\n")[2].partition("\n## ")[0]
        codes = re.findall(r"^### (\w+) \{ #\w+ \}$", section, re.MULTILINE)
        assert codes == [kind.code, *(each.code for each in generate.below(kind))]
    assert page.count("\n### ") == len({each.code for each in generate.below(SiltError)})


def test_every_described_property_exists() -> None:
    assert set(generate.OTHER_PROPERTIES) <= set(OTHERS)


def test_every_page_is_in_the_navigation_once() -> None:
    def paths(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        inner = entry.values() if isinstance(entry, dict) else entry
        return [path for each in inner for path in paths(each)]  # type: ignore[attr-defined]

    assert sorted(paths(nav.nav())) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert LOADED.findall((tmp_path / "index.html").read_text(encoding="utf-8"))
    fetched = [url for page in tmp_path.rglob("*.html") for url in LOADED.findall(page.read_text(encoding="utf-8"))]
    assert [url for url in fetched if "//" in url] == []
