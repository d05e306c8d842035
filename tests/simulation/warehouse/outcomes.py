"""Records the outcomes of a simulation's operations, and decides whether an error has a cause."""

from __future__ import annotations

from collections import Counter

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    CommitAttemptsExhaustedError,
    ConcurrentDropError,
    ConcurrentModificationError,
    DataFileMissingError,
    NotATableError,
    RelationExistsError,
    RelationNotFoundError,
    SiltError,
)
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from tests.simulation.warehouse.oracle import Attempt, Look, Violation, is_end
from tests.simulation.warehouse.process import Process
from tests.simulation.warehouse.world import DATABASE, SCHEMA, World

ACCOUNTS, LEDGER, QUEUE = (RelationName(DATABASE, SCHEMA, name) for name in ("accounts", "ledger", "queue"))
"""Only the queue is dropped and re-created."""

NAMES = (ACCOUNTS, LEDGER, QUEUE)

_CONFLICTS = (ConcurrentModificationError, CommitAttemptsExhaustedError)
_GONE = (
    ConcurrentDropError,
    RelationNotFoundError,
    RelationExistsError,
    NotATableError,
    DataFileMissingError,
    ObjectMissing,
)
_VERSION_GONE = "exists, and then that it does not"
"""A writer was refused because its version existed, which a drop or a clean-up deleted before its `txnId` was read.

An earlier copy of the same request may have written the version, so the writer does not know.
"""
_OLDER_VERSION = "the newest version in the storage is"
"""In an object store, a late writer has put a version into an emptied log, and deleted it after it was read."""
_NO_FIRST_VERSION = "a gap: 00000000000000000000.json is missing"
"""In an object store, the request of a writer that has crashed arrives in an emptied log."""


class Outcomes:
    """The outcomes of the operations in one world.

    Attributes:
        attempts: the runs of statements, by number.
        looks: the contents that were read.
        counts: the operations by kind and outcome.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.attempts: list[Attempt] = []
        self.looks: list[Look] = []
        self.counts: Counter[str] = Counter()

    def judge(
        self,
        process: Process,
        names: tuple[RelationName, ...],
        error: Exception,
        strikes: int,
    ) -> None:
        """Accepts a conflict, an error after a fault, and an error that a drop or a clean-up explains.

        Args:
            strikes: the faults of the process before the operation.

        Raises:
            Violation: if the error has no cause.
        """
        self.world.note(f"{process.name}: {error!r}")
        self.counts[type(error).__name__] += 1
        is_conflict = isinstance(error, _CONFLICTS) and not isinstance(error, ConcurrentDropError)
        if is_conflict or (QUEUE in names and self._is_of_drop(error)) or self._is_of_clean_up(error):
            return
        if process.strikes > strikes and isinstance(error, SiltError):
            return
        raise Violation(f"an error without a cause: {error!r}") from error

    def _is_of_clean_up(self, error: Exception) -> bool:
        """Returns whether a writer met a clean-up that had deleted the version which refused it, and wrote it again."""
        return _VERSION_GONE in str(error) and any(landing.is_stray for landing in self.world.landings)

    def _is_of_drop(self, error: Exception) -> bool:
        """Returns whether the error is one that a drop of the queue causes, and the queue was dropped."""
        was_dropped = any(is_end(landing) for landing in self.world.landings)
        late = not self.world.storage.has_folders and any(
            each in str(error) for each in (_OLDER_VERSION, _NO_FIRST_VERSION)
        )
        return was_dropped and (isinstance(error, _GONE) or _VERSION_GONE in str(error) or late)
