"""The changes of tables that other engines wrote, compared with those that delta-rs reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "delta-rs"
TABLES = [
    "cdf-table",
    "cdf-table-non-partitioned",
    "cdc_ict_table",
    "simple_table_with_cdc",
    "cdf-table-with-cdc-and-dvs",
]
# delta-rs takes the time of a commit without inCommitTimestamp from its commitInfo, not from the file's time as the
# format requires.
WITH_IN_COMMIT_TIMESTAMPS = ["cdc_ict_table"]
TIMESTAMP = "_commit_timestamp"

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason=f"the corpus is not there: {CORPUS}")


@pytest.fixture
def house(spark: SparkSession, warehouse: Path) -> Warehouse:
    return Warehouse(spark.newSession(), str(warehouse))


@pytest.mark.parametrize("name", TABLES)
def test_the_changes_that_other_engines_recorded_are_read(house: Warehouse, name: str) -> None:
    path = CORPUS / name
    newest = deltalake.DeltaTable(path).version()
    for start, end in ((0, newest), (newest, newest), (0, newest // 2)):
        changes = house.sql(f"select * from table_changes_by_path('{path}', {start}, {end})").toArrow()
        theirs = pa.table(deltalake.DeltaTable(path).load_cdf(starting_version=start, ending_version=end).read_all())
        left_out = () if name in WITH_IN_COMMIT_TIMESTAMPS else (TIMESTAMP,)
        assert in_order(changes.to_pylist(), left_out) == in_order(theirs.to_pylist(), left_out)
        assert changes[TIMESTAMP].null_count == 0


def in_order(rows: Iterable[Mapping[str, Any]], left_out: tuple[str, ...]) -> list[str]:
    """Returns the rows as text, with times as instants."""
    return sorted(repr({name: _plain(row[name]) for name in sorted(row) if name not in left_out}) for row in rows)


def _plain(value: Any) -> Any:
    return value.timestamp() if hasattr(value, "timestamp") else value
