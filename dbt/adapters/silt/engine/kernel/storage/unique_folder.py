"""The folder of a log that is never used for another table: whoever has read it asks nothing to know it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PutResult, Store, joined

_COMMIT: Final = ".json"


@dataclass(frozen=True)
class UniqueFolder:
    """A prefix that only one table has ever had.

    Args:
        witness: an object of it that is there as long as the table is; None where none is known yet.
    """

    store: Store
    folder: str
    witness: FileStatus | None = None

    def known_by(self, file: FileStatus) -> UniqueFolder:
        return self if file == self.witness else replace(self, witness=file)

    def is_current(self) -> bool:
        """True: there is no other incarnation. That a table was dropped, its catalog and its next commit tell."""
        return True

    def put_if_absent(self, name: str, data: bytes) -> PutResult:
        """Looks after a commit whether the table is still there; what is not a commit means nothing without it.

        A drop ends the log by a commit, which a late one conflicts with, and then deletes what is there. What is
        written after that finds the witness gone; it is deleted again, and nobody else can have written it. One that
        is there already may be of this writer, by a try whose answer was lost.
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
