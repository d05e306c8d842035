"""The folder of a log in a store whose folders are only prefixes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PutResult, Store, joined


@dataclass(frozen=True)
class PrefixFolder:
    """A prefix, distinguished from the same prefix at another time by an object in it that must not change."""

    store: Store
    folder: str
    witness: FileStatus | None = None

    def known_by(self, file: FileStatus) -> PrefixFolder:
        return self if file == self.witness else replace(self, witness=file)

    def is_current(self) -> bool:
        """Returns whether the file that identifies the folder is unchanged; True if no file identifies it."""
        if self.witness is None:
            return True
        found = self.store.status(self.witness.path)
        return found is not None and found.has_content_of(self.witness)

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Writes a file, and checks the file that identifies the folder before and after the write.

        A drop deletes until the folder is empty, so an object that the drop did not see was written after the
        identifying file was deleted. Then the second check fails, and the object is deleted again if it still has this
        content; an object that a new table has written at the same path is kept. No service deletes conditionally, so
        a new table's commit of the same version is lost if it is written between that read and the deletion.
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
