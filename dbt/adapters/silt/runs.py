"""Logical runs: which run id a dbt command works under, so that the same work is recognised when it comes again.

The id is the first of these that there is:

1. the variable `silt_run_id` (`--vars`), which dbt records and `dbt retry` repeats by itself;
2. for `dbt retry`, the id of the run that is retried;
3. the profile's field `run_id`;
4. with the profile's field `resume`, the id of a run that did not finish within that time;
5. dbt's invocation id: every run is new work.

`target/silt_runs.json` holds the runs of a project, entered when they start and marked when they end. dbt writes its
own `run_results.json` at the end only, so after a kill it would retry an older run: that is refused, with the command
that continues the killed one.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import json
import os
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError

RUN_ID_VARIABLE = "silt_run_id"
REGISTRY_FILE = "silt_runs.json"
_KEPT_RUNS = 200


class Origin(enum.Enum):
    """Where a run id came from."""

    VARIABLE = "the variable silt_run_id"
    RETRY = "the run that is retried"
    PROFILE = "the profile's run_id"
    RESUME = "a run that did not finish"
    INVOCATION = "dbt's invocation"


@dataclass(frozen=True)
class LogicalRun:
    """A run id, and where it came from."""

    run_id: str
    origin: Origin


@dataclass(frozen=True)
class RunEntry:
    """One dbt command in `silt_runs.json`.

    Attributes:
        invocation_id: dbt's id of the command.
        run_id: the logical run that it worked under.
        command: the line that a person types to do the same again, without its run id.
        variables: the value of its `--vars`.
        started_at: when, in UTC, as ISO 8601.
        finished: whether it came to its end, with or without failed nodes.
        process: its process id.
        host: the machine that it ran on.
    """

    invocation_id: str
    run_id: str
    command: str
    variables: Mapping[str, Any]
    started_at: str
    finished: bool = False
    process: int = 0
    host: str = ""

    @property
    def started(self) -> datetime:
        return parse_time(self.started_at)

    @property
    def is_running(self) -> bool:
        """Whether its process is alive on this machine."""
        return not self.finished and self.host == socket.gethostname() and _is_alive(self.process)

    def continuing_command(self) -> str:
        """The command line that continues this run: what landed is skipped."""
        variables = json.dumps({**self.variables, RUN_ID_VARIABLE: self.run_id}, sort_keys=True)
        return f"{self.command} --vars {shlex.quote(variables)}"


@dataclass(frozen=True)
class PreviousResults:
    """What `run_results.json` says of the run that `dbt retry` repeats."""

    invocation_id: str
    generated_at: datetime
    run_ids: tuple[str, ...]
    relations: tuple[str, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> PreviousResults:
        results = document.get("results", ())
        responses = [result.get("adapter_response") or {} for result in results]
        return cls(
            invocation_id=document["metadata"]["invocation_id"],
            generated_at=parse_time(document["metadata"]["generated_at"]),
            run_ids=tuple(dict.fromkeys(each["run_id"] for each in responses if each.get("run_id"))),
            relations=tuple(result["relation_name"] for result in results if result.get("relation_name")),
        )


@dataclass(frozen=True)
class RunSources:
    """Where a run id may come from, gathered before one is chosen.

    Attributes:
        invocation_id: dbt's id of this command.
        variables: this command's `--vars`.
        profile_run_id: the profile's `run_id`.
        resume: the profile's `resume`.
        entries: the runs in `silt_runs.json`.
        previous: for `dbt retry`, the results that it repeats; None for any other command.
    """

    invocation_id: str
    variables: Mapping[str, Any]
    profile_run_id: str | None = None
    resume: timedelta | None = None
    entries: tuple[RunEntry, ...] = ()
    previous: PreviousResults | None = None


def choose_run(sources: RunSources, now: datetime, of_commits: Callable[[PreviousResults], str | None]) -> LogicalRun:
    """The logical run of a dbt command.

    Args:
        sources: see there.
        now: the time, in UTC.
        of_commits: finds the run id in the commits that a retried run left; asked only if nothing else knows it.

    Raises:
        InvalidSettingError: `dbt retry`, and the run id of what it repeats cannot be found.
    """
    variable = _text(sources.variables.get(RUN_ID_VARIABLE))
    if variable:
        return LogicalRun(variable, Origin.VARIABLE)
    if sources.previous is not None:
        return LogicalRun(_retried_run_id(sources.entries, sources.previous, of_commits), Origin.RETRY)
    profile = _text(sources.profile_run_id)
    if profile:
        return LogicalRun(profile, Origin.PROFILE)
    unfinished = resumable(sources.entries, sources.invocation_id, sources.resume, now)
    if unfinished:
        return LogicalRun(unfinished.run_id, Origin.RESUME)
    return LogicalRun(sources.invocation_id, Origin.INVOCATION)


def check_retry(entries: Sequence[RunEntry], previous: PreviousResults, invocation_id: str) -> None:
    """Refuse `dbt retry` where it would repeat an older run than the last one.

    Raises:
        InvalidSettingError: a later run wrote no results; the message holds the command that continues it.
    """
    later = [each for each in entries if each.invocation_id != invocation_id and each.started > previous.generated_at]
    retried = {each.run_id for each in entries if each.invocation_id == previous.invocation_id} | set(previous.run_ids)
    for entry in sorted(later, key=lambda each: each.started, reverse=True):
        if entry.run_id in retried:
            continue
        state = "is still running" if entry.is_running else "left no results: it was killed"
        raise InvalidSettingError(
            f"`dbt retry` would repeat run {previous.invocation_id}, but run {entry.run_id}, started later at "
            f"{entry.started_at}, {state}",
            remedy=f"Continue the later run with `{entry.continuing_command()}`",
            details={"run_id": entry.run_id},
        )


def resumable(
    entries: Sequence[RunEntry], invocation_id: str, resume: timedelta | None, now: datetime
) -> RunEntry | None:
    """The newest run, if it started within `resume`, did not finish, and no longer runs."""
    others = [each for each in entries if each.invocation_id != invocation_id]
    if resume is None or not others:
        return None
    newest = max(others, key=lambda each: each.started)
    if newest.finished or newest.is_running or now - newest.started > resume:
        return None
    return newest


class RunRegistry:
    """The file `target/silt_runs.json`.

    Args:
        target_path: the project's target folder.
    """

    def __init__(self, target_path: Path) -> None:
        self._path = target_path / REGISTRY_FILE

    def entries(self) -> tuple[RunEntry, ...]:
        """The runs, oldest first; empty where there is no file.

        Raises:
            InvalidSettingError: the file is not what this class wrote.
        """
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        try:
            return tuple(RunEntry(**each) for each in json.loads(text)["runs"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidSettingError(
                f"{self._path} cannot be read ({error})", remedy="Remove it: runs before now can then not be retried"
            ) from error

    def enter(self, entry: RunEntry) -> None:
        """Add a run, unless its invocation is there already."""
        with self._locked():
            entries = self.entries()
            if all(each.invocation_id != entry.invocation_id for each in entries):
                own = replace(entry, process=os.getpid(), host=socket.gethostname())
                self._write([*entries, own][-_KEPT_RUNS:])

    def finish(self, invocation_id: str) -> None:
        """Mark a run as one that came to its end."""
        with self._locked():
            self._write(
                replace(each, finished=True) if each.invocation_id == invocation_id else each for each in self.entries()
            )

    def _write(self, entries: Iterable[RunEntry]) -> None:
        temporary = self._path.with_suffix(f".{os.getpid()}.tmp")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"runs": [asdict(each) for each in entries]}, file, indent=1, default=str)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time: two runs in one project must not lose each other's entry."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def read_results(path: Path) -> PreviousResults | None:
    """What a `run_results.json` says, or None where there is none (dbt itself then says so)."""
    try:
        return PreviousResults.of(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def command_line(command: str, arguments: Sequence[str]) -> str:
    """The line that repeats a dbt command: its arguments without `--vars`, or the bare command if they are another's.

    Args:
        command: dbt's name of it ("run").
        arguments: the process's, of which dbt's command is one unless dbt runs inside another program.
    """
    if command not in arguments:
        return f"dbt {command}"
    kept, skip = ["dbt"], False
    for each in arguments:
        if not skip and each != "--vars" and not each.startswith("--vars="):
            kept.append(shlex.quote(each))
        skip = each == "--vars"
    return " ".join(kept)


def parse_time(text: str) -> datetime:
    """An ISO 8601 time as dbt and this module write it; one without a zone is in UTC."""
    value = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return value if value.tzinfo else value.replace(tzinfo=timezone.utc)


def _retried_run_id(
    entries: Sequence[RunEntry], previous: PreviousResults, of_commits: Callable[[PreviousResults], str | None]
) -> str:
    for entry in entries:
        if entry.invocation_id == previous.invocation_id:
            return entry.run_id
    found = previous.run_ids[0] if previous.run_ids else of_commits(previous)
    if found is None:
        raise InvalidSettingError(
            f"the run id of invocation {previous.invocation_id}, which `dbt retry` repeats, is not in {REGISTRY_FILE}, "
            "not in its results and not in its commits",
            remedy=f"Name it: `dbt retry --vars '{{{RUN_ID_VARIABLE}: ...}}'`, a new id if nothing of it was written",
        )
    return found


def _text(value: Any) -> str:
    """A run id as text; an unset environment variable gives an empty one, which is none."""
    return "" if value is None else str(value).strip()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
