"""Reads the commits of runs from the logs of a warehouse.

A commit of a dbt command records its logical run (`commit_facts`). Commits of other writers are kept too: they show
changes of a table after a run. The log of a dropped table is deleted, so its commits are missing here.
Nothing here needs dbt or Spark.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.commit_file import counts_of
from dbt.adapters.silt.engine.kernel.log.history import CommitHead, newest_heads, read_heads
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.transaction import lineage
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts
from dbt.adapters.silt.records.commit_facts import CommitFacts

_READERS: Final = 8

_TOO_MUCH = (MemoryError, RecursionError)


@dataclass(frozen=True)
class LoggedCommit:
    """A commit of a table.

    Attributes:
        table: the table's current full name.
        version: version of the commit.
        timestamp_ms: time of the commit, in milliseconds since 1970-01-01 UTC.
        operation: as in `commitInfo`, if recorded.
        counts: its rows and attempts, if recorded.
        facts: facts of the dbt command that wrote it; None for another writer.
        user_metadata: the writer's note on it.
        engine: the name and version by which the writing program identifies itself.
        back_to: the version that the commit restored, if it is a RESTORE.
        read_versions: the versions that the statement read, by table name.
    """

    table: str
    version: int
    timestamp_ms: int
    operation: str | None
    counts: WriteCounts
    facts: CommitFacts | None
    user_metadata: str | None = None
    engine: str | None = None
    back_to: int | None = None
    read_versions: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def run_id(self) -> str | None:
        """The logical run of the commit, if a dbt command wrote it."""
        return None if self.facts is None else self.facts.run_id or self.facts.invocation_id


@dataclass(frozen=True)
class TableHistory:
    """The commits of a table that its log still contains.

    Attributes:
        commits: oldest first.
        problem: the reason why they could not be read; `commits` is empty then.
    """

    table: RelationName
    commits: tuple[LoggedCommit, ...] = ()
    problem: errors.SiltError | None = None

    def of_run(self, run_id: str) -> tuple[LoggedCommit, ...]:
        """Returns the commits of a run, oldest first."""
        return tuple(commit for commit in self.commits if commit.run_id == run_id)

    def undone_by(self) -> dict[int, LoggedCommit]:
        """Returns the commits that a RESTORE has undone: version -> the RESTORE."""
        found = lineage.undoing(reversed(self.commits), lambda commit: commit.back_to)
        return {step.commit.version: step.undone_by for step in found if step.undone_by is not None}


@dataclass(frozen=True)
class Run:
    """A logical run, as its commits show it.

    Attributes:
        commits: in the order of their times; at least a single commit.
    """

    run_id: str
    commits: tuple[LoggedCommit, ...]

    @property
    def first_ms(self) -> int:
        """The time of its first commit, in milliseconds since 1970-01-01 UTC."""
        return self.commits[0].timestamp_ms

    @property
    def last_ms(self) -> int:
        """The time of its last commit, in milliseconds since 1970-01-01 UTC."""
        return self.commits[-1].timestamp_ms

    @property
    def counts(self) -> WriteCounts:
        """The rows of all its commits."""
        return WriteCounts.total_rows(commit.counts for commit in self.commits)

    @property
    def commit_retries(self) -> int:
        """The number of repeated attempts to commit, because other writers' commits came first."""
        return _again(commit.counts.attempts for commit in self.commits)

    @property
    def statement_reruns(self) -> int:
        """The number of repeated statements, because another writer had changed their inputs."""
        return _again(commit.counts.statement_attempts for commit in self.commits)

    @property
    def tables(self) -> list[str]:
        """The names of its tables, sorted."""
        return sorted({commit.table for commit in self.commits})

    @property
    def nodes(self) -> list[str]:
        """dbt's unique ids, in the order of their first commits."""
        return _distinct(commit.facts.node_id for commit in self.commits if commit.facts)

    @property
    def invocations(self) -> list[str]:
        """dbt's ids of its commands, in the order of their first commits."""
        return _distinct(commit.facts.invocation_id for commit in self.commits if commit.facts)

    @property
    def clients(self) -> list[str]:
        """The clients of `silt endpoint` that sent its statements, in the order of their first commits."""
        return _distinct(commit.facts.client for commit in self.commits if commit.facts)

    @property
    def targets(self) -> list[str]:
        """The profile's targets, in the order of their first commits."""
        return _distinct(commit.facts.target for commit in self.commits if commit.facts)


def log_history(log: DeltaLog) -> list[LoggedCommit]:
    """Reads the commits that are still in a table's log, oldest first.

    Raises:
        NotATableError, TableDamagedError, StorageError: if the log cannot be read.
    """
    return [_commit(log, head) for head in read_heads(log.store, log.name)]


def newest_commits(log: DeltaLog) -> Iterator[LoggedCommit]:
    """Yields the same commits, newest first, and reads them only shortly before. Raises as `log_history`."""
    return (_commit(log, head) for head in newest_heads(log.store, log.name))


def histories(catalog: Catalog) -> list[TableHistory]:
    """Reads the commits of every table of every database; omits a table that is dropped meanwhile.

    Raises:
        StorageError: if the storage fails.
    """
    with ThreadPoolExecutor(_READERS) as pool:
        found = pool.map(functools.partial(_history, catalog), catalog.all_tables())
        return [history for history in found if history is not None]


def runs(found: Iterable[TableHistory]) -> list[Run]:
    """Returns the runs of these histories; the run with the newest commit comes first."""
    commits: dict[str, list[LoggedCommit]] = defaultdict(list)
    for history in found:
        for commit in history.commits:
            if commit.run_id is not None:
                commits[commit.run_id].append(commit)
    made = [Run(run_id, tuple(sorted(of_run, key=_when))) for run_id, of_run in commits.items()]
    return sorted(made, key=lambda run: (run.last_ms, run.run_id), reverse=True)


def _history(catalog: Catalog, table: RelationName) -> TableHistory | None:
    try:
        return TableHistory(table, tuple(log_history(catalog.table(table))))
    except (errors.RelationNotFoundError, errors.SchemaNotFoundError):
        return None
    except Exception as error:
        gone = isinstance(error, errors.NotATableError) and catalog.find(table) is None
        return None if gone else TableHistory(table, problem=problem_of(error, str(table)))


def _commit(log: DeltaLog, head: CommitHead) -> LoggedCommit:
    return LoggedCommit(
        log.name,
        head.version,
        head.timestamp_ms,
        head.info.operation,
        counts_of(head.info),
        CommitFacts.of_info(head.info),
        head.info.user_metadata,
        head.info.engine_info,
        lineage.restored_version(log, head.version, head.info),
        head.info.read_versions or {},
    )


def _when(commit: LoggedCommit) -> tuple[int, str, int]:
    return commit.timestamp_ms, commit.table, commit.version


def _again(attempts: Iterable[int | None]) -> int:
    return sum(attempt - 1 for attempt in attempts if attempt is not None)


def _distinct(names: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))


def problem_of(error: Exception, table: str) -> errors.SiltError:
    """Returns the error as an error of the engine: another program may have written the table.

    Args:
        table: the table's name, for messages.
    """
    if isinstance(error, errors.SiltError):
        return error
    if isinstance(error, _TOO_MUCH):
        return errors.TableDamagedError(f"it takes too much memory to read it ({type(error).__name__})", table=table)
    return errors.InternalError(f"it cannot be read ({error!r:.200})", table=table)
