"""Target, TableLocation, WriteSettings and Outcome: the arguments and the result of every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Protocol

from dbt.adapters.silt.engine.audits.audit import AuditResult, Audits
from dbt.adapters.silt.engine.audits.row_tests import RowTest
from dbt.adapters.silt.engine.kernel.errors import RelationExistsError, RelationNotFoundError
from dbt.adapters.silt.engine.kernel.log.builds import Build
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.progress import Progress, silent
from dbt.adapters.silt.engine.kernel.table import features
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata, Json, Metadata
from dbt.adapters.silt.engine.kernel.table.clustering import CLUSTERING_DOMAIN
from dbt.adapters.silt.engine.kernel.table.column_mapping import mapped
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.engine.kernel.transaction.positions import Position
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts
from dbt.adapters.silt.engine.sql.ast import CreateMode

_ROW_TRACKING = "delta.rowTracking"


@dataclass(frozen=True)
class TableLocation:
    """The location of a table to be created.

    Args:
        log: the log of the table, whose folder must exist.
        base: the current table, pinned; None if the table does not exist.
        is_managed: whether the statement names the table, instead of its path.
        tests: tests of each row, which the pass that writes rows counts the failures of.
    """

    log: DeltaLog
    base: Snapshot | None
    is_managed: bool = True
    tests: Sequence[RowTest] = ()


def never(_: str) -> bool:
    """Forgets no transaction identifier when a table is replaced, as in delta-spark."""
    return False


@dataclass(frozen=True)
class Target:
    """The table that a statement changes, pinned to a version.

    Args:
        name: shown in messages.
        log: the open table.
        snapshot: the version that the statement is based on.
        tests: as in `TableLocation`.
    """

    name: str
    log: DeltaLog
    snapshot: Snapshot
    tests: Sequence[RowTest] = ()

    def check_writable(self) -> None:
        """Checks that this engine can write the table.

        Raises:
            UnsupportedFeatureError: if the table needs a feature that this engine cannot write.
        """
        features.check_writable(self.snapshot.protocol, self.name, self.snapshot.metadata)


def with_schema(target: Target, schema: StructType) -> Metadata:
    """Returns the table's metadata with another schema; maps its new columns if the table uses column mapping."""
    before = target.snapshot.metadata
    return mapped(replace(before, schema_string=schema.to_json()), before, target.log.clock.new_id, target.name)


@dataclass(frozen=True)
class Judged:
    """A commit that its audits accept.

    Attributes:
        reads: the part of the table on which the verdict depends.
        commit_info: fields of `commitInfo` about the verdict.
        instead: the changes to commit instead, if rows were taken out of them, and their new files.
    """

    reads: ReadSet = field(default_factory=ReadSet)
    commit_info: Mapping[str, Json] = field(default_factory=dict)
    instead: tuple[Changes, Uncommitted] | None = None


class Uncommitted(Protocol):
    """Files that a command has written but not committed."""

    def discard(self, log: DeltaLog) -> None:
        """Deletes the files; a failure leaves them for VACUUM."""
        ...


class Judge(Protocol):
    """Judges by a statement's audits the version that the statement is about to commit."""

    def judge(self, log: DeltaLog, base: Snapshot | None, changes: Changes, written: Sequence[object]) -> Judged:
        """Judges the version that the changes would make.

        Args:
            written: the new files, as the command has written them.

        Raises:
            AuditFailedError: if an audit refuses the commit.
            InvalidStatementError: if an audit has no verdict.
        """
        ...

    @property
    def tests(self) -> Sequence[RowTest]:
        """The tests of each row, which the pass that writes rows can evaluate."""
        ...

    def concluded(self, log: DeltaLog, outcome: Outcome) -> Outcome:
        """Returns the outcome with the results of the audits; judges the table if the statement committed nothing."""
        ...


