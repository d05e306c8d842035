"""Days that the Julian calendar skips, and instants before standard time, are found in every way to query."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from tests.unit.engine.doors import by_arrow, by_shell, by_sql
from tests.unit.engine.house import House

DAYS = [date(1582, 10, day) for day in range(4, 17)]
INSTANTS = [datetime(1883, 11, 18, 19, tzinfo=timezone.utc) + timedelta(minutes=7 * at) for at in range(-6, 7)]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<=>": lambda a, b: a == b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.fixture
def old(house: House) -> House:
    """Each row is in a separate file, which the bounds in its footer may exclude."""
    house.sql("create table t (id int, d date, at timestamp, s struct<d: date>) partitioned by (id)")
    rows = (
        f"({at}, date'{day}', timestamp'{moment:%F %T}Z', named_struct('d', date'{day}'))"
        for at, (day, moment) in enumerate(zip(DAYS, INSTANTS, strict=True))
    )
    house.sql(f"insert into t values {', '.join(rows)}")
    return house


@pytest.mark.connect
@pytest.mark.parametrize("column", ["d", "s.d", "at"])
def test_old_values_are_found(old: House, column: str) -> None:
    values: list[Any] = INSTANTS if column == "at" else DAYS
    texts = [f"timestamp'{value:%F %T}Z'" if column == "at" else f"date'{value}'" for value in values]
    wanted = {
        f"{column} {operator} {text}": [at for at, each in enumerate(values) if holds(each, value)]
        for operator, holds in OPERATORS.items()
        for value, text in zip(values, texts, strict=True)
    }
    assert dict(zip(wanted, by_sql(old, "t", list(wanted)), strict=True)) == wanted
    for text, ids in wanted.items():
        assert by_arrow(old, "t", text) in (ids, None) and by_shell(old, "t", text) in (ids, None), text


def test_old_rows_are_deleted_and_updated(old: House) -> None:
    old.sql("update t set at = null where d >= date'1582-10-10' and d <= date'1582-10-14'")
    old.sql("delete from t where at is null or d = date'1582-10-06'")
    assert sorted(row.id for row in old.fetched("select id from t")) == [0, 1, 3, 4, 5, 11, 12]


def test_a_session_with_the_legacy_calendar_is_refused(house: House) -> None:
    with pytest.raises(InvalidSettingError, match=r"java8API\.enabled` cannot be `false`"):
        house.sql("set spark.sql.datetime.java8API.enabled = false")
