"""Declares the options of subcommands, and opens the warehouse, table or version that they name."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from dbt.adapters.silt.cli.project import profile
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.locations import check_locations, is_local, local_path, table_location
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName, completed, name_parts
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.near_names import near_names
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.engine.kernel.storage.urls import is_url
from dbt.adapters.silt.records import locations as profile_locations

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers: TypeAlias = _SubParsersAction[ArgumentParser]
else:
    Subparsers: TypeAlias = object

_BY_PATH = "delta"
_VERSION = re.compile(r"v?(\d{1,19})")
_NO_WAREHOUSE = (
    "Name one with `--warehouse PATH`, or change to the folder of a dbt project whose profile is of type silt"
)


@dataclass(frozen=True)
class OpenWarehouse:
    """A warehouse, with the defaults of short names.

    Attributes:
        catalog: its relations.
        locations: the absolute folder of each database.
        database, schema: the defaults of a name without these parts.
        target_path: the target path of the dbt project, if any.
        target: the target of the project's profile, if any.
        branch: the named branch that the catalog shows; empty if it shows the published tables.
        joined: the same branch if this process also writes there.
    """

    catalog: Catalog
    locations: Mapping[str, str]
    database: str
    schema: str
    target_path: Path | None = None
    target: profile.Target | None = None
    branch: str = ""
    joined: Branch | None = None

    def on_branch(self, name: str, joins: bool = False) -> OpenWarehouse:
        """Returns the same warehouse as a named branch, or the branch of a run, shows it.

        Args:
            joins: whether this process also writes there.

        Raises:
            BranchNotFoundError: if neither exists.
            ReadOnlyStorageError, ConcurrentModificationError: as `NamedBranches.join`, if it joins.
        """
        branches = self.catalog.named_branches(self.database)
        branch = branches.join(name) if joins else branches.branch(name)
        joined = branch if joins else None
        return replace(self, catalog=self.catalog.on_branch(self.database, branch), branch=name, joined=joined)

    def name(self, text: str) -> RelationName:
        """Returns the full name for a short name: `table`, `schema.table` or `database.schema.table`.

        Raises:
            InvalidNameError: if the text is not a name.
            InvalidStatementError: if it has more than three parts.
        """
        return completed(name_parts(text), self.database, self.schema)

    def existing(self, text: str) -> RelationName:
        """Returns the full name of a table or view; without a schema, it may be in any schema of the database.

        A name without any similar name is returned as by `name`; the catalog then raises an error.

        Raises:
            InvalidNameError, InvalidStatementError: as for `name`.
            RelationNotFoundError, SchemaNotFoundError: if the table or view does not exist; the message suggests
            similar names.
        """
        name = self.name(text)
        if self.catalog.find(name) is not None or name.database not in self.catalog.databases():
            return name
        known = {f"{each.schema}.{each.identifier}": each for each in self._relations(name.database)}
        same = [short for short, each in known.items() if each.identifier.lower() == name.identifier.lower()]
        if len(same) == 1 and len(name_parts(text)) == 1:
            return known[same[0]]
        near = same or near_names(f"{name.schema}.{name.identifier}", known)
        if not near:
            return name
        remedy = f"Did you mean {' or '.join(near)}?"
        if not self.catalog.has_schema(name.database, name.schema):
            raise errors.SchemaNotFoundError(
                f"the schema `{name.schema}` does not exist", table=str(name), remedy=remedy
            )
        raise errors.RelationNotFoundError("the table or view does not exist", table=str(name), remedy=remedy)

    def _relations(self, database: str) -> list[RelationName]:
        return [each.name for each in self.catalog.all_relations(database)]


class Subcommand(Protocol):
    """The module of a subcommand."""

    def add(self, subparsers: Subparsers) -> None:
        """Declares the subcommand."""
        ...

    def run(self, arguments: Namespace) -> int:
        """Runs the subcommand and returns its exit code."""
        ...


def add_warehouse_options(parser: ArgumentParser) -> None:
    """Declares the options that name a warehouse."""
    group = parser.add_argument_group(
        "which warehouse", "By default the warehouse of the dbt project in the current folder, else ./warehouse."
    )
    group.add_argument("--warehouse", metavar="PATH", help="the folder or URL of a warehouse; no dbt project is used")
    group.add_argument("--project-dir", metavar="PATH", help="the folder of the dbt project")
    group.add_argument("--profiles-dir", metavar="PATH", help="the folder of profiles.yml")
    group.add_argument("--profile", metavar="NAME", help="the profile, instead of the project's own")
    group.add_argument("-t", "--target", metavar="NAME", help="the profile's target, instead of its default")
    group.add_argument("--target-path", metavar="PATH", help="where dbt writes its artifacts, by default target/")


def open_warehouse(arguments: Namespace, on_branch: bool = True, joins: bool = False) -> OpenWarehouse:
    """Opens the warehouse that the arguments name.

    Args:
        on_branch: whether it is shown as the profile's branch shows it, if the profile names a branch.
        joins: whether this process also writes on that branch.

    Raises:
        InvalidSettingError: if the warehouse does not exist, or the project or its profile cannot be used.
    """
    if arguments.warehouse is not None:
        return _warehouse_at(arguments.warehouse, arguments)
    project = profile.find_project(arguments)
    if project is not None:
        found = profile.warehouse_of(project, arguments)
        check_locations(found.locations)
        catalog = open_databases(found.locations, found.storages, found.external_paths).catalog
        _check_exists(found.locations[found.database])
        names = (found.database, found.schema)
        opened = OpenWarehouse(catalog, found.locations, *names, project.target_path, found.target)
        return opened.on_branch(found.branch, joins) if found.branch and on_branch else opened
    for folder in (Path.cwd() / profile_locations.WAREHOUSE, Path.cwd()):
        if _is_warehouse(folder):
            return _warehouse_at(str(folder), arguments)
    raise errors.InvalidSettingError(
        f"there is neither a dbt project nor a warehouse in {Path.cwd()}", remedy=_NO_WAREHOUSE
    )


def table_of(text: str, arguments: Namespace) -> DeltaLog:
    """Opens a table by its name in the warehouse or by its folder (a string with a slash).

    Raises:
        InvalidNameError, RelationNotFoundError, SchemaNotFoundError: if the table does not exist.
        InvalidSettingError: if a name is given without a warehouse.
    """
    path = path_of(text)
    if path is not None:
        store = _catalog_for(path, arguments).store_at(path if is_url(path) else os.path.expanduser(path))
        return DeltaLog(store, path)
    warehouse = open_warehouse(arguments)
    return warehouse.catalog.table(warehouse.existing(text))


def _catalog_for(path: str, arguments: Namespace) -> Catalog:
    """Returns a catalog that opens a table by its path; a URL is reached by the `storage` of a project's profile.

    Raises:
        InvalidSettingError: if the project or its profile cannot be used.
    """
    project = profile.find_project(arguments) if is_url(path) and arguments.warehouse is None else None
    if project is None:
        return Catalog({})
    found = profile.warehouse_of(project, arguments)
    return open_databases(found.locations, found.storages, external_paths=True).catalog


def view_of(text: str, arguments: Namespace) -> View | None:
    """Returns the view with that name, or None if it is not the name of a view.

    Raises:
        InvalidStatementError: if a version of the view is requested.
    """
    name, version, time = _travel(text)
    if path_of(name) is not None:
        return None
    warehouse = open_warehouse(arguments)
    full = warehouse.existing(name)
    found = warehouse.catalog.find(full)
    if found is None or found.kind is not RelationKind.VIEW:
        return None
    if version is not None or time is not None:
        raise errors.InvalidStatementError(
            "it is a view, and a view has no versions",
            remedy="Leave the version out, or show a table that it reads",
            table=str(full),
        )
    return warehouse.catalog.view(full)


def without_version(text: str) -> str:
    """Returns the name of a table if it names no version.

    Raises:
        InvalidStatementError: if it names a version.
    """
    name, version, time = _travel(text)
    if version is not None or time is not None:
        raise errors.InvalidStatementError(
            f"`{text}` names one version, but the history shows all of them",
            remedy=f"Run `silt history {name}`, or `silt show {text}` for that version",
        )
    return text


def snapshot_of(text: str, arguments: Namespace) -> tuple[DeltaLog, Snapshot]:
    """Opens a table at a version: `TABLE`, `TABLE@v12` or `TABLE@2026-01-31 12:00`.

    A time without a zone is in UTC.

    Raises:
            VersionNotFoundError: if the log does not have that version, or no longer has it.
            NotATableError, TableDamagedError, UnsupportedFeatureError: if the table cannot be read.
    """
    name, version, time = _travel(text)
    log = table_of(name, arguments)
    if time is not None:
        version = log.version_at(int(time.timestamp() * 1000))
    return log, log.snapshot() if version is None else log.snapshot_at(version)


def _travel(text: str) -> tuple[str, int | None, datetime | None]:
    """Splits an argument into the name, and the version or the time after it."""
    name, at, end = text.rpartition("@")
    version = _VERSION.fullmatch(end)
    if not at or not name:
        return text, None, None
    if version is not None:
        return name, int(version[1]), None
    try:
        time = datetime.fromisoformat(end.strip().removesuffix("Z"))
    except ValueError:
        return text, None, None
    return name, None, time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def path_of(text: str) -> str | None:
    """Returns the folder or URL of an argument, or None if the argument is the name of a table."""
    if text.startswith(f"{_BY_PATH}.`") and text.endswith("`"):
        return text[len(_BY_PATH) + 2 : -1]
    is_path = text in (".", "..") or ("/" in text and not text.startswith("`"))
    return text if is_path else None


def _warehouse_at(location: str, arguments: Namespace) -> OpenWarehouse:
    location = table_location(location if is_url(location) else os.path.expanduser(location))
    if is_local(location) and not os.path.isdir(location):
        raise errors.InvalidSettingError(f"the folder {location} does not exist", remedy=_NO_WAREHOUSE)
    database, schema = profile_locations.DATABASE, profile_locations.SCHEMA
    locations = {database: location}
    target_path = None if arguments.target_path is None else Path(arguments.target_path)
    return OpenWarehouse(open_databases(locations, Storages()).catalog, locations, database, schema, target_path)


def _check_exists(location: str) -> None:
    """Checks that the warehouse exists: otherwise the answer for a missing warehouse would be "no tables"."""
    if is_local(location) and not os.path.isdir(local_path(location)):
        raise errors.InvalidSettingError(
            f"the profile's warehouse {location} does not exist yet",
            remedy=f"Run dbt first. {_NO_WAREHOUSE}",
        )


def _is_warehouse(folder: Path) -> bool:
    """Returns whether the folder contains schemas."""
    catalog = Catalog({profile_locations.DATABASE: LocalStore(folder)})
    return bool(catalog.schemas(profile_locations.DATABASE))


def subcommand(subparsers: Subparsers, name: str, summary: str, description: str) -> ArgumentParser:
    """Declares a subcommand with the options that all subcommands have.

    Args:
        summary: the line about it in the list of subcommands.
        description: the text of its help, as sentences.
    """
    parser = subparsers.add_parser(
        name, help=summary, description=description, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON value, for programs")
    add_warehouse_options(parser)
    return parser


def add_run_id(parser: ArgumentParser) -> None:
    """Declares the id of a run that is not published."""
    parser.add_argument(
        "run", metavar="ID", help="the run's id, as `silt runs` shows it, or at least 4 characters of its beginning"
    )
