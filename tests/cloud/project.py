"""dbt projects over a warehouse in the object store of the tests, run as users run them: in processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cloud.servers import ObjectServer
from tests.cloud.test_one_set_of_settings import storage_of
from tests.files import write_files

_RUN_SECONDS = 300


@dataclass(frozen=True)
class Project:
    """A project in a folder.

    Attributes:
        base: the URL of a prefix that only this project uses.
    """

    folder: Path
    base: str

    def dbt(self, *arguments: str, fails: bool = False) -> str:
        """Runs dbt; returns its output."""
        return self._run("dbt.cli.main", *arguments, "--profiles-dir", ".", fails=fails)

    def silt(self, *arguments: str, fails: bool = False) -> str:
        """Runs `silt`; returns its output."""
        return self._run("dbt.adapters.silt.cli", *arguments, fails=fails)

    def results(self) -> dict[str, str]:
        """Returns the status and message of each node of the last command."""
        found = json.loads((self.folder / "target/run_results.json").read_text())["results"]
        return {each["unique_id"].split(".")[2]: f"{each['status']}: {each['message']}" for each in found}

    def rows(self, query: str) -> list[list[Any]]:
        """Returns the rows of a query."""
        shown = self.dbt("--quiet", "show", "--output", "json", "--limit", "-1", "--inline", query)
        return [list(row.values()) for row in json.loads(shown)["show"]]

    def _run(self, module: str, *arguments: str, fails: bool) -> str:
        command = [sys.executable, "-m", module, *arguments]
        environment = {**os.environ, "DBT_PROFILES_DIR": str(self.folder), "NO_COLOR": "1"}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=_RUN_SECONDS
        )
        assert bool(done.returncode) is fails, (done.stdout + done.stderr)[-6000:]
        return done.stdout


def made(server: ObjectServer, folder: Path, files: Mapping[str, str], **target: Any) -> Project:
    """Creates a project whose warehouse has a prefix of its own, unless `target` sets another location.

    Args:
        target: more fields of its targets `dev` and, with another schema, `other`.
    """
    base = f"{server.base}/{folder.name} é%20"
    fields = {
        "type": "silt",
        "threads": 2,
        "warehouse": f"{base}/house",
        "storage": storage_of(server),
        "spark_conf": {"spark.ui.enabled": "false"},
        **target,
    }
    profile = {"shop": {"target": "dev", "outputs": {"dev": fields, "other": {**fields, "schema": "dev2"}}}}
    project = "name: shop\nversion: '1.0'\nprofile: shop\n"
    write_files(folder, {"dbt_project.yml": project, "profiles.yml": yaml.safe_dump(profile), **files})
    return Project(folder, base)
