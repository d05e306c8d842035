"""Recognises the same build in another schema: the tables whose rows it reads, and its query without their names.

Two targets of a warehouse have the same node in different schemas. Its query there names other tables. They hold the
same rows if each of them is the same table, or an unchanged clone of it, in versions between which no rows changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dbt.adapters.silt.engine.builds.decision import LastBuild
from dbt.adapters.silt.engine.builds.present import log_of, other_version
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.log.builds import CLONED_KEY, BuildFacts, TableState
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import Json, Metadata


@dataclass(frozen=True)
class Origin:
    """The table and the version whose rows a table has: its own, or those of the table that it is a clone of.

    Attributes:
        content: hash of the version's files, as in `TableState`.
    """

    table_id: str
    version: int
    content: str | None = None

    def commit_info(self) -> dict[str, Json]:
        """Returns the field for the commitInfo of a clone."""
        content = {} if self.content is None else {"content": self.content}
        return {CLONED_KEY: {"id": self.table_id, "version": self.version, **content}}


def origin_of(log: DeltaLog, table_id: str, version: int, content: str | None = None) -> Origin:
    """Returns the origin of the rows of a table at a version, as far as its log still says.

    A clone whose rows or columns were changed is its own origin.

    Args:
        content: hash of the version's files.
    """
    for commit in log.newest_commits():
        if commit.version > version:
            continue
        cloned = commit.info.extra.get(CLONED_KEY)
        if isinstance(cloned, Mapping):
            source_id, source_version = cloned.get("id"), cloned.get("version")
            if isinstance(source_id, str) and type(source_version) is int:
                known = cloned.get("content")
                return Origin(source_id, source_version, known if isinstance(known, str) else None)
        if commit.changes_rows or any(isinstance(action, Metadata) for action in commit.actions):
            break
    return Origin(table_id, version, content)


def differences(catalog: Catalog, mine: BuildFacts, other: LastBuild) -> Iterator[str]:
    """Yields why a build of another schema may have written other rows than a build of these facts would write.

    Args:
        mine: the facts of a build from the present versions, which has not taken place.
        other: the last build of the other table.
    """
    theirs = other.facts
    if other.changed_since is not None:
        yield other.changed_since
    elif not other.has_ended:
        yield f"not all hooks have run after {other.table}@v{other.version}"
    yield from dict.fromkeys((*mine.unknown, *theirs.unknown))
    if theirs.portable is None or mine.portable is None:
        yield "its query cannot be compared"
    elif mine.portable != theirs.portable:
        yield "the code, the configs, the tables that it reads, the versions or the settings differ"
    if mine.day != theirs.day:
        yield "it depends on the date"
    if mine.files != theirs.files or None in mine.files.values():
        yield "it reads other files"
    yield from _other_rows(catalog, mine.tables, theirs.tables)


def _other_rows(catalog: Catalog, mine: Mapping[str, TableState], theirs: Mapping[str, TableState]) -> Iterator[str]:
    known: dict[str, tuple[str, TableState, Origin]] = {}
    for name, state in theirs.items():
        origin = _origin(catalog, name, state)
        if origin is None:
            yield f"{name} may have changed"
        else:
            known[origin.table_id] = (name, state, origin)
    for name, state in mine.items():
        origin = _origin(catalog, name, state)
        found = None if origin is None else known.pop(origin.table_id, None)
        if origin is None or found is None:
            yield f"{name} is another table"
        elif state.schema != found[1].schema:
            yield f"{name} has other columns than {found[0]}"
        elif not _have_same_rows(catalog, (name, found[0]), origin, found[2]):
            yield f"{name} has other rows than {found[0]}@v{found[1].version}"
    yield from (f"{name} is not read" for name, _, _ in known.values())


def _origin(catalog: Catalog, name: str, state: TableState) -> Origin | None:
    log = log_of(catalog, name)
    if log is None or log.snapshot().metadata.id != state.table_id or other_version(log, state) is not None:
        return None
    return origin_of(log, state.table_id, state.version, state.content)


def _have_same_rows(catalog: Catalog, names: tuple[str, str], one: Origin, other: Origin) -> bool:
    """Returns whether no commit between two versions of the same table changed rows, as far as the log still says."""
    low, high = sorted((one.version, other.version))
    if low == high:
        return None in (one.content, other.content) or one.content == other.content
    logs = (log_of(catalog, name) for name in names)
    log = next((each for each in logs if each is not None and each.snapshot().metadata.id == one.table_id), None)
    if log is None or any(
        other_version(log, TableState(each.table_id, each.version, "", each.content)) for each in (one, other)
    ):
        return False
    oldest = high + 1
    for commit in log.newest_commits():
        if commit.version <= low:
            break
        if commit.version <= high:
            if commit.changes_rows:
                return False
            oldest = commit.version
    return oldest == low + 1
