"""`dbt source freshness`: from metadata alone, where a source has neither field nor query."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from dbt.tests.util import get_artifact, run_dbt_and_capture

SOURCES = """
version: 2
sources:
  - name: landed
    schema: "{{ target.schema }}"
    freshness: {warn_after: {count: 1, period: hour}, error_after: {count: 1, period: day}}
    tables:
      - {name: by_metadata}
      - {name: by_field, loaded_at_field: at}
      - {name: by_query, loaded_at_query: "select max(at) - interval 2 hours from {{ this }}"}
      - {name: seen}
      - {name: nowhere}
"""


class TestFreshness:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"sources.yml": SOURCES}

    def test_only_data_makes_a_source_fresh_and_what_has_no_answer_says_so(self, project: Any) -> None:
        for name in ("by_metadata", "by_field", "by_query"):
            project.run_sql(f"create table {project.test_schema}.{name} as select current_timestamp() as at")
        project.run_sql(f"create view {project.test_schema}.seen as select 1 as id")
        committed = datetime.now(timezone.utc)
        for change in ("set tblproperties ('a' = 'b')", "add columns (note string)"):
            project.run_sql(f"alter table {project.test_schema}.by_metadata {change}")
        project.run_sql(f"optimize {project.test_schema}.by_metadata")
        _, text = run_dbt_and_capture(["source", "freshness"], expect_pass=False)
        found = {each["unique_id"].rpartition(".")[2]: each for each in self._results(project)}
        loaded = datetime.fromisoformat(found["by_metadata"]["max_loaded_at"].replace("Z", "+00:00"))
        assert committed - timedelta(minutes=5) < loaded <= committed
        statuses = {name: each["status"] for name, each in found.items()}
        assert statuses == {"by_metadata": "pass", "by_field": "pass", "by_query": "warn"}
        assert (
            "seen: it is a view, and a view has no time of its last change. Give the source a `loaded_at_field`" in text
        )
        assert "nowhere: there is no such table" in text

    def test_sources_that_have_an_answer_are_asked_for_together(self, project: Any) -> None:
        relation = project.adapter.Relation.create(project.database, project.test_schema, "by_metadata")
        gone = project.adapter.Relation.create(project.database, project.test_schema, "nowhere")
        _, found = project.adapter.calculate_freshness_from_metadata_batch([relation, gone])
        assert found.keys() == {relation}

    @staticmethod
    def _results(project: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = get_artifact(project.project_root, "target", "sources.json")["results"]
        return results
