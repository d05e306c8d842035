"""Records the dbt commands of a project in `silt_runs.json`, and determines which commands are running.

dbt writes its own `run_results.json` only at the end. A command is recorded here at its start and updated at its end,
so that killed commands are known. While it runs it holds a lock on its own file, which the system releases however the
process ends. A process id would not do: each start may be a new container. The lock file contains the ids of the
selected nodes, because the ids of 200 commands would make the registry long.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from dbt.adapters.silt.engine.kernel import file_locks, owned_folders
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, NotWrittenError, StorageError
from dbt.adapters.silt.records.command_result import CommandResult, Ending

RUN_ID_VARIABLE = "silt_run_id"
HIDDEN, HELD, PUBLISHED = "hidden", "held", "published"
"""The values of `RunEntry.publication`, for a run whose changes are published at its end."""
REGISTRY_FILE = "silt_runs.json"
_ALIVE_FOLDER = "silt_runs"
_KEPT_RUNS = 200
_BUILD_NOTHING = frozenset(("run-operation", "test"))
_OF_RUNNING = ("running", "selected")


@dataclass(frozen=True)
class RunEntry:
    """A dbt command in `silt_runs.json`.

    Attributes:
        invocation_id: dbt's id of the command.
        run_id: its logical run.
        command: its command line, without `--vars`.
        which: dbt's name of the command ("build"), for a retry of the repeated command; empty if an earlier version of
            this package has recorded it.
        directory: its working folder.
        variables: the value of its `--vars`, as single-line YAML.
        target: the profile's target.
        warehouse, schema: the location of its warehouse and its schema; empty if an earlier version has recorded it.
        started_at: its start, in UTC, as ISO 8601.
        repeats: for `dbt retry`, the invocation id of the command whose results it repeats.
        began: whether it reached its nodes; False if dbt could not read the project, or if it was interrupted before it
            wrote anything.
        finished: whether it ended by itself, with or without failed nodes.
        has_results: whether it was interrupted, and its results contain every node that it selected.
        ended_at: its end or interruption, as `started_at`; None if it was killed.
        result: its result, unless it was killed.
        publication: `hidden` while its changes are not visible, `held` if they were not published at its end,
            `published` afterwards; empty if each change was visible at once.
        rolled_back: whether all changes of its run were undone, or dropped.
        host, process: for messages only.
        running: whether it runs now; determined when the registry is read, and not stored.
        selected: if its lock file contains them, the unique ids of the nodes that a running command has selected, or
            the macro of an operation.
    """

    invocation_id: str
    run_id: str
    command: str
    directory: str
    started_at: str
    which: str = ""
    variables: str = "{}"
    target: str = ""
    warehouse: str = ""
    schema: str = ""
    repeats: str | None = None
    began: bool = True
    finished: bool = False
    has_results: bool = False
    ended_at: str | None = None
    result: CommandResult | None = None
    publication: str = ""
    rolled_back: bool = False
    host: str = ""
    process: int = 0
    running: bool = False
    selected: frozenset[str] | None = None

    @property
    def started(self) -> datetime:
        return parse_time(self.started_at)

    @property
    def started_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return round(self.started.timestamp() * 1000)

    def shares_tables(self, other: RunEntry) -> bool:
        """Returns whether the same node is the same table in both commands: they share a target, or a schema."""
        is_of_schema = self.is_in_warehouse_of(other) and self.schema == other.schema
        return self.target == other.target or is_of_schema

    def is_in_warehouse_of(self, other: RunEntry) -> bool:
        """Returns whether both commands are known to write to the same warehouse."""
        return bool(self.warehouse) and self.warehouse == other.warehouse

    @property
    def state(self) -> str:
        """The command's state: `running`, `succeeded`, `failed`, `held`, `interrupted`, or `broken off` (killed).

        `ended` if an earlier version of this package has recorded its end, without a result.
        """
        if self.running:
            return "running"
        if self.publication == HELD:
            return HELD
        if self.result is not None:
            return "succeeded" if self.result.ending is Ending.SUCCESS else self.result.ending.value
        return "ended" if self.finished else "interrupted" if self.has_results else "broken off"

    @property
    def seconds(self) -> float | None:
        """Its duration, if its end is recorded."""
        return None if self.ended_at is None else (parse_time(self.ended_at) - self.started).total_seconds()

    @property
    def is_unfinished(self) -> bool:
        """Whether it was stopped, killed or held before its end, and its changes were not undone."""
        has_ended = self.finished and self.publication != HELD
        return not (has_ended or self.running or self.rolled_back)

    @property
    def is_visible(self) -> bool:
        """Whether its changes are visible."""
        return self.publication not in (HIDDEN, HELD)

    @property
    def has_failed(self) -> bool:
        """Whether it ended with failed nodes or tests, or with an error."""
        return self.result is not None and self.result.ending is Ending.FAILED

    @property
    def builds(self) -> bool:
        """Whether it builds nodes; tests, and operations such as a rollback, build nothing."""
        return self.which not in _BUILD_NOTHING

    @property
    def work(self) -> tuple[str, str, Mapping[str, Any]]:
        """The identity of a retyped command: command line, target, and variables without the run id."""
        variables = yaml.safe_load(self.variables) or {}
        return self.command, self.target, {name: each for name, each in variables.items() if name != RUN_ID_VARIABLE}

    @property
    def ending(self) -> str:
        """The reason why the command left no results, as the end of a sentence."""
        if self.running:
            return f"is still running (process {self.process} of {self.host})"
        if self.finished:
            return "left no results"
        return f"{'ended with an error' if self.has_failed else 'was killed or broken off'}: it left no results"

    def remedy(self, directory: str) -> str:
        """Returns the commands that complete the run, for a user in that folder."""
        if self.running:
            return "Wait for that run to end"
        return "Run it again" if self.finished else f"Continue that run with `{self.continuing_command(directory)}`"

    def continuing_command(self, directory: str) -> str:
        """Returns the shell command, for that folder, that continues this run and skips its commits."""
        variables = {**(yaml.safe_load(self.variables) or {}), RUN_ID_VARIABLE: self.run_id}
        line = f"{self.command} --vars {shlex.quote(variables_text(variables))}"
        return line if directory == self.directory else f"cd {shlex.quote(self.directory)} && {line}"


class RunRegistry:
    """The file `silt_runs.json` of a target folder, and the locks of the commands that this process has entered.

    Args:
        folder: dbt's target path, or a copy of it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / REGISTRY_FILE
        self._alive = folder / _ALIVE_FOLDER
        self._held: dict[str, int] = {}

    def entries(self) -> tuple[RunEntry, ...]:
        """Returns the commands, oldest first; empty if the file does not exist.

        Raises:
            InvalidSettingError: if this class did not write the file.
            StorageError: if it cannot be read.
        """
        return tuple(self._current(each) for each in self._read())

    def find(self, invocation_id: str) -> RunEntry | None:
        """Returns the entry of a dbt command, if it exists."""
        return next((each for each in self.entries() if each.invocation_id == invocation_id), None)

    def enter(self, entry: RunEntry) -> None:
        """Adds a command of this process, which counts as running until `end`; does not change an existing entry.

        Raises:
            InvalidSettingError: if this class did not write the file.
            NotWrittenError: if the folder is not writable.
        """
        with self._locked():
            entries = self._read()
            if all(each.invocation_id != entry.invocation_id for each in entries):
                self._remove_stale_locks()
                self._hold(entry)
                own = replace(entry, process=os.getpid(), host=socket.gethostname())
                self._write([*entries, own][-_KEPT_RUNS:])

    def end(
        self,
        invocation_id: str,
        finished: bool,
        has_results: bool = False,
        result: CommandResult | None = None,
        publication: str | None = None,
        *,
        began: bool = True,
    ) -> None:
        """Records the end of a command of this process.

        Args:
            finished, has_results, result: see RunEntry; without any of them, no end is recorded.
            publication: see RunEntry; None keeps the recorded value.
            began: see RunEntry; True keeps the recorded value.
        """
        with self._locked():
            if finished or has_results or result is not None:
                ended_at = datetime.now(timezone.utc).isoformat()
                ended = partial(replace, finished=finished, has_results=has_results, ended_at=ended_at, result=result)
                self._write(
                    ended(each, publication=publication or each.publication, began=began and each.began)
                    if each.invocation_id == invocation_id
                    else each
                    for each in self._read()
                )
            held = self._held.pop(invocation_id, None)
            if held is not None:
                self._lock_file(invocation_id).unlink(missing_ok=True)
                os.close(held)

    def mark_rolled_back(self, run_id: str) -> None:
        """Records that all changes of a run were undone.

        Raises:
            InvalidSettingError: if this class did not write the file.
            NotWrittenError: if the folder is not writable.
        """
        self._mark(run_id, partial(replace, rolled_back=True))

    def mark_published(self, run_id: str) -> None:
        """Records that the changes of a run were published after its end. Raises as `mark_rolled_back`."""
        self._mark(run_id, _published)

    def _mark(self, run_id: str, marked: Callable[[RunEntry], RunEntry]) -> None:
        if any(each.run_id == run_id for each in self._read()):
            with self._locked():
                self._write(marked(each) if each.run_id == run_id else each for each in self._read())

    def _read(self) -> tuple[RunEntry, ...]:
        try:
            runs = json.loads(self._path.read_text(encoding="utf-8"))["runs"]
            return tuple(map(_entry, runs))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StorageError(f"{self._path} cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidSettingError(
                f"{self._path} cannot be read ({error})", remedy="Delete it: earlier runs can then no longer be retried"
            ) from error

    def _write(self, entries: Iterable[RunEntry]) -> None:
        runs = list(map(_entry_json, entries))
        temporary = self._path.with_suffix(f".{os.getpid()}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600)  # it contains the values of --vars
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"runs": runs}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Locks the file, so that two commands in a project do not lose each other's entry."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
                file_locks.acquire(lock.fileno())
                yield
        except OSError as error:
            raise NotWrittenError(
                f"{self._path} cannot be written ({error.strerror or error}), so a rerun would not know this run",
                remedy="Make dbt's target folder writable, or name another folder with `--target-path`",
            ) from error

    def _lock_file(self, invocation_id: str) -> Path:
        return self._alive / f"{invocation_id}.lock"

    def _hold(self, entry: RunEntry) -> None:
        owned_folders.create(str(self._alive))
        file = os.open(self._lock_file(entry.invocation_id), os.O_RDWR | os.O_CREAT, 0o600)
        file_locks.acquire(file)
        self._held[entry.invocation_id] = file
        if entry.selected is not None:
            os.write(file, json.dumps(sorted(entry.selected)).encode())

    def _current(self, entry: RunEntry) -> RunEntry:
        lock = self._lock_file(entry.invocation_id)
        if entry.finished or not _is_held(lock):
            return entry
        return replace(entry, running=True, selected=_selected(lock))

    def _remove_stale_locks(self) -> None:
        """Deletes the lock files of killed commands; new files are locked before the registry's lock is released."""
        for path in self._alive.glob("*.lock"):
            if not _is_held(path):
                path.unlink(missing_ok=True)


