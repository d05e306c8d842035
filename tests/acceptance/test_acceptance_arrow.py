"""Arrow's rows of the acceptance data: the published rows, and in every version the rows that delta-rs reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.kernel.errors import NotATableError, SiltError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from tests.acceptance.cases import FOLDER, Case, cases, is_large, name_of, needs_acceptance_data, tables
from tests.acceptance.outcomes import PUBLISHED_WRONG, REFUSED_LOGS, refusal_by_arrow, refusal_of_rows
from tests.acceptance.rows import assert_same_rows, published
from tests.acceptance.test_acceptance_log import log_of

pytestmark = [needs_acceptance_data, pytest.mark.long]

READ = [table for table in tables() if name_of(table) not in REFUSED_LOGS and not is_large(table)]
ROWS = [case for case in cases() if case.rows and name_of(case.table) not in REFUSED_LOGS]
FAILING = [case for case in cases() if case.error]


@pytest.mark.parametrize("case", ROWS, ids=[case.name for case in ROWS])
def test_the_published_rows_are_read(case: Case) -> None:
    assert case.rows is not None
    at: dict[str, Any] = {"version": case.version, "timestamp": case.timestamp}
    try:
        rows = silt.read(str(case.table), where=case.where, columns=case.columns, **at)
    except UnsupportedStatementError as error:
        assert case.where is not None, error
        pytest.skip("only Spark evaluates the condition")
    assert case.row_count in (None, rows.num_rows)
    assert_same_rows(*without_wrong_columns(case, rows, published(case.rows)))


def without_wrong_columns(case: Case, *tables: pa.Table) -> Iterator[pa.Table]:
    wrong = PUBLISHED_WRONG.get(name_of(case.table))
    return (each if wrong is None else each.drop_columns([wrong]) for each in tables)


@pytest.mark.parametrize("case", FAILING, ids=[case.name for case in FAILING])
def test_a_read_that_must_fail_is_refused(case: Case) -> None:
    with pytest.raises(SiltError):
        silt.read(str(case.table), version=case.version, timestamp=case.timestamp, where=case.where)


@pytest.mark.parametrize("table", READ, ids=str)
def test_every_version_has_the_rows_that_delta_rs_reads(table: Path) -> None:
    log = log_of(table)
    newest = log.snapshot()
    for version in range(newest.version + 1):
        try:
            rows = silt.read(str(table), version=version)
        except SiltError as error:
            _check_refusal(error, table, log, version)
        else:
            theirs = _rows_of_delta_rs(table, version)
            if theirs is not None:
                assert_same_rows(rows, theirs.select(rows.column_names))


def _check_refusal(error: SiltError, table: Path, log: DeltaLog, version: int) -> None:
    """Checks that only Spark can represent the rows, or that files of this version are missing."""
    try:
        snapshot = log.snapshot_at(version)
    except SiltError:
        assert version < log.snapshot().version
        return
    expected = refusal_by_arrow(snapshot.schema) or refusal_of_rows(table, snapshot)
    assert expected is not None, error
    assert isinstance(error, expected.error), error
    assert expected.names in str(error)


def _rows_of_delta_rs(table: Path, version: int) -> pa.Table | None:
    """Returns the rows; None if delta-rs does not read the version."""
    try:
        read = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table, version=version))
        return pa.table(read.execute("select * from t").read_all())
    except Exception:
        # delta-rs raises a bare Exception if a data file is missing.
        return None


def test_a_folder_without_a_log_is_no_table() -> None:
    assert FOLDER is not None
    for folder in FOLDER.rglob("no-delta-log-folder"):
        with pytest.raises(NotATableError):
            silt.read(str(folder))
