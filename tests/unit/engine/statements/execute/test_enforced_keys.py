"""Enforced keys in SQL: every statement that would leave two rows with the same key is refused and changes nothing."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    InvalidStatementError,
    KeyViolationError,
    NotNullViolationError,
    SiltError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo
from tests.unit.engine.house import House, side_by_side
from tests.unit.engine.kernel.log_builder import put

ORDERS = "create table main.orders (id bigint, day date, note string, constraint pk primary key (id) enforced)"
ROWS = "insert into main.orders values (1, date'2026-01-01', 'a'), (2, date'2026-01-02', 'b')"
DOUBLED = "select id, day, note from main.orders union all select 2L, date'2026-01-03', 'c'"


@pytest.fixture
def orders(house: House) -> House:
    house.sql(ORDERS)
    house.sql(ROWS)
    return house


def notes(house: House, table: str = "main.orders") -> dict[str, str]:
    """Returns the notes on the constraints in DESCRIBE TABLE EXTENDED, by name."""
    rows = [tuple(row) for row in house.sql(f"describe table extended {table}").collect()]
    return {name: note for name, _, note in rows[rows.index(("# Constraints", "", "")) + 1 :]}


@pytest.mark.parametrize(
    "text",
    [
        "insert into main.orders values (2, null, 'again')",
        "insert into main.orders (note, id) select note, id from main.orders where id = 1",
        "insert into main.orders values (3, null, 'x'), (3, null, 'y')",
        f"insert overwrite main.orders {DOUBLED}",
        "insert into main.orders replace where day = date'2026-01-01' values (2, date'2026-01-01', 'moved')",
        "insert into main.orders replace using (note) values (2, null, 'a')",
        "update main.orders set id = 2",
        "update main.orders set id = 2 where note = 'a'",
        "merge into main.orders as t using (select 2L as id, 'x' as note) as s on t.note = s.note "
        "when not matched then insert (id, note) values (s.id, s.note)",
        "merge into main.orders as t using (select 1L as id) as s on t.id = s.id when matched then update set id = 2",
        "merge into main.orders as t using (select explode(array(5L, 5L)) as id) as s on t.id = s.id "
        "when not matched then insert (id) values (s.id)",
        f"create or replace table main.orders (id bigint primary key enforced, day date, note string) as {DOUBLED}",
    ],
)
def test_a_statement_that_would_double_a_key_changes_nothing(orders: House, text: str) -> None:
    before = orders.log("orders").snapshot().version, orders.rows("select * from main.orders")
    with pytest.raises(KeyViolationError, match=r"the same key as another row under the enforced key `"):
        orders.sql(text)
    assert (orders.log("orders").snapshot().version, orders.rows("select * from main.orders")) == before


@pytest.mark.parametrize(
    "text",
    [
        "update main.orders set note = 'x'",
        "update main.orders set id = id + 1",
        "delete from main.orders where id = 2",
        "merge into main.orders as t using (select explode(array(2L, 3L)) as id) as s on t.id = s.id "
        "when matched then update set note = 'x' when not matched then insert (id) values (s.id)",
        "insert overwrite main.orders values (2, null, 'only')",
        "insert into main.orders replace using (id) values (2, null, 'new')",
        "optimize main.orders",
        "truncate table main.orders",
        "restore table main.orders to version as of 1",
    ],
)
def test_a_statement_that_keeps_keys_apart_is_committed_and_the_key_stays_enforced(orders: House, text: str) -> None:
    orders.sql(text)
    assert notes(orders) == {"pk": "enforced"}


def test_a_null_is_refused_in_a_primary_key_and_exempt_from_a_unique_key(house: House) -> None:
    house.sql("create table main.orders (id bigint, code char(4), unique (code) enforced, primary key (id) enforced)")
    with pytest.raises(NotNullViolationError, match="1 row has a null in the enforced key `primary_key_1`"):
        house.sql("insert into main.orders values (null, 'a')")
    house.sql("insert into main.orders values (1, null), (2, null), (3, 'a')")
    with pytest.raises(KeyViolationError, match="`unique_1`"):
        house.sql("insert into main.orders values (4, 'a ')")


def test_a_key_is_added_after_its_rows_are_checked_and_dropped_again(house: House) -> None:
    house.sql("create table main.orders (id bigint, note string)")
    house.sql("insert into main.orders values (1, 'a'), (1, 'b'), (2, 'c')")
    house.sql("insert into main.orders select explode(array(7L, 7L, 8L, 8L, 9L, 9L)), 'd'")
    add = "alter table main.orders add constraint pk primary key (id) enforced"
    with pytest.raises(KeyViolationError, match=r"^.*4 rows have .*`pk`") as refused:
        house.sql(add)
    assert refused.value.problem.count("(`id` = ") == 3  # three example keys
    for column in ("gone", "note.part"):
        with pytest.raises(SiltError):
            house.sql(f"alter table main.orders add constraint pk unique (`{column}`) enforced")
    house.sql("delete from main.orders where note in ('b', 'd')")
    house.sql(add)
    with pytest.raises(InvalidStatementError, match="already exists"):
        house.sql(add)
    with pytest.raises(KeyViolationError):
        house.sql("insert into main.orders values (2, 'd')")
    house.sql("alter table main.orders drop constraint pk")
    house.sql("insert into main.orders values (2, 'd')")


def test_show_create_table_states_the_key_and_a_copy_of_the_table_enforces_it_too(orders: House) -> None:
    text = orders.sql("show create table main.orders").first()[0]  # type: ignore[index]
    assert "CONSTRAINT `pk` PRIMARY KEY (`id`) ENFORCED" in text
    orders.sql("create table main.copy clone main.orders")
    orders.sql("create table main.shallow shallow clone main.orders")
    orders.sql("create table main.twin like main.orders")
    for table in ("copy", "shallow"):
        assert notes(orders, f"main.{table}") == {"pk": "enforced"}
        with pytest.raises(KeyViolationError):
            orders.sql(f"insert into main.{table} values (2, null, 'x')")
    with pytest.raises(KeyViolationError):
        orders.sql("insert into main.twin values (2, null, 'x'), (2, null, 'y')")


def test_a_renamed_column_stays_in_its_key_and_cannot_be_dropped(orders: House) -> None:
    orders.sql("alter table main.orders rename column id to number")
    with pytest.raises(KeyViolationError, match=r"PRIMARY KEY \(`number`\)"):
        orders.sql("insert into main.orders values (2, null, 'x')")
    with pytest.raises(UnsupportedStatementError, match="a column of the enforced key `pk`"):
        orders.sql("alter table main.orders drop column number")
    assert notes(orders) == {"pk": "enforced"}


def test_a_widened_key_column_is_compared_by_value(house: House) -> None:
    house.sql("create table main.orders (id int, primary key (id) enforced) "
              "tblproperties ('delta.enableTypeWidening' = 'true')")  # fmt: skip
    house.sql("insert into main.orders values (1)")
    house.sql("alter table main.orders alter column id type bigint")
    with pytest.raises(KeyViolationError):
        house.sql("insert into main.orders values (1)")
    house.sql("insert into main.orders values (5000000000)")
    assert notes(house) == {"primary_key_1": "enforced"}


def test_the_rows_of_a_partition_and_of_mapped_columns_are_compared(house: House) -> None:
    house.sql("create table main.orders (id bigint, day date, primary key (id, day) enforced) partitioned by (day) "
              "tblproperties ('delta.columnMapping.mode' = 'name')")  # fmt: skip
    house.sql("insert into main.orders values (1, date'2026-01-01'), (1, date'2026-01-02')")
    house.sql("insert into main.orders values (2, date'2026-01-01')")
    with pytest.raises(KeyViolationError, match=r"\(`id` = 1, `day` = 2026-01-02\)"):
        house.sql("insert into main.orders values (3, date'2026-01-02'), (1, date'2026-01-02')")


def test_of_writers_of_the_same_key_one_inserts_it_and_the_others_are_refused_or_update_it(orders: House) -> None:
    merge = (
        "merge into main.orders as t using (select 7L as id, '{0}' as note) as s on t.id = s.id "
        "when matched then update set note = s.note when not matched then insert (id, note) values (s.id, s.note)"
    )
    refused: list[str] = []

    def insert(house: House, note: str) -> None:
        try:
            house.sql(f"insert into main.orders values (7, null, '{note}')")
        except (KeyViolationError, ConcurrentModificationError) as error:
            refused.append(type(error).__name__)

    inserters = [orders.another() for _ in range(2)]
    mergers = [orders.another() for _ in range(2)]
    side_by_side(
        [
            *(lambda house=house: insert(house, "i") for house in inserters),
            *(lambda house=house, n=n: house.sql(merge.format(f"m{n}")) for n, house in enumerate(mergers)),
        ]
    )
    assert len(orders.rows("select * from main.orders where id = 7")) == 1
    assert set(refused) <= {"KeyViolationError"}, refused
    assert len(refused) >= 1


def test_a_transaction_is_refused_at_the_statement_that_doubles_a_key(orders: House) -> None:
    orders.sql("begin")
    orders.sql("insert into main.orders values (3, null, 'x')")
    with pytest.raises(KeyViolationError):
        orders.sql("insert into main.orders values (3, null, 'y')")
    orders.sql("commit")
    assert orders.rows("select count(*) from main.orders where id = 3") == [(1,)]
    assert notes(orders) == {"pk": "enforced"}


def test_rows_of_another_engine_make_the_key_unverified_until_the_next_write(orders: House) -> None:
    log, sink = orders.log("orders"), io.BytesIO()
    pq.write_table(pa.table({"id": [9], "day": pa.nulls(1, pa.date32()), "note": ["z"]}), sink)
    log.store.put("theirs.parquet", sink.getvalue())
    added = AddFile("theirs.parquet", {}, len(sink.getvalue()), log.clock.now_ms())
    put(log, 2, CommitInfo(operation="WRITE", engine_info="other"), added)
    assert notes(orders) == {"pk": "enforced, but unverified since version 2"}
    with pytest.raises(KeyViolationError):
        orders.sql("insert into main.orders values (9, null, 'x')")
    orders.sql("insert into main.orders values (10, null, 'x')")
    assert notes(orders) == {"pk": "enforced"}


def test_a_view_cannot_have_an_enforced_key_and_the_table_below_it_has(orders: House) -> None:
    orders.sql("create view main.seen as select * from main.orders")
    with pytest.raises(SiltError):
        orders.sql("alter table main.seen add constraint k unique (id) enforced")
    with pytest.raises(KeyViolationError):
        orders.sql("insert into main.orders select * from main.seen")
