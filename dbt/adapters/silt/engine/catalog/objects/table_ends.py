"""Ends tables of an object store and deletes their folders; names and logs stay consistent after any crash."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.catalog.names import log_end
from dbt.adapters.silt.engine.catalog.names.open_tables import OpenTables
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.objects.names_document import Entry, Mark, Names, TableEntry, ViewEntry
from dbt.adapters.silt.engine.catalog.objects.names_register import NamesRegister
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import NotATableError, StorageError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PrefixStore, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo

_logger = logging.getLogger(__name__)

_RENAME_OPERATION = "RENAME TABLE"


class _MarkGone(Exception):
    """The mark that a writer set no longer exists: a rename stopped the writer, or another writer was faster."""


@dataclass(frozen=True)
class TableEnds:
    """Ends tables, and brings their names up to date.

    Attributes:
        store: the database's store.
        register: the database's names.
        handles: the open tables.
        clock: gives the time and new ids.
    """

    store: PrefixStore
    register: NamesRegister
    handles: OpenTables
    clock: Clock

    def log(self, name: RelationName, entry: TableEntry) -> DeltaLog:
        """Returns the handle of a table."""
        return self.handles.log(self.store.child(entry.location).never_reused(), str(name))

    def current(self, name: RelationName, entry: Entry | None) -> Entry | None:
        """Returns the current entry of a name, given its stored entry: for a marked table, its log is read."""
        if not isinstance(entry, TableEntry) or entry.mark is None or not self._has_ended(name, entry):
            return entry
        return self._successor(name, entry)

    def marked(self, names: Names, name: RelationName, entry: TableEntry) -> Names:
        """Returns the names with the table marked for its enders, which share the mark."""
        if entry.mark is not None and entry.mark.is_ending:
            return names
        return names.with_relation(name, replace(entry, mark=Mark(self.clock.new_id())))

    def end(self, name: RelationName, entry: TableEntry, end: log_end.End) -> bool:
        """Ends a marked table; returns False if it has ended before, or was renamed meanwhile.

        Raises:
            ConcurrentModificationError: if its newest version is not the requested version.
        """

        def check() -> None:
            if self.register.read().find(name) != entry:
                raise _MarkGone

        try:
            return (
                log_end.end_log(self.log(name, entry), self.clock, replace(end, check=check)) is log_end.EndResult.ENDED
            )
        except (_MarkGone, NotATableError, ObjectMissing):
            return False

    def settle(self, name: RelationName, entry: TableEntry, successor: ViewEntry | None) -> None:
        """Updates the name of a table that has ended."""
        now = self.clock.now_ms()

        def settled(names: Names) -> Names:
            found = names.find(name)
            if not isinstance(found, TableEntry) or found.location != entry.location:
                return names
            return names.with_relation(name, successor).with_leftover(entry.location, now)

        self.register.change(settled)
        self.handles.forget(self.store.child(entry.location))

    def settle_if_ended(self, name: RelationName) -> bool:
        """Updates a name whose table was ended by a writer that was interrupted or is still running.

        Returns:
            Whether the name was out of date, as far as this process has seen.
        """
        entry = self.register.last_seen.find(name)
        if not isinstance(entry, TableEntry) or entry.mark is None or not self._has_ended(name, entry):
            return False
        self.settle(name, entry, self._successor(name, entry))
        return True

    def stop(self, name: RelationName, entry: TableEntry) -> TableEntry | None:
        """Stops the writers that may end a table, so that it can be renamed.

        First it changes the mark, which the writers check before each try, then it commits the version that a writer
        may be about to write.

        Returns:
            The entry with an inactive mark, or None if the table has ended, or its name has changed.
        """
        stopped = replace(entry, mark=Mark(self.clock.new_id(), is_ending=False))

        def mark(names: Names) -> Names:
            return names.with_relation(name, stopped) if names.find(name) == entry else names

        self.register.change(mark)
        log = self.log(name, entry)
        while True:
            newest = log_end.newest_version(log.store)
            if self._has_ended(name, entry):
                return None
            info = CommitInfo(operation=_RENAME_OPERATION, is_blind_append=True)
            try:
                snapshot = log.snapshot()
                info = log_end.timed_info(info, snapshot, self.clock)
                if log_end.put_version(log, snapshot, newest + 1, [info]) is PutResult.CREATED:
                    return stopped
            except (ObjectMissing, NotATableError):
                return None

    def delete(self, location: str) -> None:
        """Deletes a folder that no name refers to. A failure is logged; a later change of names tries again."""
        try:
            self.store.delete_folder(location)
            if location in self.register.last_seen.leftovers:
                self.register.change(lambda names: names.with_leftover(location, None))
        except (StorageError, ObjectMissing) as error:
            _logger.warning("files of dropped tables are left in %s/%s: %s", self.store.root, location, error)

    def _has_ended(self, name: RelationName, entry: TableEntry) -> bool:
        log = self.log(name, entry)
        snapshot = log_end.readable(log)
        if snapshot is not None:
            return log_end.is_last(snapshot)
        return log_end.is_dropped(log) or not self._is_named(name, entry)

    def _is_named(self, name: RelationName, entry: TableEntry) -> bool:
        """Returns whether the name still refers to the table: before a log is deleted, its name is settled."""
        found = self.register.read().find(name)
        return isinstance(found, TableEntry) and found.location == entry.location

    def _successor(self, name: RelationName, entry: TableEntry) -> ViewEntry | None:
        snapshot = log_end.readable(self.log(name, entry))
        definition = None if snapshot is None else snapshot.metadata.configuration.get(log_end.REPLACED_BY_PROPERTY)
        return None if definition is None else ViewEntry(definition)


_DAY_MS: Final = 24 * 60 * 60 * 1000
_READERS_MS: Final = _DAY_MS
_CREATION_MS: Final = 7 * _DAY_MS
_ID_LENGTH: Final = 12


def new_location(name: RelationName, clock: Clock) -> str:
    """Returns a folder for a table of that name that is never reused: it contains the time and random digits."""
    unique = clock.new_id().replace("-", "")[:_ID_LENGTH]
    return f"{_folder(name)}/{clock.now_ms():012x}-{unique}"


@dataclass(frozen=True)
class TableFolders:
    """Deletes the leftovers of interrupted statements, and files that other statements were still reading.

    Attributes:
        store: the database's store.
        register: the database's names.
        ends: deletes folders.
        clock: gives the time.
    """

    store: Store
    register: NamesRegister
    ends: TableEnds
    clock: Clock

    def leftovers(self) -> None:
        """Deletes the files of tables that ended long ago, which nothing reads."""
        before = self.clock.now_ms() - _READERS_MS
        names = self.register.last_seen
        for location, since_ms in names.leftovers.items():
            if since_ms < before and not names.has_table_at(location):
                self.ends.delete(location)

    def creations(self, name: RelationName) -> None:
        """Deletes the folders of tables of that name that interrupted creations have not published."""
        before = self.clock.now_ms() - _CREATION_MS
        try:
            folders = self.store.list_folders(_folder(name))
        except ObjectMissing:
            return
        for folder in folders:
            made_ms = _made_ms(folder)
            location = f"{_folder(name)}/{folder}"
            if made_ms is not None and made_ms < before and not self.register.last_seen.refers_to(location):
                self.ends.delete(location)


def _made_ms(folder: str) -> int | None:
    """Returns the time at which `new_location` named a folder, or None if another program named it."""
    time, _, unique = folder.partition("-")
    try:
        return int(time, 16) if len(unique) == _ID_LENGTH else None
    except ValueError:
        return None


def _folder(name: RelationName) -> str:
    return f"{name.schema}/{name.identifier}"
