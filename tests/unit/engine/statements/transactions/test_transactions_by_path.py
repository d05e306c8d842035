"""Reads by path inside of a transaction, and reads of definitions that are no reads of rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House


@pytest.fixture
def stocked(house: House) -> House:
    house.sql("create table p (id int)")
    house.sql("insert into p values (1), (2)")
    house.sql("create table res (n int)")
    return house


@pytest.mark.connect
def test_a_table_that_is_named_by_its_path_is_the_transactions_own(stocked: House) -> None:
    by_path = f"select count(*) from delta.`{stocked.location('p')}`"
    with stocked.warehouse.transaction() as together:
        together.sql("insert into p values (3)")
        stocked.another().sql("insert into p values (4)")
        assert together.sql(by_path).collect()[0][0] == 3
        stocked.another().sql("insert into p values (5)")
        assert together.sql(f"{by_path} version as of 1").collect()[0][0] == 2
        assert together.sql(by_path).collect()[0][0] == 3
        assert stocked.another().rows(by_path) == [(4,)]
        together.sql("rollback")
        with pytest.raises(errors.InvalidStatementError):
            together.sql("commit")
        together.sql("begin")


@pytest.mark.parametrize("spelling", ["{}", "{}/", "file:{}", "file://{}"])
@pytest.mark.in_folders(reason="the spellings are those of folders")
def test_its_rows_are_checked_at_the_end_in_any_spelling(stocked: House, spelling: str) -> None:
    path = spelling.format(stocked.location("p"))
    with (
        pytest.raises(errors.ConcurrentModificationError, match=r"main\.p"),
        stocked.warehouse.transaction() as together,
    ):
        together.sql(f"insert into res select max(id) from delta.`{path}`")
        stocked.another().sql("insert into p values (9)")
    assert stocked.rows("select * from res") == []


def test_a_view_over_its_path_and_a_clone_of_its_path_are_the_transactions_own(stocked: House) -> None:
    path = stocked.location("p")
    with stocked.warehouse.transaction() as together:
        together.sql("insert into p values (3)")
        together.sql(f"create view w as select * from delta.`{path}`")
        together.sql(f"create table c deep clone delta.`{path}`")
        assert together.sql("select count(*) from w").collect()[0][0] == 3
        assert together.sql("select count(*) from c").collect()[0][0] == 3


@pytest.mark.parametrize("statement", ["insert into {} values (9)", "delete from {}", "optimize {}"])
def test_it_cannot_be_changed_by_its_path(stocked: House, statement: str) -> None:
    with stocked.warehouse.transaction() as together:
        together.sql("insert into res values (1)")
        with pytest.raises(errors.UnsupportedStatementError, match="named by their names"):
            together.sql(statement.format(f"delta.`{stocked.location('p')}`"))
    assert stocked.rows("select count(*) from p") == [(2,)]


@pytest.mark.parametrize(
    "relation", ["parquet.`{}`", "parquet.`{}/*`", "read_files('{}', format => 'parquet')", "text.`{}/_delta_log`"]
)
def test_the_files_of_a_table_cannot_be_read_by_their_path(stocked: House, relation: str) -> None:
    with stocked.warehouse.transaction() as together:
        with pytest.raises(errors.UnsupportedStatementError, match=r"main\.p: .*Name the table"):
            together.sql(f"select * from {relation.format(stocked.location('p'))}")
        together.sql("insert into res values (1)")
    assert stocked.rows("select * from res") == [(1,)]


def test_files_outside_of_the_tables_are_read(stocked: House, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("files") / "parquet")
    stocked.warehouse.spark.sql("select 7 as id").write.parquet(folder)
    with stocked.warehouse.transaction() as together:
        together.sql(f"insert into res select id from parquet.`{folder}`")
    assert stocked.rows("select * from res") == [(7,)]


def test_a_table_outside_of_the_database_is_read_as_it_is_and_is_not_checked(
    stocked: House, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("tables") / "other")
    write_deltalake(folder, pa.table({"id": [1]}))
    with stocked.warehouse.transaction() as together:
        together.sql(f"insert into res select max(id) from delta.`{folder}`")
        write_deltalake(folder, pa.table({"id": [2]}), mode="append")
        together.sql(f"insert into res select max(id) from delta.`{folder}`")
        write_deltalake(folder, pa.table({"id": [3]}), mode="append")
    assert stocked.rows("select * from res") == [(1,), (2,)]


@pytest.mark.parametrize(
    "statement",
    [
        "create view v as select * from p",
        "create or replace view v as select max(id) as n from p",
        "create temporary view passing as select * from p",
        "select row_count from silt.information_schema.tables",
        "select column_name from silt.information_schema.columns",
        "describe p",
        "create table other like p",
    ],
)
def test_a_definition_is_no_read_of_the_rows(stocked: House, statement: str) -> None:
    stocked.sql("create view w as select * from p")
    with stocked.warehouse.transaction() as together:
        together.sql(statement).collect()
        together.sql("insert into res values (1)")
        stocked.another().sql("insert into p values (3)")
    assert stocked.rows("select * from res") == [(1,)]


def test_a_view_that_is_read_after_its_creation_is_a_read_of_the_rows(stocked: House) -> None:
    with (
        pytest.raises(errors.ConcurrentModificationError, match=r"main\.p"),
        stocked.warehouse.transaction() as together,
    ):
        together.sql("create view v as select max(id) as n from p")
        together.sql("insert into res select n from v")
        stocked.another().sql("insert into p values (3)")


def test_a_view_conflicts_with_other_columns_of_its_table(stocked: House) -> None:
    with (
        pytest.raises(errors.ConcurrentModificationError, match=r"main\.p"),
        stocked.warehouse.transaction() as together,
    ):
        together.sql("create view v as select id from p")
        stocked.another().sql("alter table p rename column id to key")
