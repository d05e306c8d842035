"""Reads what the decision needs from the logs of a warehouse: the last build of a table, and its inputs as they are."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from dbt.adapters.silt.engine.builds.decision import Decision, LastBuild, Present, PresentTable, decide
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.file_lists import fingerprint
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    InvalidNameError,
    NotATableError,
    RelationNotFoundError,
    SchemaNotFoundError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.builds import ENDED_KEY, INFO_KEY, Build, BuildFacts, TableState, local_day
from dbt.adapters.silt.engine.kernel.log.commit_search import last_change
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of
from dbt.adapters.silt.engine.sql.query.table_functions import named_files

_PARTS = 2


def decide_now(catalog: Catalog, log: DeltaLog, build: Build, code: str, declared: Container[str] = ()) -> Decision:
    """Decides whether a table must be built, by the present states of the inputs of its last build.

    Args:
        log: the table's log.
        code: the build's code. Only files that it names, or that are declared, are listed: a log may name any file.
        declared: the files that views of the project or of this process read.
    """
    last = last_build(log, build.owner)
    if last is None:
        return decide(build, None, Present())
    is_published = not _is_of_branch(log, last.version)
    now = present(catalog, last.facts, log.name, code, is_published, declared)
    return decide(build, last, replace(now, day=local_day(last.facts.zone, build.at_ms)))


def last_build(log: DeltaLog, owner: str, key: str = INFO_KEY) -> LastBuild | None:
    """Finds the newest commit with facts of a build by the owner, if the log still has it.

    Args:
        key: the field of `commitInfo` for the facts.
    """
    later: list[Commit] = []
    ended: dict[str, tuple[str, ...]] = {}
    commits = log.newest_commits()
    for commit in commits:
        ended |= _ended(commit)
        facts = BuildFacts.of_info(commit.info, key)
        if facts is not None and facts.owner == owner:
            has_ended = facts.ends is None or facts.ends in ended
            facts = replace(facts, unknown=(*facts.unknown, *ended.get(facts.ends or "", ())))
            run_id, target = (_of_dbt(commit, name) for name in ("runId", "target"))
            since = _changed_since(log, commit, later) or _changed_beside(log, commit, commits)
            at_ms = commit.timestamp_ms
            return LastBuild(log.name, commit.version, facts, run_id, _changes(commit), since, at_ms, target, has_ended)
        later.append(commit)
    return None


def present(
    catalog: Catalog,
    facts: BuildFacts,
    own: str,
    code: str,
    is_published: bool = True,
    declared: Container[str] = (),
) -> Present:
    """Returns the present states of the inputs of a build.

    Args:
        own: full name of the table that it wrote, whose state is not looked up.
        code, declared: as for `decide_now`.
        is_published: whether the facts name published versions; on a branch, the versions after the branch's base are
            others.
    """
    tables = {name: _table(catalog, name, read, is_published) for name, read in facts.tables.items() if name != own}
    definitions = {name: definition(catalog, name) for name in facts.definitions}
    return Present(tables, definitions, fingerprints(catalog, facts.files, code, declared))


def fingerprints(catalog: Catalog, paths: Iterable[str], code: str, declared: Container[str]) -> dict[str, str | None]:
    """Returns the present fingerprints of lists of files, without the paths that are neither in the code nor declared.

    Args:
        paths: the paths, as a log names them.
        code, declared: as for `decide_now`.
    """
    named = named_files(code)
    return {path: fingerprint(path, catalog.store_at) for path in paths if path in named or path in declared}


def definition(catalog: Catalog, name: str) -> str | None:
    """Returns the current fingerprint of a view or function, if it exists."""
    found = relation(name)
    if found is None:
        return None
    entry = catalog.find(found)
    if entry is not None and entry.kind is RelationKind.VIEW:
        return catalog.view(found).fingerprint
    return catalog.function(found).fingerprint if catalog.has_function(found) else None


def relation(name: str) -> RelationName | None:
    """Parses a name in three parts, whose last part may contain dots; returns None for a path."""
    try:
        database, schema, identifier = name.split(".", _PARTS)
        return RelationName(database, schema, identifier)
    except (ValueError, InvalidNameError):
        return None


def names_published_versions(catalog: Catalog, facts: BuildFacts) -> bool:
    """Returns whether the facts name no version that exists on a branch only."""
    return not any(_is_of_branch(log_of(catalog, name), read.version) for name, read in facts.tables.items())


def _is_of_branch(log: DeltaLog | None, version: int) -> bool:
    """Returns whether the branch that the log shows has a version of this number of its own."""
    branch = branch_of(log)
    return branch is not None and version > branch.base_version


def log_of(catalog: Catalog, name: str) -> DeltaLog | None:
    """Returns the log of a table by its full name, or None if no table has the name."""
    found = relation(name)
    try:
        return None if found is None else catalog.table(found)
    except (RelationNotFoundError, SchemaNotFoundError, NotATableError):
        return None


def _table(catalog: Catalog, name: str, read: TableState, is_published: bool) -> PresentTable | None:
    log = log_of(catalog, name)
    if log is None:
        return None
    snapshot = log.snapshot()
    state = TableState.of(snapshot.metadata, snapshot.version)
    if state.table_id != read.table_id or (is_published and _is_of_branch(log, read.version)):
        return PresentTable(state, None)
    changed = last_change(log, snapshot.version, read.version)
    if changed is None or changed == read.version:
        return PresentTable(state, changed, doubt=None if changed is None else other_version(log, read))
    return PresentTable(state, changed, max(commit.timestamp_ms for commit in log.commits(changed, changed)))


def other_version(log: DeltaLog, read: TableState) -> str | None:
    """Returns why a version may have other files than the version of its number that was read; None if it has not.

    A copy of the table's folder, put in its place, has the table's id, and its next commits have the same numbers.
    """
    if read.content is None:
        return None
    if not read.content:
        return f"may have changed: the last build did not record which files v{read.version} had"
    try:
        newest = log.snapshot()
        snapshot = newest if newest.version == read.version else log.snapshot_at(read.version)
    except VersionNotFoundError:
        return f"may have changed: its log no longer contains v{read.version}"
    if snapshot.content == read.content:
        return None
    return f"was restored from a copy: its v{read.version} is another version than the v{read.version} that was read"


def _changes(commit: Commit) -> bool:
    return commit.changes_rows or any(isinstance(action, Metadata) for action in commit.actions)


def _ended(commit: Commit) -> dict[str, tuple[str, ...]]:
    """Returns the build whose following work has been done, as the commit says, with what that work makes unknown."""
    body = commit.info.extra.get(ENDED_KEY)
    ends = body.get("of") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or not isinstance(ends, str):
        return {}
    unknown = body.get("unknown")
    return {ends: tuple(map(str, unknown)) if isinstance(unknown, list) else ()}


def _changed_since(log: DeltaLog, build: Commit, later: Iterable[Commit]) -> str | None:
    """Returns the newest change of the table's rows or columns after the build, if any."""
    later = list(later)
    changed = next((each for each in later if each.changes_rows), None)
    if changed is None and any(isinstance(action, Metadata) for each in later for action in each.actions):
        changed = _changed_columns(log, build, later)
    return None if changed is None else _changed_by(log, changed)


