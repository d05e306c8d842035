"""A `table` model with `write: differences`: the rows of a full build, written one by one."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

SEED = "id,name\n1,a\n2,b\n3,c\n"
ORDERS = """
{{ config(materialized='table', write='differences', unique_key='id', reuse='unchanged', partition_by='kind',
          tblproperties={'delta.enableDeletionVectors': 'true', 'delta.enableChangeDataFeed': 'true'}) }}
select id, name, id % 2 as kind from {{ ref('raw') }}
"""
BELOW = "{{ config(materialized='table', reuse='unchanged') }} select count(*) as n from {{ ref('orders') }}"
SCHEMA = """
models:
  - name: orders
    description: Orders
    config: {contract: {enforced: true}, persist_docs: {relation: true, columns: true}}
    columns:
      - {name: id, data_type: bigint, description: the key, constraints: [{type: not_null}]}
      - {name: name, data_type: string}
      - {name: kind, data_type: bigint}
"""


class TestWritingDifferences:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"raw.csv": SEED}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "below.sql": BELOW, "schema.yml": SCHEMA}

    def test_a_rebuild_writes_only_the_rows_that_differ(self, project: Any) -> None:
        assert self.built("build") == {"orders": "v0: 3 inserted", "below": "v0: 1 inserted"}
        project.run_sql(f"insert into {project.test_schema}.raw values (4, 'd')")
        project.run_sql(f"delete from {project.test_schema}.raw where id = 1")
        found = self.built("run")
        assert found["orders"] == "v1: 1 inserted, 1 deleted"
        assert self.rows(project) == [(2, "b", 0), (3, "c", 1), (4, "d", 0)]
        project.run_sql(f"update {project.test_schema}.raw set name = 'B' where id = 2")
        project.run_sql(f"update {project.test_schema}.raw set name = 'b' where id = 2")
        found = self.built("run")
        assert found["orders"] == "v2: the same rows as before"
        assert found["below"].startswith("reused: unchanged since")
        project.run_sql(f"update {project.test_schema}.raw set name = 'B' where id = 2")
        assert self.built("run", "--full-refresh")["orders"] == "v3: 3 inserted"

    def built(self, *command: str) -> dict[str, str]:
        results = [each for each in run_dbt(list(command)) if each.node.resource_type == "model"]
        return {
            each.node.name: str(each.adapter_response["_message"]).split(" in ")[0].split(";")[0] for each in results
        }

    def rows(self, project: Any) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, project.run_sql(f"select * from {project.test_schema}.orders", fetch="all")))


class TestPublishedDifferences:
    """In each publish mode, readers see the same changes: the rows that differ, in one version."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"raw.csv": SEED}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        below = BELOW.replace("as n", "as n, max(name) as name")
        return {"orders.sql": ORDERS.replace("reuse='unchanged', ", ""), "below.sql": below}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"bounded.sql": "select * from {{ ref('orders') }} where id > {{ var('most', 100) }}"}

    @pytest.mark.parametrize("mode", ["at_once", "after_run", "after_tests"])
    def test_the_rows_that_differ_are_published(self, project: Any, mode: str) -> None:
        chosen = f"silt_publish: {mode}"
        run_dbt(["build", "--full-refresh"])
        before = self.version(project)
        project.run_sql(f"update {project.test_schema}.raw set name = 'C' where id = 3")
        project.run_sql(f"insert into {project.test_schema}.raw values (200, 'z')")
        found = run_dbt(["build", "--exclude", "raw", "--vars", f"{{{chosen}}}"], expect_pass=False)
        assert {each.node.name: str(each.status) for each in found.results}["bounded"] == "fail"
        expected = before if mode == "after_tests" else before + 1
        assert self.version(project) == expected, "after a failed test, only `after_tests` holds the changes back"

        run_dbt(["build", "--exclude", "raw", "--vars", f"{{{chosen}, most: 1000, silt_run_id: {mode}}}"])
        assert self.version(project) == expected + 1, "a second run of the same rows commits no change"
        assert self.changes(project, before) == [
            (3, "C", "update_postimage"),
            (3, "c", "update_preimage"),
            (200, "z", "insert"),
        ]
        rows = project.run_sql(f"select n, name from {project.test_schema}.below", fetch="all")
        assert list(map(tuple, rows)) == [(4, "z")]

    @staticmethod
    def version(project: Any) -> int:
        name = RelationName(project.database, project.test_schema, "orders")
        return int(project.adapter.connections.catalog.table(name).snapshot().version)

    @staticmethod
    def changes(project: Any, after: int) -> list[tuple[Any, ...]]:
        call = f"silt_changes('{project.test_schema}.orders', after => {after})"
        return sorted(map(tuple, project.run_sql(f"select id, name, _change_type from {call}", fetch="all")))
