"""Tables read as Arrow have the rows and values that Spark reads."""

from __future__ import annotations

import threading
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    DataFileChangedError,
    DataFileMissingError,
    ExternalPathError,
    InvalidArgumentError,
    RelationNotFoundError,
    SchemaNotFoundError,
    TableDamagedError,
    UnsupportedFeatureError,
    UnsupportedStatementError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.rows.types import INSTANT, LOCAL_TIME
from tests.unit.engine.house import House

NESTED = (
    "select id, named_struct('x', cast(id as int), 'y z', array(named_struct('q', id), null)) as s,"
    " map(concat('k', id), named_struct('m', id), 'n', null) as m, if(id = 1, null, array(1, null)) as a from range(3)"
)
VECTORS = "tblproperties ('delta.enableDeletionVectors' = 'true')"
MODES = pytest.mark.parametrize("mode", ["name", "id"])


def location(house: House) -> str:
    return house.place.location


def storage(house: House) -> dict[str, Any]:
    return {} if house.place.cloud is None else {"storage": house.place.cloud.settings}


def read(house: House, table: str, **options: Any) -> pa.Table:
    return silt.read(f"main.{table}", location(house), **storage(house), **options)


def in_order(table: pa.Table) -> list[Any]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def assert_as_spark(house: House, table: str) -> pa.Table:
    """Checks that the table has the types and rows that Spark reads."""
    found, of_spark = read(house, table), house.sql(f"select * from {table}").toArrow()
    assert in_order(found) == in_order(of_spark.cast(found.schema))
    assert found.schema.names == of_spark.schema.names
    return found


def data_file(house: House, table: str) -> Path:
    (file,) = (each for each in Path(house.location(table)).rglob("*.parquet") if "_delta_log" not in each.parts)
    return file


def test_values_of_every_type_equal_those_that_spark_reads(house: House) -> None:
    house.sql(
        "create table t as select * from values (1Y, 2S, 3, 4L, float('NaN'), -0.0D, 1.50bd, true, 'ü', x'00ff', "
        "date'0001-01-01', timestamp'2024-03-10 03:00:00', timestamp_ntz'9999-12-31 23:59:59.999999'), "
        "(null, null, null, null, null, null, null, null, null, null, null, null, null) "
        "as t(b, h, i, l, f, d, n, flag, s, x, day, ts, ntz)"
    )
    found = read(house, "t")
    assert found.schema.field("ts").type == INSTANT and found.schema.field("ntz").type == LOCAL_TIME
    assert repr(in_order(found)) == repr(in_order(house.sql("select * from t").toArrow().cast(found.schema)))


def test_nested_values_equal_those_that_spark_reads(house: House) -> None:
    house.sql(f"create table t as {NESTED}")
    assert_as_spark(house, "t")


@MODES
def test_renamed_dropped_and_added_columns_are_read_through_the_column_mapping(house: House, mode: str) -> None:
    house.sql(f"create table t tblproperties ('delta.columnMapping.mode' = '{mode}') as {NESTED}")
    house.sql("alter table t rename column id to key")
    house.sql("alter table t rename column s.x to w")
    house.sql("alter table t drop column a")
    house.sql("alter table t add columns (a string, s.new int)")
    house.sql("alter table t alter column s.new first")
    house.sql("insert into t select 9, named_struct('new', 1, 'w', 2, 'y z', null), null, 'later'")
    assert assert_as_spark(house, "t").num_rows == 4
    assert read(house, "t", columns=["A", "KEY"], where="s.W = 2 and s.new = 1").to_pylist() == [
        {"a": "later", "key": 9}
    ]


def test_two_columns_that_swapped_names_are_not_confused(house: House) -> None:
    house.sql("create table t as select struct(1 as a, 2 as b) as s, 3 as c, 4 as d")
    house.sql("alter table t set tblproperties ('delta.columnMapping.mode' = 'name')")
    for old, new in (("c", "x"), ("d", "c"), ("x", "d"), ("s.a", "x"), ("s.b", "a"), ("s.x", "b")):
        house.sql(f"alter table t rename column {old} to {new}")
    house.sql("alter table t alter column s.b after a")
    house.sql("alter table t alter column d after c")
    found = assert_as_spark(house, "t")
    assert found.to_pylist() == [{"s": {"a": 2, "b": 1}, "c": 4, "d": 3}]