@dataclass(frozen=True)
class WriteSettings:
    """The settings of a statement's commit that its caller decides.

    Args:
        txn: application id and version to record in the commit.
        positions: the positions, in the changes of other tables, to record in the commit.
        commit: isolation, attempts and the fields of `commitInfo`.
        reads: the target's files and predicates that the statement's query read; added to the command's read set.
        is_forgotten_on_replace: whether a transaction identifier represents rows of its own, so that replacing the
            whole table forgets it.
        replace_tables: whether CREATE OR REPLACE VIEW may replace a table.
        log_skips: whether the package logs skipped work.
        progress: receives the progress of long work.
        build: the build whose facts the commit records, if any.
        audits: the audits that the commit must pass, if any.
        judge: judges the new version by these audits.
    """

    txn: tuple[str, int] | None = None
    positions: tuple[Position, ...] = ()
    commit: CommitSettings = field(default_factory=CommitSettings)
    reads: ReadSet = field(default_factory=ReadSet)
    is_forgotten_on_replace: Callable[[str], bool] = never
    replace_tables: bool = False
    log_skips: bool = False
    progress: Progress = silent
    build: Build | None = None
    audits: Audits | None = None
    judge: Judge | None = None

    def with_commit_info(self, fields: Mapping[str, Json]) -> WriteSettings:
        """Returns the settings with further fields of the commit's `commitInfo`."""
        return replace(self, commit=replace(self.commit, commit_info={**self.commit.commit_info, **fields}))

    @property
    def must_commit(self) -> bool:
        """Whether the statement commits even if it changes nothing, because it records that it was done."""
        return self.txn is not None or any(each.is_changed for each in self.positions)


@dataclass(frozen=True)
class Outcome(WriteCounts):
    """The result of a statement that makes changes, with the counts of `WriteCounts`.

    Args:
        operation: the operation's name, as in `commitInfo`.
        table: the table's name.
        version: the version that holds the result; None if nothing was committed and no table exists.
        rows_before: the row count of a table that an empty table has replaced; None if the log does not record it.
        skipped: whether the unit of work had been committed before and was not run again.
        recorded: if skipped, the version of its application id that the table holds.
        unchanged: whether a replaced table had the same rows, so that the commit changes none.
        emptied_at: if skipped, the later version that deleted all rows of the table and kept the transaction
            identifier (TRUNCATE, DELETE without a condition).
        rebuilt: why a statement with CHANGED KEYS replaced all rows.
        audits: the results of the audits; empty if the statement had none, or was skipped.
        quarantined: the number of rows that went to the quarantine table instead.

    Example:
        >>> outcome = Outcome("MERGE", "main.orders", 12, rows_inserted=2, rows_updated=40, attempts=2)
        >>> f"{outcome.table}@v{outcome.version}: {outcome.rows_updated} rows updated"
        'main.orders@v12: 40 rows updated'
    """

    operation: str
    table: str
    version: int | None
    _: KW_ONLY
    rows_before: int | None = None
    files_added: int = 0
    files_removed: int = 0
    files_skipped: int = 0
    attempts: int = 1
    statement_attempts: int = 1
    skipped: bool = False
    recorded: int | None = None
    emptied_at: int | None = None
    unchanged: bool = False
    rebuilt: str | None = None
    audits: tuple[AuditResult, ...] = ()
    quarantined: int = 0


def check_mode(location: TableLocation, mode: CreateMode) -> None:
    """Checks that the table may be created, or replaced.

    Raises:
        RelationExistsError: if `mode` is to create a table that exists.
        RelationNotFoundError: if `mode` is to replace a table that does not exist.
    """
    if location.base is not None and mode is CreateMode.CREATE:
        raise RelationExistsError("a table with that name already exists", table=location.log.name)
    if location.base is None and mode is CreateMode.REPLACE:
        raise RelationNotFoundError("the table to replace does not exist", table=location.log.name)


def ended_domains(base: Snapshot) -> tuple[DomainMetadata, ...]:
    """Returns removals of the domain metadata of a replaced table, such as its clustering."""
    return tuple(
        DomainMetadata(domain.domain, domain.configuration, removed=True)
        for domain in base.domains.values()
        if domain.domain != _ROW_TRACKING
    )


def copied_domains(source: Snapshot, base: Snapshot | None) -> tuple[DomainMetadata, ...]:
    """Returns the domain metadata of a table whose definition is another table's, and which replaces `base`, if any."""
    own = tuple(domain for name, domain in source.domains.items() if name == CLUSTERING_DOMAIN)
    ended = () if base is None else ended_domains(base)
    names = {domain.domain for domain in own}
    return (*own, *(domain for domain in ended if domain.domain not in names))
