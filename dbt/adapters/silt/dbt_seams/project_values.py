"""Renders values of a dbt project and of a profile as dbt does, names the configs that dbt knows, and lets `enforced:
true` of a constraint reach the adapter: dbt's classes for constraints have no such field.

dbt reads a constraint of a YAML file by `from_dict`, which ignores unknown fields. The word is moved into `expression`,
the field for the words at the constraint's end, so it is part of the manifest and of the cache of parsed files.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from dbt.artifacts.resources.v1.function import FunctionConfig
from dbt.artifacts.resources.v1.model import ModelConfig
from dbt.artifacts.resources.v1.seed import SeedConfig
from dbt.artifacts.resources.v1.snapshot import SnapshotConfig
from dbt.clients.jinja import get_rendered
from dbt.config.profile import Profile, read_profile
from dbt.config.renderer import ProfileRenderer
from dbt.context.configured import generate_schema_yml_context
from dbt_common.context import set_invocation_context
from dbt_common.contracts.constraints import ColumnLevelConstraint, ModelLevelConstraint

CONFIGS: Final[tuple[type, ...]] = (ModelConfig, SeedConfig, SnapshotConfig, FunctionConfig)
"""The classes of configs of the nodes that have a relation; each config that dbt knows is a field."""


def rendered(text: str, config: Any) -> str:
    """Renders the Jinja of a string; it may use the target, and variables of the project and the environment.

    Args:
        config: dbt's configuration of the project and its profile.
    """
    return str(get_rendered(text, generate_schema_yml_context(config, config.project_name)))


def fields_of_target(profiles_dir: Path, profile: str, target: str) -> Mapping[str, Any]:
    """Returns the rendered fields of a target of a profile. Raises dbt's errors."""
    set_invocation_context(os.environ)  # `env_var` in a profile reads it
    raw = read_profile(str(profiles_dir))[profile]
    return dict(Profile.render_profile(raw, profile, target, ProfileRenderer({}))[1])


_KEYS: Final = ("primary_key", "unique", "foreign_key")
_READ: Final = "from_dict"


def keep_enforced() -> None:
    """Changes how dbt reads constraints, once in a process. To be called before dbt parses the project."""
    for kind in (ColumnLevelConstraint, ModelLevelConstraint):
        if not hasattr(kind.from_dict, "__wrapped__"):
            kind.from_dict({"type": "check"})  # the first call compiles the method, and replaces it
            setattr(kind, _READ, staticmethod(_reading(kind.from_dict)))


def _reading(read: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(read)
    def with_word(given: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        return read(with_enforced(given), *args, **kwargs)

    return with_word


def with_enforced(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a constraint of a YAML file with the field `enforced` of a key as the end of its `expression`."""
    found = dict(given)
    enforced = found.pop("enforced", None)
    if enforced is None or str(found.get("type")) not in _KEYS:
        return found
    word = "enforced" if str(enforced).lower() == "true" else "not enforced"
    return {**found, "expression": " ".join(filter(None, (found.get("expression"), word)))}