def _changed_beside(log: DeltaLog, build: Commit, before: Iterator[Commit]) -> str | None:
    """Returns the change of rows that a build has not seen: committed after the version that it read, and before it.

    Args:
        before: the commits before the build, newest first, as far as the log still has them.
    """
    oldest = build.version
    first = oldest if build.info.read_version is None else build.info.read_version + 1
    while oldest > first:
        commit = next(before, None)
        if commit is None:
            return f"{log.name} may have been changed while it was built"
        if commit.changes_rows:
            return _changed_by(log, commit)
        oldest = commit.version
    return None


def _changed_by(log: DeltaLog, commit: Commit) -> str:
    return f"{log.name} was changed by v{commit.version} ({commit.info.operation or 'an unnamed operation'})"


def _changed_columns(log: DeltaLog, build: Commit, later: Iterable[Commit]) -> Commit | None:
    before, now = log.snapshot_at(build.version).metadata, log.snapshot().metadata
    if TableState.of(before, 0) == TableState.of(now, 0):
        return None
    return next(each for each in later if any(isinstance(action, Metadata) for action in each.actions))


def _of_dbt(commit: Commit, name: str) -> str | None:
    origin = commit.info.extra.get("dbt")
    found = origin.get(name) if isinstance(origin, dict) else None
    return found if isinstance(found, str) else None
