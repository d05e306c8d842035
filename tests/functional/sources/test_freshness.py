"""`dbt source freshness`: from metadata alone, if a source has neither field nor query."""

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

    def test_only_changes_of_data_make_a_source_fresh_and_a_source_without_an_answer_is_reported(
        self, project: Any
    ) -> None:
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
        assert "seen: it is a view, and a view has no time of last change. Give the source a `loaded_at_field`" in text
        assert "nowhere: the table does not exist" in text

    def test_sources_with_an_answer_are_requested_together(self, project: Any) -> None:
        relation = project.adapter.Relation.create(project.database, project.test_schema, "by_metadata")
        gone = project.adapter.Relation.create(project.database, project.test_schema, "nowhere")
        _, found = project.adapter.calculate_freshness_from_metadata_batch([relation, gone])
        assert found.keys() == {relation}

    @staticmethod
    def _results(project: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = get_artifact(project.project_root, "target", "sources.json")["results"]
        return results


TYPED = """
version: 2
sources:
  - name: typed
    schema: "{{ target.schema }}"
    freshness: {warn_after: {count: 1, period: hour}}
    tables:
      - {name: of_date, identifier: loads, loaded_at_field: day}
      - {name: of_text, identifier: loads, loaded_at_field: written}
      - {name: of_text_with_zone, identifier: loads, loaded_at_field: "zoned", filter: "day > date'2026-01-01'"}
      - {name: of_text_of_day, identifier: loads, loaded_at_field: "cast(day as string)"}
      - {name: of_query, identifier: loads, loaded_at_query: "select max(written) from {{ this }}"}
      - {name: of_query_of_day, identifier: loads, loaded_at_query: "select max(day) from {{ this }} -- newest"}
      - {name: of_number, identifier: loads, loaded_at_field: id}
      - {name: of_other_text, identifier: loads, loaded_at_field: "date_format(day, 'dd.MM.yyyy')"}
      - {name: of_year, identifier: loads, loaded_at_query: "select '2026'"}
"""


class TestTypesOfLoadedAt:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"sources.yml": TYPED}

    def test_dates_and_strings_are_read_as_times_and_other_types_are_named(self, project: Any) -> None:
        project.run_sql(
            f"create table {project.test_schema}.loads as select * from values"
            " (1L, date'2026-03-01', '2026-03-01 9:30:00', '2026-03-01T09:30:00+01:00'),"
            " (2L, date'2026-03-01', '2026-03-01 10:00:00', '2026-03-01T10:30:00+05:00'),"
            " (3L, null, null, null) as t(id, day, written, zoned)"
        )
        _, text = run_dbt_and_capture(["source", "freshness"], expect_pass=False)
        results = get_artifact(project.project_root, "target", "sources.json")["results"]
        found = {each["unique_id"].rpartition(".")[2]: each.get("max_loaded_at") for each in results}
        assert {name: at[:19] for name, at in found.items() if at} == {
            "of_date": "2026-03-01T00:00:00",
            "of_text": "2026-03-01T10:00:00",
            "of_text_with_zone": "2026-03-01T08:30:00",
            "of_text_of_day": "2026-03-01T00:00:00",
            "of_query": "2026-03-01T09:30:00",
            "of_query_of_day": "2026-03-01T00:00:00",
        }
        plain = " ".join(text.split())
        assert "`loaded_at_field: id` of the source" in plain
        assert "is of type bigint, which is neither a date nor a timestamp" in plain
        assert "is of type string, and has a value that is not a date or timestamp: 01.03.2026. Use" in plain
        assert "what the `loaded_at_query` of the source" in plain and "not a date or timestamp: 2026. Use" in plain
