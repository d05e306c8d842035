"""Incremental models whose key is a `char` find the rows that they have written, without blanks in their query."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

MODEL = (
    "{{{{ config(materialized='incremental', {config}) }}}}"
    " select * from values ('a', 2), ('b  ', 3), (cast(null as string), 4) as t (c, n)"
)
CONFIGS = {
    "merged": "unique_key='c'",
    "replaced": "unique_key='c', incremental_strategy='delete+insert'",
    "overwritten": "partition_by='c', incremental_strategy='insert_overwrite'",
}


class TestCharKeys:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {f"{name}.sql": MODEL.format(config=config) for name, config in CONFIGS.items()}

    def test_a_row_is_found_by_its_key(self, project: Any) -> None:
        for name in CONFIGS:
            partitioned = "partitioned by (c)" if name == "overwritten" else ""
            project.run_sql(f"create table {{schema}}.{name} (c char(3), n int) {partitioned}")
            project.run_sql(f"insert into {{schema}}.{name} values ('a', 1), ('d', 0), (null, 1)")
        for _ in range(2):
            assert len(run_dbt(["run"])) == len(CONFIGS)
            for name in CONFIGS:
                found = project.run_sql(f"select c, n from {{schema}}.{name} order by n", fetch="all")
                assert [tuple(row) for row in found] == [("d  ", 0), ("a  ", 2), ("b  ", 3), (None, 4)], name
