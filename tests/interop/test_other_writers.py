"""delta-rs and this engine write to the same table in turn: both read the rows that the statements leave."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse
from tests.unit.engine.house import House

KINDS = {
    "plain": "",
    "partitioned": "partitioned by (kind)",
    "with checkpoints": "tblproperties ('delta.checkpointInterval' = '2')",
    "with V2 checkpoints": "tblproperties ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2')",
    "with structs of statistics": (
        "partitioned by (kind) tblproperties ('delta.checkpoint.writeStatsAsStruct' = 'true', "
        "'delta.checkpoint.writeStatsAsJson' = 'false', 'delta.checkpointInterval' = '2')"
    ),
}

Row = tuple[object, ...]
Rows = dict[int, Row]


@pytest.mark.parametrize("kind", KINDS)
def test_alternating_statements_of_delta_rs_and_this_engine_leave_the_same_rows_for_both(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    house = House(Warehouse(spark.newSession(), str(tmp_path)), tmp_path)
    house.sql(f"create table t (id bigint, kind string, size bigint) {KINDS[kind]}")
    house.sql("insert into t values (1, 'a b/c', 10), (2, null, 20), (3, 'd', 30)")
    table = deltalake.DeltaTable(tmp_path / "main" / "t")
    rows: Rows = {1: ("a b/c", 10), 2: (None, 20), 3: ("d", 30)}

    deltalake.write_deltalake(table, arrow([(4, "a b/c", 40), (5, "é=%", 50), (6, None, None)]), mode="append")
    rows |= {4: ("a b/c", 40), 5: ("é=%", 50), 6: (None, None)}
    assert found(house, table) == rows

    house.sql(
        "merge into t using (values (4, 41), (2, 21), (7, 70)) s(id, size) on t.id = s.id "
        "when matched then update set size = s.size when not matched then insert values (s.id, 'new', s.size)"
    )
    rows |= {4: ("a b/c", 41), 2: (None, 21), 7: ("new", 70)}
    assert found(house, table) == rows

    table.merge(
        arrow([(1, "a b/c", 11), (8, "é=%", 80)]), "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update({"size": "s.size"}).when_not_matched_insert_all().execute()
    table.delete("id = 3")
    table.update({"size": "size + 1"}, predicate="kind = 'é=%'")
    rows |= {1: ("a b/c", 11), 8: ("é=%", 81), 5: ("é=%", 51)}
    del rows[3]
    assert found(house, table) == rows

    table.optimize.compact()
    table.create_checkpoint()
    house.sql("update t set size = -size where id in (5, 8)")
    house.sql("delete from t where kind is null and size is null")
    rows |= {5: ("é=%", -51), 8: ("é=%", -81)}
    del rows[6]
    assert found(house, table) == rows
    assert house.rows("select id from t where kind = 'a b/c' and size > 11") == [(4,)]


def found(house: House, table: deltalake.DeltaTable) -> Rows:
    """Returns the rows of the newest version after checking that both readers find them."""
    table.update_incremental()
    theirs = pa.table(deltalake.QueryBuilder().register("t", table).execute("select id, kind, size from t"))
    ours = house.rows("select id, kind, size from t")
    assert ours == sorted((tuple(row.values()) for row in theirs.to_pylist()), key=repr)
    rows: Rows = {int(str(row[0])): row[1:] for row in ours}
    assert len(rows) == len(ours)
    return rows


def arrow(rows: list[tuple[int, str | None, int | None]]) -> pa.Table:
    ids, kinds, sizes = zip(*rows, strict=True)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "kind": pa.array(kinds, pa.string()), "size": pa.array(sizes, pa.int64())}
    )
