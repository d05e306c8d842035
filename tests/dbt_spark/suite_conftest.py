"""The fixtures that point dbt-spark's own tests at an endpoint; copied into the suite as its `conftest.py`."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import yaml
from dbt.tests.util import write_file

KINDS = ("models", "seeds", "snapshots", "data_tests")
WITHOUT_FORMAT = ("TestBadStrategies",)
"""The tests that expect dbt-spark to refuse a model because it has no format."""


@pytest.fixture(scope="session")
def dbt_profile_target() -> dict[str, Any]:
    """The target of the profile, which `python -m tests.dbt_spark` chooses."""
    target: dict[str, Any] = json.loads(os.environ["SILT_DBT_SPARK_TARGET"])
    return target


@pytest.fixture(autouse=True)
def skip_by_profile_type() -> None:
    """Runs the tests that the suite leaves out for its own servers."""


@pytest.fixture(scope="session", autouse=True)
def start_databricks_cluster() -> None:
    """Starts no cluster."""


@pytest.fixture(scope="class")
def dbt_project_yml(request: Any, project_root: Any, project_config_update: Any) -> dict[str, Any]:
    """The project, with Delta as the format of all nodes that do not name another."""
    update = yaml.safe_load(project_config_update) if isinstance(project_config_update, str) else project_config_update
    flags = {"send_anonymous_usage_stats": False}
    project: dict[str, Any] = {"name": "test", "profile": "test", "flags": flags, **(update or {})}
    for kind in () if request.cls.__name__ in WITHOUT_FORMAT else KINDS:
        name = "tests" if kind == "data_tests" and "tests" in project else kind
        project[name] = {"+file_format": "delta", **(project.get(name) or {})}
    write_file(yaml.safe_dump(project), project_root, "dbt_project.yml")
    return project
