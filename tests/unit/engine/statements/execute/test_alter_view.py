"""ALTER VIEW and COMMENT ON VIEW change the catalog's document of the view, and no table."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.catalog.documents import View
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from tests.unit.engine.house import House

NUMBERS = RelationName("silt", "main", "numbers")


@pytest.fixture
def view(house: House) -> House:
    house.sql("create view numbers as select 1 as n")
    return house


def kept(house: House) -> View:
    return house.warehouse.catalog.view(NUMBERS)


def test_properties_are_set_and_unset(view: House) -> None:
    view.sql("alter view numbers set tblproperties ('a' = '1', 'b' = '2')")
    view.sql("alter view numbers set tblproperties ('b' = '3')")
    assert kept(view).properties == {"a": "1", "b": "3"}
    view.sql("alter view numbers unset tblproperties ('a')")
    assert kept(view).properties == {"b": "3"}
    assert view.rows("select * from numbers") == [(1,)]


def test_a_comment_is_set_and_removed(view: House) -> None:
    view.sql("comment on view numbers is 'the first'")
    assert kept(view).comment == "the first"
    view.sql("comment on view numbers is null")
    assert kept(view).comment is None


def test_a_view_may_not_have_two_columns_whose_names_differ_only_in_case(house: House) -> None:
    house.sql("create view v as select 1 as id")
    for statement in (
        "create view w as select 1 as id, 2 as ID",
        "create view w (a, A) as select 1, 2",
        "create or replace view v as select a.*, a.* from (select 1 as x) a",
        "alter view v as select 1 as id, 2 as Id",
        "create temporary view w as select v.id, 2 as ID from v",
    ):
        with pytest.raises(InvalidStatementError, match="two columns of the view have the name"):
            house.sql(statement)
    assert house.rows("select * from v") == [(1,)]
    assert house.rows("show views") == [("main", "v", False)]
    house.sql("create view w (a, b) as select 1 as id, 2 as ID")
    assert house.rows("select b from w") == [(2,)]
