"""Finds the conflicts that a branch would meet if it were published now, and the tables that it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias, cast

from dbt.adapters.silt.engine.catalog.database import BranchNames
from dbt.adapters.silt.engine.catalog.names import RelationName, name_parts
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.publication.branch_changes import commits_on
from dbt.adapters.silt.engine.kernel.publication.documents import Meaning, NameChange
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication.publish import PublishSettings, find_conflicts
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog

Relation: TypeAlias = tuple[str, str]
"""The schema and the name of a relation or function."""
Lookups: TypeAlias = dict[tuple[RelationName, bool], Meaning | None]
"""The name of a relation or function, and whether it is a function -> the meaning that a statement has found."""


@dataclass(frozen=True)
class BranchChange:
    """A table that a branch has changed.

    Attributes:
        infos: the `commitInfo` of its commits on the branch.
        reads: the tables that these commits have read.
    """

    relation: Relation
    infos: tuple[CommitInfo, ...]
    reads: frozenset[Relation]


def relation_of(table: str) -> Relation:
    """Returns the relation of a table's full name."""
    *_, schema, name = name_parts(table)
    return schema, name


def changes_of(logs: Iterable[BranchLog]) -> list[BranchChange]:
    """Returns the tables that a branch has changed.

    Raises:
        CorruptLogError, StorageError: if the branch cannot be read.
    """
    found = []
    for log in logs:
        infos = tuple(each.info for each in commits_on(log))
        reads = frozenset(relation_of(name) for info in infos for name in info.read_versions or {})
        if infos:
            found.append(BranchChange(relation_of(log.name), infos, reads))
    return found


def conflicts(
    register: Publications,
    logs: Sequence[BranchLog],
    names: Mapping[RelationName, NameChange],
    settings: PublishSettings,
) -> dict[Relation, str]:
    """Returns the relations that would conflict if the branch were published now, each with the reason.

    Raises:
        SiltError: if the changes cannot be published for another reason, or the storage failed.
    """
    of_tables = find_conflicts(register, logs, settings)
    found = {relation_of(table): f"{table}: {error.problem}" for table, error in of_tables.items()}
    meanings = cast(BranchNames, register.names)
    with ThreadPoolExecutor(register.store.files_at_once) as pool:
        now = list(pool.map(lambda each: meanings.meaning(each[0], each[1].is_function), names.items()))
    for (name, change), meaning in zip(names.items(), now, strict=True):
        if meaning != change.before:
            reason = f"{name}: another program has created, replaced or dropped it"
            found.setdefault((change.schema, change.name), reason)
    return found


def check_lookups(register: Publications, looked_up: Lookups) -> None:
    """Checks that the names that statements have found, or found missing, are still there or missing.

    Raises:
        ConcurrentModificationError: if another program has dropped or created one of them.
    """
    names = cast(BranchNames, register.names)
    for (name, is_function), before in looked_up.items():
        if (names.meaning(name, is_function) is None) != (before is None):
            what = "created" if before is None else "dropped"
            raise ConcurrentModificationError(
                f"another program has {what} it since a statement of the transaction has looked for it", table=str(name)
            )
