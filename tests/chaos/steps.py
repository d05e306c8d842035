"""The steps of a run that can be observed without changes to the adapter, and moments at them.

A step is a Python audit event, which precedes each opening, linking, renaming or removing of a file. So a run can be
killed at a step of a commit without any support in the adapter. If the warehouse is in an object store, most steps are
requests instead (`request_steps`).
"""

from __future__ import annotations

import enum
import json
import os
import re
import signal
from dataclasses import asdict, dataclass
from typing import Any

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.tmp")
_COMMIT = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\..*parquet")
HOOKED_TABLES = frozenset(("hooked", "audit", "tally"))


class Step(enum.Enum):
    """A step of a run."""

    START = "starting"
    """dbt is imported; it reads the project while Spark starts."""
    ENTRY = "running"
    """The run is about to be entered in `silt_runs.json`."""
    WRITTEN = "data written"
    """Spark has written a statement's files; they are about to be forced to disk."""
    COMMIT = "before the commit"
    """The data is durable; the commit's file is about to be written."""
    LINK = "in the commit: before the link"
    """The commit's file is complete and durable; it is about to get its name."""
    LINKED = "in the commit: before the answer"
    """The commit has its name; the writer has no answer yet."""
    JOURNAL = "after the commit"
    """The commit has returned; it is about to be recorded in `silt_commits.jsonl`."""
    HOOK = "between commit and hook"
    """The same, for a model with hooks or a statement of its hooks: another statement follows."""
    CHECKPOINT = "in the checkpoint"
    """A checkpoint's file is about to be written."""
    CHECKPOINT_LINK = "in the checkpoint: before its name"
    """A checkpoint's file is complete; it is about to get its name."""
    HINT = "after the checkpoint"
    """`_last_checkpoint` is about to be written."""
    OTHER = "other writes"
    """Another file of the warehouse is about to be written: a view, a schema, a checksum."""
    RESULTS = "before the results"
    """The last commit is complete; `run_results.json` is about to be written."""
    UPLOAD = "before an upload of data"
    """Spark is about to write a data file, or to move it to its final path."""
    UPLOADED = "in an upload of data: before the answer"
    """A data file exists; Spark has no answer yet."""
    LATE = "the commit arrives when its process is dead"
    """The commit was sent, and arrives after the start of the next process."""
    CHECKPOINTED = "in the checkpoint: before the answer"
    """A checkpoint's file exists; the writer has no answer yet."""
    NAMES = "before a change of names"
    """`_catalog.json` is about to be replaced: a relation is created, replaced, renamed or dropped."""
    NAMED = "in a change of names: before the answer"
    """`_catalog.json` is replaced; the writer has no answer yet."""
    LATE_NAMES = "a change of names arrives when its process is dead"
    """The change was sent, and arrives after the start of the next process."""
    DEFINITION = "before a definition"
    """The text of a view or function is about to be written."""
    DEFINED = "after a definition"
    """The text is stored, but no name refers to it yet."""
    DELETE = "before a deletion"
    """Files are about to be deleted: Spark's temporary files, or files of replaced relations."""
    DELETED = "in a deletion: before the answer"
    """Files are deleted; the writer has no answer yet."""

    @property
    def is_late(self) -> bool:
        return self in (Step.LATE, Step.LATE_NAMES)


_IN_BOTH = (Step.START, Step.ENTRY, Step.COMMIT, Step.LINKED, Step.JOURNAL, Step.HOOK, Step.CHECKPOINT, Step.HINT)
IN_PROCESS = (Step.START, Step.ENTRY, Step.RESULTS)
"""The steps that the process announces for every kind of warehouse."""
ANNOUNCED = (*_IN_BOTH, Step.WRITTEN, Step.LINK, Step.CHECKPOINT_LINK, Step.OTHER, Step.RESULTS)
"""The steps of a build whose warehouse is in a folder."""
REQUESTED = (*_IN_BOTH, Step.RESULTS, *(each for each in Step if each not in (*ANNOUNCED, *_IN_BOTH)))
"""The steps of a build whose warehouse is in an object store."""


@dataclass(frozen=True)
class Moment:
    """The moment at which a run is disturbed: a number of seconds after the n-th occurrence of a step.

    Attributes:
        signal: SIGKILL to kill the run, SIGINT for Ctrl-C.
        of_spark: whether the kept Spark is killed instead of the run, which continues.
    """

    step: str
    n: int = 1
    seconds: float = 0.0
    signal: int = signal.SIGKILL
    of_spark: bool = False

    def __str__(self) -> str:
        at = Step[self.step].value + (f" #{self.n}" if self.n > 1 else "")
        return at + (f" +{self.seconds:.3f} s" if self.seconds else "")

    @property
    def kills(self) -> bool:
        return self.signal == signal.SIGKILL

    @property
    def kind(self) -> str:
        """The kind of moment in the figures."""
        match Step[self.step]:
            case Step.ENTRY:
                return "any time"
            case Step.HOOK | Step.JOURNAL if self.seconds:
                return "soon after a commit"
            case step:
                return step.value

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Moment:
        return cls(**json.loads(text))


class Places:
    """Recognises steps by audit events; one instance for each thread, to relate journal lines to commits."""

    def __init__(self) -> None:
        self.table = ""
        self._has_committed = False

    def step(self, event: str, arguments: tuple[Any, ...]) -> Step | None:
        """Returns the step of an audit event, or None."""
        match event:
            case "open" if isinstance(arguments[0], str):
                return self._opened(arguments[0], arguments[1])
            case "os.link":
                return self._named(arguments[1], arguments[3])
            case "os.rename":
                return self._named(arguments[1], -1)
            case "os.remove" if isinstance(arguments[0], str):
                found = _TEMPORARY.fullmatch(arguments[0])
                return Step.LINKED if found and _COMMIT.fullmatch(found["name"]) else None
        return None

    def _opened(self, path: str, mode: str | None) -> Step | None:
        name = os.path.basename(path)
        if name == "silt_commits.jsonl":
            return self._noted()
        if name == "run_results.json":
            return Step.RESULTS if mode and mode.startswith("w") else None
        if name.endswith(".parquet") and mode is None:
            return Step.WRITTEN
        found = _TEMPORARY.fullmatch(name)
        if found is None:
            return None
        if _COMMIT.fullmatch(found["name"]):
            return Step.COMMIT
        if _CHECKPOINT.fullmatch(found["name"]):
            return Step.CHECKPOINT
        return Step.HINT if found["name"] == "_last_checkpoint" else Step.OTHER

    def _noted(self) -> Step | None:
        """Returns the step of a journal line, or None for a skip, which follows no commit."""
        committed, self._has_committed = self._has_committed, False
        if not committed:
            return None
        return Step.HOOK if self.table in HOOKED_TABLES else Step.JOURNAL

    def _named(self, target: object, folder: int) -> Step | None:
        name = os.path.basename(str(target))
        if name == "silt_runs.json":
            return Step.ENTRY
        if _CHECKPOINT.fullmatch(name):
            return Step.CHECKPOINT_LINK
        if not _COMMIT.fullmatch(name):
            return None
        place = os.readlink(f"/proc/self/fd/{folder}") if folder >= 0 else os.path.dirname(str(target))
        self.table = os.path.basename(os.path.dirname(place))
        self._has_committed = True
        return Step.LINK
