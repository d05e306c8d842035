"""Row ids and row commit versions, in every statement that rewrites rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import PRESERVED_TAG, materialized_columns
from tests.unit.engine.house import House

Ids = dict[int, tuple[int, int]]
"""By the value of `id`: a row's id, and the version of its last change."""

TRACKED = "'delta.enableRowTracking' = 'true'"
MERGE = (
    "merge into t using (values (4, 40), (5, 50), (9, 90)) s(id, n) on t.id = s.id "
    "when matched and s.id = 4 then delete when matched "
    "then update set n = s.n when not matched then insert (id, kind, n) values (s.id, 'm', s.n)"
)
STATEMENTS: list[tuple[str, set[int]]] = [
    ("update t set n = n + 1 where id in (2, 7)", {2, 7}),
    ("delete from t where id = 3", set()),
    (MERGE, {5}),
    ("optimize t", set()),
    ("merge into t using (values (9)) s(id) on t.id = s.id when not matched by source and t.id = 1 then delete", set()),
    ("insert into t replace where id in (6, 16) values (16, 'r', 1)", set()),
    ("merge into t using (values (9)) s(id) on t.id = s.id when matched then delete", set()),
    ("optimize t zorder by (n)", set()),
    ("alter table t rename column n to m", set()),
    ("alter table t drop column m", set()),
    ("alter table t add column more int default 7", set()),
    ("update t set more = id", {2, 5, 7, 8, 16}),
]
"""Statements, and the rows that they change. (REPLACE WHERE inserts the row 16 instead of 6.)"""


def log_of(house: House, table: str = "t") -> DeltaLog:
    return DeltaLog(house.log(table).store, table)


def ids(house: House, table: str = "t") -> Ids:
    return ids_of(log_of(house, table))


def ids_of(log: DeltaLog) -> Ids:
    """Returns the ids that the specification derives from the files and the log."""
    snapshot = log.snapshot()
    columns = materialized_columns(snapshot.metadata)
    assert columns is not None
    key = snapshot.schema.require("id").physical_name
    gone = deletion_vectors.read_all(log.store, snapshot.files, log.name)
    found: Ids = {}
    for add in snapshot.add_files():
        assert add.base_row_id is not None and add.default_row_commit_version is not None
        for position, row in enumerate(pq.read_table(pa.BufferReader(log.store.read(add.path))).to_pylist()):
            if position in gone.get(add.path, ()):
                continue
            stored, version = (row.get(name) for name in columns)
            found[row[key]] = (
                add.base_row_id + position if stored is None else stored,
                add.default_row_commit_version if version is None else version,
            )
    assert len({row_id for row_id, _ in found.values()}) == len(found)
    return found


@pytest.mark.parametrize(
    "properties",
    [
        "",
        ", 'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'id'",
        pytest.param(", 'delta.enableChangeDataFeed' = 'true'", marks=pytest.mark.long),
    ],
    ids=["rewritten", "marked", "recorded"],
)
def test_a_row_keeps_its_id_as_long_as_it_is_in_the_table(house: House, properties: str) -> None:
    house.sql(
        "create table t (id int, kind string, n int) partitioned by (kind) "
        f"tblproperties ({TRACKED}, 'delta.feature.allowColumnDefaults' = 'supported'{properties})"
    )
    house.sql("insert into t select id, if(id < 6, 'a', null), id from range(1, 7, 1, 1)")
    house.sql("insert into t values (7, 'a', 7), (8, 'b', 8)")
    before, highest = ids(house), 7
    for statement, changed in STATEMENTS:
        house.sql(statement)
        after, version = ids(house), log_of(house).snapshot().version
        for key, (row_id, last_change) in after.items():
            if key in before:
                assert row_id == before[key][0], statement
                assert last_change == (version if key in changed else before[key][1]), statement
            else:
                assert row_id > highest and last_change == version, statement
        highest = max(highest, *(row_id for row_id, _ in after.values()))
        (info,) = [each for each in next(iter(log_of(house).commits(version))).actions if isinstance(each, CommitInfo)]
        assert info.extra["tags"][PRESERVED_TAG] == "true", statement
        before = after
    assert set(before) == {2, 5, 7, 8, 16}
    assert [row[0] for row in house.rows("select id from t")] == [16, 2, 5, 7, 8]
    assert house.sql("select * from t").columns[:2] == ["id", "kind"]


def test_the_rows_of_a_clone_get_new_ids(house: House) -> None:
    house.sql(f"create table t (id int) tblproperties ({TRACKED})")
    house.sql("insert into t select id from range(1, 4, 1, 1)")
    house.sql("delete from t where id = 1")
    assert ids(house) == {2: (1, 1), 3: (2, 1)}
    house.sql("create table c shallow clone t")
    house.sql("insert into c values (4)")
    house.sql("update c set id = id + 10 where id = 2")
    assert ids(house, "c") == {12: (0, 2), 3: (1, 0), 4: (2, 1)}
    columns = [materialized_columns(log_of(house, name).snapshot().metadata) for name in ("t", "c")]
    assert columns[0] != columns[1]


def test_the_rows_of_a_restored_table_have_their_earlier_ids(house: House) -> None:
    house.sql(f"create table t (id int, n int) tblproperties ({TRACKED})")
    house.sql("insert into t select id, id from range(1, 4, 1, 1)")
    house.sql("update t set n = 0 where id = 2")
    before = ids(house)
    house.sql("delete from t where id = 2")
    house.sql("optimize t")
    house.sql("restore table t to version as of 2")
    assert ids(house) == before
    house.sql("insert into t values (4, 4)")
    assert ids(house)[4][0] > max(row_id for row_id, _ in before.values())
