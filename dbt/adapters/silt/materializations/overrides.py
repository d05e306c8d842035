"""Finds the overrides by a project or package of dbt's own materializations and of the macros that they call.

dbt prefers an adapter's materialization to a project's `default`. dbt-spark declares fewer materializations than this
adapter, so a project's `default` that dbt would use with dbt-spark is used here, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dbt.adapters.silt.engine.kernel.near_names import near_names, nearest

FOLLOWED = "spark"
OWN = "silt"
_MATERIALIZATION = re.compile(rf"materialization_(\w+)_(?:default|{FOLLOWED}|{OWN})")
_NO_ATTRIBUTE = re.compile(r"'dict object' has no attribute '(?P<name>\w+)'")
_NO_NAME = re.compile(r"'(?P<name>\w+)' is undefined")
_SIMILAR = 0.75
_TEST = "test_"
_PACKAGES = {
    "audit_helper": "`dbt-labs/audit_helper`",
    "codegen": "`dbt-labs/codegen`",
    "dbt_date": "`godatadriven/dbt_date`",
    "dbt_expectations": "`metaplane/dbt_expectations`",
    "dbt_utils": "`dbt-labs/dbt_utils`",
    "elementary": "`elementary-data/elementary`",
    "spark_utils": "`dbt-labs/spark_utils`",
}
"""Packages whose macros projects call most, by the name of their namespace."""

_MACROS_ELSEWHERE = {
    "type_text": "type_string",
    "type_varchar": "type_string",
    "type_integer": "type_int",
    "type_number": "type_numeric",
    "type_decimal": "type_numeric",
    "type_datetime": "type_timestamp",
    "datetime_diff": "datediff",
    "datetime_trunc": "date_trunc",
    "date_add": "dateadd",
    "date_diff": "datediff",
    "string_agg": "listagg",
    "current_timestamp_in_utc": "current_timestamp",
}
_REFRESHED = "`materialized: incremental`, which each run brings up to date, or `table`"
_ELSEWHERE = {
    "dynamic_table": _REFRESHED,
    "streaming_table": _REFRESHED,
    "distributed_table": "`table`",
    "distributed_incremental": "`incremental`",
}
"""The materializations of other adapters, and what to use here."""

_BUILT_IN = frozenset(("ephemeral",))
_NOT_OF_MODELS = frozenset(("seed", "snapshot", "test", "unit", "clone", "function"))


def _is_test(macro: str) -> bool:
    return macro.startswith(_TEST) and "__" not in macro


class Macro(Protocol):
    """The attributes of dbt's parsed macros that are used here."""

    unique_id: str
    name: str
    package_name: str
    depends_on: Any


class Macros(Protocol):
    """The macros of dbt's manifest."""

    macros: Mapping[str, Macro]

    def find_materialization_macro_by_name(
        self, project_name: str, materialization_name: str, adapter_type: str
    ) -> Macro | None:
        """Returns the materialization that dbt would choose."""


@dataclass(frozen=True)
class Overrides:
    """The overrides in a project.

    Args:
        manifest: all macros.
        project: the name of the current project.
        internal: the packages of dbt and its adapters.
    """

    manifest: Macros
    project: str
    internal: Collection[str]

    def materialization(self, name: str) -> Macro | None:
        """Returns the materialization that overrides dbt's own, if any."""
        found = self._followed_macro(name)
        return None if found is None or found.package_name in self.internal else found

    def missing_materialization(self, name: str) -> str | None:
        """Returns the error for a materialization that does not exist, if the intended name is known."""
        if name in _BUILT_IN or self.manifest.find_materialization_macro_by_name(self.project, name, OWN) is not None:
            return None
        found = (_MATERIALIZATION.fullmatch(macro.name) for macro in self.manifest.macros.values())
        known = {match[1] for match in found if match is not None} - _NOT_OF_MODELS | _BUILT_IN
        if name in _ELSEWHERE:
            return f"The materialization `{name}` belongs to another warehouse: use {_ELSEWHERE[name]}"
        meant = nearest(name, known)
        return None if meant is None else f"The materialization `{name}` does not exist: did you mean `{meant}`?"

    def missing_macro(self, said: str) -> str | None:
        """Returns the remedy for a call of a macro that does not exist, if a similar macro or its package is known.

        Args:
            said: the message of the error, by dbt's Jinja.
        """
        package = _NO_NAME.search(said)
        if package is not None and package["name"] in _PACKAGES:
            return f"Add the package {_PACKAGES[package['name']]} to packages.yml, and run `dbt deps`"
        found = _NO_ATTRIBUTE.search(said) or package
        if found is None:
            return None
        if found["name"].startswith(_TEST):
            return self._missing_test(found["name"].removeprefix(_TEST))
        # Of equal names, the project's own comes last, and so counts, and before it dbt's.
        macros = sorted(self.manifest.macros.values(), key=lambda each: _rank(each.package_name, self.project))
        known = {
            macro.name: macro.name if macro.package_name == self.project else f"{macro.package_name}.{macro.name}"
            for macro in macros
            if "__" not in macro.name and not macro.name.startswith(("test_", "materialization_"))
        }
        name = _MACROS_ELSEWHERE.get(found["name"], found["name"])
        near = [name] if name in known else near_names(name, known, similar=_SIMILAR)
        return f"Did you mean {' or '.join(f'`{known[each]}`' for each in near)}?" if near else None

    def _missing_test(self, name: str) -> str | None:
        known = {macro.name.removeprefix(_TEST) for macro in self.manifest.macros.values() if _is_test(macro.name)}
        near = near_names(name, known, similar=_SIMILAR)
        return f"Did you mean the test {' or '.join(f'`{each}`' for each in near)}?" if near else None

    def unused_macros(self, name: str, own: str) -> Iterator[Macro]:
        """Yields the overrides of macros that dbt's materialization of that name calls and this adapter's does not.

        Args:
            name: name of the materialization.
            own: the unique id of this adapter's materialization.
        """
        followed = self._followed_macro(name)
        if followed is None:
            return
        used = self._reachable_macros(own)
        for unique_id in sorted(self._reachable_macros(followed.unique_id) - used):
            macro = self.manifest.macros[unique_id]
            if macro.package_name not in self.internal:
                yield macro

    def _followed_macro(self, name: str) -> Macro | None:
        return self.manifest.find_materialization_macro_by_name(self.project, name, FOLLOWED)

    def _reachable_macros(self, unique_id: str) -> set[str]:
        """Returns the macro and all macros that it calls, directly or not, as far as dbt has found the calls."""
        reached: set[str] = set()
        waiting = [unique_id]
        while waiting:
            macro = self.manifest.macros.get(waiting.pop())
            if macro is not None and macro.unique_id not in reached:
                reached.add(macro.unique_id)
                waiting.extend(macro.depends_on.macros)
        return reached


def _rank(package: str, project: str) -> int:
    return 2 if package == project else int(package == "dbt")
