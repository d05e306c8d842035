"""An enforced foreign key of a table to itself: a row and the row that it references are in one table."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    ForeignKeyViolationError,
    SiltError,
    UnsupportedStatementError,
)
from tests.unit.engine.house import House, side_by_side
from tests.unit.engine.statements.execute.test_enforced_keys import notes

STAFF = (
    "create {how} table main.staff (id bigint, manager bigint, "
    "constraint boss foreign key (manager) references main.staff enforced, primary key (id) enforced)"
)


@pytest.fixture
def staff(house: House) -> House:
    house.sql(STAFF.format(how=""))
    house.sql("insert into main.staff values (1, null), (2, 1), (3, 3)")
    return house


ROWS = [(1, None), (2, 1), (3, 3)]


def rows(house: House) -> list[tuple[object, ...]]:
    return house.rows("select id, manager from main.staff")


@pytest.mark.parametrize(
    "text",
    [
        "insert into main.staff values (4, 9)",
        "insert overwrite main.staff values (4, 1)",
        "update main.staff set manager = 9 where id = 2",
        "update main.staff set id = 7 where id = 1",
        "delete from main.staff where id = 1",
        "merge into main.staff t using (select 1L as id) s on t.id = s.id when matched then delete",
        f"{STAFF.format(how='or replace')} as select 1L, 2L",
        "alter table main.staff drop constraint primary_key_1",
    ],
)
def test_a_statement_that_would_leave_a_row_without_its_row_changes_nothing(staff: House, text: str) -> None:
    with pytest.raises(SiltError, match="`boss`"):
        staff.sql(text)
    assert rows(staff) == ROWS


def test_statements_that_keep_each_referenced_row_are_committed(staff: House) -> None:
    assert notes(staff, "main.staff")["boss"].startswith("enforced")
    staff.sql("insert into main.staff values (5, 4), (4, 5)")
    staff.sql("delete from main.staff where id in (4, 5)")
    staff.sql("update main.staff set manager = 7, id = 7 where id = 3")
    staff.sql("delete from main.staff where id = 7")
    staff.sql(f"{STAFF.format(how='or replace')} as select * from values (8L, null), (9L, 8L)")
    with pytest.raises(ForeignKeyViolationError):
        staff.sql("delete from main.staff where id = 8")
    staff.sql("alter table main.staff drop constraint boss")
    staff.sql("delete from main.staff where id = 8")
    staff.sql("drop table main.staff")


def test_the_key_is_added_after_the_rows_are_checked_and_survives_a_rename_of_its_columns(house: House) -> None:
    house.sql(
        "create table main.staff (id bigint, manager bigint, primary key (id) enforced) "
        "tblproperties ('delta.columnMapping.mode' = 'name')"
    )
    house.sql("insert into main.staff values (1, null), (2, 8)")
    add = "alter table main.staff add constraint boss foreign key (manager) references main.staff enforced"
    with pytest.raises(ForeignKeyViolationError):
        house.sql(add)
    house.sql("update main.staff set manager = 1 where id = 2")
    house.sql(add)
    house.sql("alter table main.staff rename column id to number")
    house.sql("alter table main.staff rename column manager to above")
    with pytest.raises(ForeignKeyViolationError):
        house.sql("delete from main.staff where number = 1")
    with pytest.raises(UnsupportedStatementError, match="cannot be renamed"):
        house.sql("alter table main.staff rename to main.people")


def test_a_transaction_is_checked_when_it_is_committed(staff: House) -> None:
    with staff.warehouse.transaction() as together:
        together.sql("insert into main.staff values (6, 5)")
        together.sql("insert into main.staff values (5, null)")
    with pytest.raises(ForeignKeyViolationError), staff.warehouse.transaction() as together:
        together.sql("delete from main.staff where id = 5")
    assert len(rows(staff)) == 5


def test_a_table_that_is_dropped_and_a_copy_need_no_other_table(staff: House) -> None:
    staff.sql("create table main.copy deep clone main.staff")
    assert notes(staff, "main.copy")["boss"] == "not enforced"
    staff.sql("insert into main.copy values (4, 9)")
    staff.sql("drop table main.staff")
    staff.sql(STAFF.format(how=""))
    assert rows(staff) == []


def test_writers_that_add_and_remove_at_once_leave_no_row_without_its_row(staff: House) -> None:
    def run(house: House, text: str) -> None:
        try:
            house.sql(text)
        except (ForeignKeyViolationError, ConcurrentModificationError):
            return

    hires = [f"insert into main.staff values ({number}, 2)" for number in (10, 11)]
    texts = [*hires, *["delete from main.staff where id = 2"] * 2]
    side_by_side([lambda text=text: run(staff.another(), text) for text in texts])  # type: ignore[misc]
    assert staff.rows("select * from main.staff s left anti join main.staff m on s.manager = m.id") == [(1, None)]
