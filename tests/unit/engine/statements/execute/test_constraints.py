"""Constraints in SQL: CHECK and NOT NULL are enforced for every written row, keys are recorded."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    ColumnNotFoundError,
    InvalidPropertyError,
    InvalidStatementError,
    NotNullViolationError,
    RelationNotFoundError,
    UnsupportedStatementError,
)
from tests.unit.engine.house import House, other_rows

ORDERS = """
create or replace table main.orders (
  id bigint not null primary key,
  customer int references customers (id),
  `the day` date,
  constraint `once a day` unique (customer, `the day`) not enforced,
  constraint to_days foreign key (`THE DAY`) references silt.main.days (day) rely,
  check (id > 0),
  constraint check_1 check (customer is not null)
)
"""
KEYS = {
    "primary_key_1": "PRIMARY KEY (`id`)",
    "foreign_key_1": "FOREIGN KEY (`customer`) REFERENCES `silt`.`main`.`customers` (`id`)",
    "once a day": "UNIQUE (`customer`, `the day`)",
    "to_days": "FOREIGN KEY (`the day`) REFERENCES `silt`.`main`.`days` (`day`)",
}
CHECKS = {"check_2": "CHECK (id > 0)", "check_1": "CHECK (customer is not null)"}


def constraints(house: House, table: str = "main.orders") -> dict[str, str]:
    """Returns the constraints in DESCRIBE TABLE EXTENDED: text by name, with their enforcement."""
    rows = [tuple(row) for row in house.sql(f"describe table extended {table}").collect()]
    at = rows.index(("# Constraints", "", "")) if ("# Constraints", "", "") in rows else len(rows)
    assert {note for _, text, note in rows[at + 1 :] if text.startswith("CHECK")} <= {"enforced"}
    assert {note for _, text, note in rows[at + 1 :] if not text.startswith("CHECK")} <= {"not enforced"}
    return {str(name): str(text) for name, text, _ in rows[at + 1 :]}


def test_keys_are_recorded_and_shown_and_another_reader_reads_the_table(house: House) -> None:
    house.sql(ORDERS)
    assert constraints(house) == KEYS | CHECKS
    house.sql("insert into main.orders values (1, 1, null), (1, 1, null)")
    assert other_rows(house, "orders", "id") == [(1,), (1,)]


def test_show_create_table_creates_the_same_table_again(house: House) -> None:
    house.sql(ORDERS)
    text = house.sql("show create table main.orders").collect()[0][0]
    house.sql("drop table main.orders")
    house.sql(text)
    assert constraints(house) == KEYS | CHECKS


def test_keys_are_added_and_dropped_by_alter_table(house: House) -> None:
    house.sql("create table main.orders (id bigint, day date) ")
    house.sql("alter table main.orders add constraint pk primary key (ID)")
    house.sql("alter table main.orders add unique (day)")
    house.sql("alter table main.orders add foreign key (day) references other_place.days")
    assert constraints(house) == {
        "pk": "PRIMARY KEY (`id`)",
        "unique_1": "UNIQUE (`day`)",
        "foreign_key_1": "FOREIGN KEY (`day`) REFERENCES `other_place`.`days`",
    }
    for text in ("add primary key (day)", "add constraint PK unique (day)", "add constraint Pk check (id > 0)"):
        with pytest.raises(InvalidStatementError, match=r"only one primary key|already"):
            house.sql(f"alter table main.orders {text}")
    house.sql("alter table main.orders drop constraint PK")
    house.sql("alter table main.orders drop constraint if exists pk")
    with pytest.raises(InvalidStatementError, match="the constraint `pk` does not exist"):
        house.sql("alter table main.orders drop constraint pk")
    assert "pk" not in constraints(house)


def test_keys_follow_renamed_and_dropped_columns(house: House) -> None:
    house.sql(ORDERS)
    house.sql("alter table main.orders rename column `the day` to day")
    assert constraints(house)["once a day"] == "UNIQUE (`customer`, `day`)"
    house.sql("alter table main.orders drop column day")
    assert constraints(house).keys() == {"primary_key_1", "foreign_key_1", "check_1", "check_2"}


def test_keys_are_dropped_by_a_replacement_and_kept_by_a_clone_and_a_restore(house: House) -> None:
    house.sql(ORDERS)
    house.sql("create table main.copy shallow clone main.orders")
    house.sql("create or replace table main.orders (id bigint)")
    assert constraints(house) == {}
    assert constraints(house, "main.copy") == KEYS | CHECKS
    house.sql("restore table main.orders to version as of 0")
    assert constraints(house) == KEYS | CHECKS


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ("id int, primary key (gone)", ColumnNotFoundError, "gone"),
        ("id int, foreign key (id) references days enforced", RelationNotFoundError, "days"),
        ("id array<int>, unique (id) enforced", UnsupportedStatementError, "`id` has the type"),
        ("id int primary key, day date primary key", InvalidStatementError, "only one primary key"),
        ("id int, constraint a check (id > 0), constraint A unique (id)", InvalidStatementError, "`A` already"),
        ("id int, foreign key (id) references days (day, month)", InvalidStatementError, "has 1 columns"),
        ("id int, constraint a check (gone > 0)", InvalidStatementError, "`a`, gone > 0, cannot be used"),
        (
            "id int, constraint good check (id > 0), constraint a check (gone > 0)",
            *(InvalidStatementError, "`a`, gone > 0, cannot be used"),
        ),
        ("id int, constraint a check (id + 1)", InvalidStatementError, r"id \+ 1, is of type int, not boolean"),
        ("id int, constraint a expect (gone > 0) on violation drop row", InvalidStatementError, "cannot be used"),
    ],
)
def test_an_invalid_constraint_is_refused_before_anything_is_written(
    house: House, columns: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        house.sql(f"create table main.orders ({columns})")
    assert house.rows("show tables in main") == []


def test_a_key_cannot_be_set_as_a_property(house: House) -> None:
    house.sql("create table main.orders (id bigint primary key)")
    for text in (
        "set tblproperties ('silt.constraints.x' = '{}')",
        "unset tblproperties ('silt.constraints.primary_key_1')",
    ):
        with pytest.raises(InvalidPropertyError):
            house.sql(f"alter table main.orders {text}")


def test_constraints_are_enforced_by_every_statement_that_writes_rows(house: House) -> None:
    house.sql("create table main.orders (id bigint not null, amount int, constraint positive check (amount > 0))")
    house.sql("insert into main.orders values (1, 10)")
    merge = "merge into main.orders as t using (select {row}) as s on t.id = s.id when matched then update set * {more}"
    statements = {
        "insert into main.orders values (2, -1)": CheckViolationError,
        "insert into main.orders values (null, 1)": NotNullViolationError,
        "insert into main.orders values (2, null)": CheckViolationError,
        "insert overwrite main.orders values (2, -1)": CheckViolationError,
        "update main.orders set amount = amount - 10": CheckViolationError,
        "update main.orders set id = null": NotNullViolationError,
        merge.format(row="1L as id, -1 as amount", more=""): CheckViolationError,
        merge.format(row="2L as id, -1 as amount", more="when not matched then insert *"): CheckViolationError,
        merge.format(row="cast(null as bigint) as id, 1 as amount", more="when not matched then insert *"): (
            NotNullViolationError
        ),
        "insert into main.orders replace where id = 1 values (1, -1)": CheckViolationError,
    }
    for text, error in statements.items():
        with pytest.raises(error) as raised:
            house.sql(text)
        told = str(raised.value)
        assert "silt.main.orders" in told and "1 row" in told and '"id":' in told, told
        assert ("`positive`, amount > 0" if error is CheckViolationError else "`id`") in told
    assert house.rows("select * from main.orders") == [(1, 10)]
    assert len(house.rows("describe history main.orders")) == 2
