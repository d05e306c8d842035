"""Macro API of every materialization: finds the project's overrides."""

from __future__ import annotations

from typing import Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.factory import get_adapter_package_names

from dbt.adapters.silt.materializations.overrides import Macro, Overrides
from dbt.adapters.silt.runs.once import first_time

PACKAGE = "dbt_silt"


class OverrideMethods(metaclass=AdapterMeta):
    """The part of the adapter that gives precedence to a project's own materializations."""

    config: Any
    _macro_resolver: Any

    @available.parse_none
    def other_materialization(self, name: str) -> Macro | None:
        """Returns the project's materialization that replaces the materialization of that name."""
        return self._overrides().materialization(name)

    @available.parse_list
    def unused_macro_warnings(self, name: str) -> list[str]:
        """Returns a warning, once in a run, for each override of a dbt macro that this adapter does not call."""
        overrides = self._overrides()
        if not first_time(f"the macros of {name}") or overrides.materialization(name) is not None:
            return []
        own = f"macro.{PACKAGE}.materialization_{name}_silt"
        return [
            f"The macro `{macro.name}` of {macro.package_name} is not called: the materialization `{name}` writes with "
            f"its own statements. To change that, declare a materialization `{name}, adapter='silt'`"
            for macro in overrides.unused_macros(name, own)
        ]

    def _overrides(self) -> Overrides:
        return Overrides(self._macro_resolver, self.config.project_name, get_adapter_package_names("silt"))
