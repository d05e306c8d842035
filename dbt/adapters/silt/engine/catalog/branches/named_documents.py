"""The documents of named branches, and the version of a table with a branch's beginning.

    _branches/named/<digest>.json        a branch: its name, owner, id and cut
    _branches/named/<digest>.used.json   when a program has last used it
    _branches/<id>/begun                 its time of last change, by the clock of the storage, is the branch's cut

The storage's clock also gives the times of commits, so the cut compares times of the same clock.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.names.documents import file_name
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.log import log_segment
from dbt.adapters.silt.engine.kernel.log.commit_file import read_info
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import FOLDER as PUBLICATIONS
from dbt.adapters.silt.engine.kernel.publication.documents import parsed
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication_marks import publication_of
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT

_logger = logging.getLogger(__name__)

_NAMED: Final = "_branches/named"
_USED: Final = ".used.json"
_BEGUN: Final = "begun"
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class NamedBranch:
    """A named branch.

    Attributes:
        name, owner: its name, and the user who has created it.
        branch: the id of the branch.
        cut_ms: the time of its beginning, by the clock of the storage, in milliseconds since 1970-01-01 UTC.
        days: how many days it is left if nothing uses it.
        used_ms: when it was created or last used, at most a day ago.
    """

    name: str
    owner: str
    branch: str
    cut_ms: int
    days: int
    used_ms: int

    @property
    def path(self) -> str:
        """The path of its document, relative to the database's root."""
        return path_of(self.name)

    @property
    def expires_ms(self) -> int:
        """When it expires, in milliseconds since 1970-01-01 UTC."""
        return self.used_ms + self.days * _DAY_MS

    def is_live(self, clock: Clock) -> bool:
        """Returns whether it has not expired."""
        return clock.now_ms() < self.expires_ms


def path_of(name: str) -> str:
    """Returns the path of the document of a branch, by its name."""
    return f"{_NAMED}/{file_name(name)}.json"


def put_new(store: Store, branch: NamedBranch) -> bool:
    """Writes the document of a new branch; returns False if a branch of that name exists.

    Raises:
        StorageError: if the storage failed.
    """
    store.make_folder(_NAMED)
    body = {"format": FORMAT, **asdict(branch)}
    return store.put_if_absent(branch.path, json.dumps(body, ensure_ascii=False).encode()) is PutResult.CREATED


def read_named(store: Store, path: str) -> NamedBranch | None:
    """Returns the branch of a document, if it exists.

    Raises:
        CorruptLogError: if it cannot be read.
        StorageError: if the storage failed.
    """
    try:
        found = parsed(path, store.read(path, DOCUMENT_BYTES), parse)
    except ObjectMissing:
        return None
    with contextlib.suppress(ObjectMissing, errors.CorruptLogError):
        used = _used_path(path)
        return replace(found, used_ms=max(found.used_ms, parsed(used, store.read(used, DOCUMENT_BYTES), _used)))
    return found


def all_named(store: Store) -> list[NamedBranch]:
    """Returns the named branches, also those that have expired, without those whose documents are damaged.

    Raises:
        StorageError: if the storage failed.
    """
    found = []
    with contextlib.suppress(ObjectMissing):
        for path in [each.path for each in store.files_in_order(_NAMED)]:
            try:
                branch = None if path.endswith(_USED) else read_named(store, path)
            except (errors.TableDamagedError, errors.UnsupportedFeatureError) as error:
                _logger.warning("%s is left out: %s", path, error)
                continue
            found += [] if branch is None else [branch]
    return found


def renew(store: Store, branch: NamedBranch, clock: Clock) -> None:
    """Notes that a branch is used, at most once a day. A storage that cannot be written leaves it as it is."""
    if clock.now_ms() - branch.used_ms < _DAY_MS:
        return
    with contextlib.suppress(errors.ReadOnlyStorageError):
        body = {"format": FORMAT, "used_ms": clock.now_ms()}
        store.put(_used_path(branch.path), json.dumps(body).encode())


