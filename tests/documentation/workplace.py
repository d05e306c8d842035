"""The folder that a page works in: a dbt project, with the settings of a fast Spark that the page does not show."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from dbt.adapters.silt.command_server import control
from tests.conftest import INTERPRETED

NAME = "shop"
"""The default project and its profile."""

DEFAULT_FILES = {
    "dbt_project.yml": f"name: {NAME}\nprofile: {NAME}\n",
    "profiles.yml": f"{NAME}:\n  target: dev\n  outputs:\n    dev:\n      type: silt\n",
}
FAST = INTERPRETED | {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
"""Settings of the sessions that a page's profile does not contain."""

ENVIRONMENT = {
    "COLUMNS": "120",
    "DBT_LOG_LEVEL_FILE": "none",
    "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    "DBT_USE_COLORS": "false",
    "NO_COLOR": "1",
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
}


@contextmanager
def workplace(folder: Path) -> Iterator[pytest.MonkeyPatch]:
    """Creates a project in an empty folder and makes it the working directory of the block; restores folder and
    environment.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("DBT_", "SILT_"))]:
            patch.delenv(name)
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        for name, text in DEFAULT_FILES.items():
            write(name, text)
        with tempfile.TemporaryDirectory() as runtime:
            patch.setenv("XDG_RUNTIME_DIR", runtime)
            yield patch
            control.stop()


def write(title: str, text: str) -> None:
    """Writes a file of the project; a profile gets the settings of a fast Spark."""
    path = Path(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_fast(text) if path.name == "profiles.yml" else text, encoding="utf-8")


def _fast(profiles: str) -> str:
    document = yaml.safe_load(profiles)
    for profile in document.values():
        for output in profile.get("outputs", {}).values():
            _set_fast(output)
    return yaml.safe_dump(document, sort_keys=False)


def _set_fast(output: dict[str, Any]) -> None:
    if output.get("type") == "silt" and "remote" not in output:
        output["spark_conf"] = FAST | (output.get("spark_conf") or {})
