"""Tables, views and functions that a transaction creates, replaces and drops, at the moment of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House, other_rows


@pytest.fixture
def shop(house: House) -> House:
    house.sql("create table orders (id bigint, amount bigint)")
    house.sql("insert into orders values (1, 10), (2, 20)")
    house.sql("create table old as select 1 as id")
    house.sql("create table table_first as select 1 as id")
    house.sql("create view view_first as select 1 as id")
    house.sql("create function twice(x bigint) returns bigint return x * 2")
    return house


def names(house: House) -> set[str]:
    return {row.tableName for row in house.sql("show tables").collect()}


def files(house: House) -> set[Path]:
    return {path for path in house.root.rglob("*") if path.is_file() and path.name != ".silt.lock"}


STATEMENTS = (
    "insert into orders values (3, 5)",
    "create table totals as select sum(amount) as amount from orders",
    "insert into totals values (0)",
    "create or replace function twice(x bigint) returns bigint return x + x + 1",
    "create view doubled as select twice(amount) as amount from totals",
    "create or replace table view_first as select amount from doubled",
    "drop table old",
)


@pytest.mark.connect
def test_relations_are_created_replaced_and_dropped_at_the_moment_of_the_rows(shop: House) -> None:
    other, before = shop.another(), names(shop)
    with shop.warehouse.transaction() as together:
        for statement in STATEMENTS:
            together.sql(statement)
        together.write(together.sql("select 1L as id"), "written")
        assert sorted(together.table("doubled").collect()) == [(1,), (71,)]
        assert sorted(together.table("view_first").collect()) == [(1,), (71,)]
        assert names(other) == names(shop) == before
        assert other.rows("select twice(4)") == [(8,)]
        with pytest.raises(errors.RelationNotFoundError):
            together.table("old")
        assert together.sql("show tables").where("tableName = 'totals'").count() == 1
    for house in (shop, other, shop.another()):
        assert names(house) == before - {"old"} | {"totals", "doubled", "written"}
        assert house.rows("select * from doubled") == [(1,), (71,)]
        assert house.rows("select * from view_first") == [(1,), (71,)]
        assert house.rows("select twice(4)") == [(9,)]
        assert house.rows("select count(*) from orders") == [(3,)]
    assert other_rows(shop, "totals") == [(0,), (35,)]
    assert not [path for path in files(shop) if ".next." in path.name or ".begun." in path.name]
    shop.sql("create table old as select 2 as id")
    assert shop.rows("select * from old") == [(2,)]


@pytest.mark.parametrize("end", ["roll back", "conflict"])
def test_nothing_of_it_remains_if_the_transaction_is_dropped(shop: House, end: str) -> None:
    shop.sql("update orders set amount = 20 where id = 2")
    before, relations = files(shop), names(shop)
    error = ValueError if end == "roll back" else errors.ConcurrentModificationError
    with pytest.raises(error), shop.warehouse.transaction() as together:
        for statement in STATEMENTS:
            together.sql(statement)
        together.execute("create or replace view table_first as select 2 as id", replace_tables=True)
        if end == "roll back":
            raise ValueError
        shop.another().sql("update orders set amount = 21 where id = 2")
    assert names(shop) == names(shop.another()) == relations
    assert shop.rows("select * from view_first") == [(1,)]
    assert shop.rows("select * from table_first") == shop.rows("select * from old") == [(1,)]
    assert shop.rows("select twice(4)") == [(8,)]
    if end == "roll back":
        assert files(shop) == before
    for statement in STATEMENTS:
        shop.sql(statement)
    assert shop.rows("select * from totals") == [(0,), (36 if end == "conflict" else 35,)]


def test_a_table_becomes_a_view_and_a_view_becomes_a_table(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("create or replace table view_first as select 2 as id")
        together.sql("drop table table_first")
        together.sql("create view table_first as select id + 1 as id from view_first")
        assert together.table("table_first").collect() == [(3,)]
        assert shop.rows("select * from table_first") == shop.rows("select * from view_first") == [(1,)]
    assert shop.rows("select * from table_first") == [(3,)]
    assert shop.rows("select * from view_first") == [(2,)]
    shop.sql("drop view table_first")
    shop.sql("create table table_first as select 4 as id")
    assert shop.rows("select * from table_first") == [(4,)]


@pytest.mark.parametrize(
    "meanwhile",
    [
        "create table fresh as select 9 as id",
        "create view fresh as select 9 as id",
        "drop table old",
        "create or replace view shown as select 9 as id",
        "drop view shown",
    ],
)
def test_a_name_that_another_program_changes_meanwhile_applies_nothing(shop: House, meanwhile: str) -> None:
    shop.sql("create view shown as select 1 as id")
    with pytest.raises(errors.ConcurrentModificationError), shop.warehouse.transaction() as together:
        together.sql("insert into orders values (3, 5)")
        together.sql("create table fresh as select 1 as id")
        together.sql("drop table old")
        together.sql("create or replace view shown as select 2 as id")
        shop.another().sql(meanwhile)
    assert shop.rows("select count(*) from orders") == [(2,)]
    assert names(shop) == names(shop.another())
    assert shop.rows("select * from shown") != [(2,)] if "drop view" not in meanwhile else "shown" not in names(shop)


def test_a_new_table_of_a_transaction_with_an_identifier_is_created_once(shop: House) -> None:
    for _ in range(2):
        with shop.warehouse.transaction(txn=("load", 7)) as together:
            together.sql("create table fresh as select 1 as id")
            together.sql("insert into fresh values (2)")
            together.sql("create or replace view shown as select * from fresh")
    assert shop.rows("select * from shown") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("create table orders as select 1 as id", errors.RelationExistsError),
        ("create view view_first as select 2 as id", errors.RelationExistsError),
        ("create table view_first as select 2 as id", errors.RelationExistsError),
        ("drop table nothing", errors.RelationNotFoundError),
        ("drop table view_first", errors.RelationNotFoundError),
        ("drop view orders", errors.RelationNotFoundError),
        ("create table elsewhere.fresh as select 1 as id", errors.SiltError),
        ("create view spark_catalog.default.fresh as select 1 as id", errors.UnsupportedStatementError),
        ("create table delta.`/tmp/fresh` as select 1 as id", errors.UnsupportedStatementError),
        ("alter view view_first rename to orders", errors.RelationExistsError),
        ("alter view missing rename to more", errors.RelationNotFoundError),
        ("alter view view_first rename to elsewhere.more", errors.SiltError),
        ("alter table orders rename to more", errors.UnsupportedStatementError),
    ],
)
def test_bad_names_are_refused_before_anything_is_written(
    shop: House, statement: str, error: type[errors.SiltError]
) -> None:
    before = files(shop)
    with shop.warehouse.transaction() as together:
        with pytest.raises(error):
            together.sql(statement)
        together.sql("create view fine as select 1 as id")
    assert shop.rows("select * from fine") == [(1,)]
    assert {path.suffix for path in files(shop) - before} == {".json"}


@pytest.mark.parametrize(
    "create",
    [
        "create table old as select 2L as id, 'x' as word",
        "create or replace table old as select 2L as id, 'x' as word",
        "create table if not exists old as select 2L as id, 'x' as word",
        "create table old deep clone made",
        "write",
    ],
)
def test_a_table_that_the_transaction_has_dropped_is_created_again(shop: House, create: str) -> None:
    shop.sql("insert into old values (7)", ("load", 3))
    shop.sql("create table made as select 2L as id, 'x' as word")
    with shop.warehouse.transaction() as together:
        together.sql("drop table if exists old")
        with pytest.raises(errors.RelationNotFoundError):
            together.sql("insert into old values (2)")
        with pytest.raises(errors.RelationNotFoundError):
            together.sql("replace table old as select 2 as id")
        with pytest.raises(errors.RelationNotFoundError):
            together.sql("create table old as select * from old")
        if create == "write":
            together.write(together.sql("select 2L as id, 'x' as word"), "old", txn=("load", 3))
        else:
            together.sql(create)
        together.sql("insert into old values (3, 'y')")
        assert sorted(together.table("old").collect()) == [(2, "x"), (3, "y")]
        assert shop.another().rows("select * from old") == [(1,), (7,)]
    for house in (shop, shop.another()):
        assert house.rows("select * from old") == [(2, "x"), (3, "y")]
    assert other_rows(shop, "old") == [(2, "x"), (3, "y")]
    assert shop.rows("select * from old version as of 1") == [(1,), (7,)]


def test_a_transaction_with_an_identifier_drops_and_creates_a_table_once(shop: House) -> None:
    for amount in (1, 2):
        with shop.warehouse.transaction(txn=("load", 7)) as together:
            together.sql("drop table if exists old")
            together.sql(f"create table old as select {amount} as id")
            together.sql("insert into old values (9)")
    assert shop.rows("select * from old") == [(1,), (9,)]


def test_a_table_with_a_change_feed_whose_rows_have_changed_is_created_again(shop: House) -> None:
    feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    shop.sql(f"alter table old set {feed}")
    with shop.warehouse.transaction() as together:
        together.sql("update old set id = 2")
        together.sql("drop table old")
        together.sql(f"create table old {feed} as select 3 as id")
    version = shop.log("old").snapshot().version
    changes = shop.rows(f"select _change_type, id from table_changes('old', {version})")
    assert changes == [("delete", 1), ("insert", 3)]


def test_tables_change_their_names_as_copies(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        with pytest.raises(errors.UnsupportedStatementError, match=r"rename of a table.*deep clone.*drop table"):
            together.sql("alter table old rename to before")
        together.sql("create table next as select 2 as id")
        together.sql("create table before deep clone old")
        together.sql("drop table old")
        together.sql("create table old deep clone next")
        together.sql("drop table next")
    assert shop.rows("select * from old") == other_rows(shop, "old") == [(2,)]
    assert shop.rows("select * from before") == other_rows(shop, "before") == [(1,)]
    assert "next" not in names(shop)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_schema_is_dropped_with_its_names_at_the_end(shop: House, end: str) -> None:
    shop.sql("create schema other")
    shop.sql("create table other.t as select 1 as id")
    shop.sql("create view other.v as select id from other.t")
    shop.sql("begin")
    with pytest.raises(errors.RelationExistsError, match="not empty"):
        shop.sql("drop schema other")
    shop.sql("insert into orders select id, 5 from other.v")
    shop.sql("drop schema other cascade")
    shop.sql("drop schema if exists other")
    with pytest.raises(errors.RelationNotFoundError):
        shop.sql("select * from other.t")
    with pytest.raises(errors.UnsupportedStatementError, match="its database"):
        shop.sql("create table other.u as select 1 as id")
    with pytest.raises(errors.SchemaNotFoundError):
        shop.sql("drop schema other")
    with pytest.raises(errors.UnsupportedStatementError, match="its database"):
        shop.sql("drop schema elsewhere.other cascade")
    assert shop.warehouse.catalog.schemas("silt") == ["main"]
    assert shop.another().rows("select * from other.v") == [(1,)]
    shop.sql(end)
    assert shop.another().warehouse.catalog.schemas("silt") == (["main"] if end == "commit" else ["main", "other"])
    if end == "rollback":
        assert shop.rows("select * from other.v") == [(1,)]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_schema_is_created_at_once(shop: House, end: str) -> None:
    shop.sql("begin")
    shop.sql("create schema other")
    shop.sql("create schema if not exists other")
    with pytest.raises(errors.RelationExistsError):
        shop.sql("create schema other")
    shop.sql("create table other.fresh as select 1 as id")
    assert shop.another().rows("show tables in other") == []
    shop.sql(end)
    assert [row.tableName for row in shop.another().fetched("show tables in other")] == ["fresh"] * (end == "commit")


def test_a_view_has_another_name_at_the_end(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("alter view view_first rename to renamed")
        together.sql("insert into orders select id, 9 from renamed")
        assert "view_first" in names(shop)
    assert "renamed" in names(shop) and "view_first" not in names(shop)


def test_the_properties_of_a_view_change_in_a_transaction(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("comment on view view_first is 'the first'")
        together.sql("alter view view_first as select 2 as id")
    assert shop.rows("select * from view_first") == [(2,)]
