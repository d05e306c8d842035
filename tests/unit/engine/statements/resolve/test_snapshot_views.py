"""Several warehouses in one session, and the views that deleted warehouses leave in it."""

from __future__ import annotations

import gc

import pytest

from tests.unit.engine.house import House


@pytest.mark.connect(gate=True)
def test_two_warehouses_in_one_session_keep_tables_of_the_same_name_apart(house: House) -> None:
    other = house.place.beside("other").warehouse(house.warehouse.spark)
    frames = []
    for warehouse, first in ((house.warehouse, 0), (other, 100)):
        warehouse.sql(f"create table numbers as select id from range({first}, {first + 10})")
    for warehouse in (house.warehouse, other, house.warehouse):
        frames.append(warehouse.table("numbers"))
        frames.append(warehouse.sql("select id from numbers where id % 100 < 5"))
    assert [(min(row.id for row in frame.collect()), frame.count()) for frame in frames] == [
        (0, 10),
        (0, 5),
        (100, 10),
        (100, 5),
        (0, 10),
        (0, 5),
    ]


@pytest.mark.connect
def test_two_warehouses_on_the_same_folder_and_session_see_each_others_commits(house: House) -> None:
    house.sql("create table numbers as select id, id % 2 as part from range(10)")
    other = house.place.warehouse(house.warehouse.spark)
    for _ in range(2):
        before = house.warehouse.sql("select id from numbers where id >= 5")
        other.sql("delete from numbers where id >= 5")
        other.sql("insert into numbers values (77, 1)")
        assert before.count() == 5, "a DataFrame keeps the version that it was made of"
        assert house.rows("select id from numbers where id >= 5") == [(77,)]
        house.sql("insert overwrite numbers select id, id % 2 from range(10)")
        assert other.table("numbers").count() == 10


def test_a_warehouse_for_each_batch_leaves_no_views_in_the_session(
    house: House, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--connect"):
        pytest.skip("over Spark Connect a DataFrame is analysed when it is collected, and needs its views")
    house.sql("create table numbers as select id from range(10)")
    spark = house.warehouse.spark
    kept = [house.place.warehouse(spark).table("numbers").where("id > 4") for _ in range(4)]
    gc.collect()
    house.place.warehouse(spark)
    assert len(spark.catalog.listTables()) == 0
    assert [frame.count() for frame in kept] == [5] * 4
