"""The folders of a store whose folders are only prefixes: of a log, and of all files at once.

A log's folder is identified by a file in it, or is never reused for another table, so that it needs no check.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PutResult, Store, joined

if TYPE_CHECKING:
    from typing import Self

_COMMIT: Final = ".json"


@dataclass(frozen=True)
class _Prefix:
    """A prefix, with an object in it that is unchanged as long as the table exists, if an object is known."""

    store: Store
    folder: str
    witness: FileStatus | None = None

    def known_by(self, file: FileStatus) -> Self:
        return self if file == self.witness else replace(self, witness=file)

    def _is_witness_unchanged(self) -> bool:
        """Returns whether the object exists unchanged; True if no object is known."""
        if self.witness is None:
            return True
        found = self.store.status(self.witness.path)
        return found is not None and found.has_content_of(self.witness)


@dataclass(frozen=True)
class PrefixFolder(_Prefix):
    """A prefix, distinguished from the same prefix at another time by an object in it that must not change."""

    def is_current(self) -> bool:
        """Returns whether the file that identifies the folder is unchanged; True if no file identifies it."""
        return self._is_witness_unchanged()

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Writes a file, and checks the file that identifies the folder before and after the write.

        A drop deletes until the folder is empty, so an object that the drop did not see was written after the
        identifying file was deleted. Then the second check fails, and the object is deleted again if it still has this
        content; an object that a new table has written at the same path is kept. No service deletes conditionally, so
        a new table's commit of the same version is lost if it is written between that read and the deletion. The
        identifying file must be a file that no clean-up of the log deletes, because that looks the same as a drop.
        """
        if not self.is_current():
            raise ObjectMissing(joined(self.store.root, self.folder))
        path = joined(self.folder, name)
        result = self.store.put_if_absent(path, data)
        if result is PutResult.CREATED and not self.is_current():
            with contextlib.suppress(ObjectMissing):
                if self.store.read(path) == data:
                    self.store.delete(path)
            raise ObjectMissing(joined(self.store.root, self.folder))
        return result


@dataclass(frozen=True)
class UniqueFolder(_Prefix):
    """A prefix that belongs to a single table forever."""

    def is_current(self) -> bool:
        """Returns True: no other incarnation exists. The catalog and the next commit detect that a table is dropped."""
        return True

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Writes a file and, if it is a commit, checks afterwards that the table still exists.

        Other files have no effect without a commit. A drop ends the log with a commit, so that a late commit conflicts
        with it, and then deletes the files. A commit that is written even later is deleted again if the witness is
        missing, or replaced by another late commit: no other writer can have written it. A commit that already existed
        is kept, as this writer may have written it in a try whose answer was lost. The witness must be a file that no
        clean-up of the log deletes, because that looks the same as a drop.
        """
        path = joined(self.folder, name)
        result = self.store.put_if_absent(path, data)
        if name.endswith(_COMMIT) and not self._is_witness_unchanged():
            if result is PutResult.CREATED:
                self.store.delete(path)
            raise ObjectMissing(joined(self.store.root, self.folder))
        return result


def pinned(store: Store, folder: str) -> PrefixFolder | UniqueFolder:
    """Returns the folder of a store whose folders are only prefixes."""
    return UniqueFolder(store, folder) if store.is_never_reused else PrefixFolder(store, folder)


class ListedTree:
    """The folders of listed files.

    Args:
        files: all files of the store; empty files are left out, because Hadoop marks folders with them.
    """

    def __init__(self, files: Iterable[FileStatus]) -> None:
        self._files: dict[str, list[FileStatus]] = {"": []}
        self._folders: dict[str, set[str]] = defaultdict(set)
        for file in files:
            if file.size:
                self._add(file)

    def content(self, folder: str) -> tuple[list[FileStatus], list[str]]:
        """See `Tree.content`."""
        if folder not in self._files and folder not in self._folders:
            raise ObjectMissing(folder)
        files = sorted(self._files.get(folder, ()), key=lambda file: file.name)
        return files, sorted(self._folders.get(folder, ()))

    def _add(self, file: FileStatus) -> None:
        folder = file.path.rpartition("/")[0]
        self._files.setdefault(folder, []).append(file)
        while folder:
            above, _, name = folder.rpartition("/")
            self._folders[above].add(name)
            folder = above
