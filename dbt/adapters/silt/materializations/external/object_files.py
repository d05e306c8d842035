"""Puts external files in place in an object store, which renames nothing and has no locks.

Spark writes into a hidden folder next to the target; the service then copies each file to its place. A file is
replaced by one copy, which readers see whole or not at all. The files of a folder cannot be replaced at once:

1. The new files are copied into the folder, under names that no other run gives.
2. The marker, which names the model's files, is swapped if it is as it was before the first copy. Of several runs at
   once one gets there; each other one deletes its copies and fails. The model's view reads what the marker names.
3. The old files are deleted, and what killed runs of the model have left: all that was there before the swap. A run
   that copied any of that can no longer swap.

Whoever lists the folder sees old files and new ones from 1 to 3.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.kernel.clock import Clock, SystemClock
from dbt.adapters.silt.engine.kernel.errors import NotWrittenError, SiltError, StorageError
from dbt.adapters.silt.engine.kernel.storage.few_requests import files_below
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PrefixStore, PutResult, Tag, joined
from dbt.adapters.silt.engine.statements.resolve.exported_folders import MARKER
from dbt.adapters.silt.materializations.external.marker import Marker, is_data
from dbt.adapters.silt.materializations.external.target import ExternalTarget, refused

_STAGED: Final = ".dbt_silt"
_FORGOTTEN_MS: Final = 7 * 24 * 3600 * 1000
_REQUESTS_AT_ONCE: Final = 16
_PART: Final = re.compile(r"(?!_temporary/)(.*/)?part-[^/]*", re.DOTALL)


class _OutcomeUnknown(Exception):
    """The marker may have been replaced; the error says what failed."""

    def __init__(self, error: StorageError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class ObjectFiles:
    """The files of one run of a model in an object store.

    Args:
        store: of what the target is in.
        clock: gives the time, and an id that no other run has.
    """

    store: PrefixStore
    target: ExternalTarget
    run: str
    clock: Clock

    @classmethod
    def of_run(cls, store: PrefixStore, target: ExternalTarget, clock: Clock | None = None) -> ObjectFiles:
        """Those of a new run."""
        clock = clock or SystemClock()
        return cls(store, target, clock.new_id().replace("-", ""), clock)

    def check(self) -> None:
        """Passes where the target does not exist, or this model has written it.

        Raises:
            DbtRuntimeError: files of another owner are there.
            StorageError: it cannot be looked at.
        """
        if self.target.is_file:
            if any(each.size for each in files_below(self.store, self.target.name)):
                raise DbtRuntimeError(f"`{self.target.location}` is a folder; name another file, or move the folder")
            return
        whole = self.store.status(self.target.name)
        if whole is not None and whole.size:  # an empty one marks a folder
            raise refused(self.target.location, "it is a file; choose another `location`, or move it")
        self._check_folder(self._marker()[0], self._found())

    @contextlib.contextmanager
    def staged(self) -> Iterator[str]:
        """The URL of a hidden folder next to the target, to be written by Spark; it is gone at the end.

        What killed runs have left there goes after a week.
        """
        folder = self._staged
        try:
            yield joined(self.store.root, folder)
        finally:
            # A failure leaves what the sweep of a later run deletes.
            with contextlib.suppress(SiltError):
                self.store.delete_folder(folder)
                self._sweep()

    def put_in_place(self) -> int:
        """Copies what Spark has written to the target, and replaces what was there; how many files there are.

        Raises:
            DbtRuntimeError: another owner has written files there meanwhile, or another run of the model.
            StorageError: the storage failed; where it failed in the swap, the new files may be the model's.
        """
        found = (each.path.removeprefix(f"{self._staged}/") for each in files_below(self.store, self._staged))
        written = sorted(each for each in found if _PART.fullmatch(each))
        if self.target.is_file:
            self._put_file(written)
        else:
            self._put_folder(written)
        return len(written)

    @property
    def _staged(self) -> str:
        return f"{_STAGED}/{self.target.name}.{self.run}"

    @property
    def _owner(self) -> str:
        """What the names of all files of the model have in them."""
        return hashlib.sha256(self.target.node.encode()).hexdigest()[:12]

    def _put_file(self, written: Sequence[str]) -> None:
        if len(written) != 1:
            raise self._unseen(written)
        self._copy(written[0], self.target.name)

    def _put_folder(self, written: Sequence[str]) -> None:
        marker, tag = self._marker()
        names = {name: self._name(number, name) for number, name in enumerate(written)}
        try:
            _at_once(lambda name: self._copy(name, self._in(names[name])), names)
            # What is copied after this look is not deleted: its run may have read the marker after the swap.
            found = self._found()
            self._check_folder(marker, found)
            self._swap(tag, Marker(self.target.node, frozenset(names.values()), self._pattern))
        except _OutcomeUnknown as unknown:
            raise unknown.error from None
        except (DbtRuntimeError, SiltError):
            # What stays is deleted by a later run.
            with contextlib.suppress(SiltError):
                self._delete(names.values())
            raise
        self._delete(found - set(names.values()))

    def _copy(self, written: str, to: str) -> None:
        try:
            self.store.copy_file(joined(self._staged, written), to)
        except ObjectMissing as error:
            raise StorageError(f"{joined(self._staged, written)}, which Spark has written, is gone") from error

    def _swap(self, tag: Tag | None, marker: Marker) -> None:
        """Replaces the marker, if it is as it was.

        Raises:
            _OutcomeUnknown: it may be replaced.
            DbtRuntimeError: another run has replaced it.
            NotWrittenError: it was not replaced.
        """
        path, data = self._in(MARKER), marker.data()
        try:
            if tag is None:
                is_done = self.store.put_if_absent(path, data) is PutResult.CREATED
            else:
                is_done = self.store.swap_if_unchanged(path, data, tag) is not None
        except NotWrittenError:
            raise
        except StorageError as error:
            if not self._is_now(marker):
                raise _OutcomeUnknown(error) from error
            return
        if not is_done and not self._is_now(marker):
            raise DbtRuntimeError(
                f"another run of {self.target.node} has replaced `{self.target.location}` meanwhile, and its rows are "
                "there now; run the model again"
            )

    def _is_now(self, marker: Marker) -> bool:
        """Whether the marker is there; False where that cannot be found out."""
        try:
            return self._marker()[0] == marker
        except SiltError:
            return False

    def _delete(self, names: Iterable[str]) -> None:
        """Deletes files of the folder."""
        _at_once(self.store.delete, [self._in(name) for name in names])

    def _check_folder(self, marker: Marker, found: frozenset[str]) -> None:
        own = re.compile(rf"(.*/)?part-\d+-[0-9a-f]+-{self._owner}\..*", re.DOTALL)
        marker.check(self.target, (name for name in found if not own.fullmatch(name)))

    def _marker(self) -> tuple[Marker, Tag | None]:
        try:
            found = self.store.read_if_changed(self._in(MARKER), None)
        except ObjectMissing:
            return Marker(), None
        assert found is not None
        return Marker.read(found.data), found.tag

    def _found(self) -> frozenset[str]:
        """The data files in the folder, relative to it; an empty object without a run's name marks a folder."""
        listed = files_below(self.store, self.target.name)
        named = ((each.path.removeprefix(f"{self.target.name}/"), each.size) for each in listed)
        return frozenset(name for name, size in named if is_data(name) and (size or f"-{self._owner}." in name))

    @property
    def _pattern(self) -> str:
        """That of the names of the run's files, and of no others."""
        return f"part-*-{self.run}-{self._owner}.*"

    def _in(self, name: str) -> str:
        return joined(self.target.name, name)

    def _name(self, number: int, written: str) -> str:
        """The name that a file gets: the folders and the ending that it has, and whose it is."""
        folder, _, name = written.rpartition("/")
        return joined(folder, f"part-{number:05d}-{self.run}-{self._owner}.{name.partition('.')[2]}")

    def _sweep(self) -> None:
        """Deletes the hidden folders into which nothing was written for a week."""
        folders: dict[str, list[FileStatus]] = defaultdict(list)
        for file in files_below(self.store, _STAGED):
            folders[file.path.removeprefix(f"{_STAGED}/").partition("/")[0]].append(file)
        oldest = self.clock.now_ms() - _FORGOTTEN_MS
        for name, files in folders.items():
            if max(file.modified_ms for file in files) < oldest:
                self.store.delete_folder(joined(_STAGED, name))

    def _unseen(self, written: Sequence[str]) -> StorageError:
        return StorageError(
            f"Spark has written one file, and {len(written)} are in {joined(self.store.root, self._staged)}",
            remedy="Give Spark and this process the same `endpoint`; a server of Spark Connect has settings of its own",
        )


def _at_once(run: Callable[[str], None], names: Iterable[str]) -> None:
    """Runs it for each name, several at the same time; raises the first error, when all have ended."""
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        done = [pool.submit(run, name) for name in names]
    for each in done:
        each.result()
