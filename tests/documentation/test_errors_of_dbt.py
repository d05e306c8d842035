"""The page of errors quotes what dbt says about mistakes that it finds before it loads the adapter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate import OF_DBT

PROFILES = (
    "shop: {target: dev, outputs: {dev: {type: silt, schema: main}}}",
    "shopp: {target: dev, outputs: {dev: {type: silt, schema: main, threads: four}}}",
    "shopp: {target: dev, outputs: {dev: {type: slit, schema: main}}}",
)
CASES = list(zip(PROFILES, OF_DBT, strict=True))


@pytest.mark.parametrize(("profile", "row"), CASES, ids=["profile", "threads", "type"])
def test_a_quoted_text_is_what_dbt_says(tmp_path: Path, profile: str, row: tuple[str, str, str]) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\nprofile: shopp\n")
    (tmp_path / "profiles.yml").write_text(profile)
    command = [sys.executable, "-m", "dbt.cli.main", "parse", "--profiles-dir", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert row[0].strip("`") in done.stdout
