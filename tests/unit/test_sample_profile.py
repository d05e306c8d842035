"""`dbt init` writes a profile for a developer, with comments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from dbt.adapters.silt.credentials import SiltCredentials


def test_dbt_init_writes_the_profile_of_the_fast_loop_with_a_comment_on_each_field(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dbt.cli.main", "init", "shop", "--profiles-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, input="1\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    text = (tmp_path / "profiles.yml").read_text(encoding="utf-8")
    fields = yaml.safe_load(text)["shop"]["outputs"]["dev"]
    assert fields == {
        "type": "silt",
        "warehouse": "warehouse",
        "schema": "main",
        "threads": 4,
        "keep_alive": "15 minutes",
        "reuse": "unchanged",
        "resume": "30 minutes",
    }
    lines = [line.strip() for line in text.splitlines()]
    for name in ("threads", "keep_alive", "reuse", "resume"):
        [at] = [index for index, line in enumerate(lines) if line.startswith(f"{name}:")]
        assert lines[at - 1].startswith("# "), f"a comment says what {name} does"
    assert SiltCredentials(**{key: fields[key] for key in fields.keys() - {"type", "threads"}}).keep_alive_time
