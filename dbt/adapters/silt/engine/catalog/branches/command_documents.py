"""The documents of the dbt commands that work, or have worked, on the branch of a run.

    _branches/<id>/<digest of the command's id>.command.json   the command, and its results when it has ended
    _branches/<id>/<digest of the command's id>.sign.json      the time of the last sign of life of its process

A command on this machine works if it holds its lock. Of a command on another machine, only its signs of life show that
it works: after some time without a sign, it counts as killed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.branches.attempts import COMMAND, FOLDER, SIGN, documents, parsed
from dbt.adapters.silt.engine.catalog.branches.run_commands import (
    CommandResults,
    RunCommand,
    Standing,
    from_json,
    standing,
    to_json,
)
from dbt.adapters.silt.engine.catalog.names.documents import file_name
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.process_locks import ProcessLock
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT

_logger = logging.getLogger(__name__)

PATIENCE_MS: Final = 90_000
"""The time without a sign of life after which a command on another machine counts as killed, in milliseconds."""
_EACH: Final = 20.0
"""The time between two signs of life, in seconds."""


class CommandDocuments:
    """The commands of a run. One thread of a process begins and ends its command.

    Args:
        store: the store of the database.
        branch_id: the id of the run's branch.
        clock: gives the time of signs of life.
    """

    def __init__(self, store: Store, branch_id: str, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._folder = f"{FOLDER}/{branch_id}"
        self._seen: frozenset[str] = frozenset()
        self._lock: ProcessLock | None = None
        self._over = threading.Event()
        self._signs: threading.Thread | None = None
        self.own: RunCommand | None = None

    def all(self) -> list[RunCommand]:
        """Returns the commands that have worked on the branch, in the order of their beginning.

        Raises:
            CorruptLogError: if a document cannot be read.
            StorageError: if the storage failed.
        """
        paths = [path for path in documents(self._store, self._folder) if path.endswith(COMMAND)]
        with ThreadPoolExecutor(self._store.files_at_once) as pool:
            found = [each for each in pool.map(self._read, paths) if each is not None]
        self._seen = frozenset(paths)
        return sorted(found, key=lambda each: (each.began_ms, each.id))

    def begin(self, command: RunCommand) -> None:
        """Records a command of this process, which works until `end` or `leave`. Raises as `all`."""
        earlier = self.all()
        ended = frozenset(each.id for each in earlier if each.results is not None)
        after = frozenset(each.id for each in earlier)
        self.own = replace(command, after=after, after_end=ended, began_ms=self._clock.now_ms())
        if self._lock is None:
            self._lock = ProcessLock(file_name(command.id))
            self._lock.hold()
        self._put(self.own)
        self._start()

    def end(self, results: CommandResults) -> None:
        """Records the results of the command of this process. Raises as `all`; the command then counts as killed."""
        is_recorded = False
        try:
            self._stop()
            if self.own is not None:
                self._put(replace(self.own, results=results))
                is_recorded = True
                self._store.delete(self._path(self.own.id, SIGN))
        finally:
            self._release(keeps_file=not is_recorded)

    def leave(self) -> None:
        """Deletes the document of the command of this process, whose branch has ended. Raises as `all`."""
        self._stop()
        if self.own is not None:
            self._store.delete_all([self._path(self.own.id, COMMAND), self._path(self.own.id, SIGN)])

    def standing(self, tests_count: bool = False, of_own: CommandResults | None = None) -> Standing:
        """Returns the reasons why the run is not published. Raises as `all`.

        Args:
            tests_count: whether tests count that may fail for their own command.
            of_own: the results of the command of this process, if it has not ended.
        """
        found = self.all()
        if of_own is not None:
            found = [replace(each, results=of_own) if self._is_own(each) else each for each in found]
        return standing(found, lambda each: not self._is_own(each) and self.is_alive(each), tests_count)

    def at_work(self) -> list[RunCommand]:
        """Returns the commands of other processes that work. Raises as `all`."""
        return list(self.standing().at_work)

    def _is_own(self, command: RunCommand) -> bool:
        return self.own is not None and command.id == self.own.id

    def has_parallel(self) -> bool:
        """Returns whether other commands have worked on the branch since the command of this process began. Raises as
        `all`.
        """
        before = frozenset() if self.own is None else self.own.after_end
        return any(not self._is_own(each) and each.id not in before for each in self.all())

    def check_unchanged(self) -> None:
        """Checks that no command has begun since `all` has read the commands.

        Raises:
            RunInProgressError: if a command has begun.
            CorruptLogError, StorageError: as `all`.
        """
        paths = {path for path in documents(self._store, self._folder) if path.endswith(COMMAND)}
        for path in sorted(paths - self._seen):
            found = self._read(path)
            if found is not None:
                raise in_progress([found])

    def is_alive(self, command: RunCommand) -> bool:
        """Returns whether a command without results still works, as far as this process can know."""
        is_held = ProcessLock(file_name(command.id)).is_held()
        if is_held is not None:
            return is_held
        return abs(self._clock.now_ms() - max(command.began_ms, self._last_sign(command))) < PATIENCE_MS

    def copy_to(self, branch_id: str) -> None:
        """Copies the documents to another branch. Raises as `all`."""
        other = CommandDocuments(self._store, branch_id, self._clock)
        for each in self.all():
            other._put(each)

    def move_to(self, branch_id: str) -> None:
        """Continues on another branch, to which the documents were copied. Raises as `all`."""
        self._folder = f"{FOLDER}/{branch_id}"
        self.all()

    def _read(self, path: str) -> RunCommand | None:
        """Returns the command in a document; or None if another process has deleted it."""

        def own(body: Any) -> RunCommand:
            found = from_json(body)
            if self._path(found.id, COMMAND) != path:
                raise ValueError("it is the document of another command")
            return found

        with contextlib.suppress(ObjectMissing):
            return parsed(self._store, path, own)
        return None

    def _last_sign(self, command: RunCommand) -> int:
        """Returns the time of the last sign of life, in milliseconds; 0 without a sign."""
        with contextlib.suppress(ObjectMissing, errors.CorruptLogError):
            return parsed(self._store, self._path(command.id, SIGN), lambda body: int(body["at"]))
        return 0

    def _show_signs(self) -> None:
        assert self.own is not None
        over = self._over
        while not over.wait(_EACH):
            try:
                self._store.put(
                    self._path(self.own.id, SIGN), json.dumps({"format": FORMAT, "at": self._clock.now_ms()}).encode()
                )
            except errors.SiltError as error:
                _logger.debug("no sign of life could be written: %s", error)

    def _start(self) -> None:
        if self.own is not None:
            self._over = threading.Event()
            self._signs = threading.Thread(target=self._show_signs, name="silt-sign-of-life", daemon=True)
            self._signs.start()

    def _stop(self) -> None:
        self._over.set()
        if self._signs is not None:
            self._signs.join()
            self._signs = None

    def _release(self, keeps_file: bool = False) -> None:
        if self._lock is not None:
            self._lock.release(keeps_file)
            self._lock = None

    def _put(self, command: RunCommand) -> None:
        self._store.make_folder(self._folder)
        self._store.put(self._path(command.id, COMMAND), json.dumps(to_json(command), ensure_ascii=False).encode())

    def _path(self, command_id: str, suffix: str) -> str:
        return f"{self._folder}/{file_name(command_id)}{suffix}"


def in_progress(commands: Collection[RunCommand]) -> errors.RunInProgressError:
    """Returns the error that commands work on a run."""
    names = ", ".join(map(str, commands))
    return errors.RunInProgressError(f"the run is in progress: {names} {'is' if len(commands) == 1 else 'are'} at work")
