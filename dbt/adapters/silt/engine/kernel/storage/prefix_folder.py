"""The folder of a log where folders are only prefixes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PutResult, Store, joined


@dataclass(frozen=True)
class PrefixFolder:
    """A prefix, distinguished from the same prefix at another time by an object in it that must stay unchanged."""

    store: Store
    folder: str
    witness: FileStatus | None = None

    def known_by(self, file: FileStatus) -> PrefixFolder:
        return self if file == self.witness else replace(self, witness=file)

    def is_current(self) -> bool:
        """Whether the file that identifies the folder is unchanged; True where there is no such file."""
        if self.witness is None:
            return True
        found = self.store.status(self.witness.path)
        return found is not None and found.has_content_of(self.witness)

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Checks the file that identifies the folder before and after the write.

        A drop deletes until nothing is left, so an object that the drop did not see was written after that file was
        deleted: then the second check fails, and the object is deleted again if it still holds this very content. What
        a table that was made there since has put at the same path stays. No service deletes on a condition, so between
        the look and the deletion a moment is left; a successor's commit of that version would have to fall into it.
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
