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
        ("select id, explode(b) from main.t", "Check the column's name; the columns are: main.t: id, a"),
        ("select iff(id > 1, 1, 2) from main.t", "write if(...) or case"),
        ("select to_varchar(id) from main.t", "write cast(x as string)"),
        ("select datediff('day', id, id) from main.t", "`datediff(day, start, end)`"),
        ("select date_add(current_date(), interval 1 day)", "write `d + interval 1 day`"),
        (
            "select timestampdiff(id, 'day', id) from main.t",
            "`timestampdiff` needs a unit of time first. In Spark, write",
        ),
        ("select safe.parse_date('x', id) from main.t", "begin with `try_`"),
        ("select charindex('a', b) from main.t", "write locate(part, text)"),
        ("select array_agg(id) within group (order by id) from main.t", "`array_sort(array_agg(x))`"),
        ("select 'a' + string(id) from main.t", "write `a || b`"),
        ("select cast(id as string):a from main.t", "`get_json_object(x, '$.name')`"),
        ("select id as k from main.t where k > 1", "WHERE cannot use `k`, an alias of the SELECT list"),
        ("update main.t set id = 1 from main.t s where s.id = 1", "UPDATE has no FROM"),
        ("update main.t set id = 1 from main.t", "UPDATE has no FROM"),
        ("delete from main.t using main.t s where s.id = 1", "`merge into t using s on ... when matched then delete`"),
        ("merge into main.t using main.t s on true when not matched then insert row", "Write `insert *`"),
        ("create temporary table main.x as select 1 as id", "Write `create temporary view`"),
        ("create materialized view main.v as select 1 as id", "Use a table instead; in dbt, an incremental model"),
        ("grant select on main.t to bob", "everyone who can read the warehouse's folder"),
        ("create table main.x (id int identity(1, 1))", "`bigint generated always as identity`"),
        ("select id from silt.mian.t", "Did you mean `main`? If not, create the schema first"),
        ("select id from mian.t", "Did you mean `main`? If not, create the schema first"),
        ("create table main.x as select l.*, r.* from main.t l join main.t r using (id)", "`b.* except (id)`"),
        ("select id, from main.t", "Remove the comma before `from`"),
        ("selct id from main.t", "Did you mean `select`?"),
        ("selct 1", "Did you mean `select` instead of `selct`?"),
        ("select id from main.tt", "Did you mean `main.t`?"),
        ("insert into main.t values (1, null) on conflict do nothing", "Write `merge into t using s on t.key = s.key"),
        ("select * from main.t for update", "a statement that conflicts with another statement is run again"),
        ("msck repair table main.t", "the table's log lists the files of all partitions"),
        ("alter table main.t recover partitions", "the table's log lists the files of all partitions"),
        ("alter table main.t add if not exists partition (id = 1)", "a partition exists if the table has rows"),
        ("alter table main.t add (b int, c)", "Write `add column name type`"),
        ("alter table main.t drop if exists partition (id = 1)", "Write `delete from t where column = value`"),
        ("alter table main.t partition (id = 1) rename to partition (id = 2)", "Change the rows: write `update t set"),
        ("alter table main.t set location '/tmp'", "write `create table new_name deep clone t`"),
        ("upsert into main.t values (1, null)", "Write `merge into t using s on t.key = s.key"),
        ("load data inpath 'x' into table main.t", "from read_files(...)"),
    ],
)
def test_a_mistake_is_refused_with_its_remedy(house: House, text: str, said: str) -> None:
    house.sql("create table main.t as select 1 as id, array(1, 2) as a")
    with pytest.raises(SiltError) as caught:
        house.rows(text)
    assert said in str(caught.value)
    assert house.rows("show tables in main") == [("main", "t", False)]
