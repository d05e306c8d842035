"""Runs the statements of a typical project in a temporary warehouse, so that Java loads their classes.

The class-data archive is created from these classes (`class_archive`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.fetch import fetchable

WAREHOUSE: Final = "rehearsal"
"""The name of the warehouse in the given folder."""

STATEMENTS: Final = (
    """
    create or replace table main.orders as
    select id, concat('customer ', id % 7) as customer, cast(id as decimal(12, 2)) as amount,
        current_timestamp() as at, id % 2 = 0 as is_open
    from range(20)
    """,
    "select count(*) as failures, count(*) != 0 as should_warn from (select id from main.orders where id is null) t",
    """
    merge into main.orders as DBT_INTERNAL_DEST
    using (
        select id + 5 as id, customer, amount, at, false as is_open from main.orders where id < 10
    ) as DBT_INTERNAL_SOURCE
    on DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id
    when matched then update set * when not matched then insert *
    """,
    """
    create or replace table main.days partitioned by (day) as
    with ranked as (
        select *, row_number() over (partition by customer order by at desc, id) as nth, lag(amount) over (order by id)
        from main.orders
    )
    select customer, cast(at as date) as day, date_trunc('month', at) as month, count(*) as orders,
        count(distinct id) as ids, sum(amount) as amount, avg(amount) as mean, min(at) as first_at, max(nth) as most,
        sum(case when is_open then amount else 0 end) as open_amount, percentile(id, 0.5) as middle,
        collect_list(id) as list, max(coalesce(customer, 'none')) as name
    from ranked group by all having count(*) > 0
    """,
    "create or replace view main.joined as select o.*, d.orders, d.day from main.orders o left join main.days d "
    "using (customer) where o.id in (select id from main.orders where is_open) or d.day is null",
    "create or replace table main.wide as select * from main.joined union all select * from main.joined "
    "order by id limit 30",
    "insert into main.orders select id + 100, customer, amount, at, is_open from main.orders",
    "insert overwrite main.days select * from main.days",
    "insert into main.days replace where day = current_date() select * from main.days where day = current_date()",
    "update main.orders set amount = amount + 1, customer = upper(trim(customer)) where id between 3 and 9",
    "delete from main.orders where id > 115",
    """
    merge into main.orders as t using (
        select coalesce(n.id, o.id) as id, n.amount, md5(cast(o.id as string)) as hash, o.id is null as is_new
        from (select * from main.orders where id < 50) o
        full outer join (select id + 1 as id, amount from main.orders) n on o.id = n.id
    ) as s on t.id = s.id and s.is_new = false
    when matched and s.amount is null then delete
    when matched and t.amount <> s.amount then update set t.amount = s.amount
    when not matched and s.is_new then insert (id, amount, customer) values (s.id, s.amount, s.hash)
    """,
    "create or replace table main.seed as select cast(id as bigint) as id, cast(name as string) as name from seed_rows",
    "select customer as unique_field, count(*) as n_records from main.orders where customer is not null "
    "group by customer having count(*) > 1",
    "with all_values as (select customer as value_field, count(*) as n_records from main.orders group by customer) "
    "select * from all_values where value_field not in ('a', 'b')",
    "with child as (select customer from main.orders where customer is not null), parent as (select customer from "
    "main.days) select c.customer from child c left join parent p on c.customer = p.customer where p.customer is null",
    "select x.id, exists(x.items, i -> i > 1) as e, x.items[0] as i, get_json_object('{\"a\": 1}', '$.a') as j, "
    "try_cast('1' as int) as k, split('a,b', ',') as l, regexp_replace('abc', 'b', '') as r, datediff(now(), now()) d "
    "from (select id, array(id, 2) as items from main.orders) x lateral view explode(items) e as item",
    "alter table main.orders set tblproperties ('comment' = 'rehearsed')",
    "comment on table main.orders is 'rehearsed'",
    "alter table main.orders add columns (note string)",
    "describe table extended main.orders",
    "describe history main.orders",
    "optimize main.orders",
    "drop view main.joined",
    "drop table main.seed",
)
"""Statements as materializations, snapshots, tests and hooks write them."""


def rehearse(spark: SparkSession, folder: str) -> None:
    """Runs the statements in turn, and fetches the rows of the queries among them.

    Args:
        spark: a session of its own.
        folder: the parent folder of the warehouse; the caller deletes it.

    Raises:
        SiltError: if a statement failed.
    """
    warehouse = Warehouse(spark, str(Path(folder, WAREHOUSE)))
    rows = spark.createDataFrame(pa.table({"id": ["1", "2"], "name": ["one", None]}))
    rows.createOrReplaceTempView("seed_rows")
    for text in STATEMENTS:
        frame = warehouse.execute(text).dataframe
        if frame is not None:
            fetchable(frame).toArrow()
