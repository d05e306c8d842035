"""Compare-and-swap updates of the document with the names of a database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from dbt.adapters.silt.engine.catalog.objects.names_document import Names, parse_names, serialize_names
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import NotWrittenError, SiltError, StorageError
from dbt.adapters.silt.engine.kernel.publication.prepared import Settle
from dbt.adapters.silt.engine.kernel.publication_marks import PublicationRegister, UndecidedPublication
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PrefixStore, PutResult, Tag

DOCUMENT: Final = "_catalog.json"

_ATTEMPTS: Final = 50
_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0


@dataclass(frozen=True)
class _Seen:
    """The result of a read: the names after all published publications, and the stored names with their tag."""

    names: Names
    stored: Names
    tag: Tag | None


class NamesRegister:
    """Reads the names, and changes them atomically. Thread-safe, also across processes.

    The names are those after all published publications.

    Args:
        store: the database's store.
        clock: gives ids, and waits between attempts.
        publications: the database's publications.
    """

    def __init__(self, store: PrefixStore, clock: Clock, publications: PublicationRegister) -> None:
        self._store = store
        self._clock = clock
        self._publications = publications
        self._seen = _Seen(Names(), Names(), None)
        self._changing = threading.Lock()

    @property
    def last_seen(self) -> Names:
        """The names that this process has seen last, without a request."""
        return self._seen.names

    def read(self) -> Names:
        """Returns the current names, by a single request that transfers nothing if they are unchanged, and a request
        for each publication that changes names.
        """
        return self._read().names

    def change(self, edit: Callable[[Names], Names], settle: Settle | None = None) -> Names:
        """Changes the names, as `attempt_change` does, after settling the publications that change the same names.

        Args:
            settle: settles a publication; by default as the database's publications do.
        """
        settle = settle or self._publications.settle
        while True:
            try:
                return self.attempt_change(edit)
            except UndecidedPublication as undecided:
                publication = undecided.publication
                if not settle(publication):
                    self.attempt_change(partial(Names.with_publication, publication=publication, changes=None))
                self._read()

    def attempt_change(self, edit: Callable[[Names], Names], writes_published: bool = False) -> Names:
        """Replaces the names by the result of `edit`; nothing is written if the result is unchanged.

        Several threads take turns. Of several processes one at a time succeeds; the other processes apply their edit
        again to its result. A write without an answer is retried under the same condition, so that it takes place once.

        Args:
            edit: may be called more than once; its errors are raised.
            writes_published: whether to write the changes of published publications even if `edit` changes nothing.

        Returns:
            The names after the change.

        Raises:
            UndecidedPublication: if a publication that is not published changes the same names.
            StorageError: if other writers have changed the names at each attempt, or the storage failed; unless it is a
                NotWrittenError, the change may still take place.
        """
        with self._changing:
            return self._change(edit, writes_published)

    def _change(self, edit: Callable[[Names], Names], writes_published: bool) -> Names:
        tried: set[str] = set()
        seen = self._seen if self._seen.tag is not None else self._read()
        lost: StorageError | None = None
        for attempt in range(_ATTEMPTS):
            names = seen.names
            if not tried.isdisjoint(names.changes):
                return names
            edited = self._edited(edit, seen)
            if edited is not None and edited != (seen.stored if writes_published else names):
                if (publication := names.publication_before(edited)) is not None:
                    raise UndecidedPublication(publication)
                tried.add(id_ := self._clock.new_id())
                try:
                    if self._write(edited := edited.with_change(id_), seen.tag):
                        return edited
                    lost = None
                except NotWrittenError:
                    raise
                except StorageError as error:
                    lost = error
                self._clock.sleep(min(_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S) * self._clock.jitter())
            before, seen = seen.tag, self._read()
            if edited == seen.names and seen.tag == before:
                return seen.names
        raise lost or _contention_error(self._store.root)

    def _edited(self, edit: Callable[[Names], Names], seen: _Seen) -> Names | None:
        """Returns the edited names, or None if the edit failed on names that other writers have changed since."""
        try:
            return edit(seen.names)
        except SiltError:
            if self._read().tag == seen.tag:
                raise
            return None

    def _write(self, names: Names, tag: Tag | None) -> bool:
        """Replaces the names if they still have that tag; returns whether it did."""
        data = serialize_names(names)
        if tag is None:
            return self._store.put_if_absent(DOCUMENT, data) is PutResult.CREATED
        swapped = self._store.swap_if_unchanged(DOCUMENT, data, tag)
        if swapped is not None:
            self._seen = _Seen(names, names, swapped)
        return swapped is not None

    def _read(self) -> _Seen:
        before = self._seen
        stored, tag = before.stored, before.tag
        try:
            found = self._store.read_if_changed(DOCUMENT, tag)
        except ObjectMissing:
            stored, tag = Names(), None
        else:
            if found is not None:
                stored, tag = parse_names(found.data, f"{self._store.root}/{DOCUMENT}"), found.tag
        self._seen = seen = _Seen(self._after_published(stored), stored, tag)
        return seen

    def _after_published(self, names: Names) -> Names:
        for publication in names.publications:
            if self._publications.is_decided_published(publication):
                names = names.published(publication)
        return names


class SeenOnce:
    """The names for a statement: its first read asks the storage, later reads return the last names in this process.

    Args:
        register: reads and changes the names.
    """

    def __init__(self, register: NamesRegister) -> None:
        self._register = register
        self._has_looked = False

    @property
    def last_seen(self) -> Names:
        return self._register.last_seen

    def read(self) -> Names:
        """Returns the names as of the statement's first read, or later."""
        if self._has_looked:
            return self._register.last_seen
        names = self._register.read()
        self._has_looked = True
        return names


def _contention_error(root: str) -> StorageError:
    return StorageError(
        f"other writers have changed the names in {root} during each of {_ATTEMPTS} attempts",
        remedy="Run it again, with fewer processes that create and drop relations at the same time",
    )
