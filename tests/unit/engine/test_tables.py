"""Several tables in one consistent snapshot, as a program reads them."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError
from tests.unit.engine.house import House


def test_all_tables_are_read_as_of_the_same_moment(house: House) -> None:
    house.sql("create table debits as select 1 as id")
    house.sql("create table credits as select 1 as id")
    house.sql("create view both_sides as select * from debits union all select * from credits")
    debits, credits, both = house.warehouse.tables(["debits", "`silt`.`main`.`credits`", "both_sides"])
    house.another().sql("insert into debits values (2)")
    house.another().sql("insert into credits values (2)")
    assert (debits.count(), credits.count(), both.count()) == (1, 1, 2)
    assert [frame.count() for frame in house.warehouse.tables(["debits", "both_sides"])] == [2, 4]


def test_a_missing_table_among_several_is_an_error(house: House) -> None:
    house.sql("create table debits as select 1 as id")
    with pytest.raises(RelationNotFoundError, match="credits"):
        house.warehouse.tables(["debits", "credits"])
    assert house.warehouse.tables([]) == []


def test_a_query_takes_parameters(house: House) -> None:
    house.sql("create table debits as select id from range(5)")
    query = house.warehouse.query
    assert query("select count(*) from debits where id > :least", {"least": 2}).collect() == [(2,)]
    assert query("select id from debits where id = ? or id = ? order by id", [0, 4]).collect() == [(0,), (4,)]
