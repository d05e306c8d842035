"""Target, WriteSettings and Outcome: what every command takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.progress import Progress, silent
from dbt.adapters.silt.engine.kernel.table import features
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.column_mapping import mapped
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings


def never(_: str) -> bool:
    """Forgets no transaction identifier where a table is replaced, as in delta-spark."""
    return False


@dataclass(frozen=True)
class Target:
    """The table that a statement changes, pinned.

    Args:
        name: as messages show it.
        log: the open table.
        snapshot: the version that the statement is based on.
    """

    name: str
    log: DeltaLog
    snapshot: Snapshot

    def check_writable(self) -> None:
        """Passes where this engine can write the table.

        Raises:
            UnsupportedFeatureError: the table needs a feature that it cannot write.
        """
        features.check_writable(self.snapshot.protocol, self.name, self.snapshot.metadata)


def with_schema(target: Target, schema: StructType) -> Metadata:
    """The table's metadata with another schema, whose new columns are mapped where the table maps its columns."""
    before = target.snapshot.metadata
    return mapped(replace(before, schema_string=schema.to_json()), before, target.log.clock.new_id, target.name)


@dataclass(frozen=True)
class WriteSettings:
    """The settings of a statement's commit that its caller decides.

    Args:
        txn: application id and version to record in the commit.
        commit: isolation, attempts and the fields of `commitInfo`.
        reads: what the statement's own query read of the target; added to what the verb reads.
        is_forgotten_on_replace: whether a transaction identifier stands for rows of its own, so that replacing the
            whole table forgets it.
        replace_tables: whether CREATE OR REPLACE VIEW may replace a table.
        log_skips: whether work that is skipped is logged by the package.
        progress: gets how far long work is.
    """

    txn: tuple[str, int] | None = None
    commit: CommitSettings = field(default_factory=CommitSettings)
    reads: ReadSet = field(default_factory=ReadSet)
    is_forgotten_on_replace: Callable[[str], bool] = never
    replace_tables: bool = False
    log_skips: bool = False
    progress: Progress = silent


@dataclass(frozen=True)
class Outcome:
    """The result of a statement that changes something.

    Args:
        operation: the operation's name, as in `commitInfo`.
        table: the table's name.
        version: the version that holds the result; None where nothing was committed and there is no table.
        rows_inserted, rows_updated, rows_deleted: None where not known or of no meaning.
        rows_before: the rows of the table that an empty one has replaced; None where the log does not say how many.
        files_added, files_removed: by the commit.
        files_skipped: files of the table that the statement did not need to open.
        attempts: to commit; 0 where nothing was to be committed.
        statement_attempts: runs of the whole statement.
        skipped: the unit of work had been committed before, and was not run again.
        recorded: where it was skipped, the version of its application id that the table holds.
        emptied_at: where it was skipped, the version since that took all rows out of the table and kept the
            transaction identifier (TRUNCATE, DELETE without a condition).

    Example:
        >>> outcome = Outcome("MERGE", "main.orders", 12, rows_inserted=2, rows_updated=40, attempts=2)
        >>> f"{outcome.table}@v{outcome.version}: {outcome.rows_updated} rows updated"
        'main.orders@v12: 40 rows updated'
    """

    operation: str
    table: str
    version: int | None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    rows_before: int | None = None
    files_added: int = 0
    files_removed: int = 0
    files_skipped: int = 0
    attempts: int = 1
    statement_attempts: int = 1
    skipped: bool = False
    recorded: int | None = None
    emptied_at: int | None = None
