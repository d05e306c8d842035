"""dbt-tests-adapter: ephemeral."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.util import check_relations_equal, run_dbt


class TestEphemeralMulti(BaseEphemeralMulti):
    def test_ephemeral_multi(self, project: Any) -> None:
        """Deviates only in the expected text, which the suite's test contains in Postgres' form."""
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3

        check_relations_equal(project.adapter, ["seed", "dependent"])
        check_relations_equal(project.adapter, ["seed", "double_dependent"])
        check_relations_equal(project.adapter, ["seed", "super_dependent"])
        assert _compact(Path("target/run/test/models/double_dependent.sql").read_text()) == _compact(
            """
            create or replace view `silt`.`test_test_ephemeral`.`double_dependent` as
            with __dbt__cte__base as (
            select * from test_test_ephemeral.seed
            ),  __dbt__cte__base_copy as (
            select * from __dbt__cte__base
            )-- base_copy just pulls from base. Make sure the listed
            -- graph of CTEs all share the same dbt_cte__base cte
            select * from __dbt__cte__base where gender = 'Male'
            union all
            select * from __dbt__cte__base_copy where gender = 'Female'
            """
        )


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        """Deviates as TestEphemeralMulti does."""
        assert len(run_dbt(["run"])) == 2
        assert _compact(Path("target/run/test/models/root_view.sql").read_text()) == _compact(
            """
            create or replace view `silt`.`test_test_ephemeral`.`root_view` as
            with __dbt__cte__ephemeral_level_two as (
            select * from `silt`.`test_test_ephemeral`.`source_table`
            ),  __dbt__cte__ephemeral as (
            select * from __dbt__cte__ephemeral_level_two
            )select * from __dbt__cte__ephemeral
            """
        )


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


def _compact(sql: str) -> str:
    """As the suite compares: without the digits of the test's schema, and without white space."""
    return "".join(re.sub(r"\d+", "", sql).split())
