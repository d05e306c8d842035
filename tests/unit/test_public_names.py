"""The names that users may rely on: a change of this list is a change of the package's contract."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

from dbt.adapters.silt import engine
from dbt.adapters.silt.engine import warehouse
from dbt.adapters.silt.engine.kernel import errors

ENGINE = [
    "DataSource",
    "Location",
    "Outcome",
    "Result",
    "SiltError",
    "StorageSettings",
    "Warehouse",
    "WarehouseSettings",
    "read",
    "read_batches",
]
WAREHOUSE = ["Result", "Warehouse", "WarehouseSettings"]
WAREHOUSE_METHODS = [
    "affected_tables",
    "changes",
    "drop_temporary_view",
    "execute",
    "facts",
    "for_client",
    "for_clone",
    "for_session",
    "for_stored",
    "forget_reads",
    "join",
    "names_in_use",
    "parsed",
    "put_temporary_view",
    "query",
    "resolved",
    "roll_back",
    "schema_of",
    "snapshot",
    "sql",
    "still_reads",
    "table",
    "tables",
    "transaction",
    "transaction_version",
    "write",
    "written",
]
ERRORS = [
    "AuditFailedError",
    "BranchNotFoundError",
    "ChangeDataNotRecordedError",
    "ChangesMissingError",
    "CheckViolationError",
    "ColumnNotFoundError",
    "CommitAttemptsExhaustedError",
    "CommitStateUnknownError",
    "ConcurrentAppendError",
    "ConcurrentCreateError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentDomainError",
    "ConcurrentDropError",
    "ConcurrentKeyError",
    "ConcurrentModificationError",
    "ConcurrentTransactionError",
    "ConditionsIgnoredError",
    "CorruptCheckpointError",
    "CorruptDeletionVectorError",
    "CorruptLogError",
    "DataFileChangedError",
    "DataFileMissingError",
    "DataRejectedError",
    "EmptyStatementError",
    "ExecutorLostError",
    "ExternalPathError",
    "FilesNotFoundError",
    "ForeignKeyViolationError",
    "FunctionNotFoundError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidNameError",
    "InvalidPropertyError",
    "InvalidSettingError",
    "InvalidStatementError",
    "KeptSparkError",
    "KeptSparkInUseError",
    "KeyViolationError",
    "MergeConflictError",
    "MetadataChangedError",
    "MissingLogVersionError",
    "MultipleSourceRowsError",
    "NoSpaceError",
    "NotATableError",
    "NotNullViolationError",
    "NotWrittenError",
    "PartitionValueError",
    "ProtocolChangedError",
    "ReadOnlyStorageError",
    "RegistrationError",
    "RelationExistsError",
    "RelationNotFoundError",
    "ReplaceWhereMismatchError",
    "ResultTooLargeError",
    "RetentionTooShortError",
    "RollbackRefusedError",
    "RuleNotAllowedError",
    "RunAgainError",
    "RunInProgressError",
    "RunNotFoundError",
    "SchemaNotFoundError",
    "SiltError",
    "SparkEndedError",
    "SparkFailedError",
    "SparkUnavailableError",
    "StatementCancelledError",
    "StatementSyntaxError",
    "StorageError",
    "StorageRefusedError",
    "StoredCodeError",
    "SymbolicLinkError",
    "TableDamagedError",
    "TypeMismatchError",
    "UnavailableError",
    "UnsupportedFeatureError",
    "UnsupportedStatementError",
    "UnusableFileError",
    "ValueNotCastableError",
    "VersionNotFoundError",
]


def test_the_engines_public_names_are_these_in_order() -> None:
    assert sorted(engine.__all__) == engine.__all__ == ENGINE
    assert all(getattr(engine, name).__name__ == name for name in engine.__all__)
    assert sorted(warehouse.__all__) == warehouse.__all__ == WAREHOUSE


def test_the_front_door_has_these_methods() -> None:
    methods = [name for name, _ in inspect.getmembers(warehouse.Warehouse, inspect.isfunction) if name[0] != "_"]
    assert methods == WAREHOUSE_METHODS


def test_the_errors_are_these_each_with_a_unique_code_and_a_line_in_the_tree() -> None:
    classes = {
        name: found
        for name, found in vars(errors).items()
        if inspect.isclass(found) and found.__module__ == errors.__name__
    }
    assert sorted(classes) == ERRORS
    assert len({found.code for found in classes.values()}) == len(classes)
    tree = [line.split()[0] for line in (errors.__doc__ or "").splitlines() if line.lstrip() != line]
    assert sorted(tree) == ERRORS


def test_the_engines_first_import_loads_neither_spark_nor_dbt_core(tmp_path: Path) -> None:
    code = (
        "import sys; import dbt.adapters.silt.engine; from dbt.adapters.silt.engine import SiltError; "
        "print([m for m in ('pyspark', 'agate', 'dbt.cli', 'dbt.adapters.base') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_importing_the_front_door_starts_no_spark_and_imports_no_dbt(tmp_path: Path) -> None:
    code = (
        "import sys; from dbt.adapters.silt.engine import Warehouse; from pyspark import SparkContext; "
        "print([m for m in ('agate', 'dbt.cli', 'dbt.adapters.base', 'dbt_common') if m in sys.modules], "
        "SparkContext._gateway, SparkContext._active_spark_context)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[] None None\n"


def test_a_name_that_is_not_public_is_not_an_attribute() -> None:
    assert not hasattr(engine, "NoSuchName")
