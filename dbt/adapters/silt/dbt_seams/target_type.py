"""Shows packages and projects the adapter that the profile names instead of `silt`."""

from __future__ import annotations

from typing import Any

from dbt.adapters.factory import AdapterContainer
from dbt.config.profile import Profile

_SILT = "silt"
_DIALECTS_OF_SPARK = ("databricks",)
"""Adapters whose macros are SQL for Spark; dbt-spark is not listed, because dispatch always includes it."""
_HTTP_PATH = "sql/protocolv1/o/0/silt"
"""`target.http_path`, from which packages read whether Spark is a cluster's, as here, or an SQL warehouse's."""

_target_of_dbt = Profile.to_target_dict
_names_of_dbt = AdapterContainer.get_adapter_type_names


def show_target_type() -> None:
    """Makes `target.type` and dispatch follow the field `target_type` of the profile's credentials, if they have it.

    Called when dbt has read the profile, before it renders `dbt_project.yml`. dbt finds the adapter by the same field
    that `target.type` shows, so a profile alone cannot give them different values.
    """
    Profile.to_target_dict = _to_target_dict  # type: ignore[method-assign, assignment]
    AdapterContainer.get_adapter_type_names = _adapter_type_names  # type: ignore[method-assign, assignment]


def _to_target_dict(profile: Profile) -> dict[str, Any]:
    target, shown = _target_of_dbt(profile), getattr(profile.credentials, "target_type", None)
    if shown in _DIALECTS_OF_SPARK:
        target = {"http_path": _HTTP_PATH, **target}
    return {**target, **({"type": shown} if shown else {})}


def _adapter_type_names(container: AdapterContainer, name: str | None) -> list[str]:
    """Returns the prefixes of macros, in the order in which dispatch looks for them."""
    names = _names_of_dbt(container, name)
    adapter = container.adapters.get(_SILT) if name == _SILT else None
    shown = None if adapter is None else adapter.config.credentials.target_type  # type: ignore[attr-defined]
    return [_SILT, shown, *names[1:]] if shown in _DIALECTS_OF_SPARK else names
