"""Finds misspelt and misplaced configs.

dbt passes on every name in a config, and ignores every key outside of `config`, so a mistake would change the result.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from dbt.artifacts.resources.v1.function import FunctionConfig
from dbt.artifacts.resources.v1.model import ModelConfig
from dbt.artifacts.resources.v1.seed import SeedConfig
from dbt.artifacts.resources.v1.snapshot import SnapshotConfig

from dbt.adapters.silt.materializations.unused_configs import UNUSED

_DBT = (ModelConfig, SeedConfig, SnapshotConfig, FunctionConfig)
_OF_DBT_BY_NAME = frozenset(
    (
        "config_keys_defaults",
        "config_keys_used",
        "hard_deletes",
        "invalidate_hard_deletes",
        "meta_keys_defaults",
        "meta_keys_used",
        "predicates",
        "sql_header",
    )
)
"""The configs without a field in dbt that dbt reads, or writes for a python model."""

_LIKE_ENOUGH = 0.85


class ConfigNames:
    """The names that a config of a node may have.

    Args:
        own: the adapter's class of configs.
    """

    def __init__(self, own: type) -> None:
        given = {name for each in (own, *_DBT) for name in _names(each)}
        self._with_effect = sorted((given | _OF_DBT_BY_NAME) - {"_extra"} - UNUSED.keys())
        self._known = {*self._with_effect, *UNUSED}

    def misspelt(self, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yields each unknown name that resembles a config with an effect, and that config.

        Other unknown names may belong to macros of a project or a package.
        """
        for name, value in config.items():
            if value in (None, "") or name in self._known:
                continue
            nearest = closest(name, self._with_effect)
            if nearest is not None:
                yield name, nearest

    def misplaced(self, files: Iterable[Any], project: str) -> Iterator[str]:
        """Yields a warning for each config in a properties file that has no effect because it is not below `config`.

        Args:
            files: the files that dbt has read.
            project: the name of the project; files of packages are left out.
        """
        for file in files:
            for section in _CONFIGURED if getattr(file, "project_name", None) == project else ():
                for entry in (getattr(file, "dict_from_yaml", None) or {}).get(section) or ():
                    found = [f"`{key}`" for key in entry if key in self._with_effect and key not in _PROPERTIES]
                    if found:
                        yield (
                            f"{file.path.original_file_path}: {entry.get('name')} has {', '.join(found)} outside of "
                            "`config`, where dbt ignores them: indent them below `config:`"
                        )


_CONFIGURED = ("models", "seeds", "snapshots")
_PROPERTIES = frozenset("access docs enabled freshness group meta quote_columns tags".split())
"""The names of configs that are also properties next to `config`, or were in earlier versions of dbt."""


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name that is most similar to a given name, ignoring case; None if no name is similar."""
    found = difflib.get_close_matches(name.lower(), list(names), 1, _LIKE_ENOUGH)
    return found[0] if found else None


def _names(configs: type) -> Iterator[str]:
    for each in fields(configs):
        yield from {each.name, each.metadata.get("alias") or each.name}
