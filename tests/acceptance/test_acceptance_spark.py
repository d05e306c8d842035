"""Spark's rows of the acceptance data: the published rows, and otherwise the rows that Arrow reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.schema import primitive_types
from tests.acceptance.cases import Case, is_large, name_of, needs_acceptance_data, tables
from tests.acceptance.outcomes import REFUSED_LOGS, refusal_by_arrow, refusal_of_rows
from tests.acceptance.rows import assert_same_rows, published
from tests.acceptance.test_acceptance_arrow import FAILING, ROWS, without_wrong_columns
from tests.acceptance.test_acceptance_log import log_of

pytestmark = [needs_acceptance_data, pytest.mark.long]

TABLES = [table for table in tables() if not is_large(table)]


@pytest.fixture(scope="module")
def house(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return Warehouse(spark.newSession(), str(tmp_path_factory.mktemp("warehouse")))


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
