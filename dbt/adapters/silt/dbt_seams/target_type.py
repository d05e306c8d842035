"""Shows packages and projects the adapter that the profile names, and finds the macros of packages for Databricks."""

from __future__ import annotations

from typing import Any

from dbt.adapters.factory import AdapterContainer, get_adapter_package_names
from dbt.config.profile import Profile
from dbt.context.providers import BaseDatabaseWrapper

_SILT = "silt"
_DATABRICKS = "databricks"
_DEFAULT = "default"
_DIALECTS_OF_SPARK = (_DATABRICKS,)
"""Adapters whose macros are SQL for Spark; dbt-spark is not listed, because dispatch always includes it."""
_IS_OF_PACKAGE = "is_of_package"
"""The attribute of a wrapper that says whether its present dispatch looks for a macro that is not dbt's own."""
_HTTP_PATH = "sql/protocolv1/o/0/silt"
"""`target.http_path`, from which packages read whether Spark is a cluster's, as here, or an SQL warehouse's."""

_target_of_dbt = Profile.to_target_dict
_names_of_dbt = AdapterContainer.get_adapter_type_names
_dispatch_of_dbt = BaseDatabaseWrapper.dispatch
_prefixes_of_dbt = BaseDatabaseWrapper._get_adapter_macro_prefixes


def show_target_type() -> None:
    """Makes `target.type` and dispatch follow the field `target_type` of the profile's credentials, if they have it.

    Whatever the field is, a package's macro for Databricks is used rather than its default: that is SQL for Spark, too.
    Called when dbt has read the profile, before it renders `dbt_project.yml`. dbt finds the adapter by the same field
    that `target.type` shows, so a profile alone cannot give them different values.
    """
    Profile.to_target_dict = _to_target_dict  # type: ignore[method-assign, assignment]
    AdapterContainer.get_adapter_type_names = _adapter_type_names  # type: ignore[method-assign, assignment]
    BaseDatabaseWrapper.dispatch = _dispatch  # type: ignore[method-assign, assignment]
    BaseDatabaseWrapper._get_adapter_macro_prefixes = _prefixes  # type: ignore[method-assign, assignment]


def _to_target_dict(profile: Profile) -> dict[str, Any]:
    target, shown = _target_of_dbt(profile), getattr(profile.credentials, "target_type", None)
    if profile.credentials.type == _SILT:
        target = {"http_path": _HTTP_PATH, **target}
    return {**target, **({"type": shown} if shown else {})}


def _dispatch(
    wrapper: BaseDatabaseWrapper, macro_name: str, macro_namespace: str | None = None, packages: list[str] | None = None
) -> Any:
    """Returns the macro that dbt finds among the prefixes of the namespace."""
    is_silts = wrapper.type() == _SILT
    vars(wrapper)[_IS_OF_PACKAGE] = is_silts and macro_namespace not in get_adapter_package_names(_SILT)
    return _dispatch_of_dbt(wrapper, macro_name, macro_namespace, packages)


def _prefixes(wrapper: BaseDatabaseWrapper) -> list[str]:
    """Returns the prefixes of macros; those of dbt itself have none for Databricks that this adapter could use."""
    names = _prefixes_of_dbt(wrapper)
    if _DATABRICKS in names or not vars(wrapper).get(_IS_OF_PACKAGE):
        return names
    at = names.index(_DEFAULT)
    return [*names[:at], _DATABRICKS, *names[at:]]


def _adapter_type_names(container: AdapterContainer, name: str | None) -> list[str]:
    """Returns the prefixes of macros, in the order in which dispatch looks for them."""
    names = _names_of_dbt(container, name)
    adapter = container.adapters.get(_SILT) if name == _SILT else None
    shown = None if adapter is None else adapter.config.credentials.target_type  # type: ignore[attr-defined]
    return [_SILT, shown, *names[1:]] if shown in _DIALECTS_OF_SPARK else names
