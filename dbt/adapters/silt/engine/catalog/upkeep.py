"""Surveys tables for upkeep, from their logs alone: their files, how often they are read, and why upkeep must wait."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.engine.kernel.log.history import newest_heads
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.maintenance.bins import TARGET_FILE_SIZE
from dbt.adapters.silt.engine.kernel.maintenance.file_states import files_of
from dbt.adapters.silt.engine.kernel.maintenance.upkeep import Surveyed, TableState, Uses, reads_of
from dbt.adapters.silt.engine.kernel.table.clustering import clustering_columns
from dbt.adapters.silt.engine.kernel.table.features import check_writable
from dbt.adapters.silt.engine.kernel.table.paths import is_absolute

_READERS: Final = 8
_LATELY_MS: Final = 7 * 24 * 60 * 60 * 1000
_AUTO_COMPACT: Final = "delta.autoOptimize.autoCompact"

_GONE = (errors.RelationNotFoundError, errors.SchemaNotFoundError)


def tables_of(catalog: Catalog, database: str) -> list[RelationName]:
    """Returns the names of the tables of a database, sorted."""
    return [each.name for each in catalog.all_relations(database) if each.kind is RelationKind.TABLE]


def statement_for(catalog: Catalog, names: Iterable[RelationName], budget: str, in_use: Collection[str]) -> str | None:
    """Returns the statement that keeps up tables within a budget, or None if none of them has anything to do.

    Args:
        in_use: the names of the tables that other commands write: they wait.

    Raises:
        StorageError: if the storage failed.
    """
    free = [name for name in names if str(name) not in in_use]
    if not any(each.state.has_work for each in survey(catalog, free)):
        return None
    return _statement(free, budget)


def _statement(names: Iterable[RelationName], budget: str) -> str:
    quoted = (".".join(map(quote, (each.database, each.schema, each.identifier))) for each in names)
    return f"optimize tables ({', '.join(quoted)}) budget {string_literal(budget)}"


def survey(catalog: Catalog, names: Iterable[RelationName]) -> list[Surveyed]:
    """Surveys tables; leaves out tables that are dropped meanwhile.

    Raises:
        StorageError: if the storage failed.
    """
    with ThreadPoolExecutor(_READERS) as pool:
        found = [each for each in pool.map(partial(_surveyed, catalog), names) if each is not None]
    reads = reads_of(read for each in found for read in each.reads)
    return [replace(each, state=replace(each.state, reads=reads.get(each.state.table, 0))) for each in found]


def uses_in(catalog: Catalog) -> Uses:
    """Returns the uses of tables' files in a warehouse."""
    return Uses(catalog.branches_using, catalog.held_files, partial(_files_of_clones, catalog))


def _files_of_clones(catalog: Catalog) -> dict[str, list[str]]:
    """Returns the files that each table of the warehouse names outside of its folder, as a shallow clone does.

    Raises:
        SiltError: if a table cannot be read, and so may need any file.
    """
    found = {}
    for name in catalog.all_tables():
        with contextlib.suppress(*_GONE):
            files = vacuum.named_files(catalog.table(name).snapshot().files_without_statistics)
            found[str(name)] = list(filter(is_absolute, files))
    return {name: files for name, files in found.items() if files}


def _surveyed(catalog: Catalog, name: RelationName) -> Surveyed | None:
    try:
        log = catalog.table(name)
    except _GONE:
        return None
    try:
        return _of_log(catalog, log)
    except errors.SiltError as error:
        return Surveyed(log, TableState(log.name, waits=error.problem))


def _of_log(catalog: Catalog, log: DeltaLog) -> Surveyed:
    snapshot = log.snapshot()
    target = snapshot.properties.target_file_size or TARGET_FILE_SIZE
    waits = _reason_to_wait(catalog, log, snapshot)
    deletable = 0 if waits else _deletable(catalog, log, snapshot)
    is_clustered = bool(clustering_columns(snapshot.domains))
    files = files_of(snapshot)
    state = TableState(log.name, files, target, deletable=deletable, waits=waits, is_clustered=is_clustered)
    return Surveyed(log, state, tuple(_reads(log)))


def _reason_to_wait(catalog: Catalog, log: DeltaLog, snapshot: Snapshot) -> str:
    """Returns why upkeep leaves a table alone; empty if it does not.

    Raises:
        SiltError: if this engine cannot write the table.
    """
    check_writable(snapshot.protocol, log.name, snapshot.metadata)
    snapshot.check_undoubted()
    log.store.check_writable()
    if snapshot.metadata.configuration.get(_AUTO_COMPACT, "").lower() == "false":
        return f"its property `{_AUTO_COMPACT}` is false"
    if catalog.branches_using(log):
        return "a run or branch that is not published uses it"
    return ""


def _deletable(catalog: Catalog, log: DeltaLog, snapshot: Snapshot) -> int | None:
    """Returns the bytes of files whose retention is over, or None if the log no longer tells them."""
    cutoff_ms = log.clock.now_ms() - snapshot.properties.deleted_file_retention_ms
    if vacuum.newest_version_at(log, cutoff_ms) is None:
        return 0
    held = (path for files in catalog.held_files(log).values() for path in files)
    try:
        return vacuum.named_by_log(log, vacuum.needed(log, snapshot, cutoff_ms, held), cutoff_ms).size
    except errors.UnsupportedStatementError:
        return None


def _reads(log: DeltaLog) -> Iterator[Mapping[str, object]]:
    """Yields the versions that each commit of the last week has read, by table name."""
    since = log.clock.now_ms() - _LATELY_MS
    for head in newest_heads(log.store, log.name):
        if head.timestamp_ms < since:
            return
        yield head.info.read_versions or {}
