"""The folder of a log that is never reused for another table, so its identity needs no check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PutResult, Store, joined

_COMMIT: Final = ".json"


@dataclass(frozen=True)
class UniqueFolder:
    """A prefix that belongs to a single table forever.

    Args:
        witness: an object in it that exists as long as the table, if already known.
    """

    store: Store
    folder: str
    witness: FileStatus | None = None

    def known_by(self, file: FileStatus) -> UniqueFolder:
        return self if file == self.witness else replace(self, witness=file)

    def is_current(self) -> bool:
        """Returns True: no other incarnation exists. The catalog and the next commit detect that a table is dropped."""
        return True

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Writes a file and, if it is a commit, checks afterwards that the table still exists.

        Other files have no effect without a commit. A drop ends the log with a commit, which a late commit conflicts
        with, and then deletes the files. A commit that is written after that finds the witness missing and is deleted
        again: no other writer can have written it. A commit that already existed is kept, as this writer may have
        written it in a try whose answer was lost.
        """
        path = joined(self.folder, name)
        result = self.store.put_if_absent(path, data)
        if name.endswith(_COMMIT) and not self._is_there():
            if result is PutResult.CREATED:
                self.store.delete(path)
            raise ObjectMissing(joined(self.store.root, self.folder))
        return result

    def _is_there(self) -> bool:
        return self.witness is None or self.store.status(self.witness.path) is not None
