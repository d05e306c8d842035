"""Reads and writes `target/silt_commits.jsonl`: a JSON object for each commit and each skipped unit of work.

A line is written after its commit, so a process that is killed in between loses only the line. The tables' logs are the
truth; the file spares readers from reading all of them. Nothing here needs dbt or Spark.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.engine.kernel import file_locks
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts

COMMITS_FILE: Final = "silt_commits.jsonl"


@dataclass(frozen=True)
class JournalEntry:
    """A line of the journal.

    Attributes:
        time: the time when the line is written, in UTC, as ISO 8601.
        table: the table's full name.
        invocation_id, target, run_id, node_id, batch_id, app_id: see `commit_facts.CommitFacts`.
        txn_version: the version of the unit of work.
        table_version: the version of the commit; for a skipped unit of work, of the earlier commit.
        operation: as in `commitInfo`.
        counts: the rows, files and attempts of the commit; unknown if it was skipped.
        skipped: whether nothing was committed, because an earlier commit holds this unit of work or the same rows.
        reason: why a node that may be reused was reused or built.
        audits: the verdicts of the tests that judged the rows before the commit, each with its name, status and number
            of failures.
    """

    time: str
    table: str
    invocation_id: str | None = None
    target: str | None = None
    run_id: str | None = None
    node_id: str | None = None
    batch_id: str | None = None
    app_id: str | None = None
    txn_version: int | None = None
    table_version: int | None = None
    operation: str | None = None
    counts: WriteCounts = field(default_factory=WriteCounts)
    skipped: bool = False
    reason: str | None = None
    audits: list[dict[str, Any]] | None = None

    @classmethod
    def from_json(cls, line: str) -> JournalEntry | None:
        """Parses a line; ignores fields of later versions. Returns None if the line is not an entry."""
        try:
            body = json.loads(line)
        except ValueError:
            return None
        if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in ("time", "table")):
            return None
        counts = WriteCounts(**{name: body[name] for name in _COUNTS & body.keys()})
        return cls(**{name: body[name] for name in _FIELDS & body.keys()}, counts=counts)

    def to_json(self) -> str:
        body = asdict(self)
        body |= body.pop("counts") | {"rows_affected": self.counts.rows_affected}
        return json.dumps({name: value for name, value in body.items() if value is not None})


@dataclass(frozen=True)
class Journal:
    """The content of the file.

    Attributes:
        entries: oldest first.
        damaged: the numbers, from 1, of the lines that cannot be read.
        torn: whether the last line is incomplete: its writer was killed, or is still writing. Not counted as damaged.
    """

    entries: tuple[JournalEntry, ...] = ()
    damaged: tuple[int, ...] = ()
    torn: bool = False


class CommitJournal:
    """The journal of a project.

    Args:
        target_path: dbt's target path.
    """

    def __init__(self, target_path: Path) -> None:
        self.path = target_path / COMMITS_FILE

    def append(self, entry: JournalEntry) -> None:
        """Adds a line in a single write and under a lock, so that lines of several processes do not mix.

        Raises:
            OSError: if the file cannot be written, or its file system has no locks.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            # A killed writer's half line must not spoil this line; an active writer's half line looks the same.
            file_locks.acquire(file)
            data = ("\n" if _is_torn(file) else "") + entry.to_json() + "\n"
            os.write(file, data.encode())
        finally:
            os.close(file)

    def read(self) -> Journal:
        """Reads the file; empty if it does not exist.

        Raises:
            StorageError: if the file exists and cannot be read.
        """
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return Journal()
        except OSError as error:
            raise StorageError(f"{self.path} cannot be read: {error.strerror or error}") from error
        *lines, rest = text.split("\n")
        parsed = {number: JournalEntry.from_json(line) for number, line in enumerate(lines, 1) if line.strip()}
        return Journal(
            entries=tuple(entry for entry in parsed.values() if entry is not None),
            damaged=tuple(number for number, entry in parsed.items() if entry is None),
            torn=bool(rest),
        )


def _is_torn(file: int) -> bool:
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"


_COUNTS: Final = frozenset(each.name for each in fields(WriteCounts))
_FIELDS: Final = frozenset(each.name for each in fields(JournalEntry)) - {"counts"}
