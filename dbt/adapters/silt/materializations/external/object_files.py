"""Puts external files in place in an object store, which has neither renames nor locks.

Spark writes into a hidden folder next to the target; the service then copies each file to its location. A file is
replaced by a single copy, which is atomic for readers. The files of a folder cannot be replaced at once:

1. The new files are copied into the folder, under names that no other run uses.
2. The marker, which names the model's files, is swapped if it is unchanged since before the first copy. Of several
   concurrent runs a single run succeeds; the other runs delete their copies and fail. The model's view reads the files
   that the marker names.
3. The old files and leftovers of killed runs of the model are deleted: everything that existed before the swap. A run
   that copied any of them can no longer swap.

A listing of the folder contains old and new files during steps 1 to 3.
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
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, PrefixStore, PutResult, Tag, joined
from dbt.adapters.silt.engine.statements.resolve.stored_code import MARKER
from dbt.adapters.silt.materializations.external.target import ExternalTarget, Marker, is_data, refused

_STAGED: Final = ".dbt_silt"
_FORGOTTEN_MS: Final = 7 * 24 * 3600 * 1000
_REQUESTS_AT_ONCE: Final = 16
_PART: Final = re.compile(r"(?!_temporary/)(.*/)?part-[^/]*", re.DOTALL)


class _OutcomeUnknown(Exception):
    """The marker may have been replaced; `error` is the failure."""

    def __init__(self, error: StorageError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class ObjectFiles:
    """The files of a model's run in an object store.

    Args:
        store: store of the folder that contains the target.
        clock: returns the time, and a unique id.
    """

    store: PrefixStore
    target: ExternalTarget
    run: str
    clock: Clock

    @classmethod
    def of_run(cls, store: PrefixStore, target: ExternalTarget, clock: Clock | None = None) -> ObjectFiles:
        """Returns the files of a new run."""
        clock = clock or SystemClock()
        return cls(store, target, clock.new_id().replace("-", ""), clock)

    def check(self) -> None:
        """Checks that the target does not exist, or that this model has written it.

        Raises:
            DbtRuntimeError: if files of another owner are there.
            StorageError: if it cannot be read.
        """
        if self.target.is_file:
            if any(each.size for each in self.store.files_below(self.target.name)):
                raise DbtRuntimeError(f"`{self.target.location}` is a folder; name another file, or move the folder")
            return
        whole = self.store.status(self.target.name)
        if whole is not None and whole.size:  # an empty object marks a folder
            raise refused(self.target.location, "it is a file; choose another `location`, or move it")
        self._check_folder(self._marker()[0], self._found())

    @contextlib.contextmanager
    def staged(self) -> Iterator[str]:
        """Yields the URL of a hidden folder next to the target, which Spark writes; deletes it at the end.

        Leftovers of killed runs are deleted after a week.
        """
        folder = self._staged
        try:
            yield joined(self.store.root, folder)
        finally:
            # The sweep of a later run deletes the leftovers of a failure.
            with contextlib.suppress(SiltError):
                self.store.delete_folder(folder)
                self._sweep()

    def put_in_place(self) -> int:
        """Copies the files that Spark has written to the target, replaces the previous files, and returns their number.

        Raises:
            DbtRuntimeError: if another owner, or another run of the model, has written files there meanwhile.
            StorageError: if the storage fails; after a failure of the swap, the new files may be in place.
        """
        found = (each.path.removeprefix(f"{self._staged}/") for each in self.store.files_below(self._staged))
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
        """The part that the names of all files of the model contain."""
        return hashlib.sha256(self.target.node.encode()).hexdigest()[:12]

    def _put_file(self, written: Sequence[str]) -> None:
        if len(written) != 1:
            raise self._unseen(written)
        self._copy(written[0], self.target.name)

    def _put_folder(self, written: Sequence[str]) -> None:
        marker, tag = self._marker()
        names = {name: self._name(number, name) for number, name in enumerate(written)}
        try:
            _at_once(lambda name: self._copy(name, self._path_of(names[name])), names)
            # Files copied after this listing are not deleted: their run may have read the marker after the swap.
            found = self._found()
            self._check_folder(marker, found)
            self._swap(tag, Marker(self.target.node, frozenset(names.values()), self._pattern))
        except _OutcomeUnknown as unknown:
            raise unknown.error from None
        except (DbtRuntimeError, SiltError):
            # A later run deletes the remaining files.
            with contextlib.suppress(SiltError):
                self._delete(names.values())
            raise
        self._delete(found - set(names.values()))

    def _copy(self, written: str, to: str) -> None:
        try:
            self.store.copy_file(joined(self._staged, written), to)
        except ObjectMissing as error:
            raise StorageError(f"{joined(self._staged, written)}, which Spark wrote, no longer exists") from error

    def _swap(self, tag: Tag | None, marker: Marker) -> None:
        """Replaces the marker if it is unchanged.

        Raises:
            _OutcomeUnknown: if it may have been replaced.
            DbtRuntimeError: if another run has replaced it.
            NotWrittenError: if it was not replaced.
        """
        path, data = self._path_of(MARKER), marker.data()
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
                f"another run of {self.target.node} replaced `{self.target.location}` in the meantime, and its "
                "rows are there now; run the model again"
            )

    def _is_now(self, marker: Marker) -> bool:
        """Returns whether the marker is in place; False if it cannot be read."""
        try:
            return self._marker()[0] == marker
        except SiltError:
            return False

    def _delete(self, names: Iterable[str]) -> None:
        """Deletes files of the folder."""
        _at_once(self.store.delete, [self._path_of(name) for name in names])

    def _check_folder(self, marker: Marker, found: frozenset[str]) -> None:
        own = re.compile(rf"(.*/)?part-\d+-[0-9a-f]+-{self._owner}\..*", re.DOTALL)
        marker.check(self.target, (name for name in found if not own.fullmatch(name)))

    def _marker(self) -> tuple[Marker, Tag | None]:
        try:
            found = self.store.read_if_changed(self._path_of(MARKER), None)
        except ObjectMissing:
            return Marker(), None
        assert found is not None
        return Marker.read(found.data), found.tag

    def _found(self) -> frozenset[str]:
        """Returns the data files in the folder, relative to it; an empty object without a run's name marks a folder."""
        listed = self.store.files_below(self.target.name)
        named = ((each.path.removeprefix(f"{self.target.name}/"), each.size) for each in listed)
        return frozenset(name for name, size in named if is_data(name) and (size or f"-{self._owner}." in name))

    @property
    def _pattern(self) -> str:
        """The pattern that matches only the names of the run's files."""
        return f"part-*-{self.run}-{self._owner}.*"

    def _path_of(self, name: str) -> str:
        return joined(self.target.name, name)

    def _name(self, number: int, written: str) -> str:
        """Returns the new name of a file: its folders, its ending, and the ids of its run and model."""
        folder, _, name = written.rpartition("/")
        return joined(folder, f"part-{number:05d}-{self.run}-{self._owner}.{name.partition('.')[2]}")

    def _sweep(self) -> None:
        """Deletes the hidden folders that have not been written to for a week."""
        folders: dict[str, list[FileStatus]] = defaultdict(list)
        for file in self.store.files_below(_STAGED):
            folders[file.path.removeprefix(f"{_STAGED}/").partition("/")[0]].append(file)
        oldest = self.clock.now_ms() - _FORGOTTEN_MS
        for name, files in folders.items():
            if max(file.modified_ms for file in files) < oldest:
                self.store.delete_folder(joined(_STAGED, name))

    def _unseen(self, written: Sequence[str]) -> StorageError:
        return StorageError(
            f"Spark wrote one file, but {joined(self.store.root, self._staged)} holds {len(written)}",
            remedy="Give Spark and this process the same `endpoint`; a Spark Connect server has its own settings",
        )


def _at_once(run: Callable[[str], None], names: Iterable[str]) -> None:
    """Runs the function for each name, several at a time; raises the first error after all calls have ended."""
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        done = [pool.submit(run, name) for name in names]
    for each in done:
        each.result()
