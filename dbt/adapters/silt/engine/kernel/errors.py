"""The errors that the engine raises, grouped by what the user must do.

    SiltError
      RunAgainError                    run the statement, or the run, again
        ConcurrentModificationError    another writer won; nothing of this statement was applied
          ConcurrentAppendError
          ConcurrentDeleteReadError
          ConcurrentDeleteDeleteError
          MetadataChangedError
          ProtocolChangedError
          ConcurrentTransactionError
          ConcurrentDomainError
          ConcurrentKeyError
          ConcurrentCreateError
          ConcurrentDropError
          MergeConflictError
        CommitAttemptsExhaustedError
        CommitStateUnknownError
        RunInProgressError
        ExecutorLostError
        StatementCancelledError
      InvalidStatementError            correct the statement, the model or its configuration
        StatementSyntaxError
          EmptyStatementError
        UnsupportedStatementError
        InvalidArgumentError
        InvalidNameError
        RelationNotFoundError
          FunctionNotFoundError
        FilesNotFoundError
        RelationExistsError
        SchemaNotFoundError
        ColumnNotFoundError
        TypeMismatchError
        InvalidPropertyError
        RetentionTooShortError
        VersionNotFoundError
        RunNotFoundError
        BranchNotFoundError
        ChangeDataNotRecordedError
        ChangesMissingError
        RollbackRefusedError
        RuleNotAllowedError
        StoredCodeError
        ResultTooLargeError
      DataRejectedError                correct the data
        NotNullViolationError
        CheckViolationError
        KeyViolationError
        ForeignKeyViolationError
        MultipleSourceRowsError
        ValueNotCastableError
        ReplaceWhereMismatchError
        PartitionValueError
        AuditFailedError
      TableDamagedError                repair or restore the table's files
        CorruptLogError
        MissingLogVersionError
        CorruptCheckpointError
        CorruptDeletionVectorError
        DataFileMissingError
        DataFileChangedError
        NotATableError
        UnusableFileError
      UnsupportedFeatureError          use an engine that supports the table's feature
      UnavailableError                 repair the environment: storage, Java, Spark, settings
        StorageError
          StorageRefusedError
          NotWrittenError
            NoSpaceError
            ReadOnlyStorageError
            SymbolicLinkError
        SparkUnavailableError
          SparkEndedError
          KeptSparkError
          KeptSparkInUseError
        SparkFailedError
        RegistrationError
        InvalidSettingError
          ConditionsIgnoredError
        ExternalPathError
      InternalError                    report a bug

Each class has a stable `code`; the message names the table and version and ends with the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dbt.adapters.silt.engine.kernel.printable import lines

_NARROWER = (
    "Nothing was applied: run it again; "
    "a predicate that names the partition or key range avoids conflicts with other writers"
)


def sentence(text: str) -> str:
    """Adds a full stop to a text, unless it ends with an exclamation mark, a question mark or an ellipsis."""
    text = _without_full_stop(text)
    return text if text.endswith(("!", "?", "...", "…")) else f"{text}."


def _without_full_stop(text: str) -> str:
    text = text.strip()
    return text if text.endswith("...") else text.rstrip(". \n")


class SiltError(Exception):
    """The base of all errors of this package.

    Args:
        problem: what happened, in the user's terms, without a full stop.
        remedy: what to do now, without a full stop; None means the remedy of the class.
        table: the table's name or path.
        version: the version of the table at which the problem occurred.
        details: values that a program can use (winner's version, column, rows ...).
    """

    code: ClassVar[str] = "SILT_ERROR"
    remedy: ClassVar[str] = "Read the message and correct its cause"

    def __init__(
        self,
        problem: str,
        *,
        remedy: str | None = None,
        table: str | None = None,
        version: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.problem = _without_full_stop(problem)
        self.table = table
        self.version = version
        self.details: Mapping[str, Any] = dict(details or {})
        self.action = remedy or type(self).remedy
        super().__init__(self._render())

    def _render(self) -> str:
        place = ""
        if self.table is not None:
            at = "" if self.version is None else f"@v{self.version}"
            place = f"{self.table}{at}: "
        return lines(f"[{self.code}] {place}{self.sentences}")

    @property
    def sentences(self) -> str:
        """The problem and the remedy, each as a sentence, without code and table."""
        return f"{sentence(self.problem)} {sentence(self.action)}"


class RunAgainError(SiltError):
    """The statement or the run must be repeated."""

    code = "SILT_RUN_AGAIN"
    remedy = "Run it again"


class ConcurrentModificationError(RunAgainError):
    """The commit of another writer conflicts with this commit; nothing of this statement was applied."""

    code = "SILT_CONCURRENT_MODIFICATION"
    remedy = "Nothing was applied: run it again"


class ConcurrentAppendError(ConcurrentModificationError):
    """A winner added files that may contain rows which this transaction read or would have read."""

    code = "SILT_CONCURRENT_APPEND"
    remedy = _NARROWER


class ConcurrentDeleteReadError(ConcurrentModificationError):
    """A winner removed a file that this transaction read."""

    code = "SILT_CONCURRENT_DELETE_READ"
    remedy = _NARROWER


class ConcurrentDeleteDeleteError(ConcurrentModificationError):
    """A winner removed a file that this transaction also removes."""

    code = "SILT_CONCURRENT_DELETE_DELETE"


class MetadataChangedError(ConcurrentModificationError):
    """A winner changed the table's schema, properties or partitioning."""

    code = "SILT_METADATA_CHANGED"


class ProtocolChangedError(ConcurrentModificationError):
    """A winner changed the table's protocol."""

    code = "SILT_PROTOCOL_CHANGED"


class ConcurrentTransactionError(ConcurrentModificationError):
    """A winner committed a transaction identifier that this transaction also commits."""

    code = "SILT_CONCURRENT_TRANSACTION"
    remedy = "Nothing was applied: run it again; if the other writer did the same unit of work, the rerun skips it"


class ConcurrentDomainError(ConcurrentModificationError):
    """A winner set a metadata domain that this transaction also sets."""

    code = "SILT_CONCURRENT_DOMAIN"


class ConcurrentKeyError(ConcurrentModificationError):
    """A winner added a row with a key that this transaction adds too, under an enforced PRIMARY KEY or UNIQUE."""

    code = "SILT_CONCURRENT_KEY"


class ConcurrentCreateError(ConcurrentModificationError):
    """Another writer created the table first."""

    code = "SILT_CONCURRENT_CREATE"


class MergeConflictError(ConcurrentModificationError):
    """A named branch and other programs have changed the same tables or names since the branch began."""

    code = "SILT_MERGE_CONFLICT"
    remedy = "Nothing was merged: build what is affected on the present tables (`silt branch NAME --update`)"


class ConcurrentDropError(ConcurrentModificationError):
    """The table was dropped, or dropped and created again, while this transaction ran."""

    code = "SILT_CONCURRENT_DROP"


class CommitAttemptsExhaustedError(RunAgainError):
    """Every allowed attempt to commit lost against another writer's commit."""

    code = "SILT_COMMIT_ATTEMPTS_EXHAUSTED"
    remedy = "Nothing was applied: run it again, or raise max_commit_attempts"


class CommitStateUnknownError(RunAgainError):
    """The storage did not report whether the commit took place."""

    code = "SILT_COMMIT_STATE_UNKNOWN"
    remedy = "Run it again with the same run id: committed work is skipped"
    remedy_without_run = (
        "Before you run it again, check whether it was committed: `describe history` or `silt history` shows it"
    )
    """The remedy for a statement outside of a run."""


class RunInProgressError(RunAgainError):
    """Commands work on the run that is to be published or dropped."""

    code = "SILT_RUN_IN_PROGRESS"
    remedy = "Nothing was changed: wait until they have ended, or end them, and run it again"


class ExecutorLostError(RunAgainError):
    """An executor was lost, with rows that it had computed for the statement."""

    code = "SILT_EXECUTOR_LOST"
    remedy = (
        "Nothing was applied: run it again; if executors are lost often, give them more memory, or machines that "
        "are not reclaimed"
    )


class StatementCancelledError(RunAgainError):
    """A client of `silt endpoint` has cancelled its statement; nothing of it was applied."""

    code = "SILT_STATEMENT_CANCELLED"
    remedy = "Send it again if it is still needed"


class InvalidStatementError(SiltError):
    """The statement, the model or its configuration must be corrected."""

    code = "SILT_INVALID_STATEMENT"
    remedy = "Correct the statement"


class StatementSyntaxError(InvalidStatementError):
    """The text cannot be parsed as a statement."""

    code = "SILT_SYNTAX"


class EmptyStatementError(StatementSyntaxError):
    """The text is empty."""

    code = "SILT_EMPTY_STATEMENT"
    remedy = "Send a statement"


class UnsupportedStatementError(InvalidStatementError):
    """The statement is parsed, or names a table of the warehouse, but cannot be run."""

    code = "SILT_UNSUPPORTED_STATEMENT"


class InvalidArgumentError(InvalidStatementError):
    """A program called the engine with an invalid value."""

    code = "SILT_INVALID_ARGUMENT"
    remedy = "Correct the call"


class InvalidNameError(InvalidStatementError):
    """A database, schema, table, view or column name cannot be used."""

    code = "SILT_INVALID_NAME"
    remedy = "Choose another name"


class RelationNotFoundError(InvalidStatementError):
    """The table or view does not exist."""

    code = "SILT_RELATION_NOT_FOUND"
    remedy = "Check the name, or build the model that creates it"


class FunctionNotFoundError(RelationNotFoundError):
    """The function does not exist."""

    code = "SILT_FUNCTION_NOT_FOUND"
    remedy = "Check the name; `show functions` lists all functions"


class FilesNotFoundError(InvalidStatementError):
    """A statement reads files by their path, and no file exists there."""

    code = "SILT_FILES_NOT_FOUND"
    remedy = "Check the path; the Spark that runs the statement must be able to read it"


class RelationExistsError(InvalidStatementError):
    """A table or view of that name already exists."""

    code = "SILT_RELATION_EXISTS"
    remedy = "Drop it first, or use `create or replace`"


class SchemaNotFoundError(InvalidStatementError):
    """The schema or database does not exist."""

    code = "SILT_SCHEMA_NOT_FOUND"
    remedy = "Create the schema first, or check its name"


class ColumnNotFoundError(InvalidStatementError):
    """The column does not exist."""

    code = "SILT_COLUMN_NOT_FOUND"
    remedy = "Check the column's name"


class TypeMismatchError(InvalidStatementError):
    """A column's type cannot be stored in the table's column."""

    code = "SILT_TYPE_MISMATCH"
    remedy = "Cast the column in the query, or change the table's column"


class InvalidPropertyError(InvalidStatementError):
    """A table property is unknown or has a value that cannot be used."""

    code = "SILT_INVALID_PROPERTY"
    remedy = "Correct the property"


class VersionNotFoundError(InvalidStatementError):
    """The table's log does not contain the requested version or time, or no longer does."""

    code = "SILT_VERSION_NOT_FOUND"
    remedy = "Choose one of the versions that `describe history` shows"


class ChangesMissingError(InvalidStatementError):
    """The changes of a table after a version can no longer be read."""

    code = "SILT_CHANGES_MISSING"
    remedy = (
        "Read the whole table once, without `after`, and continue from its newest version; build a model again with "
        "`dbt run --full-refresh`"
    )


class RunNotFoundError(InvalidStatementError):
    """No table's log contains a commit of that run."""

    code = "SILT_RUN_NOT_FOUND"
    remedy = "Choose one of the runs that `silt runs` shows"


class BranchNotFoundError(InvalidStatementError):
    """No branch of that name exists."""

    code = "SILT_BRANCH_NOT_FOUND"
    remedy = "Choose one of the branches that `silt branches` shows, or create it: `silt branch NAME`"


class ChangeDataNotRecordedError(InvalidStatementError):
    """The change data of a requested version was not recorded."""

    code = "SILT_CHANGE_DATA_NOT_RECORDED"
    remedy = (
        "Start with a later version: `describe history` shows when `delta.enableChangeDataFeed` was set; to record "
        "changes from now on, set it with `alter table ... set tblproperties`"
    )


class RollbackRefusedError(InvalidStatementError):
    """A unit of work or a run cannot be undone in all the tables that it changed; no table was changed."""

    code = "SILT_ROLLBACK_REFUSED"


class RetentionTooShortError(InvalidStatementError):
    """A VACUUM would delete files that readers and writers may still use."""

    code = "SILT_RETENTION_TOO_SHORT"
    remedy = (
        "Leave RETAIN out, or lower the table's `delta.deletedFileRetentionDuration`; if the table is certainly not in "
        "use, `set silt.retentionDurationCheck.enabled = false` allows it for this session"
    )


class RuleNotAllowedError(InvalidStatementError):
    """The SQL of a default, a condition or a generated column contains something that a table's rule may not."""

    code = "SILT_RULE_NOT_ALLOWED"
    remedy = (
        "Its SQL runs as the user who writes the table: drop it (`alter table ... drop constraint`, `alter column ... "
        "drop default`, `drop column`), or let the table's owner define it with deterministic built-in functions only"
    )


class StoredCodeError(InvalidStatementError):
    """Stored SQL of a view, a function or a run runs code, or reads through a provider that is not for plain files."""

    code = "SILT_STORED_CODE"
    remedy = (
        "Its SQL runs as you: if you trust every user who can write the warehouse, set "
        "`stored_code: true` in the profile (`WarehouseSettings(stored_code=True)` in a program); "
        "otherwise drop it, or define it without such code"
    )


class ResultTooLargeError(InvalidStatementError):
    """A query has more rows than `silt endpoint` returns."""

    code = "SILT_RESULT_TOO_LARGE"
    remedy = "Add a condition, an aggregate or a limit to the query, or start the endpoint with a larger `--max-rows`"


class DataRejectedError(SiltError):
    """The data breaks a rule of the table or of the statement; nothing was written."""

    code = "SILT_DATA_REJECTED"
    remedy = "Nothing was written: correct the data"


class NotNullViolationError(DataRejectedError):
    """A column declared NOT NULL would contain a null."""

    code = "SILT_NOT_NULL_VIOLATION"


class CheckViolationError(DataRejectedError):
    """A row breaks a CHECK constraint or an invariant."""

    code = "SILT_CHECK_VIOLATION"


class KeyViolationError(DataRejectedError):
    """Two rows would have the same key under an enforced PRIMARY KEY or UNIQUE."""

    code = "SILT_KEY_VIOLATION"


class ForeignKeyViolationError(DataRejectedError):
    """A row would reference a key that its parent does not have, under an enforced FOREIGN KEY."""

    code = "SILT_FOREIGN_KEY_VIOLATION"
    remedy = "Nothing was written: add the rows of the parent first, or remove the rows of the child first"


class MultipleSourceRowsError(DataRejectedError):
    """WHEN clauses of a MERGE select more than one source row for a target row."""

    code = "SILT_MULTIPLE_SOURCE_ROWS"
    remedy = (
        "Nothing was written: make the source's rows unique by the merge key, or add a condition to the WHEN "
        "clauses that selects one row"
    )


class ValueNotCastableError(DataRejectedError):
    """A value cannot be cast to a type, or cannot be stored in a column's type without loss."""

    code = "SILT_VALUE_NOT_CASTABLE"


class ReplaceWhereMismatchError(DataRejectedError):
    """A row written by REPLACE WHERE lies outside its predicate."""

    code = "SILT_REPLACE_WHERE_MISMATCH"


class PartitionValueError(DataRejectedError):
    """A partition column would contain a value that the log or a folder's name cannot hold, such as an empty string."""

    code = "SILT_PARTITION_VALUE"


class AuditFailedError(DataRejectedError):
    """An audit of the table fails on the rows that the commit would have made.

    Attributes:
        results: the results of all audits of the statement.
    """

    code = "SILT_AUDIT_FAILED"
    remedy = "Nothing was written: correct the rows, or the audit if they are right"

    @property
    def results(self) -> tuple[Any, ...]:
        return tuple(self.details.get("results", ()))


class TableDamagedError(SiltError):
    """The table's own files are missing or cannot be read."""

    code = "SILT_TABLE_DAMAGED"
    remedy = (
        "Restore the table's files from a copy, or restore the table to an earlier version; `silt check --data` names "
        "the damaged files"
    )


class CorruptLogError(TableDamagedError):
    """A file of the log cannot be parsed or breaks the protocol."""

    code = "SILT_CORRUPT_LOG"
    remedy = "Restore that file from a copy"


class MissingLogVersionError(TableDamagedError):
    """A commit between two existing commits is missing."""

    code = "SILT_MISSING_LOG_VERSION"
    remedy = "Restore the missing commit file from a copy"


class CorruptCheckpointError(TableDamagedError):
    """A checkpoint is needed and cannot be read."""

    code = "SILT_CORRUPT_CHECKPOINT"
    remedy = "Restore the checkpoint, or the commit files before it, from a copy"


class CorruptDeletionVectorError(TableDamagedError):
    """A deletion vector cannot be read, so the rows of the table are unknown."""

    code = "SILT_CORRUPT_DELETION_VECTOR"
    remedy = "Restore its file from a copy, or restore the table to a version without it"


class DataFileMissingError(TableDamagedError):
    """A data file that the log names is missing."""

    code = "SILT_DATA_FILE_MISSING"
    remedy = (
        "If this version is older than the retention, VACUUM may have deleted its files: read a newer version; if the "
        "table is a shallow clone whose source has lost the file, clone the source again; otherwise restore the file "
        "from a copy, or restore the table to a version without it; `silt check` names all missing files"
    )


class DataFileChangedError(TableDamagedError):
    """A data file exists, but its size, rows or columns differ from the log."""

    code = "SILT_DATA_FILE_CHANGED"
    remedy = (
        "Nothing was written: restore the file from a copy, or restore the table to a version without it; `silt check` "
        "finds other damage"
    )


class NotATableError(TableDamagedError):
    """The folder does not contain the log of a table."""

    code = "SILT_NOT_A_TABLE"
    remedy = "Check the path, or remove the folder if it contains nothing of value"


class UnusableFileError(TableDamagedError):
    """A file of a table or of the warehouse is not a regular file, or is far larger than any file of its kind."""

    code = "SILT_UNUSABLE_FILE"
    remedy = "It is damaged or hostile: restore the file from a copy, or move it away"


class UnsupportedFeatureError(SiltError):
    """The table's protocol requires a feature that this engine does not support."""

    code = "SILT_UNSUPPORTED_FEATURE"
    remedy = "Use an engine that supports the feature, or drop the feature from the table with the engine that added it"


class UnavailableError(SiltError):
    """The environment of the engine must be repaired."""

    code = "SILT_UNAVAILABLE"
    remedy = "Fix the cause, then run it again"


class StorageError(UnavailableError):
    """The storage failed; a write may or may not have taken place."""

    code = "SILT_STORAGE"
    remedy = "Check that the storage is reachable and writable, then run it again"


class StorageRefusedError(StorageError):
    """The storage service refused a request because of its bucket, region or credentials."""

    code = "SILT_STORAGE_REFUSED"
    remedy = "Correct `warehouse` or `storage` in the profile; `dbt debug` checks them"


class NotWrittenError(StorageError):
    """A write failed, and no part of it is visible."""

    code = "SILT_NOT_WRITTEN"
    remedy = "Check that the storage is writable and has free space, then run it again"


class NoSpaceError(NotWrittenError):
    """The file system or the user's quota is full."""

    code = "SILT_NO_SPACE"
    remedy = "Free space there (`vacuum` and `drop table` delete files), then run it again"


class ReadOnlyStorageError(NotWrittenError):
    """The user of this process can read the storage, but cannot write to it."""

    code = "SILT_READ_ONLY"
    remedy = "Reads still work; to write, make the folder writable, or set `warehouse` to another folder"


class SymbolicLinkError(NotWrittenError):
    """A table's folder or a warehouse contains a symbolic link, which is not followed; nothing was done."""

    code = "SILT_SYMBOLIC_LINK"
    remedy = (
        "Replace the link by the file or folder that it points to, or delete the link; the folder of a table in a "
        "warehouse may be a link only with `external_paths: true` in the profile"
    )


class SparkUnavailableError(UnavailableError):
    """Spark or Java is not available."""

    code = "SILT_SPARK_UNAVAILABLE"


class SparkEndedError(SparkUnavailableError):
    """The Java process of Spark ended while it was in use."""

    code = "SILT_SPARK_ENDED"
    remedy = (
        "Give Spark more memory (`spark.driver.memory` in the profile's `spark_conf`) or reduce `threads`, then run it "
        "again"
    )


class KeptSparkError(SparkUnavailableError):
    """The kept Spark cannot be used."""

    code = "SILT_KEPT_SPARK"
    remedy = "Run `silt session stop --force`, then run it again"


class KeptSparkInUseError(SparkUnavailableError):
    """A request to stop the kept Spark was refused, because commands use it."""

    code = "SILT_KEPT_SPARK_IN_USE"
    remedy = "Wait until the commands have ended, or stop Spark anyway: `silt session stop --force`"


class SparkFailedError(UnavailableError):
    """Spark failed, and neither the statement nor the data is the cause."""

    code = "SILT_SPARK_FAILED"


class RegistrationError(UnavailableError):
    """Tables could not be registered in a metastore; the tables themselves are as they were committed."""

    code = "SILT_REGISTRATION"
    remedy = "Check the metastore and its settings, then run `dbt run-operation silt_register`"


class InvalidSettingError(UnavailableError):
    """A setting of the session or the profile cannot be used."""

    code = "SILT_INVALID_SETTING"
    remedy = "Correct the setting"


class ConditionsIgnoredError(InvalidSettingError):
    """The storage ignores the conditions of conditional writes, so commits of other writers would be overwritten."""

    code = "SILT_CONDITIONS_IGNORED"
    remedy = "Use another storage, or update the server: it must support `If-None-Match: *` and `If-Match` on PUT"


class ExternalPathError(UnavailableError):
    """A table's log, or the stored SQL of a view, names a file outside of the table's folder and of the warehouse."""

    code = "SILT_EXTERNAL_PATH"
    remedy = (
        "A foreign table can name any file that you can read: if you trust its writer, set "
        "`external_paths: true` in the profile (`WarehouseSettings(external_paths=True)` in a program)"
    )


class InternalError(SiltError):
    """The engine violated a rule of its own."""

    code = "SILT_INTERNAL"
    remedy = "This is a bug of dbt-silt: please report it with this message"
