"""Compares the inputs that a commit names with their present state: tables, views, functions and lists of files."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.silt.engine.builds.present import definition, fingerprints, relation
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind
from dbt.adapters.silt.engine.kernel.log.builds import DEFINITIONS_KEY, FILES_KEY, MOST_INPUTS
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication_marks import publication_of
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo


@dataclass(frozen=True)
class ChangedInput:
    """An input that has changed since a commit read it.

    Attributes:
        name: the name of the relation or function, or the path of the files.
        text: the change, as it is printed.
        log: the table's log, if it is a table.
        is_list: whether it is a list of files.
    """

    name: str
    text: str
    log: DeltaLog | None = None
    is_list: bool = False


def changed_inputs(
    catalog: Catalog, own: str, info: CommitInfo, code: str, declared: Container[str] = ()
) -> list[ChangedInput]:
    """Returns the inputs of a commit that have changed since; an input whose state is unknown counts as changed.

    If the commit names too many inputs to compare, the first of them count as changed.

    Args:
        own: the table of the commit, which is not an input.
        info: the `commitInfo` of the commit.
        code: the statement's current code. Only files that it names, or that are declared, are listed: a log may name
            files anywhere.
        declared: the files that views of the project or of this process read.
    """
    versions = {name: each for name, each in (info.read_versions or {}).items() if name != own}
    definitions, files = _texts(info, DEFINITIONS_KEY), _texts(info, FILES_KEY)
    if len(versions) + len(definitions) + len(files) > MOST_INPUTS:
        named = [*((each, True) for each in files), *((each, False) for each in (*versions, *definitions))]
        return [
            ChangedInput(name, f"{name} may have changed", is_list=is_list) for name, is_list in named[:MOST_INPUTS]
        ]
    tables = (_changed_table(catalog, name, each, info) for name, each in versions.items())
    return [*filter(None, tables), *_definitions(catalog, definitions), *_files(catalog, files, code, declared)]


def _changed_table(catalog: Catalog, name: str, versions: Sequence[int], reader: CommitInfo) -> ChangedInput | None:
    read = max(versions, default=0)
    found = relation(name)
    entry = None if found is None else catalog.find(found)
    if entry is None or entry.kind is not RelationKind.TABLE:
        return ChangedInput(name, f"{name} may have changed: it is no longer a table of this warehouse")
    log = catalog.table(entry.name)
    newest = _last_change(log, read)
    if newest is not None and newest.version > read:
        return ChangedInput(name, f"{name} changed (v{read} -> v{newest.version})", log)
    if newest is None or newest.version < read or _is_later(newest, reader):
        return ChangedInput(name, f"{name} was replaced", log)
    return None


def _is_later(commit: Commit, reader: CommitInfo) -> bool:
    """Returns whether a commit is later than the commit that has read its version.

    The commits of a publication have the same time.
    """
    publication = publication_of(reader)
    is_same = publication is not None and publication_of(commit.info) == publication
    return not is_same and commit.timestamp_ms > (reader.timestamp or 0)


def _last_change(log: DeltaLog, read: int) -> Commit | None:
    """Returns the newest commit after version `read` that changed data, or else the newest commit up to `read`.

    Returns None if the log no longer goes back so far.
    """
    commits = log.newest_commits()
    return next((each for each in commits if each.version <= read or each.changes_rows), None)


def _definitions(catalog: Catalog, recorded: Mapping[str, object]) -> Iterator[ChangedInput]:
    for name, read in recorded.items():
        if read != definition(catalog, name):
            yield ChangedInput(name, f"{name} has a new definition")


def _files(
    catalog: Catalog, recorded: Mapping[str, object], code: str, declared: Container[str]
) -> Iterator[ChangedInput]:
    present = fingerprints(catalog, (path for path, each in recorded.items() if each is not None), code, declared)
    for path, each in recorded.items():
        if path not in present:
            yield ChangedInput(path, f"the files of {path} may have changed", is_list=True)
        elif each != present[path]:
            yield ChangedInput(path, f"the files of {path} changed", is_list=True)


def _texts(info: CommitInfo, key: str) -> Mapping[str, object]:
    """Returns a field of `commitInfo` that maps names to values; empty if it is not such a field."""
    found = info.extra.get(key)
    return found if isinstance(found, Mapping) else {}
