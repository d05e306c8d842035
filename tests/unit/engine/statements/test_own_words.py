"""An error quotes the user's statement, and positions in it, although Spark reads the queries of views in its place."""

from __future__ import annotations

import re

import pytest

from dbt.adapters.silt.engine.kernel.errors import DataRejectedError, InvalidStatementError, StatementSyntaxError
from dbt.adapters.silt.engine.statements.failures import own_part
from tests.unit.engine.house import House

VIEW = "create view stg as select id,\n  amount,\n  s\nfrom orders\nwhere id > 0"


@pytest.fixture
def stg(house: House) -> House:
    house.sql("create table orders (id int, amount int, s string)")
    house.sql("insert into orders values (1, 10, 'x')")
    house.sql(VIEW)
    return house


@pytest.mark.parametrize(
    "statement",
    ["QUERY", "create table made as QUERY", "insert into orders (s, amount) QUERY", "create view v2 as QUERY"],
)
def test_a_query_over_a_view_is_quoted_as_it_is_written(stg: House, statement: str) -> None:
    query = "select s, sum(amount) as total\nfrom stg"
    with pytest.raises(InvalidStatementError) as caught:
        stg.sql(statement.replace("QUERY", query)).collect()
    said = str(caught.value)
    assert "(select id" not in said, said
    if "(in " in said:
        assert "(in `select s, sum(amount) as total from stg`)" in said


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select s\nfrom stg a b\nwhere id = 1", "at or near 'b' (line 2, column 12"),
        ("select s\nfrom stg\nwher id = 1", "at or near 'id' (line 3, column 6"),
        ("select s from stg\nunion all\nselect s from stg grop by s", "(line 3, column "),
        ("select s, (select max(id) from stg) as m\nfrom stg\norder s", "(line 3, column "),
    ],
)
@pytest.mark.parametrize("statement", ["QUERY", "create table made as\nQUERY", "insert into orders (s)\nQUERY"])
def test_a_syntax_error_after_a_view_has_its_position_in_the_users_query(
    stg: House, statement: str, query: str, said: str
) -> None:
    with pytest.raises(StatementSyntaxError) as caught:
        stg.sql(statement.replace("QUERY", query)).collect()
    assert said in str(caught.value), str(caught.value)


def test_a_failure_while_rows_are_computed_quotes_the_users_text(stg: House) -> None:
    with pytest.raises(DataRejectedError, match=re.escape("(in `cast((select max(s) from stg) as int)")):
        stg.sql("select id, cast((select max(s) from stg) as int) as n from orders").collect()


def test_a_mistake_in_the_query_of_a_view_is_quoted_from_the_view(stg: House) -> None:
    stg.sql("create view numbers as select cast(s as int) as n from orders")
    with pytest.raises(DataRejectedError, match=re.escape("'x'")):
        stg.sql("select n from numbers").collect()


@pytest.mark.parametrize(
    ("part", "text", "own"),
    [
        ("sum(amount)", "select sum(amount) from t", None),
        (
            "select a, b from (select c from d) where a",
            "select a,\n b from v where a = 1",
            "select a, b from v where a",
        ),
        ("select a, b from (select c, d, e...", "select a, b from v group by a", "select a, b from v group by a"),
        ("cast(s as int)", "select n from numbers", None),
    ],
)
def test_the_own_part_of_a_quotation(part: str, text: str, own: str | None) -> None:
    assert own_part(part, text) == own
