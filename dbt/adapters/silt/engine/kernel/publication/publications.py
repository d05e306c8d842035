"""Publications: completes or undoes the publications of a database, by whichever process meets them.

    note the names  ->  put the commit of each table  ->  check the tables that were only read  ->  decide  ->  finish

The protocol, and why each step is needed, is decision 0088; `tests/publication/model.py` explores its states.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol, cast

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, CorruptLogError, SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication import documents
from dbt.adapters.silt.engine.kernel.publication.attempts import Completed, commit_across
from dbt.adapters.silt.engine.kernel.publication.foreign_keys import ForeignKeys
from dbt.adapters.silt.engine.kernel.publication.prepared import PreparedTable, Settle, VersionTaken
from dbt.adapters.silt.engine.kernel.publication.publication_tables import existing_table, new_table
from dbt.adapters.silt.engine.kernel.publication.undo import undo
from dbt.adapters.silt.engine.kernel.storage.store import PrefixStore, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit

_AT_ONCE: Final = 16
_PATIENCE_MS: Final = 10_000
"""How long a reader leaves a publication to the process that began it, in milliseconds."""
_MOST_FOR_READER: Final = 200
"""The most names and tables of a publication that a reader settles; a larger publication is left to the next writer."""
_MOST_WAITING: Final = 50
"""The most publications that wait for each other."""


class _Beaten(Exception):
    """A publication was decided while a process was waiting to continue it."""

    def __init__(self, publication: int) -> None:
        super().__init__(publication)
        self.publication = publication


class PublishedNames(Protocol):
    """The names of a database, as its publications change them."""

    def note(self, begun: documents.Begun, settle: Settle, check: Callable[[], None]) -> None:
        """Notes the changes of a publication. Readers look up its decision, and see the changes if it is published.

        Args:
            settle: settles another publication that changes one of the names.
            check: raises an exception, which is passed on, if the publication is decided; called right before each try.

        Raises:
            ConcurrentModificationError: if a name has another meaning than before the publication.
            StorageError: if the storage failed.
        """
        ...

    def finish(self, begun: documents.Begun, is_published: bool) -> None:
        """Makes the changes of a decided publication, or removes what `note` noted; repeating it changes nothing.

        Raises:
            StorageError: if the storage failed.
        """
        ...

    def forget(self, meaning: documents.Meaning) -> None:
        """Deletes the definition of a view or function that no name refers to; a table is left as it is."""
        ...


class Publications:
    """The publications of a database. Thread-safe.

    Args:
        store: the database's store.
        clock: gives the time and new ids.
        at_once: how many commits are put at the same time.
    """

    names: PublishedNames
    """The names of the database; set by its catalog before a publication changes a name."""
    cuts: Callable[[], Iterable[int]] = tuple
    """Returns the times of the beginning of named branches; set by the database's catalog."""

    def __init__(self, store: Store, clock: Clock, at_once: int = _AT_ONCE) -> None:
        self.store = store
        self.clock = clock
        self.documents = documents.Documents(store, clock)
        self._at_once = at_once
        self._published: set[int] = set()
        self._lock = threading.Lock()

    def oldest_cut_ms(self) -> int | None:
        """Returns the time of the beginning of the oldest named branch; see `PublicationRegister`."""
        return min(self.cuts(), default=None)

    def is_published(self, publication: int) -> bool:
        """Returns whether readers may see the commits of a publication; one request, and none if it is known.

        A publication that its process seems to have left is settled first, if the storage can be written.

        Raises:
            CorruptLogError: if its document cannot be read.
            StorageError: if its document cannot be read.
        """
        if self.is_decided_published(publication):
            return True
        if self.clock.now_ms() - documents.began_ms(publication) < _PATIENCE_MS:
            return False
        try:
            begun = self.documents.begun(publication)
            if begun is not None and len(begun.names) + len(begun.parts) > _MOST_FOR_READER:
                return self.is_decided_published(publication)
            return self.settle(publication)
        except SiltError:
            return False

    def is_decided_published(self, publication: int) -> bool:
        """Returns whether a publication is published, without settling it. Raises as `is_published`."""
        if publication in self._published:
            return True
        found = self._found(publication)
        return found is None or (isinstance(found, documents.Decision) and self._noted(found))

    def settle(self, publication: int, waiting: tuple[int, ...] = ()) -> bool:
        """Completes a publication, or undoes it; returns whether it is published.

        Args:
            waiting: the publications that wait for this one, the first outermost.

        Raises:
            CorruptLogError: if a log or a document cannot be read.
            StorageError: if the storage failed before it was settled.
        """
        if publication in self._published:
            return True
        found = self._found(publication)
        if found is None:
            return True
        if isinstance(found, documents.Decision):
            self._finish(found, self.documents.begun(publication))
            return self._noted(found)
        return self._noted(self._continued(found, waiting).decision)

    def complete(
        self, begun: documents.Begun, tables: Sequence[PreparedTable], waiting: tuple[int, ...] = ()
    ) -> Completed:
        """Puts the commits of a publication that has begun, and decides it, unless another process does so first.

        Raises:
            CommitStateUnknownError, StorageError: if the storage failed; the publication is not decided.
        """
        settle = partial(self._settle_for, begun.publication, waiting)
        try:
            if begun.names:
                self.names.note(begun, settle, partial(self._check_undecided, begun.publication))
            versions = self._put_all([each for each in tables if each.is_changed], settle)
            for each in tables:
                if not each.is_changed:
                    each.checked(settle, begun.publication)
        except ConcurrentModificationError as error:
            return self._aborted(begun, error)
        except VersionTaken:
            return self._aborted(begun)
        except _Beaten as beaten:
            if beaten.publication != begun.publication:
                raise
            return self._aborted(begun)
        decision = self.documents.decide(begun, documents.Status.PUBLISHED, versions)
        self._noted(decision)
        self._finish(decision, begun)
        return Completed(decision)

    def abort(self, begun: documents.Begun) -> documents.Decision:
        """Decides that a publication is aborted, unless it is decided, and undoes its commits.

        Raises:
            CommitStateUnknownError, StorageError: if the storage failed; the publication may not be decided.
        """
        decision = self.documents.decide(begun, documents.Status.ABORTED, {})
        self._finish(decision, begun)
        return decision

    def close(self, publication: int, status: documents.Status = documents.Status.ABORTED) -> bool:
        """Ends a publication that may not have begun, which then never takes effect; returns whether it is published.

        Args:
            status: the decision about a publication that has not begun: `published` if it changes nothing.

        Raises:
            As `settle`.
        """
        if self.documents.begun(publication) is not None:
            return self.settle(publication)
        self.store.make_folder(documents.FOLDER)
        empty = documents.Begun(publication, self.clock.now_ms(), ())
        return self._noted(self.documents.decide(empty, status, {}))

    def commit_across(self, log: DeltaLog, pending: PendingCommit, info: CommitInfo) -> int | None:
        """Commits changes that depend on other tables by enforced foreign keys; see `attempts.commit_across`."""
        return commit_across(self, log, pending, info)

    def check_droppable(self, log: DeltaLog, snapshot: Snapshot) -> None:
        """Checks that no enforced foreign key references a table; see `ForeignKeys.check_droppable`."""
        ForeignKeys(self.log_of, self.location_of).check_droppable(log, snapshot)

    def location_of(self, log: DeltaLog) -> str:
        """Returns the folder of a table, relative to the database's root."""
        return log.store.root.removeprefix(self.store.root.rstrip("/")).lstrip("/")

    def _continued(self, begun: documents.Begun, waiting: tuple[int, ...]) -> Completed:
        try:
            tables = [self._prepared(part) for part in begun.parts]
        except ConcurrentModificationError as error:
            return self._aborted(begun, error)
        return self.complete(begun, tables, waiting)

    def _settle_for(self, own: int, waiting: tuple[int, ...], other: int) -> bool:
        """Settles a publication that `own` met; of publications that wait for each other, aborts the latest.

        Raises:
            _Beaten: if one of them is decided thereby, up to the call that completes it.
        """
        circle = (*waiting, own)
        if len(circle) > _MOST_WAITING:
            raise CorruptLogError(
                f"more than {_MOST_WAITING} publications wait for each other, from {circle[0]} to {other}",
                remedy=f"Move the documents of publications that no program works on out of {documents.FOLDER}",
            )
        if other in circle:
            latest = max(circle[circle.index(other) :])
            begun = self.documents.begun(latest)
            if begun is not None:
                self.documents.decide(begun, documents.Status.ABORTED, {})
            raise _Beaten(latest)
        is_published = self.settle(other, circle)
        self._check_undecided(own)
        return is_published

    def _check_undecided(self, publication: int) -> None:
        if self.documents.decision(publication) is not None:
            raise _Beaten(publication)

    def _put_all(self, tables: Sequence[PreparedTable], settle: Settle) -> Mapping[str, int]:
        names = [each.log.name for each in tables]
        at_once = min(self._at_once, len(tables))
        if at_once < 2:
            return dict(zip(names, [each.put(settle) for each in tables], strict=True))
        with ThreadPoolExecutor(at_once) as pool:
            return dict(zip(names, pool.map(lambda each: each.put(settle), tables), strict=True))

    def _aborted(self, begun: documents.Begun, conflict: ConcurrentModificationError | None = None) -> Completed:
        decision = self.abort(begun)
        self._noted(decision)
        return Completed(decision, conflict if decision.status is documents.Status.ABORTED else None)

    def _finish(self, decision: documents.Decision, begun: documents.Begun | None) -> None:
        """Does what follows a decision: undoes the commits of an aborted publication, changes names, and deletes the
        first document, which is missing if all of that was done.
        """
        is_published = decision.status is documents.Status.PUBLISHED
        # A publication that was closed before it began has a decision without tables.
        for each in decision.tables if begun is None else begun.written:
            if not is_published and each.base != documents.NEW:
                undo(self.log_at(each.location, each.table), decision.publication, each.table_id, each.base)
        if begun is not None and begun.names:
            self.names.finish(begun, is_published)
        self.documents.forget_beginning(decision.publication)

    def _noted(self, decision: documents.Decision) -> bool:
        if decision.status is documents.Status.PUBLISHED:
            with self._lock:
                self._published.add(decision.publication)
        return decision.status is documents.Status.PUBLISHED

    def _found(self, publication: int) -> documents.Decision | documents.Begun | None:
        """Returns the decision, or else the beginning, or None if the documents of an old publication were deleted."""
        decision = self.documents.decision(publication)
        if decision is not None:
            return decision
        # The decision replaces the beginning, possibly between these requests.
        return self.documents.begun(publication) or self.documents.decision(publication)

    def _prepared(self, part: documents.Part) -> PreparedTable:
        log = self.log_at(part.location, part.table)
        return new_table(log, part) if part.base == documents.NEW else existing_table(log, part)

    def log_of(self, location: str, table: str) -> DeltaLog:
        """Returns a handle of a table that reads the log without the commits of undecided publications.

        Args:
            location: its folder, relative to the database's root.
            table: its name, for messages.
        """
        log = self.log_at(location, table)
        log.publications = self
        return log

    def log_at(self, location: str, table: str) -> DeltaLog:
        """Returns a handle of a table that reads its log as it is, with the commits of undecided publications.

        Args:
            location: its folder, relative to the database's root.
            table: its name, for messages.
        """
        child = self.store.child(location)
        store = child if child.has_folders else cast(PrefixStore, child).never_reused()
        return DeltaLog(store, table, self.clock)
