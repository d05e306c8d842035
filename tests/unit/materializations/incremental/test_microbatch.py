"""The window of a batch as a condition."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.materializations.incremental.microbatch import batch_window


def window(kind: str, event_time: str = "At", size: str = "day", start: Any = None, asked: str = "") -> str:
    begin = datetime(2026, 3, 1, 5, tzinfo=timezone.utc) if start is None else start
    model = {
        "config": {"event_time": event_time, "batch_size": size},
        "batch": {"id": "20260301", "event_time_start": begin, "event_time_end": "2026-03-02T00:00:00+00:00"},
    }
    return batch_window(model, [SiltColumn("at", kind)], lambda text: [SiltColumn("event_time", asked)], "select 1")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("timestamp", "`at` >= timestamp '2026-03-01 05:00:00+00:00' and `at` < timestamp '2026-03-02 00:00:00+00:00'"),
        ("timestamp_ntz", "`at` >= timestamp_ntz '2026-03-01 05:00:00' and `at` < timestamp_ntz '2026-03-02 00:00:00'"),
        ("date", "`at` >= date '2026-03-02' and `at` < date '2026-03-02'"),
    ],
)
def test_the_windows_literals_are_of_the_columns_type_and_in_utc(kind: str, expected: str) -> None:
    assert window(kind) == expected


def test_a_date_is_its_midnight() -> None:
    midnight = datetime(2026, 3, 1, tzinfo=timezone.utc)
    assert window("date", start=midnight) == "`at` >= date '2026-03-01' and `at` < date '2026-03-02'"


def test_a_time_in_another_zone_is_converted_to_utc() -> None:
    assert "timestamp_ntz '2026-02-28 23:00:00'" in window("timestamp_ntz", start="2026-03-01T01:00:00+02:00")


def test_an_expression_without_a_known_type_is_queried_for_its_type() -> None:
    assert window("string", "meta.at", asked="date").startswith("(meta.at) >= date '2026-03-02'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "string"}, "`event_time` names At, which is of type string: cast it to a timestamp or a date"),
        ({"kind": "date", "size": "hour"}, "which is a date: use `batch_size: day`"),
        ({"kind": "date", "event_time": ""}, "needs `event_time`"),
    ],
)
def test_an_invalid_event_time_is_refused(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(CompilationError) as raised:
        window(**arguments)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("event_time", "message"),
    [
        ("tss", "`event_time` names tss, which is not one of the columns id, ts: did you mean `ts`?"),
        ("`tss`", "`event_time` names `tss`, which is not one of the columns id, ts: did you mean `ts`?"),
        (
            "date(tss)",
            "`event_time` is date(tss), which cannot be computed from the columns id, ts: no column `tss`",
        ),
    ],
)
def test_a_misspelt_event_time_is_named_with_the_columns_of_the_query(event_time: str, message: str) -> None:
    def schema_of(text: str) -> list[SiltColumn]:
        if text != "select 1":
            raise DbtDatabaseError("no column `tss`")
        return [SiltColumn("id", "int"), SiltColumn("ts", "timestamp")]

    model = {"config": {"event_time": event_time, "batch_size": "day"}, "batch": {"id": "20260301"}}
    with pytest.raises(CompilationError) as raised:
        batch_window(model, [SiltColumn("id", "int")], schema_of, "select 1")
    assert str(raised.value.msg) == message


def test_a_column_that_the_query_adds_is_a_valid_event_time() -> None:
    assert "(new) >= date" in batch_window(
        {
            "config": {"event_time": "new", "batch_size": "day"},
            "batch": {"event_time_start": "2026-03-01", "event_time_end": "2026-03-02"},
        },
        [SiltColumn("id", "int")],
        lambda text: [SiltColumn("new", "date")],
        "select 1",
    )
