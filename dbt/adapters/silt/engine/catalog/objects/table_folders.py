"""The folders of tables in an object store: their names, and the deletion of folders that no name refers to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.catalog.objects.names_register import NamesRegister
from dbt.adapters.silt.engine.catalog.objects.table_ends import TableEnds
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store

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
        """Deletes the files of tables that ended long ago, which are no longer read."""
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