def forget(store: Store, branch: NamedBranch) -> None:
    """Deletes the documents of a branch that has ended, unless another branch has its name.

    Raises:
        StorageError: if the storage failed.
    """
    present = read_named(store, branch.path)
    if present is not None and present.branch == branch.branch:
        store.delete(branch.path)
        store.delete(_used_path(branch.path))


def by_id(store: Store) -> Mapping[str, NamedBranch]:
    """Returns the named branches by the ids of their branches. Raises as `all_named`."""
    return {each.branch: each for each in all_named(store)}


def live_cuts(store: Store, clock: Clock) -> list[int]:
    """Returns the times of the beginning of the named branches that have not expired. Raises as `all_named`."""
    return [each.cut_ms for each in all_named(store) if each.is_live(clock)]


def version_at(register: Publications, cut_ms: int, log: DeltaLog) -> int | None:
    """Returns the newest version of a table that was visible at the cut of a branch; None if it was created later.

    The tables of a publication are visible since its decision, whatever the times of their commits.

    Raises:
        TableDamagedError, StorageError: if the log cannot be read.
    """
    commits = log_segment.list_log(log.store, log.name).commits
    version = max((each for each, file in commits.items() if file.modified_ms <= cut_ms), default=None)
    while version is not None and version in commits:
        publication = publication_of(read_info(log.store, version, commits[version], log.name))
        if publication is None or _was_published(register, publication, cut_ms):
            return version
        version = version - 1 if version else None
    return None


def _was_published(register: Publications, publication: int, cut_ms: int) -> bool:
    if not register.is_decided_published(publication):
        return False
    decided = register.store.status(f"{PUBLICATIONS}/{publication}.json")
    return decided is None or decided.modified_ms <= cut_ms  # the document of an old publication was deleted


def now_of_store(store: Store, branch_id: str) -> int:
    """Returns the present time by the clock of the storage, which also gives the times of commits, for a new branch.

    Raises:
        StorageError: if the storage failed.
    """
    folder = f"_branches/{branch_id}"
    store.make_folder(folder)
    store.put(f"{folder}/{_BEGUN}", b"{}")
    status = store.status(f"{folder}/{_BEGUN}")
    assert status is not None
    return status.modified_ms


def move(store: Store, earlier: NamedBranch, later: NamedBranch) -> None:
    """Lets the name of a branch mean the branch on which it continues, unless it means another one since.

    Raises:
        StorageError: if the storage failed.
    """
    present = read_named(store, earlier.path)
    if present is not None and present.branch == earlier.branch:
        store.put(later.path, json.dumps({"format": FORMAT, **asdict(later)}, ensure_ascii=False).encode())


def copy_path(branch_id: str) -> str:
    """Returns the path of the document of a copy of a named branch, by the copy's id."""
    return f"_branches/{branch_id}/copy.json"


def name_of_copy(store: Store, branch_id: str) -> str | None:
    """Returns the name of the branch of which a branch is a copy, if it is a copy. Raises as `read_named`."""
    with contextlib.suppress(ObjectMissing):
        path = copy_path(branch_id)
        return parsed(path, store.read(path, DOCUMENT_BYTES), lambda body: parse(body["of"])).name
    return None


def _used_path(path: str) -> str:
    return f"{path.removesuffix('.json')}{_USED}"


def _used(body: Any) -> int:
    return int(body["used_ms"])


def parse(body: Any) -> NamedBranch:
    """Returns the named branch in a document.

    Raises:
        ValueError, KeyError, TypeError: if it is not the document of a named branch.
    """
    name, owner, branch = (str(body[key]) for key in ("name", "owner", "branch"))
    if not (branch.isascii() and branch.isdigit()):
        raise ValueError(f"{branch!r:.100} is not the id of a branch")
    return NamedBranch(name, owner, branch, int(body["cut_ms"]), int(body["days"]), int(body["used_ms"]))
