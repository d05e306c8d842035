"""A microbatch model that rewrites its batches with the same rows builds nothing below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

HEAD = "{{ config(materialized='table') }} "
LANDED = "select id, timestamp_micros(1772323200000000 + id * 43200000000) as at from range(8)"
BATCHED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
          begin='2026-03-01', lookback=2) }}
select id, at from {{ ref('events') }}
"""


class TestBatchesWithTheSameRows:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        return {"models": {"+reuse": "unchanged"}}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {
            "events.sql": HEAD.replace(") }}", ", event_time='at') }}") + "select id, at from {{ this.schema }}.landed",
            "batched.sql": BATCHED,
            "below.sql": HEAD + "select count(*) as n, max(id) as m from {{ ref('batched') }}",
        }

    def run(self) -> tuple[Mapping[str, str], str]:
        """Runs the project, and returns the message of each node, and the output."""
        with patch_microbatch_end_time("2026-03-04 13:57:00"):
            results, output = run_dbt_and_capture(["run"])
        return {each.node.name: str(each.message) for each in results.results}, str(output)

    @staticmethod
    def changes(project: Any) -> list[bool]:
        """Whether each commit of the model has changed rows, the newest first."""
        name = RelationName(project.database, project.test_schema, "batched")
        return [each.changes_rows for each in project.adapter.connections.catalog.table(name).newest_commits()]

    def test_the_same_rows_build_nothing_below(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.landed as {LANDED}")
        self.run()
        commits = self.changes(project)
        messages, output = self.run()
        written = len(self.changes(project)) - len(commits)
        assert written == 3, "a day and two days before it"
        assert self.changes(project)[:written] == [False] * written
        assert "its compiled code or its configs changed" not in output
        assert messages["events"].startswith("reused") and messages["below"].startswith("reused")

        project.run_sql(f"update {project.test_schema}.landed set id = 70 where id = 7")
        self.run()
        assert self.changes(project)[:written].count(True) == 1, "only the batch whose rows differ is replaced"
        found = project.run_sql(f"select n, m from {project.test_schema}.below", fetch="one")
        assert tuple(found) == (8, 70)
