"""INSERT ... REPLACE ON replaces the rows that a condition matches with a row of the query."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError
from tests.unit.engine.house import House
from tests.unit.engine.place import data_files

ROWS = "values (1, 'a', 10), (2, 'b', 20), (cast(null as int), 'c', 30)"


@pytest.fixture
def sales(house: House) -> House:
    house.sql("create table sales (id int, shop string, price int)")
    house.sql(f"insert into sales {ROWS}")
    return house


@pytest.mark.connect(gate=True)
def test_null_safe_keys_replace_the_row_with_a_null_key_too(sales: House) -> None:
    new = "select * from values ('z', 2, 21), ('z', null, 31), ('z', 4, 41) as v (shop, id, price)"
    row = sales.sql(f"insert into sales as t by name replace on (t.id <=> s.id) ({new}) as s").collect()[0]
    assert (row.num_inserted_rows, row.num_deleted_rows) == (3, 2)
    assert sales.rows("select * from sales") == [(1, "a", 10), (2, "z", 21), (4, "z", 41), (None, "z", 31)]


def test_any_condition_may_select_the_replaced_rows(sales: House) -> None:
    new = "select * from values (9, 'n', 15) as v (i, s, p)"
    sales.sql(f"insert into sales as t replace on t.price < s.p or t.shop = 'c' and s.i = 9 ({new}) as s")
    assert sales.rows("select * from sales") == [(2, "b", 20), (9, "n", 15)]


def test_a_row_of_the_query_may_replace_many_rows_and_many_rows_may_replace_one(sales: House) -> None:
    new = "select * from values (1, 'x', 1), (1, 'y', 2), (5, 'z', 3) as v (id, shop, price)"
    sales.sql(f"insert into sales as t by name replace on (t.id = s.id or s.id = 5 and t.id = 2) ({new}) as s")
    assert sales.rows("select * from sales") == [(1, "x", 1), (1, "y", 2), (5, "z", 3), (None, "c", 30)]


def test_equal_partition_columns_replace_whole_files_without_reading_them(house: House) -> None:
    house.sql("create table parts (id int, shop string) partitioned by (shop)")
    house.sql("insert into parts values (1, 'a'), (2, 'b'), (3, null)")
    log = house.log("parts")
    for file in data_files(log):
        log.store.delete(file)
    new = "select 9 as id, 'a' as shop union all select 8, cast(null as string)"
    row = house.sql(f"insert into parts t by name replace on (t.shop <=> s.shop) ({new}) s").collect()[0]
    assert (row.num_inserted_rows, row.num_deleted_rows) == (2, 2)


def test_an_unknown_column_is_refused_before_anything_is_written(sales: House) -> None:
    with pytest.raises(ColumnNotFoundError, match="nowhere"):
        sales.sql("insert into sales as t by name replace on (t.nowhere = s.id) (select 1 as id) as s")
    assert len(sales.rows("select * from sales")) == 3


KEYS = {
    "date": "'2026-01-01'",
    "timestamp": "'2026-01-01'",
    "timestamp_ntz": "'2026-01-01'",
    "int": "1",
    "string": "'a'",
}


@pytest.mark.parametrize(("kind", "key"), KEYS.items())
@pytest.mark.parametrize("condition", ["true", "false"])
def test_a_query_with_only_null_keys_or_no_rows_replaces_no_other_key(
    house: House, kind: str, key: str, condition: str
) -> None:
    house.sql(f"create table keyed (k {kind}, n int)")
    house.sql(f"insert into keyed select cast({key} as {kind}), 1")
    query = f"(select cast(null as {kind}) as k, 2 as n where {condition}) as s"
    house.sql(f"insert into keyed as t by name replace on (t.k <=> s.k) {query}")
    house.sql(f"merge into keyed t using {query} on t.k <=> s.k when matched then delete")
    assert house.rows("select n from keyed") == [(1,)]