@pytest.mark.parametrize(
    ("literal", "types"),
    [
        ("cast(-7 as tinyint)", ["smallint", "int", "bigint"]),
        ("cast(-7 as smallint)", ["double"]),
        ("-70000", ["decimal(12, 2)", "decimal(25, 4)"]),
        ("-5000000000", ["decimal(22, 1)"]),
        ("cast(1.1 as float)", ["double"]),
        ("date'1969-05-05'", ["timestamp_ntz"]),
        ("cast(-12.34 as decimal(6, 2))", ["decimal(10, 4)", "decimal(30, 6)"]),
    ],
)
def test_older_files_are_read_as_the_widened_type(house: House, literal: str, types: list[str]) -> None:
    widening = "tblproperties ('delta.enableTypeWidening' = 'true')"
    house.sql(f"create table t {widening} as select {literal} as c, array(struct({literal} as e)) as a")
    for wider in types:
        house.sql(f"alter table t alter column c type {wider}")
        house.sql(f"alter table t alter column a.element.e type {wider}")
        house.sql(f"insert into t select cast({literal} as {wider}), array(struct(cast({literal} as {wider}) as e))")
        found = assert_as_spark(house, "t")
        assert len(set(found["c"].to_pylist())) == 1


def test_partition_values_are_read_as_their_column_types(house: House) -> None:
    house.sql(
        "create table t (id int, s string, i int, n decimal(6, 2), day date, ts timestamp, ntz timestamp_ntz, "
        "flag boolean, d double) partitioned by (s, i, n, day, ts, ntz, flag, d)"
    )
    house.sql(
        "insert into t values (1, 'a/b=ü', -5, 1.50, date'2024-02-29', timestamp'2024-03-10 10:00:00.123456Z', "
        "timestamp_ntz'2024-03-10 02:30:00', true, double('NaN')), "
        "(2, null, null, null, null, null, null, null, null), "
        "(3, ' ', 0, -0.01, date'0001-01-01', timestamp'1969-12-31 23:59:59', "
        "timestamp_ntz'1969-12-31 00:00:00', false, -0.5)"
    )
    found, of_spark = read(house, "t"), house.sql("select * from t").toArrow()
    assert repr(in_order(found)) == repr(in_order(of_spark.cast(found.schema)))
    moment = "ts = '2024-03-10 03:00:00.123456' and n = 1.5"
    assert read(house, "t", where=moment, time_zone="America/Los_Angeles")["id"].to_pylist() == [1]
    assert read(house, "t", where="d > 1e300", columns=["id", "i"]).to_pylist() == [{"id": 1, "i": -5}]


@pytest.mark.parametrize("deleted", ["id = 3", "id % 2 = 0", "id < 900", "id between 70 and 400"])
def test_rows_deleted_by_deletion_vectors_are_not_read(house: House, deleted: str) -> None:
    house.sql(f"create table t {VECTORS} as select id, id % 7 as k from range(0, 1000, 1, 1)")
    house.sql(f"delete from t where {deleted}")
    assert read(house, "t").num_rows == house.sql("select * from t").count()
    assert_as_spark(house, "t")
    assert in_order(read(house, "t", where="k = 3")) == in_order(house.sql("select * from t where k = 3").toArrow())


def test_a_version_or_a_timestamp_is_read(house: House) -> None:
    house.sql("create table t as select 1 as id")
    house.sql("insert into t values (2)")
    log = house.log("t")
    first = datetime.fromtimestamp(log.committed_at(log.snapshot_at(0)) / 1000, timezone.utc)
    assert read(house, "t", version=0)["id"].to_pylist() == [1]
    assert read(house, "t", timestamp=first)["id"].to_pylist() == [1]
    assert read(house, "t", timestamp=first.replace(tzinfo=None).isoformat())["id"].to_pylist() == [1]
    with pytest.raises(VersionNotFoundError):
        read(house, "t", version=5)
    with pytest.raises(InvalidArgumentError, match="Give only one"):
        read(house, "t", version=1, timestamp=first)
    with pytest.raises(InvalidArgumentError, match="is not a time"):
        read(house, "t", timestamp="yesterday")


def test_a_table_is_named_as_in_sql_or_by_its_path(house: House) -> None:
    house.sql("create table orders as select 1 as id")
    for name in ("orders", "main.orders", "SILT.Main.`orders`"):
        assert silt.read(name, location(house), **storage(house)).num_rows == 1
    path = house.location("orders")
    for name in (path, f"delta.`{path}`"):
        assert silt.read(name, **storage(house)).num_rows == 1
        assert silt.read(name, location(house), **storage(house)).num_rows == 1
    with pytest.raises(InvalidArgumentError, match="no warehouse is given"):
        silt.read("main.orders")
    with pytest.raises(RelationNotFoundError):
        read(house, "missing")
    with pytest.raises(SchemaNotFoundError):
        silt.read("nowhere.orders", location(house), **storage(house))


