"""The error of a statement that fails."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtDatabaseError
from pyspark.sql import SparkSession

from dbt.adapters.silt.connections import SiltConnectionManager


def test_an_error_of_spark_is_shown_without_the_plan_of_the_query(spark: SparkSession) -> None:
    manager = object.__new__(SiltConnectionManager)  # the handler does not use it
    query = "select 1 as a, 2 as b union all select 3"
    with pytest.raises(DbtDatabaseError) as caught, manager.exception_handler(query):
        spark.sql(query)
    assert "NUM_COLUMNS_MISMATCH" in caught.value.msg
    assert caught.value.msg.startswith("[SILT_INVALID_STATEMENT]")
    assert "Project" not in caught.value.msg
    assert "\n" not in caught.value.msg
