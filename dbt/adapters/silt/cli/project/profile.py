"""Finds the warehouse of a dbt project by dbt's own rules, without dbt.

`dbt_project.yml` is in the current folder or the nearest parent that has it, and names a profile; `profiles.yml` is in
the current folder, else in `~/.dbt`. dbt's options and environment variables override each of these. Only the profile's
fields that locate the warehouse are rendered, so the variables of its other fields need not be set.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records import locations as profile_locations

if TYPE_CHECKING:
    import yaml

    from dbt.adapters.silt.cli.project import jinja
else:
    yaml = lazy_module("yaml")
    jinja = lazy_module("dbt.adapters.silt.cli.project.jinja")

_PROJECT_FILE = "dbt_project.yml"
_PROFILES_FILE = "profiles.yml"
_METASTORE = frozenset(("spark.sql.catalogImplementation", "spark.sql.extensions", "spark.sql.defaultCatalog"))
_OFF = ("", "off", "no", "false", "never")
_NAMED = "or name the warehouse: `--warehouse PATH`"


@dataclass(frozen=True)
class Project:
    """The part of a dbt project that locates its warehouse and its target path.

    Attributes:
        root: its folder.
        profile: the name of its profile, if the project names it.
        target_path: the folder of dbt's artifacts.
    """

    root: Path
    profile: str | None
    target_path: Path


@dataclass(frozen=True)
class Target:
    """A target of a profile, and what a process needs to open it with Spark.

    Attributes:
        project_root: the folder of the project.
        profiles_dir: the folder of profiles.yml.
        name: the name of the target.
        spark_conf: its settings of Spark, not rendered.
        has_own_spark: whether a Spark is started for the target; such a Spark has no tables of its own.
        is_remote: whether its Spark runs elsewhere and is reached by Spark Connect.
        may_stay: whether its Spark may be kept between commands.
        has_metastore: whether its tables are registered in a metastore.
    """

    project_root: Path
    profiles_dir: Path
    profile: str
    name: str
    spark_conf: Mapping[str, Any]
    has_own_spark: bool
    is_remote: bool = False
    may_stay: bool = False
    has_metastore: bool = False


@dataclass(frozen=True)
class Warehouse:
    """The part of a profile that locates the warehouse.

    Attributes:
        locations: the absolute folder of each database.
        database, schema: the defaults of a name without these parts.
        external_paths: whether tables may name files outside of the warehouse.
        storages: the settings of object stores.
        target: the profile's target.
        branch: the named branch of its commands; empty if it names no branch.
    """

    locations: Mapping[str, str]
    database: str
    schema: str
    external_paths: bool = False
    storages: Storages = field(default_factory=Storages)
    target: Target | None = None
    branch: str = ""


def find_project(arguments: Namespace) -> Project | None:
    """Returns the project that the arguments name, or that contains the current folder, or None.

    Raises:
        InvalidSettingError: if the named folder contains no project, or its file cannot be read.
    """
    named = arguments.project_dir or _environment("PROJECT_DIR")
    root = _nearest_project(Path.cwd()) if named is None else Path(named).expanduser().resolve()
    if root is None:
        return None
    document = _read(root / _PROJECT_FILE)
    folder = arguments.target_path or _environment("TARGET_PATH") or _rendered(document.get("target-path")) or "target"
    return Project(root, _rendered(document.get("profile")), root / folder)


def warehouse_of(project: Project, arguments: Namespace) -> Warehouse:
    """Reads the warehouse from the project's profile.

    Raises:
        InvalidSettingError: if the profile or target is missing, is not of this adapter, or cannot be read.
    """
    profiles_dir = _profiles_dir(arguments)
    path, name = profiles_dir / _PROFILES_FILE, _profile_name(project, arguments)
    target_name, fields = _target(_read(path), name, arguments.target or _environment("TARGET"), path)
    if fields.get("type") != "silt":
        raise InvalidSettingError(
            f"the profile {name} in {path} is of the type {fields.get('type')}, not silt",
            remedy=f"Choose another target with `--target`, {_NAMED}",
        )
    database = _field(fields, "database", profile_locations.DATABASE)
    warehouse = _field(fields, "warehouse", profile_locations.WAREHOUSE)
    databases = {str(key): _all_rendered(value) for key, value in (fields.get("databases") or {}).items()}
    locations = profile_locations.locations(database, warehouse, databases, project.root)
    return Warehouse(
        locations,
        database,
        _field(fields, "schema", profile_locations.SCHEMA),
        _field(fields, "external_paths", "false").lower() == "true",
        profile_locations.storages_of(locations, _all_rendered(fields.get("storage")), databases),
        _for_spark(project, profiles_dir, (name, target_name), fields),
        _field(fields, "branch", ""),
    )


def targets_of(project: Project, arguments: Namespace) -> tuple[str, ...]:
    """Returns the names of the targets of the project's profile.

    Raises:
        InvalidSettingError: if the profile is missing or cannot be read.
    """
    path = _profiles_dir(arguments) / _PROFILES_FILE
    return tuple(map(str, _outputs(_read(path), _profile_name(project, arguments), path)))


def _profile_name(project: Project, arguments: Namespace) -> str:
    name: str | None = arguments.profile or _environment("PROFILE") or project.profile
    if name is None:
        raise InvalidSettingError(
            f"{project.root / _PROJECT_FILE} names no profile", remedy=f"Name a profile with `--profile`, {_NAMED}"
        )
    return name


def _for_spark(project: Project, profiles_dir: Path, names: tuple[str, str], fields: Mapping[str, Any]) -> Target:
    conf = {str(key): value for key, value in (fields.get("spark_conf") or {}).items()}
    elsewhere = fields.get("remote") or fields.get("catalog") or _METASTORE.intersection(conf)
    may_stay = str(fields.get("keep_alive") or "off").strip().lower() not in _OFF
    is_remote, has_metastore = bool(fields.get("remote")), bool(fields.get("catalog"))
    return Target(project.root, profiles_dir, *names, conf, not elsewhere, is_remote, may_stay, has_metastore)


def _all_rendered(value: Any) -> Any:
    """Renders the Jinja in all strings of a value."""
    if isinstance(value, Mapping):
        return {str(key): _all_rendered(each) for key, each in value.items()}
    return _rendered(value)


def _nearest_project(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / _PROJECT_FILE).is_file()), None)


def _profiles_dir(arguments: Namespace) -> Path:
    named = arguments.profiles_dir or _environment("PROFILES_DIR")
    if named is not None:
        return Path(named).expanduser().resolve()
    return Path.cwd() if (Path.cwd() / _PROFILES_FILE).is_file() else Path.home() / ".dbt"


def _environment(name: str) -> str | None:
    """Returns the value of a dbt environment variable, under its new or its old name."""
    return os.environ.get(f"DBT_ENGINE_{name}") or os.environ.get(f"DBT_{name}") or None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except FileNotFoundError as error:
        raise InvalidSettingError(f"{path} does not exist", remedy=f"Name its folder, {_NAMED}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidSettingError(f"{path} cannot be read: {error}", remedy=f"Correct it, {_NAMED}") from error
    if not isinstance(document, Mapping):
        raise InvalidSettingError(f"{path} contains no settings", remedy=f"Correct it, {_NAMED}")
    return document


def _outputs(profiles: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    profile = profiles.get(name)
    if not isinstance(profile, Mapping) or not isinstance(profile.get("outputs"), Mapping):
        known = ", ".join(str(each) for each in profiles if each != "config") or "none"
        raise InvalidSettingError(
            f"there is no profile {name} with outputs in {path}, which has: {known}",
            remedy=f"Name another profile with `--profile` or `--profiles-dir`, {_NAMED}",
        )
    outputs: Mapping[str, Any] = profile["outputs"]
    return outputs


def _target(profiles: Mapping[str, Any], name: str, target: str | None, path: Path) -> tuple[str, Mapping[str, Any]]:
    """Returns the name of a profile's target, and its fields, not rendered yet."""
    outputs = _outputs(profiles, name, path)
    target_name = target or _rendered(profiles[name].get("target")) or "default"
    if not isinstance(outputs.get(target_name), Mapping):
        raise InvalidSettingError(
            f"the profile {name} in {path} has no target {target_name}; its targets are: "
            f"{', '.join(map(str, outputs))}",
            remedy=f"Name one of them with `--target`, {_NAMED}",
        )
    return target_name, dict(outputs[target_name])


def _field(fields: Mapping[str, Any], name: str, default: str) -> str:
    value = _rendered(fields.get(name))
    return default if value is None else value


def _rendered(value: Any) -> str | None:
    """Converts a value to a string and renders its Jinja, like dbt."""
    if value is None:
        return None
    text = str(value)
    if "{{" not in text and "{%" not in text:
        return text
    try:
        return str(jinja.rendered(text, {"env_var": _env_var, "var": _variable}))
    except ValueError as error:
        raise InvalidSettingError(f"`{text}` cannot be rendered: {error}", remedy=f"Correct it, {_NAMED}") from error


def _env_var(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, default)
    if value is None:
        raise InvalidSettingError(
            f"the profile uses the environment variable {name}, which is not set", remedy=f"Set it, {_NAMED}"
        )
    return value


def _variable(name: str, default: str | None = None) -> str:
    if default is None:
        raise InvalidSettingError(
            f"the profile uses the variable {name}, which only dbt's `--vars` sets",
            remedy="Name the warehouse: `--warehouse PATH`",
        )
    return default