def test_columns_are_returned_in_the_requested_order_and_found_in_any_case(house: House) -> None:
    house.sql("create table t as select 1 as Id, 2 as b, 3 as c")
    assert read(house, "t", columns=["C", "id"]).to_pylist() == [{"c": 3, "Id": 1}]
    with pytest.raises(ColumnNotFoundError, match="`x`"):
        read(house, "t", columns=["x"])
    with pytest.raises(ColumnNotFoundError, match="`x`"):
        read(house, "t", where="x = 1")
    with pytest.raises(InvalidArgumentError):
        read(house, "t", columns=["b", "B"])
    with pytest.raises(InvalidArgumentError):
        read(house, "t", columns=[])


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("id > 1 and id + 1 = 2", "id + 1 = 2"),
        ("s = 'a' or upper(s) = 'B'", "upper(s) = 'B'"),
        ("id = 1 and (s like '%a' or id = 3)", "s like '%a'"),
        ("id in (select 1)", "id in (select 1)"),
        ("id = s", "id = s"),
        ("s rlike 'a' and id = 2", "s rlike 'a'"),
        ("id in (1, s)", "id in (1, s"),
        ("", ""),
        ("id = 1 id", "id = 1 id"),
    ],
)
def test_a_condition_that_only_spark_can_evaluate_is_refused_with_the_unsupported_part(
    house: House, condition: str, part: str
) -> None:
    house.sql("create table t as select 1 as id, 'a' as s")
    with pytest.raises(UnsupportedStatementError) as refused:
        read(house, "t", where=condition)
    assert refused.value.problem.startswith(f"`{part}")
    assert "Warehouse.sql" in refused.value.action


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("filter", "The options are columns, where, version"), ("versions", "`version`"), ("Time_Zone", "`time_zone`")],
)
def test_an_unknown_option_is_refused_before_any_row_is_read(house: House, name: str, remedy: str) -> None:
    house.sql("create table t as select id from range(3)")
    for reads in (silt.read, silt.read_batches):
        with pytest.raises(InvalidArgumentError, match=rf"no option `{name}`.*{remedy}"):
            reads("main.t", location(house), **storage(house), **{name: "id > 1"})  # type: ignore[arg-type]


def test_columns_may_be_qualified_by_the_tables_name(house: House) -> None:
    house.sql("create table t as select 1 as id")
    assert read(house, "t", where="t.id = 1 and main.t.id = 1").num_rows == 1


def test_a_stream_reads_no_more_than_its_consumer_takes(house: House) -> None:
    house.sql("create table t as select id from range(0, 20, 1, 20)")
    before = threading.active_count()
    reader = silt.read_batches("main.t", location(house), **storage(house))
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_next_batch().num_rows == 1
    reader.close()
    del reader
    assert threading.active_count() == before
    assert silt.read_batches("main.t", location(house), **storage(house)).read_all().num_rows == 20


def test_pandas_polars_and_duckdb_accept_the_rows(house: House) -> None:
    house.sql("create table t as select 1L as id, 2.50bd as amount")
    orders = read(house, "t")
    assert orders.to_pandas()["id"].tolist() == [1]
    assert polars.from_arrow(orders).rows() == [(1, Decimal("2.50"))]  # type: ignore[union-attr]
    assert duckdb.sql("select sum(amount) from orders").fetchall() == [(Decimal("2.50"),)]  # type: ignore[union-attr]


@pytest.mark.in_folders("a file is taken away")
def test_a_missing_data_file_is_named_with_the_statement_that_repairs_the_table(house: House) -> None:
    house.sql("create table t as select 1 as id")
    house.sql("insert overwrite t select 2 as id")
    house.sql("vacuum t retain 168 hours")
    file = next(each for each in house.log("t").snapshot().files["path"].to_pylist())
    Path(house.location("t"), file).unlink()
    with pytest.raises(DataFileMissingError, match="is missing") as missing:
        read(house, "t")
    assert "restore table" in missing.value.action


@pytest.mark.in_folders("a file is changed")
def test_a_replaced_data_file_is_refused(house: House) -> None:
    house.sql("create table t as select 1 as id")
    file = data_file(house, "t")
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(DataFileChangedError, match="bytes"):
        read(house, "t")
    file.write_bytes(b"x" * len(content))
    with pytest.raises(TableDamagedError, match="cannot be read"):
        read(house, "t")


@pytest.mark.in_folders("a clone of another warehouse")
def test_a_clone_of_files_outside_the_warehouse_is_read_only_if_they_are_allowed(house: House, tmp_path: Path) -> None:
    house.sql("create table t as select 1 as id")
    house.sql("create table c shallow clone t")
    assert read(house, "c").num_rows == 1
    with pytest.raises(ExternalPathError):
        silt.read(house.location("c"))
    assert silt.read(house.location("c"), external_paths=True).num_rows == 1


