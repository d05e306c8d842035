"""Moves a branch to the present tables, and builds the nodes again whose changes are no longer valid, by dbt."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from dbt.adapters.silt.cli.branching.nodes import nodes_by_table
from dbt.adapters.silt.cli.output.answers import Answer, Block, Rows
from dbt.adapters.silt.cli.project import profile
from dbt.adapters.silt.cli.warehouses import open_warehouse
from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation, relation_of
from dbt.adapters.silt.engine.catalog.branches.updates import BranchUpdate
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.transaction.changes import DROP_OPERATION
from dbt.adapters.silt.records.commit_facts import CommitFacts

VARIABLE: Final = "SILT_BRANCH"
"""The environment variable by which a profile names its branch."""
_OPTIONS: Final = ("project_dir", "profiles_dir", "profile", "target", "target_path", "vars")
_ERRORS: Final = 2
"""The number of the stream of errors: the output is the answer of this command."""
_UPKEEP: Final = (DROP_OPERATION, "OPTIMIZE")


def update(arguments: Namespace) -> Answer:
    """Moves a branch to the present tables, and builds its nodes again that are affected.

    Raises:
        InvalidSettingError: if nodes are to be built, and the profile does not work on the branch, or dbt fails; the
            same command continues.
        SiltError: as `NamedBranches.update`.
    """
    warehouse = open_warehouse(arguments, on_branch=False)
    branches = warehouse.catalog.named_branches(warehouse.database)
    name = branches.find(arguments.name).name
    owners = {relation_of(table): node for table, node in nodes_by_table(warehouse.target_path).items()}

    def nodes_of(relation: Relation, infos: Sequence[CommitInfo]) -> frozenset[str]:
        return _nodes(infos) if infos else frozenset(filter(None, [owners.get(relation)]))

    found = branches.update(name, nodes_of)
    if found.nodes:
        _build(arguments, name, found.nodes)
        branches.built_again(name)
    return _answer(name, found)


def _nodes(infos: Sequence[CommitInfo]) -> frozenset[str]:
    """Returns the nodes that have made commits; none if a commit of rows or columns was made by hand."""
    facts = [CommitFacts.of_info(each) for each in infos if each.operation not in _UPKEEP]
    nodes = [None if each is None else each.node_id for each in facts]
    return frozenset() if None in nodes else frozenset(filter(None, nodes))


def _build(arguments: Namespace, name: str, nodes: Collection[str]) -> None:
    if not _works_on(arguments, name):
        raise InvalidSettingError(
            f"the branch `{name}` has the present tables, and these nodes must be built again on it: {_names(nodes)}",
            remedy=f"Set `branch: \"{{{{ env_var('{VARIABLE}', '') }}}}\"` in the profile, and run it again",
        )
    program = [sys.executable, "-m", "dbt.cli.main", "build", "--select", *sorted(map(_name, nodes))]
    done = subprocess.run(
        [*program, *_for_dbt(arguments)], stdout=_ERRORS, env={**os.environ, VARIABLE: name}, check=False
    )
    if done.returncode:
        raise InvalidSettingError(
            f"dbt has not built {_names(nodes)} again on the branch `{name}`",
            remedy="Correct the errors that dbt reports above, and run it again",
        )


def _works_on(arguments: Namespace, name: str) -> bool:
    """Returns whether there is a project whose profile works on a branch if the environment variable names it."""
    project = None if arguments.warehouse is not None else profile.find_project(arguments)
    given = os.environ.get(VARIABLE)
    try:
        os.environ[VARIABLE] = name
        return project is not None and profile.warehouse_of(project, arguments).branch == name
    finally:
        del os.environ[VARIABLE]
        if given is not None:
            os.environ[VARIABLE] = given


def _for_dbt(arguments: Namespace) -> Iterator[str]:
    for option in _OPTIONS:
        value = getattr(arguments, option)
        if value is not None:
            yield from (f"--{option.replace('_', '-')}", value)


def _names(nodes: Collection[str]) -> str:
    return ", ".join(sorted(map(_name, nodes)))


def _name(unique_id: str) -> str:
    return ".".join(unique_id.split(".")[2:])


def _answer(name: str, found: BranchUpdate) -> Answer:
    lost: Mapping[str, str] = {".".join(filter(None, each)): reason for each, reason in found.lost.items()}
    blocks: list[Block] = [f"branch {name}: has the present tables"]
    if lost:
        blocks.append(
            Rows(("relation", "not valid since"), sorted(lost.items()), f"built again: {_names(found.nodes)}")
        )
    kept = [".".join(filter(None, each)) for each in found.kept]
    document = {"branch": name, "kept": kept, "built_again": sorted(found.nodes), "reasons": lost}
    return Answer(document, blocks)
