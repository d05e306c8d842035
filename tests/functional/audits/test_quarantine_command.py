"""`silt quarantine` shows the quarantined rows of a model, releases the rows that pass by now, and deletes others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

from dbt.adapters.silt.cli.main import main

ORDERS = """
{{ config(materialized='incremental', audit='before_commit', on_failure='quarantine', max_quarantined=5) }}
select id, name from {{ ref('raw') }}
"""
MODELS = "models: [{name: orders, columns: [{name: name, data_tests: [not_null]}]}]\n"


class TestQuarantineCommand:
    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"raw.csv": "id,name\n1,one\n2,\n3,\n"}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {"orders.sql": ORDERS, "models.yml": MODELS}

    @pytest.fixture(scope="class")
    def built(self, project: Any) -> Any:
        run_dbt(["build", "--vars", "{silt_run_id: monday}"])
        return project

    @pytest.fixture
    def silt(self, built: Any, capfd: pytest.CaptureFixture[str]) -> Any:
        folders = ["--project-dir", str(built.project_root), "--profiles-dir", str(built.profiles_dir)]

        def run(*arguments: str, code: int = 0) -> Any:
            capfd.readouterr()
            assert main(["quarantine", f"{built.test_schema}.orders", *arguments, "--json", *folders]) == code
            said = capfd.readouterr()
            return said.err if code else json.loads(said.out)

        return run

    def test_rows_are_shown_with_their_tests_and_their_run(self, silt: Any) -> None:
        found = silt("--limit", "1")
        assert found["rows"] == 2
        assert found["tests"] == [{"name": "not_null_orders_name", "rows": 2}]
        (write,) = found["writes"]
        assert (write["run_id"], write["node"], write["rows"]) == ("monday", "model.test.orders", 2)
        assert [each["name"] for each in found["sample"]] == [None]
        assert silt("--where", "id = 3")["rows"] == 1
        assert silt("--older-than", "1 day")["rows"] == 0

    def test_rows_that_pass_the_tests_of_today_are_released_and_old_rows_are_deleted(
        self, built: Any, silt: Any
    ) -> None:
        found = silt("--release")
        assert (found["released"], found["kept"], found["failing"]) == (0, 2, {"not_null_orders_name": 2})
        write_file(MODELS.replace("not_null", "unique"), built.project_root, "models", "models.yml")
        assert silt("--release", "--where", "id = 3")["released"] == 1
        rows = built.run_sql("select id, name from {schema}.orders order by id", fetch="all")
        assert rows == [(1, "one"), (3, None)]
        assert "all rows of the quarantine would be deleted" in silt("--delete", code=2)
        assert silt("--delete", "--older-than", "0 minutes")["rows_deleted"] == 1
        assert silt()["rows"] == 0
