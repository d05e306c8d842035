"""A branch of a database: a line of its tables that only programs which know the branch's id read and write.

    _branches/<id>/<table's folder>/base.json   the version of the table at which the branch begins
    _branches/<id>/<table's folder>/<n>.json    the commits of the branch, numbered as in the table's log

Data files of a branch are in the table's folder, so publishing the branch moves no file.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from dbt.adapters.silt.engine.catalog.database import Database
from dbt.adapters.silt.engine.catalog.documents import Function, View
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.catalog.relations import RelationEntry
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import SiltError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.branch_changes import new_files
from dbt.adapters.silt.engine.kernel.publication.documents import began_ms, new_publication
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication.publish import Txn, publish
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog

_logger = logging.getLogger(__name__)

FOLDER: Final = "_branches"
_AGE_MS: Final = 7 * 24 * 60 * 60 * 1000
"""The age at which the commits of a branch that nothing has published are deleted, in milliseconds."""


class Branch:
    """A branch of a database. Thread-safe.

    Args:
        register: the publications of the database.
        branch_id: the id of an existing branch; by default a new branch, which exists from its first use on.
    """

    def __init__(self, register: Publications, branch_id: str | None = None) -> None:
        self.id = branch_id or str(new_publication(register.clock))
        self._register = register
        self._logs: dict[str, BranchLog] = {}
        self._lock = threading.Lock()

    def log(self, main: DeltaLog) -> BranchLog:
        """Returns the log of a table on the branch."""
        location = self._register.location_of(main)
        with self._lock:
            if location not in self._logs:
                folder = self._register.store.child(f"{FOLDER}/{self.id}/{location}")
                self._logs[location] = BranchLog(main, folder)
            return self._logs[location]

    def publish(self, txn: Txn = None) -> dict[str, int]:
        """Publishes the changes of the branch, and deletes it; returns the new versions, by the tables' names.

        Raises:
            SiltError: see `publish`; the branch exists until `discard`.
        """
        versions = publish(self._register, self._used(), txn)
        self._delete()
        return versions

    def discard(self) -> None:
        """Deletes the branch, and its data files; a failure leaves them for VACUUM."""
        for log in self._used():
            try:
                log.store.delete_all(new_files(log))
            except SiltError as error:
                _logger.warning("%s: data files that nothing uses are left: %s", log.name, error)
        self._delete()

    def _used(self) -> list[BranchLog]:
        with self._lock:
            return [log for log in self._logs.values() if log.is_used]

    def _delete(self) -> None:
        with self._lock:
            self._logs.clear()
        try:
            self._register.store.delete_folder(f"{FOLDER}/{self.id}")
        except SiltError as error:
            _logger.warning("the commits of the branch %s are left: %s", self.id, error)


def delete_old_branches(store: Store, clock: Clock) -> None:
    """Deletes the commits of branches that programs left long ago; their data files are left for VACUUM.

    Raises:
        StorageError: if the storage failed.
    """
    try:
        names = store.list_folders(FOLDER)
    except ObjectMissing:
        return
    for name in names:
        if name.isascii() and name.isdigit() and began_ms(int(name)) < clock.now_ms() - _AGE_MS:
            store.delete_folder(f"{FOLDER}/{name}")


class BranchDatabase:
    """A database as a branch shows it. Names are the database's own, and cannot be changed on the branch.

    Args:
        main: the database.
        branch: the branch of its tables.
    """

    def __init__(self, main: Database, branch: Branch) -> None:
        self._main = main
        self._branch = branch

    @property
    def store(self) -> Store:
        return self._main.store

    def for_statement(self) -> BranchDatabase:
        return BranchDatabase(self._main.for_statement(), self._branch)

    def schemas(self) -> list[str]:
        return self._main.schemas()

    def has_schema(self, schema: str) -> bool:
        return self._main.has_schema(schema)

    def create_schema(self, schema: str, if_not_exists: bool) -> None:
        if not (if_not_exists and self.has_schema(schema)):
            raise _refused("a schema cannot be created", schema)

    def drop_schema(self, schema: str, cascade: bool) -> None:  # noqa: ARG002
        raise _refused("a schema cannot be dropped", schema)

    def relations(self, schema: str) -> list[RelationEntry]:
        return self._main.relations(schema)

    def find(self, name: RelationName) -> RelationEntry | None:
        return self._main.find(name)

    def rename(self, name: RelationName, new_name: RelationName) -> None:  # noqa: ARG002
        raise _refused("a relation cannot be renamed", str(name))

    def table(self, name: RelationName) -> DeltaLog:
        return self._branch.log(self._main.table(name))

    def table_of_file(self, path: str) -> RelationName | None:
        return self._main.table_of_file(path)

    def new_table(self, name: RelationName, replace_view: bool) -> DeltaLog:  # noqa: ARG002
        raise _refused("a table cannot be created", str(name))

    def publish_table(self, name: RelationName, log: DeltaLog, replace_view: bool) -> None:
        """Does nothing: the table exists."""

    def drop_table(self, name: RelationName, if_exists: bool, version: int | None) -> None:  # noqa: ARG002
        raise _refused("a table cannot be dropped", str(name))

    def view(self, name: RelationName) -> View:
        return self._main.view(name)

    def put_view(self, view: View, replace: bool, replace_table: bool) -> None:  # noqa: ARG002
        raise _refused("a view cannot be created", str(view.name))

    def drop_view(self, name: RelationName, if_exists: bool) -> None:  # noqa: ARG002
        raise _refused("a view cannot be dropped", str(name))

    def functions(self, schema: str) -> list[RelationName]:
        return self._main.functions(schema)

    def has_function(self, name: RelationName) -> bool:
        return self._main.has_function(name)

    def function(self, name: RelationName) -> Function:
        return self._main.function(name)

    def put_function(self, function: Function, replace: bool) -> None:  # noqa: ARG002
        raise _refused("a function cannot be created", str(function.name))

    def drop_function(self, name: RelationName, if_exists: bool) -> None:  # noqa: ARG002
        raise _refused("a function cannot be dropped", str(name))


def _refused(what: str, name: str) -> UnsupportedStatementError:
    return UnsupportedStatementError(
        f"{what} in a transaction", table=name, remedy="Run the statement before the transaction begins, or after it"
    )
