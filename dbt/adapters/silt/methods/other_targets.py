"""Finds the table of a node in another target of the profile, and whether it holds the rows of a build."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.cli.project import profile
from dbt.adapters.silt.engine.builds import origins, present
from dbt.adapters.silt.engine.builds.decision import Built, LastBuild
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, InvalidSettingError, sentence
from dbt.adapters.silt.engine.kernel.log.builds import BuildFacts
from dbt.adapters.silt.runs.node_context import log_of

if TYPE_CHECKING:
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.credentials import SiltCredentials


@dataclass(frozen=True)
class OtherTarget:
    """Another target of the profile, by the names that this target has for its databases.

    Attributes:
        databases: database in that target -> the database of this target at the same location.
        database, schema: the defaults of a name without these parts, in that target.
        here: the same defaults in this target.
    """

    name: str
    databases: Mapping[str, str]
    database: str
    schema: str
    here: tuple[str, str]

    def tables(self, model: Mapping[str, Any]) -> Iterator[RelationName]:
        """Yields the names that a node may have there, most likely first.

        The names of schemas are the project's to choose: dbt's own rule, `<schema>_<custom schema>`, and the custom
        schema alone.
        """
        own_database, own_schema = self.here
        schema, custom = str(model["schema"]), model["config"].get("schema")
        there = self.database if model["database"] in (None, own_database) else str(model["database"])
        database = self.databases.get(there)
        if database is None:
            return
        found = [f"{self.schema}{schema.removeprefix(own_schema)}"] if schema.startswith(own_schema) else []
        found += [str(custom)] if custom else []
        for each in dict.fromkeys((*found, self.schema)):
            yield RelationName(database, each, str(model["alias"]))


def other_target(connections: SiltConnectionManager, config: Any, name: str) -> OtherTarget:
    """Returns another target of the profile.

    Args:
        config: dbt's configuration of the project.

    Raises:
        CompilationError: if the target does not exist or is not of this adapter, its profile cannot be rendered, or
            its warehouse is not a database of this target.
    """
    given: SiltCredentials = config.credentials
    invocation = connections.invocation
    arguments = Namespace(profile=config.profile_name, target=name, profiles_dir=invocation.profiles_dir)
    project = profile.Project(invocation.project_root, config.profile_name, invocation.target_path)
    try:
        found = profile.warehouse_of(project, arguments)
    except InvalidSettingError as error:
        raise CompilationError(f"`reuse: {{from: {name}}}`: {sentence(error.problem)}") from error
    names = {location: database for database, location in connections.sessions.environment.locations.items()}
    databases = {each: names[at] for each, at in found.locations.items() if at in names}
    if found.database not in databases:
        raise CompilationError(
            f"`reuse: {{from: {name}}}`: the target {name} has its tables in {found.locations[found.database]}, which "
            "is not a database of this target. Add it to `databases` of this target in the profile"
        )
    return OtherTarget(name, databases, found.database, found.schema, (given.database, given.schema))


def source_of(
    connections: SiltConnectionManager, other: OtherTarget, model: Mapping[str, Any], facts: Callable[[], BuildFacts]
) -> tuple[LastBuild, int, BuildFacts] | Built:
    """Returns the build of a node in another target whose rows a build here would write, and the version to clone.

    Args:
        facts: returns the facts of a build here from the present versions.
    """
    for name in other.tables(model):
        try:
            log = log_of(connections.catalog, name)
        except InvalidNameError:
            continue
        last = None if log is None else present.last_build(log, str(model["unique_id"]))
        if log is None or last is None or last.target != other.name:
            continue
        mine = facts()
        reasons = tuple(origins.differences(connections.catalog, mine, last))
        return Built(reasons) if reasons else (last, log.snapshot().version, mine)
    return Built((f"no table of the target {other.name} has recorded a build of it",))
