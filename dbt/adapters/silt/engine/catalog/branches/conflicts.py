"""Finds the conflicts that a branch would meet if it were published now, its changes, and its outdated tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import TypeAlias, cast

from dbt.adapters.silt.engine.catalog.names.database import BranchNames
from dbt.adapters.silt.engine.catalog.names.documents import parse_function, parse_view
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, full_name
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.builds import DEFINITIONS_KEY
from dbt.adapters.silt.engine.kernel.publication.branch_changes import commits_on
from dbt.adapters.silt.engine.kernel.publication.documents import Kind, Meaning, NameChange
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
    """A relation or function that a branch has changed.

    Attributes:
        infos: the `commitInfo` of its commits on the branch, by their versions; empty if it is not a table.
        reads: the relations and functions that its commits have read, or on which its definition depends, except those
            that its definition names.
    """

    relation: Relation
    infos: Mapping[int, CommitInfo]
    reads: frozenset[Relation]


def relation_of(table: str) -> Relation:
    """Returns the relation of a table's full name; any other text, as a log may contain, stands for itself."""
    _, schema, name = table.split(".", 2) if table.count(".") > 1 else ("", "", table)
    return schema, name


def changes_of(logs: Iterable[BranchLog]) -> list[BranchChange]:
    """Returns the tables that a branch has changed.

    Raises:
        CorruptLogError, StorageError: if the branch cannot be read.
    """
    found = []
    for log in logs:
        infos = {each.version: each.info for each in commits_on(log)}
        reads = frozenset(relation_of(name) for info in infos.values() for name in _inputs(info))
        if infos:
            found.append(BranchChange(relation_of(log.name), infos, reads))
    return found


def definitions_of(meanings: BranchNames, names: Mapping[RelationName, NameChange]) -> list[BranchChange]:
    """Returns the views and functions that a branch has created or replaced. Raises as `changes_of`."""
    found = []
    for name, change in names.items():
        if change.after is not None and change.after.kind is not Kind.TABLE:
            parse = parse_function if change.is_function else parse_view
            inputs = parse(meanings.document(change.after), name).inputs
            found.append(BranchChange((change.schema, change.name), {}, frozenset(map(relation_of, inputs))))
    return found


def _inputs(info: CommitInfo) -> set[str]:
    """Returns the names of the relations and functions that a commit has read."""
    definitions = info.extra.get(DEFINITIONS_KEY)
    return {*(info.read_versions or {}), *(definitions if isinstance(definitions, Mapping) else ())}


def outdated(register: Publications, logs: Sequence[BranchLog]) -> dict[Relation, str]:
    """Returns the tables whose rows another program has changed, or which it has dropped or replaced, since the branch
    began with them; each with the change.

    Raises:
        CorruptLogError, StorageError: if a table cannot be read.
    """
    with ThreadPoolExecutor(register.store.files_at_once) as pool:
        found = list(pool.map(partial(_outdated, register), logs))
    return {relation_of(log.name): change for log, change in zip(logs, found, strict=True) if change is not None}


def _outdated(register: Publications, log: BranchLog) -> str | None:
    base = log.base()
    if base is None:
        return None
    name = full_name(log.name)
    meaning = cast(BranchNames, register.names).meaning(name, is_function=False)
    if meaning != Meaning(Kind.TABLE, register.location_of(log.main)):
        return f"{name} was {'dropped' if meaning is None else 'replaced'}"
    newest = log.main.snapshot()
    later = list(takewhile(lambda each: each.version > base.version, log.main.newest_commits()))
    is_whole = len(later) == newest.version - base.version  # older commits may have been cleaned up
    if is_whole and newest.metadata.id == base.metadata.id and not any(each.changes_rows for each in later):
        return None
    return f"{name} changed (v{base.version} -> v{newest.version})"


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
