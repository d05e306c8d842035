"""The hash of the rows that a build writes: equal rows change no data, and any other row does."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.types import query_schema
from dbt.adapters.silt.engine.commands.tables import content
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.log.builds import CONTENT_INFO_KEY, Build
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from tests.unit.engine.house import House

ONE = StructType((StructField("id", PrimitiveType("long")),)).to_json()
WRITE = "create or replace table t {definition} as select * from {rows}"


def built(house: House, rows: str, definition: str = "") -> Outcome:
    text = WRITE.format(rows=rows, definition=definition)
    outcome = house.warehouse.execute(text, build=Build("t", "code")).outcome
    assert outcome is not None
    return outcome


def newest(house: House) -> Commit:
    return next(house.log("t").newest_commits())


def test_a_build_of_the_same_rows_changes_no_data(house: House) -> None:
    built(house, "values (1, 'a'), (2, 'b'), (2, 'b') as v (id, name)")
    files = house.log("t").snapshot().num_files
    again = built(house, "(select * from values (2, 'b'), (1, 'a'), (2, 'b') as v (id, name) order by id desc)")
    assert (again.unchanged, again.version, again.files_added, again.files_removed) == (True, 1, 0, 0)
    assert not newest(house).changes_rows
    assert house.log("t").snapshot().num_files == files
    assert house.rows("select * from t") == [(1, "a"), (2, "b"), (2, "b")]
    folders = [path.name for path in (house.root / house.location("t")).iterdir() if path.name != "_delta_log"]
    assert len(folders) <= files


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("values (1, 'a'), (2, 'b')", "values (1, 'a'), (2, 'c')"),
        ("values (1, 'a')", "values (1, 'a'), (1, 'a')"),
        ("values (1, 'a'), (1, 'a')", "values (1, 'a')"),
        ("values (1, 2)", "values (2, 1)"),
        ("values (cast(null as int), 1)", "values (1, cast(null as int))"),
        ("values (cast(null as string))", "values ('')"),
        ("values (0.0D)", "values (-0.0D)"),
        ("values (1)", "values (1L)"),
        ("values (1.0)", "values (1.00)"),
        (
            "values (named_struct('a', 1, 'b', cast(null as int)))",
            "values (named_struct('a', cast(null as int), 'b', 1))",
        ),
        ("(select cast(null as struct<a: int>) as c)", "(select named_struct('a', cast(null as int)) as c)"),
        ("values (x'00')", "values (x'0000')"),
        ("values (timestamp '2026-01-01 00:00:00')", "values (timestamp '2026-01-01 00:00:00.000001')"),
        ("values ('a ')", "values ('a')"),
        ("values ('a')", "values ('A')"),
        ("values (true)", "values (false)"),
        ("values (array(1, 2))", "values (array(2, 1))"),
        ("values (array(1, null))", "values (array(null, 1))"),
        ("values (array(1))", "values (array(1, null))"),
        ("(select cast(array() as array<int>) as a)", "(select cast(null as array<int>) as a)"),
        ("values (array(array(1), array(2)))", "values (array(array(1, 2)))"),
        ("values (array(1), array(2, 3))", "values (array(1, 2), array(3))"),
        ("values (array(0.0D))", "values (array(-0.0D))"),
        (
            "values (array(named_struct('a', 1, 'b', int(null))))",
            "values (array(named_struct('a', int(null), 'b', 1)))",
        ),
        ("values (map(1, 2))", "values (map(2, 1))"),
        ("values (map(1, 'a', 2, 'b'))", "values (map(1, 'b', 2, 'a'))"),
        ("values (map(1, 'a'))", "values (map(1, 'a', 2, null))"),
        ("values (map(1, map(2, 3)))", "values (map(1, map(2, 4)))"),
        ("(select cast(map() as map<int, int>) as a)", "(select cast(null as map<int, int>) as a)"),
        ("(select 1 as a)", "(select 1 as b)"),
        ("(select 1 as a where false)", "(select 1 as a)"),
    ],
)
def test_a_build_of_other_rows_replaces_them(house: House, before: str, after: str) -> None:
    built(house, before)
    assert not built(house, after).unchanged
    assert house.rows("select * from t") == sorted(map(tuple, house.fetched(f"select * from {after}")), key=repr)


@pytest.mark.parametrize(
    "change",
    [
        "insert into t values (9)",
        "update t set id = 3 where id = 2",
        "alter table t add columns (name string)",
        "alter table t set tblproperties ('a' = 'b')",
    ],
)
def test_a_table_that_was_changed_since_is_replaced(house: House, change: str) -> None:
    built(house, "values (1), (2) as v (id)")
    house.sql(change)
    assert not built(house, "values (1), (2) as v (id)").unchanged
    assert house.rows("select * from t") == [(1,), (2,)]


@pytest.mark.parametrize("change", ["optimize t", "comment on table t is 'rows'", "select 1"])
def test_a_change_that_keeps_the_rows_is_no_change(house: House, change: str) -> None:
    built(house, "values (1), (2) as v (id)")
    house.sql(change)
    assert built(house, "values (1), (2) as v (id)").unchanged
    assert house.rows("select * from t") == [(1,), (2,)]


def test_other_partitions_properties_and_comments_are_written(house: House) -> None:
    rows = "values (1, 5), (2, 5) as v (id, part)"
    built(house, rows)
    assert not built(house, rows, "partitioned by (part)").unchanged
    assert not built(house, rows, "partitioned by (part) tblproperties ('a' = 'b')").unchanged
    described = built(house, rows, "partitioned by (part) comment 'all' tblproperties ('a' = 'b')")
    assert described.unchanged and not newest(house).changes_rows
    assert house.log("t").snapshot().metadata.description == "all"
    assert house.rows("select * from t") == [(1, 5), (2, 5)]


def test_nested_values_are_recognised_and_a_map_in_any_order_of_its_entries(house: House) -> None:
    built(house, "(select array(map(1, 'a', 2, 'b')) as list, named_struct('m', map('x', array(1, null))) as s)")
    again = "(select array(map(2, 'b', 1, 'a')) as list, named_struct('m', map('x', array(1, null))) as s)"
    assert built(house, again).unchanged
    other = "(select array(map(2, 'a', 1, 'b')) as list, named_struct('m', map('x', array(1, null))) as s)"
    assert not built(house, other).unchanged


def test_rows_without_an_exact_hash_are_replaced(house: House) -> None:
    for rows in ("(select parse_json('1') as v)", "(select array(parse_json('1')) as v)"):
        built(house, rows)
        assert not built(house, rows).unchanged


def test_a_write_that_is_no_build_records_nothing(house: House) -> None:
    house.sql("create table t as select 1 as id")
    house.sql("create or replace table t as select 1 as id")
    assert CONTENT_INFO_KEY not in newest(house).info.extra
    assert newest(house).changes_rows


def test_a_sum_that_is_too_large_is_no_hash() -> None:
    metadata = Metadata("id", ONE)
    assert content.of_sums(metadata, 1, None, 1) is None
    assert content.of_sums(metadata, 0, None, None) is not None


def hashed(spark: SparkSession, query: str) -> str | None:
    frame = spark.sql(query)
    return content.content_of(Metadata("id", query_schema(frame).to_json()), frame)


def test_the_order_and_the_parts_of_the_rows_do_not_matter(spark: SparkSession) -> None:
    rows = "select id, cast(id % 7 as string) as name, id / 3 as share from range(0, 1000, 1, {parts}) {order}"
    one = hashed(spark, rows.format(parts=1, order=""))
    assert one == hashed(spark, rows.format(parts=5, order="order by name desc, id"))
    assert one != hashed(spark, rows.format(parts=5, order="where id > 0"))


def contents(house: House) -> list[object]:
    """Returns the recorded hash of each version of `t`, from the newest."""
    return [commit.info.extra.get(CONTENT_INFO_KEY) for commit in house.log("t").newest_commits()]


def test_rows_are_hashed_only_if_the_log_does_not_tell_them_apart(house: House) -> None:
    built(house, "values (1, 'a'), (2, 'b') as v (id, name)")
    built(house, "values (1, 'a'), (2, 'b'), (3, 'c') as v (id, name)")  # another number of rows
    built(house, "values (1, 'a'), (2, 'b'), (4, 'c') as v (id, name)")  # another maximum
    built(house, "values (1, 'a'), (2, 'b'), (4, 'd') as v (id, name)")
    assert contents(house) == [None] * 4
    built(house, "values (1, 'a'), (1, 'b'), (4, 'd') as v (id, name)")  # the same number, minima and maxima
    assert [each is None for each in contents(house)] == [False, True, True, True, True]
    assert built(house, "values (4, 'd'), (1, 'a'), (1, 'b') as v (id, name)").unchanged
    first, second, *_ = contents(house)
    assert first == second


def test_a_version_of_another_writer_is_recognised_by_its_rows(house: House) -> None:
    house.sql("create table t as select * from values (1), (2) as v (id)")
    house.sql("insert into t values (3)")
    house.sql("delete from t where id = 2")
    assert built(house, "values (1), (3) as v (id)").unchanged
    assert house.rows("select * from t") == [(1,), (3,)]


def test_the_recorded_hash_of_columns_that_were_swapped_is_not_used(house: House) -> None:
    mapped = "tblproperties ('delta.columnMapping.mode' = 'name')"
    rows = "values (1, 2), (2, 3), (3, 1) as v (a, b)"
    built(house, rows, mapped)
    assert built(house, rows, mapped).unchanged
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        house.sql(f"alter table t rename column {old} to {new}")
    assert house.rows("select a, b from t") == [(1, 3), (2, 1), (3, 2)]
    assert not built(house, rows, mapped).unchanged
    assert house.rows("select a, b from t") == [(1, 2), (2, 3), (3, 1)]


@pytest.mark.in_folders("deletes files of a folder")
def test_a_table_whose_data_files_are_missing_is_replaced(house: House) -> None:
    built(house, "values (1), (2) as v (id)")
    for file in (house.root / house.location("t")).glob("**/*.parquet"):
        file.unlink()
    assert not built(house, "values (1), (2) as v (id)").unchanged
    assert house.rows("select * from t") == [(1,), (2,)]


@pytest.mark.parametrize("end", ["update t set b = 1 where a = 2", "delete from t where a = 2"])
def test_rows_that_a_transaction_changes_after_a_build_are_not_taken_for_the_rows_of_the_build(
    house: House, end: str
) -> None:
    rows = "values (1, 1), (2, 2), (3, 3) as v (a, b)"
    built(house, "values (1, 1), (2, 1), (3, 3) as v (a, b)")
    house.sql("begin")
    built(house, rows)
    house.sql(end)
    house.sql("commit")
    assert not built(house, rows).unchanged
    assert house.rows("select * from t") == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("transaction", [False, True])
def test_a_row_that_another_writer_adds_meanwhile_is_not_missed(
    house: House, monkeypatch: pytest.MonkeyPatch, transaction: bool
) -> None:
    rows = "values (1), (2) as v (id)"
    built(house, rows)
    other = house.warehouse.for_session(house.warehouse.spark.newSession())
    compared, calls = content.compared, []

    def beside(*of: Any) -> content.Compared:
        calls.append(of)
        if len(calls) == 1:
            other.sql("insert into t values (9)")
        return compared(*of)

    monkeypatch.setattr(content, "compared", beside)
    if transaction:
        house.sql("begin")
        assert built(house, rows).unchanged
        house.sql("commit")
        assert house.rows("select * from t") == [(1,), (2,), (9,)]
    assert not built(house, rows).unchanged
    assert house.rows("select * from t") == [(1,), (2,)]
