"""Spark's rows of the acceptance data: the published rows, and otherwise the rows that Arrow reads."""

from __future__ import annotations

import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.schema import primitive_types
from tests.acceptance.cases import Case, is_large, name_of, needs_acceptance_data, tables
from tests.acceptance.outcomes import REFUSED_LOGS, refusal_by_arrow, refusal_of_rows
from tests.acceptance.rows import assert_same_rows, published
from tests.acceptance.test_acceptance_arrow import FAILING, ROWS, without_wrong_columns
from tests.acceptance.test_acceptance_log import log_of
from tests.corpus.test_corpus_changes import in_order

pytestmark = [needs_acceptance_data, pytest.mark.long]


def _records_changes(table: Path) -> bool:
    return name_of(table) not in REFUSED_LOGS and log_of(table).snapshot().properties.enable_change_data_feed


TABLES = [table for table in tables() if not is_large(table)]
RECORDING = [table for table in TABLES if _records_changes(table)]


@pytest.fixture(scope="module")
def house(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    session = spark.newSession()
    # The conditions of workloads state times in this zone.
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return Warehouse(session, str(tmp_path_factory.mktemp("warehouse")))


def statement(case: Case) -> str:
    at = f" version as of {case.version}" if case.version is not None else ""
    at = f" timestamp as of '{case.timestamp}'" if case.timestamp is not None else at
    columns = ", ".join(f"`{name}`" for name in case.columns or ()) or "*"
    return f"select {columns} from delta.`{case.table}`{at} where {case.where or 'true'}"


@pytest.mark.parametrize("case", ROWS, ids=[case.name for case in ROWS])
def test_the_published_rows_are_read(house: Warehouse, case: Case) -> None:
    assert case.rows is not None
    rows = house.sql(statement(case)).toArrow()
    assert case.row_count in (None, rows.num_rows)
    assert_same_rows(*without_wrong_columns(case, rows, published(case.rows)))


@pytest.mark.parametrize("case", FAILING, ids=[case.name for case in FAILING])
def test_a_read_that_must_fail_is_refused(house: Warehouse, case: Case) -> None:
    with pytest.raises(SiltError):
        house.sql(statement(case)).toArrow()


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_the_newest_rows_are_those_that_arrow_reads_or_refused_like_them(house: Warehouse, table: Path) -> None:
    query = f"select * from delta.`{table}`"
    if name_of(table) in REFUSED_LOGS:
        expected = REFUSED_LOGS[name_of(table)]
        with pytest.raises(expected.error, match=expected.names):
            house.sql(query)
        return
    snapshot = log_of(table).snapshot()
    refusal = refusal_of_rows(table, snapshot)
    if refusal is not None:
        with pytest.raises(refusal.error, match=refusal.names):
            house.sql(query).toArrow()
    elif refusal_by_arrow(snapshot.schema) is None:
        assert_same_rows(house.sql(query).toArrow(), silt.read(str(table)))
    else:
        _compare_without_variants(house, table, snapshot)


def _compare_without_variants(house: Warehouse, table: Path, snapshot: Snapshot) -> None:
    """Compares the columns that Arrow reads, and reads the variants."""
    names = [
        column.name
        for column in snapshot.schema
        if "variant" not in {each.name for each in primitive_types(column.type)}
    ]
    house.sql(f"select to_json(struct(*)) from delta.`{table}`").collect()
    if names:
        columns = ", ".join(f"`{name}`" for name in names)
        rows = house.sql(f"select {columns} from delta.`{table}`").toArrow()
        assert_same_rows(rows, silt.read(str(table), columns=names))


@pytest.mark.parametrize("table", RECORDING, ids=str)
def test_the_recorded_changes_are_those_that_delta_rs_reads(house: Warehouse, table: Path, tmp_path: Path) -> None:
    newest = log_of(table).snapshot().version
    try:
        changes = house.sql(f"select * from table_changes_by_path('{table}', 0, {newest})").toArrow()
    except SiltError as error:
        # Changes are recorded from the version on that sets the property.
        assert "delta.enableChangeDataFeed" in str(error)
        return
    copy = deltalake.DeltaTable(_without_percent(table, tmp_path / "copy"))
    theirs = pa.table(copy.load_cdf(starting_version=0, ending_version=newest).read_all())
    left_out = ("_commit_timestamp",)
    assert in_order(changes.to_pylist(), left_out) == in_order(theirs.to_pylist(), left_out)


def _without_percent(table: Path, copy: Path) -> Path:
    """Copies the table with other names of files: delta-rs finds no changes in files with a % in their names."""
    shutil.copytree(table, copy)
    for file in list(copy.rglob("test%file%prefix*")):
        file.rename(file.with_name(file.name.replace("%", "_")))
    for commit in (copy / LOG_FOLDER).glob("*.json"):
        text = commit.read_text(encoding="utf-8")
        commit.write_text(text.replace("test%25file%25prefix", "test_file_prefix"), encoding="utf-8")
    return copy