def _published(entry: RunEntry) -> RunEntry:
    """Returns the entry of a command whose changes were published after its end: an error outside of its nodes, which
    held them, is no longer a failure of the run.
    """
    if entry.publication == HELD and entry.result is not None and not entry.result.failed:
        result = replace(entry.result, ending=Ending.SUCCESS, problem=None)
        return replace(entry, publication=PUBLISHED, finished=True, result=result)
    return replace(entry, publication=PUBLISHED)


def _entry(body: Mapping[str, Any]) -> RunEntry:
    known = {each.name: body[each.name] for each in fields(RunEntry) if each.name in body}
    result = known.get("result")
    return RunEntry(**{**known, "result": None if result is None else CommandResult.from_json(result)})


def _entry_json(entry: RunEntry) -> dict[str, Any]:
    body = {each.name: getattr(entry, each.name) for each in fields(RunEntry) if each.name not in _OF_RUNNING}
    return {**body, "result": None if entry.result is None else entry.result.to_json()}


def last_build(entries: Iterable[RunEntry], run_id: str) -> RunEntry | None:
    """Returns the newest command of a run that builds nodes, if any."""
    builds = [each for each in entries if each.run_id == run_id and each.builds]
    return builds[-1] if builds else None


def variables_text(variables: Mapping[str, Any]) -> str:
    """Returns the value of `--vars` as single-line YAML, which preserves types."""
    text = yaml.dump(dict(variables), Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=float("inf"))
    return str(text).strip()


def parse_time(text: str) -> datetime:
    """Parses an ISO 8601 time of dbt or this module; a time without a zone is in UTC."""
    value = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return value if value.tzinfo else value.replace(tzinfo=timezone.utc)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """Keeps strings on a single line; converts values of types that YAML lacks to strings."""


_Dumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"' if "\n" in text else None)
)
_Dumper.add_multi_representer(object, lambda dumper, value: dumper.represent_str(str(value)))


def _selected(lock: Path) -> frozenset[str] | None:
    """Returns the nodes in a command's lock file, if the file contains them."""
    try:
        return frozenset(json.loads(lock.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _is_held(path: Path) -> bool:
    """Returns whether a process, possibly this process, holds the lock of that file; True if it cannot be tested."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return file_locks.is_held(file)
    finally:
        os.close(file)
