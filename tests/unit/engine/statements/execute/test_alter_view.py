"""ALTER VIEW and COMMENT ON VIEW change the catalog's document of the view, and no table."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, InvalidStatementError, SiltError
from dbt.adapters.silt.engine.kernel.table.schema import all_fields
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


@pytest.mark.parametrize("scope", ["", "temporary"])
def test_a_views_own_names_follow_the_columns_of_a_table_that_is_built_again(house: House, scope: str) -> None:
    house.sql("create table t as select 1 as a, 2 as `b c`")
    house.sql(f"create {scope} view v (x comment 'first', y) as select * from t")
    assert house.fetched("select x, y from v") == [(1, 2)]
    house.sql("create or replace table t as select 3 as extra, 20 as `B C`, 10 as a")
    assert house.fetched("select * from v") == [(10, 20)]
    house.sql("create or replace table t as select 3 as extra, 10 as a")
    with pytest.raises(ColumnNotFoundError, match="b c"):
        house.sql("select x from v")


def test_names_that_identify_no_column_of_the_query_are_assigned_by_position(house: House) -> None:
    house.sql("create table t as select 1 as a, 2 as b")
    house.sql("create view twice (x, y, z) as select a, b as a, 3 from t")
    house.sql("create view counted (n, least) as select count(b), min(a) from t")
    assert house.fetched("select x, y, z from twice") == [(1, 2, 3)]
    assert house.another().fetched("select n, least from counted") == [(1, 1)]


def test_a_view_keeps_comments_of_fields(house: House) -> None:
    query = (
        "select named_struct('P', 1, 'l', array(named_struct('m', 2))) as st, map('a', named_struct('v', 1)) as kept"
    )
    paths = (
        "st comment 'a struct', st.p comment 'it''s', st.l.element.m comment 'deep', kept, kept.value.v comment 'value'"
    )
    house.sql(f"create view v ({paths}) as {query}")
    view = house.another().warehouse.catalog.view(RelationName("silt", "main", "v"))
    schema = view.commented(kernel_schema(house.sql("select * from v").schema))
    comments = {each.name: each.comment for each in all_fields(schema)}
    assert comments == {"st": "a struct", "P": "it's", "l": None, "m": "deep", "kept": None, "v": "value"}
    assert house.rows("describe v")[1][2] == "a struct"
    house.sql("create or replace view v (st, st.p comment 'first') as select named_struct('p', 1, 'q', 2) as st")
    house.sql("alter view v as select 1 as st")
    assert house.rows("select st from v") == [(1,)]


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ("st, st.r comment 'x'", "st.r"),
        ("st.p comment 'x', st", "its column before it"),
        ("st, st.p", "needs a comment"),
        ("st, other.p comment 'x'", "its column before it"),
        ("l, l.element comment 'x'", "is part of an array or a map"),
    ],
)
def test_a_comment_of_a_field_that_is_missing_is_refused(house: House, columns: str, error: str) -> None:
    query = "select named_struct('p', 1) as st" if "st" in columns else "select array(1) as l"
    with pytest.raises(SiltError, match=error):
        house.sql(f"create view v ({columns}) as {query}")