def written(house: House, name: str, data: pa.Table, **options: Any) -> None:
    """Creates a table of one file that pyarrow wrote."""
    folder = Path(house.location("t")).parent / f"{name}-files"
    folder.mkdir()
    pq.write_table(data, folder / "a.parquet", **options)
    house.sql(f"convert to delta parquet.`{folder}`")
    house.sql(f"create table {name} shallow clone delta.`{folder}`")


@pytest.mark.in_folders("files of another writer")
def test_files_of_other_writers_are_filtered_by_their_values_despite_their_footers(house: House) -> None:
    """Unsigned numbers above the signed range, and strings that Polars truncates in the footer."""
    house.sql("create table t as select 1 as id")
    unsigned = {"u8": polars.UInt8, "u16": polars.UInt16, "u32": polars.UInt32, "u64": polars.UInt64}
    most = {name: 2 ** int(name[1:]) - 1 for name in unsigned}
    frame = polars.DataFrame(
        {
            "id": [1, 2],
            **{name: polars.Series([1, most[name]], dtype=kind) for name, kind in unsigned.items()},
            "s": polars.Series([{"u": 1}, {"u": 3_000_000_000}], dtype=polars.Struct({"u": polars.UInt32})),
            "text": ["a", "日" * 22],
        }
    )
    folder = Path(house.location("t")).parent / "foreign-files"
    folder.mkdir()
    frame.write_parquet(folder / "a.parquet")
    house.sql(f"convert to delta parquet.`{folder}`")
    house.sql(f"create table shallow shallow clone delta.`{folder}`")
    house.sql(f"create table deep clone delta.`{folder}`")
    for table in ("shallow", "deep"):
        for column in (*unsigned, "s.u"):
            assert house.rows(f"select id from {table} where {column} > 5") == [(2,)]
            assert read(house, table, where=f"{column} > 5")["id"].to_pylist() == [2]
        for name, value in most.items():
            assert house.rows(f"select min({name}), max({name}) from {table}") == [(1, value)]
        assert house.rows(f"select max(text), min(text) from {table}") == [("日" * 22, "a")]
        newest = f"select id from {table} where text >= (select max(text) from {table})"
        assert house.rows(newest) == [(2,)]
        house.sql(f"delete from {table} where u32 > 5")
        assert house.rows(f"select id from {table}") == [(1,)]


@pytest.mark.in_folders("files of another writer")
def test_int96_and_other_time_units_are_read(house: House) -> None:
    house.sql("create table t as select 1 as id")
    moment = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)
    data = pa.table({"ts": pa.array([moment, None], INSTANT)})
    written(house, "old", data, use_deprecated_int96_timestamps=True)
    assert assert_as_spark(house, "old")["ts"].to_pylist() == [moment, None]
    written(house, "ms", data.cast(pa.schema([("ts", pa.timestamp("ms", "UTC"))]), safe=False))
    assert_as_spark(house, "ms")


@pytest.mark.in_folders("files of another writer")
def test_dates_in_sparks_legacy_calendar_are_refused(house: House) -> None:
    house.sql("create table t as select 1 as id")
    for day, is_read in ((date(1600, 1, 1), True), (date(1500, 1, 1), False)):
        schema = pa.schema([("day", pa.date32())], {b"org.apache.spark.version": b"2.4.8"})
        written(house, f"d{day.year}", pa.table({"day": pa.array([day])}, schema=schema))
        if is_read:
            assert_as_spark(house, f"d{day.year}")
        else:
            with pytest.raises(UnsupportedFeatureError, match="before version 3"):
                read(house, f"d{day.year}")


@pytest.mark.in_folders("files of another writer")
@pytest.mark.parametrize("where", ["i = 7", "d < 0.5", "s >= 'x7'", "n = 0.05", "t < '1970-01-03'", "i is null"])
def test_row_groups_excluded_by_a_condition_are_not_read(
    house: House, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.sql("create table t as select 1 as id")
    numbers = [*range(9), None]
    data = pa.table(
        {
            "i": pa.array(numbers, pa.int32()),
            "d": pa.array([1.0, float("nan"), 3.0, *[0.0] * 7]),
            "s": pa.array([f"x{number}" for number in numbers]),
            "n": pa.array([Decimal(number or 0) / 100 for number in numbers], pa.decimal128(9, 2)),
            "t": pa.array(numbers, pa.int32()).cast(pa.date32()),
        }
    )
    written(house, "g", data, row_group_size=1)
    seen: list[int] = []
    iter_batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile,
        "iter_batches",
        lambda self, rows, row_groups, columns: (
            seen.extend(row_groups) or iter_batches(self, rows, row_groups, columns)  # type: ignore[func-returns-value]
        ),
    )
    found = read(house, "g", where=where)
    assert repr(in_order(found)) == repr(
        in_order(house.sql(f"select * from g where {where}").toArrow().cast(found.schema))
    )
    assert 0 < found.num_rows <= len(set(seen)) < 10
