"""The layout of a database's folder, and the atomic steps that change it.

.silt.lock, <schema>/.silt.lock   locked while names in the folder change
<schema>/_schema.json             the marker that makes a folder a schema
<schema>/<table>/_delta_log/...
<schema>/<name>.view.json
<schema>/<name>.function.json
<schema>/<name>.view.next.json, <schema>/<name>.function.next.json   the name's change by a publication
.dropped-<id>/, <schema>/.dropped-<id>/   dropped, and not deleted yet
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from dbt.adapters.silt.engine.catalog.folders.locks import exclusive
from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.documents import serialize_schema
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import (
    StorageError,
    SymbolicLinkError,
    TableDamagedError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.storage.storage_errors import is_denied
from dbt.adapters.silt.engine.kernel.storage.store import ObjectExists, ObjectMissing, PutResult, Store, joined

_logger = logging.getLogger(__name__)

_SCHEMA_MARKER = "_schema.json"
_TRASH_PREFIX = ".dropped-"
_OF_GIT = ".gitignore"


def table_folder(name: RelationName) -> str:
    return f"{name.schema}/{name.identifier}"


def document_path(name: RelationName, suffix: str) -> str:
    return f"{name.schema}/{name.identifier}{suffix}"


def is_schema(store: Store, schema: str) -> bool:
    return store.status(f"{schema}/{_SCHEMA_MARKER}") is not None


def is_listed(store: Store, schema: str) -> bool:
    """Returns whether a folder is a schema that this user may look into: a list names the other schemas."""
    try:
        return is_schema(store, schema)
    except StorageError as error:
        if not isinstance(error, SymbolicLinkError) and not is_denied(error):
            raise
        _logger.warning("the folder %s is not listed: %s", schema, error)
        return False


def exists_or_is_unreadable(exists: Callable[[], bool]) -> bool:
    """Returns whether a name is listed: if its meaning cannot be read, the use of the name raises the reason."""
    try:
        return exists()
    except (TableDamagedError, UnsupportedFeatureError, StorageError):
        return True


def make_schema(store: Store, schema: str, clock: Clock) -> PutResult:
    """Creates the folder of a schema, and the root if it does not exist, but no folder above it.

    Raises:
        StorageError: if the root cannot be created or written.
    """
    make_root(store, schema)
    with _explained(store, schema), exclusive(store, "", clock):
        store.make_folder(schema)
        return store.put_if_absent(f"{schema}/{_SCHEMA_MARKER}", serialize_schema(clock.now_ms()))


def make_root(store: Store, schema: str) -> None:
    """Creates the root for a schema, if it does not exist, but no folder above it.

    Raises:
        StorageError: if the root cannot be created or written.
    """
    with _explained(store, schema):
        _check_above(store)
        _make_root(store)


@contextmanager
def _explained(store: Store, schema: str) -> Iterator[None]:
    """Adds the warehouse to an error about one of its folders."""
    try:
        yield
    except (ObjectExists, ObjectMissing) as error:
        raise _not_made(store, schema, _obstacle(store, schema)) from error
    except StorageError as error:
        raise _not_made(store, schema, error) from error


def _make_root(store: Store) -> None:
    """Creates the root, if it does not exist, with a file by which git ignores it: the tables of a project are no
    source. An existing folder belongs to the user.
    """
    root = store.local_path("")
    is_new = root is not None and not os.path.lexists(root)
    store.make_folder("")
    if is_new:
        store.put_if_absent(_OF_GIT, b"*\n")


def _obstacle(store: Store, schema: str) -> StorageError:
    """Returns the reason why a needed folder is missing although the store has created it."""
    folders = [path for folder in ("", schema) if (path := store.local_path(folder)) is not None]
    for path in (*(os.path.dirname(path) for path in folders), *folders):
        if os.path.lexists(path) and not os.path.isdir(path):
            kind = "a link to a missing folder" if os.path.islink(path) else "a file, not a folder"
            return StorageError(f"{path} is {kind}", remedy=_MOVE)
    missing = next((path for path in folders if not os.path.exists(path)), store.root)
    reason = f"the file system does not create the folder {missing}"
    return StorageError(reason, remedy=f"Is something else in its place? {_MOVE}")


_MOVE = "Move it, or set `warehouse` to another folder"


def _check_above(store: Store) -> None:
    """Checks that the root or its parent folder exists: a mistyped path is not created."""
    root = store.local_path("")
    above = None if root is None else os.path.dirname(os.path.abspath(root))
    if above is not None and not os.path.exists(above):
        raise StorageError(
            f"the folder {above} does not exist",
            remedy="Create that folder, or correct the path: `warehouse` in the profile, or an entry of `databases`",
        )


def _not_made(store: Store, schema: str, reason: StorageError) -> StorageError:
    return type(reason)(
        f"the warehouse {store.root} cannot be created or written ({reason.problem})",
        table=schema,
        remedy=reason.action,
        details={"warehouse": store.root},
    )


@contextmanager
def locked_schema(store: Store, schema: str, clock: Clock) -> Iterator[None]:
    """Locks a schema, so that its names do not change.

    Raises:
            SchemaNotFoundError: if the schema does not exist, or no longer exists.
    """
    if not is_schema(store, schema):  # a folder that is not a schema gets no lock file
        raise name_errors.no_schema(schema)
    with ExitStack() as held:
        try:
            held.enter_context(exclusive(store, schema, clock))
        except ObjectMissing as error:
            raise name_errors.no_schema(schema) from error
        if not is_schema(store, schema):
            raise name_errors.no_schema(schema)
        yield


def is_occupied(store: Store, schema: str) -> bool:
    """Returns whether the folder of a schema contains anything but the marker and hidden files."""
    names = store.list_folders(schema) + store.list_links(schema) + [file.name for file in store.list_from(schema)]
    return any(name != _SCHEMA_MARKER and not name.startswith(".") for name in names)


def has_files(store: Store, schema: str) -> bool:
    """Returns whether the folder of a schema contains files other than the marker and hidden files, at any depth."""
    paths = (file.path.removeprefix(f"{schema}/") for file in store.files_below(schema))
    return any(path != _SCHEMA_MARKER and not path.startswith(".") for path in paths)


def move_to_trash(store: Store, folder: str, clock: Clock) -> None:
    """Hides a folder from readers, by a single rename."""
    path = store.local_path(folder)
    if path is not None and os.path.islink(path):
        what = "%s was a symbolic link: the link is deleted, and the files stay in %s"
        _logger.warning(what, path, os.path.realpath(path))
    above, _, _ = folder.rpartition("/")
    hidden = f"{_TRASH_PREFIX}{clock.new_id()}"
    store.rename_folder(folder, f"{above}/{hidden}" if above else hidden)


def empty_trash(store: Store, folder: str) -> None:
    """Deletes the folders that this drop, or an interrupted drop, has hidden.

    Readers no longer see them, so a failure is only logged; the next drop tries again.
    """
    names: list[str] = []
    with _left(store, folder):
        names = [
            name for name in store.list_folders(folder) + store.list_links(folder) if name.startswith(_TRASH_PREFIX)
        ]
    for name in names:
        with _left(store, joined(folder, name)):
            store.delete_folder(joined(folder, name))


@contextmanager
def _left(store: Store, folder: str) -> Iterator[None]:
    try:
        yield
    except (StorageError, ObjectMissing) as error:
        _logger.warning("files of dropped tables are left in %s/%s: %s", store.root, folder, error)


def put_document(store: Store, name: RelationName, suffix: str, data: bytes, replace: bool) -> None:
    """Writes a document; if several writers create the same document, only the first succeeds.

    Raises:
        RelationExistsError: if the document exists, and `replace` is False.
        SchemaNotFoundError: if the schema was dropped meanwhile.
    """
    path = document_path(name, suffix)
    try:
        if replace:
            store.put(path, data)
        elif store.put_if_absent(path, data) is PutResult.EXISTS:
            raise name_errors.exists(name)
    except ObjectMissing as error:
        raise name_errors.no_schema(f"{name.database}.{name.schema}") from error
