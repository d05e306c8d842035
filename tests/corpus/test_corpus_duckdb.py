"""The views that `silt catalog duckdb` writes have the rows of tables that other engines wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from dbt.adapters.silt.duckdb_file import file
from dbt.adapters.silt.duckdb_file.views import TableView
from dbt.adapters.silt.engine.arrow.read import TableRead
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from tests.corpus.corpus import needs_corpus
from tests.corpus.test_corpus_arrow import READ

pytestmark = needs_corpus


@pytest.mark.parametrize("entry", READ, ids=[entry["path"] for entry in READ])
def test_a_view_has_the_rows_of_its_table(tmp_path: Path, log_at: Callable[[str], DeltaLog], entry: Any) -> None:
    log = log_at(entry["path"])
    snapshot = log.snapshot()
    target = tmp_path / "tables.duckdb"
    shown, left_out = file.write(target, [(RelationName("silt", "main", "t"), TableView(log, snapshot))])
    assert [each.version for each in shown] == [snapshot.version], left_out
    scan = ArrowScan.of(snapshot)
    wanted = pa.Table.from_batches(TableRead(log, snapshot, scan).batches(), scan.schema)
    with duckdb.connect(str(target), read_only=True) as connection:
        connection.execute("SET TimeZone = 'Pacific/Auckland'")
        found = connection.sql("SELECT * FROM main.t").to_arrow_table()
    assert found.column_names == wanted.column_names
    assert sorted(map(repr, _rows(found, wanted.schema))) == sorted(map(repr, _rows(wanted, wanted.schema)))


def _rows(table: pa.Table, schema: pa.Schema) -> list[dict[str, Any]]:
    return table.cast(schema).to_pylist()
