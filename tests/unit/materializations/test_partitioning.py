"""`partition_by` in the forms of other adapters: columns, expressions and refused forms."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.partitioning import partitioning


@pytest.mark.parametrize(
    ("config", "columns"),
    [
        (None, ()),
        ("", ()),
        ({}, ()),
        ("day", ("day",)),
        (["day", "two words"], ("day", "two words")),
        ("year, `month`", ("year", "month")),
        ({"field": "day"}, ("day",)),
        ({"field": "day", "data_type": "DATE", "granularity": "DAY", "copy_partitions": True}, ("day",)),
    ],
)
def test_columns_are_partitions_of_the_table_and_keys(config: Any, columns: tuple[str, ...]) -> None:
    found = partitioning(config)
    assert (found.columns, found.replaced_by(), found.left_out) == (columns, columns, ())


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"field": "at", "data_type": "timestamp"}, "date_trunc('day', `at`)"),
        ({"field": "at", "data_type": "datetime", "granularity": "hour"}, "date_trunc('hour', `at`)"),
        ({"field": "day", "granularity": "MONTH"}, "date_trunc('month', `day`)"),
        (["month(at)"], "date_trunc('month', `at`)"),
        ("days( `at` )", "date_trunc('day', `at`)"),
        ("date_trunc('week', at)", "date_trunc('week', at)"),
        (
            {"field": "n", "data_type": "int64", "range": {"start": 0, "end": 10, "interval": 5}},
            "if(`n` >= 0 and `n` < 10, floor((`n` - 0) / 5), `n` * 0 - 1)",
        ),
    ],
)
def test_an_expression_is_a_key_of_insert_overwrite_and_not_a_partition_column(config: Any, key: str) -> None:
    found = partitioning(config)
    assert (found.columns, found.replaced_by(), len(found.left_out)) == ((), (key,), 1)


@pytest.mark.parametrize(
    "config",
    [
        {"granularity": "day"},
        {"field": "at", "time_ingestion_partitioning": True},
        {"field": "n", "data_type": "int64"},
        {"field": "n", "data_type": "int64", "range": {"start": "a"}},
        ["day", "bucket(16, id)"],
        [7.5, {"field": "at", "granularity": "minute", "data_type": "timestamp"}],
    ],
)
def test_a_form_without_an_expression_is_omitted_for_tables_and_refused_for_insert_overwrite(config: Any) -> None:
    found = partitioning(config)
    assert found.left_out
    with pytest.raises(CompilationError, match="cannot determine the partitions"):
        found.replaced_by()
