"""ObjectNames: the names of a database in an object store, as its publications change them."""

from __future__ import annotations

from collections.abc import Callable

from dbt.adapters.silt.engine.catalog import name_errors
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.catalog.objects.definitions import Definitions
from dbt.adapters.silt.engine.catalog.objects.names_document import Names, check_change
from dbt.adapters.silt.engine.catalog.objects.names_register import NamesRegister
from dbt.adapters.silt.engine.catalog.objects.table_ends import TableEnds
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.publication.documents import Begun, Kind, Meaning, NameChange
from dbt.adapters.silt.engine.kernel.publication.prepared import Settle
from dbt.adapters.silt.engine.kernel.publication_marks import UndecidedPublication
from dbt.adapters.silt.engine.kernel.table.paths import commit_path


class ObjectNames:
    """The names of a database in an object store. Thread-safe.

    Args:
        database: the name of the database.
        register: reads and changes the names.
        definitions: the objects with the definitions of views and functions.
        ends: deletes the folders of dropped tables.
    """

    def __init__(self, database: str, register: NamesRegister, definitions: Definitions, ends: TableEnds) -> None:
        self._database = database
        self._register = register
        self._definitions = definitions
        self._ends = ends

    def meaning(self, name: RelationName, is_function: bool) -> Meaning | None:
        """Returns the present meaning of a name; see `BranchNames`."""
        names = self._register.read()
        if not is_function and self._ends.settle_if_ended(name):
            names = self._register.last_seen
        return names.meaning(name.schema, name.identifier, is_function)

    def define(self, kind: Kind, document: bytes) -> Meaning:
        """Returns the meaning of a name with a document; see `BranchNames`."""
        return Meaning(kind, self._definitions.add(document))

    def document(self, meaning: Meaning) -> bytes:
        """Returns the document of a view or function; see `BranchNames`."""
        return self._definitions.read(meaning.text)

    def forget(self, meaning: Meaning) -> None:
        """Deletes the object with a definition; see `PublishedNames`."""
        if meaning.kind is not Kind.TABLE:
            self._definitions.remove(meaning.text)

    def note(self, begun: Begun, settle: Settle, check: Callable[[], None]) -> None:
        _check(begun)

        def noted(names: Names) -> Names:
            check()
            if begun.publication in names.publications:
                return names
            for each in begun.names:
                self._check_unchanged(names, each)
            return names.with_publication(begun.publication, begun.names)

        self._register.change(noted, settle)

    def finish(self, begun: Begun, is_published: bool) -> None:
        _check(begun)
        if is_published:
            self._register.attempt_change(lambda names: names, writes_published=True)
        else:
            self._register.attempt_change(lambda names: names.with_publication(begun.publication, None))
        for each in begun.names:
            self._clean_up(each, is_published)

    def _check_unchanged(self, names: Names, change: NameChange) -> None:
        """Checks that a name has the meaning that it had before the publication, and no other publication changes it.

        Raises:
            ConcurrentModificationError: if the name has another meaning.
            UndecidedPublication: if another publication changes it.
        """
        key = (change.schema, change.name, change.is_function)
        other = names.publication_at(*key)
        if other is not None:
            raise UndecidedPublication(other)
        if change.schema not in names.schemas or names.meaning(*key) != change.before:
            raise name_errors.changed_meanwhile(RelationName(self._database, change.schema, change.name))

    def _clean_up(self, change: NameChange, is_published: bool) -> None:
        """Deletes objects that nothing needs after the decision about a publication. The publisher of an aborted
        publication may try again, so only the first version of a new table is deleted.
        """
        before, after = change.before, change.after
        if not is_published and after is not None and after.kind is Kind.TABLE and after != before:
            self._ends.store.delete(f"{after.text}/{commit_path(0)}")
        if not is_published or before is None:
            return
        if before.kind is not Kind.TABLE:
            self.forget(before)
        elif after is None:
            self._ends.delete(before.text)


def _check(begun: Begun) -> None:
    """Checks the names in the document of a publication, which another program may have written.

    Raises:
        CorruptLogError: if a name refers to a folder or an object that this package does not name.
    """
    try:
        for each in begun.names:
            check_change(each)
    except ValueError as error:
        raise CorruptLogError(f"the publication {begun.publication} cannot be completed ({error})") from error
