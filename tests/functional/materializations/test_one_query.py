"""The code of a node is one query: a semicolon after it is allowed, several statements and comments alone are not."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

KINDS = ("view", "table", "incremental")


class TestASemicolonAfterTheQuery:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "merged.sql": "{{ config(materialized='incremental', unique_key='id') }} select 1 as id, ';' as sign; --",
            "appended.sql": "{{ config(materialized='incremental') }} select 1 as id;",
            "seen.sql": "select * from {{ ref('merged') }};\n",
            "tests.yml": """
unit_tests:
  - name: one_row
    model: seen
    given: [{input: ref('merged'), rows: [{id: 7}]}]
    expect: {rows: [{id: 7}]}
""",
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        config = "{{ config(unique_key='id', strategy='check', check_cols='all') }}"
        return {"kept.sql": f"{{% snapshot kept %}}{config} select * from {{{{ ref('merged') }}}}; {{% endsnapshot %}}"}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"none_left.sql": "select * from {{ ref('seen') }} where id > 1;"}

    def test_a_node_can_be_built_again_shown_and_tested(self, project: Any) -> None:
        for _ in range(2):
            results = run_dbt(["build"])
            assert len(results) == 6
        assert project.run_sql("select id, sign from merged", fetch="all") == [(1, ";")]
        assert project.run_sql("select count(*) from appended", fetch="one") == (2,)
        run_dbt(["show", "--select", "seen"])


class TestCodeThatIsNotOneQuery:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='KIND') }} "
        texts = {"several": "select 1 as id; select 2 as id", "empty": "-- nothing yet"}
        return {
            f"{name}_{kind}.sql": config.replace("KIND", kind) + text for kind in KINDS for name, text in texts.items()
        }

    def test_it_is_refused_before_anything_is_written(self, project: Any) -> None:
        results = run_dbt(["run"], expect_pass=False)
        for result in results:
            expected = "has 2 statements" if "several" in result.node.name else "contains only comments"
            assert expected in result.message, result.message
        assert len(results) == 2 * len(KINDS)
        assert project.get_tables_in_schema() == {}

    @pytest.mark.usefixtures("unclosed_pool")
    def test_it_is_not_shown(self, project: Any) -> None:
        with pytest.raises(Exception, match="has 2 statements"):
            run_dbt(["show", "--select", "several_view"])
