"""Lists tables, keeps an open handle for each folder, and ends the logs of dropped tables."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

from dbt.adapters.silt.engine.catalog import layout
from dbt.adapters.silt.engine.catalog.documents import VIEW_SUFFIX
from dbt.adapters.silt.engine.catalog.names import RelationName, is_identifier
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    NoSpaceError,
    TableDamagedError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import Action, CommitInfo, Metadata, serialize
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path, parse_log_name
from dbt.adapters.silt.engine.kernel.transaction.changes import DROP_OPERATION

DROPPED_PROPERTY = "silt.dropped"

_DROP_MARKER = "_drop.json"


class Tables:
    """The open handles, by folder. All methods may be called from several threads.

    A handle caches its log, and notices by itself when another table was created in its folder.

    Args:
        clock: given to each handle.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, DeltaLog] = {}
        self._guard = threading.Lock()

    def log(self, store: Store, name: str) -> DeltaLog:
        """Returns the handle of the table whose folder is the store's root; whether it exists is not checked."""
        with self._guard:
            held = self._open.get(store.root)
            if held is None or held.name != name:
                held = self._open[store.root] = DeltaLog(store, name, self._clock)
            return held

    def forget(self, store: Store) -> None:
        """Drops the handle of that folder."""
        with self._guard:
            self._open.pop(store.root, None)

    def log_of(self, store: Store, name: RelationName) -> DeltaLog:
        """Returns the handle of a table of the database whose store is given; whether it exists is not checked."""
        return self.log(store.child(layout.table_folder(name)), str(name))

    def has(self, store: Store, name: RelationName) -> bool:
        """Whether there is a table of that name."""
        return is_table(self.log_of(store, name))

    def names(self, store: Store, database: str, schema: str) -> list[RelationName]:
        """The names of a schema's tables.

        Raises:
            SchemaNotFoundError: the schema was dropped meanwhile.
        """
        try:
            folders = store.list_folders(schema)
        except ObjectMissing as error:
            raise layout.no_schema(f"{database}.{schema}") from error
        found = (RelationName(database, schema, folder) for folder in folders if is_identifier(folder))
        return [name for name in found if self.has(store, name)]

    def end(self, store: Store, name: RelationName) -> None:
        """Ends a table; see `end_log`."""
        end_log(self.log_of(store, name), self._clock)

    def drop(self, store: Store, name: RelationName, version: int | None = None) -> None:
        """Ends a table; deletes the view that it hides first, so that none appears. `version` as in `end_log`.

        Where there is no space to end it, its folder is moved away at once: a writer that comes then finds another
        folder than the one it has pinned, and loses as well.

        Raises:
            ConcurrentModificationError: see `end_log`.
            NoSpaceError: there is no space, and only `version` is to be dropped: that takes a commit.
        """
        store.delete(layout.document_path(name, VIEW_SUFFIX))
        try:
            end_log(self.log_of(store, name), self._clock, version)
        except NoSpaceError:
            if version is not None:
                raise
            layout.move_to_trash(store, layout.table_folder(name), self._clock)
            self.forget(store.child(layout.table_folder(name)))

    def clear(self, store: Store, name: RelationName) -> bool:
        """Moves away the folder of a table whose log has ended; returns whether there was one."""
        log = self.log_of(store, name)
        ended = log.exists() and is_dropped(log)
        if ended:
            layout.move_to_trash(store, layout.table_folder(name), self._clock)
        self.forget(log.store)
        return ended


def is_table(log: DeltaLog) -> bool:
    """Whether there is a table that was not dropped, damaged or not."""
    has_log = log.store.status(commit_path(0)) is not None or log.exists()
    return has_log and not is_dropped(log)


def end_log(log: DeltaLog, clock: Clock, version: int | None = None) -> None:
    """Commits the last version of a table: it changes the metadata, so every concurrent writer conflicts with it.

    A drop conflicts with nothing, so it takes the next free version and does not look at other commits. It needs no
    snapshot: a log that is damaged, or of an unknown protocol, is ended as well. A marker is written before the commit,
    so that a drop that is cut off right after it is recognised (`is_dropped`).

    Args:
        version: drops the table only if this is its newest version; None drops any version.

    Raises:
        ConcurrentModificationError: the newest version is another one; the table is unchanged.
    """
    metadata = _readable_metadata(log)
    log.store.put(_DROP_MARKER, json.dumps({"readable": metadata is not None}).encode())
    newest = _newest_version(log.store)
    data = serialize(_last_actions(metadata, clock))
    while version in (None, newest) and log.store.put_if_absent(commit_path(newest + 1), data) is PutResult.EXISTS:
        newest += 1
    if version not in (None, newest):
        raise ConcurrentModificationError(
            f"another writer has committed after version {version}: it is not dropped", table=log.name, version=newest
        )


def is_dropped(log: DeltaLog) -> bool:
    """Whether a drop has ended the log, and was cut off before it moved the folder away."""
    try:
        marker = json.loads(log.store.read(_DROP_MARKER))
    except ObjectMissing:
        return False
    metadata = _readable_metadata(log)
    if metadata is None:
        return not marker["readable"]
    return DROPPED_PROPERTY in metadata.configuration


def _last_actions(metadata: Metadata | None, clock: Clock) -> list[Action]:
    now = clock.now_ms()
    info = CommitInfo(timestamp=now, operation=DROP_OPERATION, is_blind_append=False, txn_id=clock.new_id())
    if metadata is None:
        return [info]
    return [info, replace(metadata, configuration={**metadata.configuration, DROPPED_PROPERTY: str(now)})]


def _readable_metadata(log: DeltaLog) -> Metadata | None:
    try:
        return log.snapshot().metadata
    except (TableDamagedError, UnsupportedFeatureError):
        return None


def _newest_version(store: Store) -> int:
    """Returns the newest version that a file of the log is named after, damaged or not; -1 where there is none."""
    try:
        files = store.list_from(LOG_FOLDER)
    except ObjectMissing:
        return -1
    parsed = (parse_log_name(file.name) for file in files)
    return max((name.version for name in parsed if name is not None), default=-1)
