"""A table is renamed on a named branch: its rows move there, and the merge shows the new name to everyone."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House

OTHERS = ["insert into other values (2)", "create table more as select 1 as id", "create view v as select 1 as id"]
OF_THE_TABLE = [
    "insert into t values (9, 'x')",
    "delete from t where id = 1",
    "update t set name = 'y'",
    "insert overwrite t values (9, 'x')",
    "merge into t using (select 1L as id) s on t.id = s.id when matched then delete",
    "alter table t set tblproperties ('a' = 'b')",
    "alter table t rename to elsewhere",
    "drop table t",
    "create or replace table t as select 7L as id, 'z' as name",
    "create table renamed as select 1 as id",
]


@pytest.fixture
def shop(house: House) -> House:
    house.sql("create table t (id bigint primary key enforced, name string comment 'who') comment 'people'")
    house.sql("insert into t values (1, 'ann'), (2, 'bob')")
    house.sql("create table other as select 1 as id")
    branches(house).create("pr_17", "ann")
    return house


def branches(house: House) -> NamedBranches:
    return house.another().warehouse.catalog.named_branches("silt")


def on(house: House) -> House:
    session = house.another()
    session.sql("set silt.branch = pr_17")
    return session


def names(house: House) -> set[object]:
    return {row[1] for row in house.rows("show tables in main")}


def test_the_new_name_exists_on_the_branch_alone_until_the_merge(shop: House) -> None:
    inside = on(shop)
    inside.sql("alter table t rename to renamed")
    inside.sql("insert into renamed values (3, 'cy')")
    assert names(inside) == {"other", "renamed"} and names(shop) == {"other", "t"}
    with pytest.raises(errors.RelationNotFoundError):
        inside.sql("select * from t")
    branches(shop).merge("pr_17")
    assert names(shop) == {"other", "renamed"}
    assert shop.rows("select * from renamed") == [(1, "ann"), (2, "bob"), (3, "cy")]
    shown = str(shop.rows("show create table renamed"))
    assert "'people'" in shown and "'who'" in shown
    with pytest.raises(errors.KeyViolationError):
        shop.sql("insert into renamed values (1, 'x')")


@pytest.mark.parametrize("text", OTHERS)
def test_changes_of_other_names_on_the_base_are_merged(shop: House, text: str) -> None:
    on(shop).sql("alter table t rename to renamed")
    shop.sql(text)
    branches(shop).merge("pr_17")
    assert "renamed" in names(shop) and "t" not in names(shop)


@pytest.mark.parametrize("text", OF_THE_TABLE)
def test_a_change_of_the_table_or_of_the_new_name_on_the_base_is_a_named_conflict(shop: House, text: str) -> None:
    on(shop).sql("alter table t rename to renamed")
    shop.sql(text)
    before = names(shop)
    with pytest.raises(errors.ConcurrentModificationError, match=r"silt\.main\.(t|renamed)\b"):
        branches(shop).merge("pr_17")
    assert names(shop) == before


def test_a_merge_without_the_table_that_was_renamed_names_the_branch_to_delete(shop: House) -> None:
    on(shop).sql("alter table t rename to renamed")
    shop.sql("drop table t")
    with pytest.raises(errors.ConcurrentDropError) as raised:
        branches(shop).merge("pr_17")
    assert raised.value.table == "silt.main.t"
    assert raised.value.action == "Delete the branch (`silt branch pr_17 --delete`), and create it again"


def test_a_table_is_renamed_twice_and_back(shop: House) -> None:
    inside = on(shop)
    inside.sql("alter table t rename to a")
    inside.sql("alter table a rename to b")
    assert names(inside) == {"other", "b"}
    inside.sql("alter table b rename to t")
    inside.sql("insert into t values (3, 'cy')")
    branches(shop).merge("pr_17")
    assert names(shop) == {"other", "t"} and len(shop.rows("select * from t")) == 3


def test_a_taken_name_and_a_table_with_a_foreign_key_are_refused(shop: House) -> None:
    inside = on(shop)
    with pytest.raises(errors.RelationExistsError):
        inside.sql("alter table t rename to other")
    inside.sql("create table child (id bigint, foreign key (id) references t enforced)")
    with pytest.raises(errors.UnsupportedStatementError, match="cannot be renamed"):
        inside.sql("alter table child rename to kid")
    assert names(inside) == {"other", "t", "child"}


def test_a_transaction_still_contains_no_rename(shop: House) -> None:
    with (
        pytest.raises(errors.UnsupportedStatementError, match="a rename of a table"),
        shop.warehouse.transaction() as t,
    ):
        t.sql("alter table t rename to renamed")
