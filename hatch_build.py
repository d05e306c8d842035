"""Lets dbt list the adapter of an editable install, whose package is not in the folder in which dbt looks."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_VERSION = "dbt/adapters/silt/__version__.py"


class Visible(BuildHookInterface[Any]):
    """Puts a copy of the version's file next to dbt's own adapters.

    `dbt --version` and `dbt init` list the adapters that have such a file there. Python imports the package from the
    checkout all the same: the copy is in a folder without `__init__.py`.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            build_data["force_include_editable"] = {_VERSION: _VERSION}
