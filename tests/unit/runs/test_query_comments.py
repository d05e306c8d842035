"""Tags of Spark's jobs."""

from __future__ import annotations

from dbt.adapters.silt.runs.node_context import job_tags


def test_tags_of_jobs_contain_no_comma_or_line_break_and_are_not_empty() -> None:
    texts = ('{"app": "dbt",\n "node": "a"}', "", None, "daily", ",", " ", "daily")
    assert job_tags(texts) == ('{"app": "dbt"; "node": "a"}', "daily", ";")
