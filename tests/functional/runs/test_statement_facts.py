"""Facts about a statement apart from its text: the query comment and the node, in commits and in Spark's jobs."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.records.commit_facts import CommitFacts

COMMENT = "of {{ node.name if node else 'no node' }}, in {{ invocation_id }} /* not closed"

TAGGED = """
from pyspark import TaskContext
from pyspark.sql.functions import udf

def model(dbt, session):
    dbt.config(materialized="table")
    tags = udf(lambda: TaskContext.get().getLocalProperty("spark.job.tags"))
    return session.range(1).select(tags().alias("tags"))
"""


class TestQueryComments:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "query-comment": {"comment": COMMENT, "append": True},
            "on-run-start": ["create table if not exists {{ target.schema }}.noted (id int, word string)"],
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        into = "insert into {{ target.schema }}.noted values"
        hook = f"{into} (1, ';'); -- and\\n{into} (2, null);"
        return {
            "made.sql": f'{{{{ config(materialized="table", post_hook="{hook}") }}}} select 1 as id -- the end',
            "tagged.py": TAGGED,
            "schema.yml": "models: [{name: tagged, config: {tags: [daily, 'a, b'], query_tag: nightly}}]",
        }

    def test_the_query_comment_is_in_each_commit_and_does_not_affect_the_recognition_of_a_rerun(
        self, project: Any
    ) -> None:
        for _ in range(2):
            run_dbt(["run", "--select", "made", "--vars", "silt_run_id: R1"])
        assert project.run_sql("select * from {schema}.noted order by id", fetch="all") == [(1, ";"), (2, None)]
        for table in ("made", "noted"):
            comment, *_ = self._comments(project, table)
            assert comment.startswith("of made, in ") and comment.endswith("/* not closed")

    def test_the_jobs_of_a_node_are_tagged_with_the_node_its_tags_and_the_comment(self, project: Any) -> None:
        run_dbt(["run", "--select", "tagged"])
        [(tags,)] = project.run_sql("select tags from {schema}.tagged", fetch="all")
        for tag in ("model.test.tagged", "daily", "a; b", "nightly", "of tagged; in "):
            assert tag in tags

    def _comments(self, project: Any, table: str) -> list[str]:
        name = RelationName(project.database, project.test_schema, table)
        log = project.adapter.connections.catalog.table(name)
        return [CommitFacts.of(commit).query_comment for commit in log.newest_commits()]  # type: ignore[misc, union-attr]
