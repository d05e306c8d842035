"""Remedies for mistakes that users of other platforms make, in the messages of Spark itself and of a Spark server."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import SiltError
from tests.unit.engine.house import House

pytestmark = pytest.mark.connect(gate=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select cast('10:00' as time)", "the type is `string`"),
        ("select cast(null as object)", "the type is `map<string, string>`, `struct<name: type, ...>` or `variant`"),
        ("select cast(1 as number)", "the type is `decimal(38, 0)`"),
        ("select cast('2026-01-01' as datetime)", "the type is `timestamp_ntz`"),
        ("create table main.new (a object)", "silt.main.new: `object` is not a column type. In Spark, the type is"),
        ("create table main.new (a serial)", "the type is `int`"),
        ("create table main.new (a time)", "such as `string`"),
        ("select id, x from main.t cross join unnest(a) as u(x)", "`cross join lateral explode(a) as t(x)`"),
        ("insert into main.t select id, x from main.t, explode(a) as u(x)", "`cross join lateral explode(a) as t(x)`"),
        ("select id, explode(b) from main.t", "Check the column's name"),
        ("select iff(id > 1, 1, 2) from main.t", "write if(...) or case"),
        ("select to_varchar(id) from main.t", "write cast(x as string)"),
        ("select datediff('day', id, id) from main.t", "`datediff(day, start, end)`"),
        ("select date_add(current_date(), interval 1 day)", "write `d + interval 1 day`"),
        ("select id, from main.t", "Remove the comma before `from`"),
        ("selct id from main.t", "Did you mean `select`?"),
        ("selct 1", "Did you mean `select` instead of `selct`?"),
        ("select id from main.tt", "Did you mean `main.t`?"),
    ],
)
def test_a_mistake_is_refused_with_its_remedy(house: House, text: str, said: str) -> None:
    house.sql("create table main.t as select 1 as id, array(1, 2) as a")
    with pytest.raises(SiltError) as caught:
        house.rows(text)
    assert said in str(caught.value)
    assert house.rows("show tables in main") == [("main", "t", False)]
