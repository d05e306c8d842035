"""Renders values of a dbt project and of a profile as dbt does, and names the configs that dbt knows."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
