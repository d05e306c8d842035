"""Features that an embedded engine cannot provide are refused, or warned about once, with an alternative."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture


class TestMaterializedViews:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"kept.sql": "{{ config(materialized='materialized_view') }} select 1 as id"}

    def test_a_materialized_view_is_refused_with_an_alternative(self, project: Any) -> None:
        for flags in ([], ["--full-refresh"]):
            results = run_dbt(["run", *flags], expect_pass=False)
            assert "materialized views are not supported" in results[0].message
            assert "`materialized: incremental`" in results[0].message
        assert project.get_tables_in_schema() == {}


class TestGrants:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "seen.sql": "select 1 as id",
            "made.sql": "{{ config(materialized='table') }} select 1 as id",
            "grown.sql": "{{ config(materialized='incremental') }} select 1 as id",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"sown.csv": "id\n1\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        granted = {"+grants": {"select": ["somebody"]}}
        return {"models": granted, "seeds": granted}

    def test_a_run_with_grants_warns_once(self, project: Any) -> None:
        for _ in range(2):
            results, log = run_dbt_and_capture(["build"])
            assert len(results) == 4
            assert log.count("silt does not support grants") == 1
        _, log = run_dbt_and_capture(["--warn-error", "run"], expect_pass=False)
        assert "silt does not support grants" in log
