"""A definition that changes with the columns: clustering and constraints name a column that the query has gained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by

STRATEGIES = {
    "as_append": "incremental_strategy='append'",
    "as_merge": "incremental_strategy='merge', unique_key='id'",
    "as_partial_merge": "incremental_strategy='merge', unique_key='id', merge_update_columns=['amount']",
    "as_delete_insert": "incremental_strategy='delete+insert', unique_key='id'",
    "as_batches": "incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2026-01-01'",
}
FIRST, SECOND = "select 1 as id, 2 as amount, 'o' as old", "select 2 as id, 2 as amount, 'e' as extra"
FIELDS = "select {} as id, named_struct('x', 1{}) as s"
AT = ", timestamp'2026-01-01 12:00:00' as at"
ONE_DAY = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02"]
SNAPSHOT = """
snapshots:
  - name: as_snapshot
    relation: ref('source')
    config: {{unique_key: id, strategy: check, check_cols: [id], liquid_clustered_by: [{}]}}
"""
CONTRACT = """
models:
  - name: with_contract
    config: {{contract: {{enforced: true}}, enforced_keys: true}}
    constraints: [{}]
    columns:
      - {{name: id, data_type: int}}
"""


def write(folder: Path, query: str, clustered_by: str, on_schema_change: str) -> None:
    configs = f"on_schema_change='{on_schema_change}', liquid_clustered_by={clustered_by}"
    for name, strategy in STRATEGIES.items():
        model = f"{{{{ config(materialized='incremental', {strategy}, {configs}) }}}}\n{query}{AT}\n"
        (folder / f"{name}.sql").write_text(model)


def clustering(project: Any, name: str) -> list[str]:
    place = RelationName(project.database, project.test_schema, name)
    snapshot = project.adapter.connections.catalog.table(place).snapshot()
    return clustered_by(snapshot.schema, snapshot.domains)


class TestDefinitionOfNewColumns:
    @pytest.mark.parametrize(
        ("on_schema_change", "first", "then"),
        [
            ("append_new_columns", "['id']", ["extra", "id"]),
            ("sync_all_columns", "['old', 'id']", ["extra"]),
        ],
    )
    def test_a_table_is_clustered_by_a_column_that_its_query_has_gained(
        self, project: Any, on_schema_change: str, first: str, then: list[str]
    ) -> None:
        models = Path(project.project_root) / "models"
        write(models, FIRST, first, on_schema_change)
        run_dbt(["run", "--full-refresh", *ONE_DAY])
        write(models, SECOND, repr(then), on_schema_change)
        run_dbt(["run", *ONE_DAY])
        assert {name: clustering(project, name) for name in STRATEGIES} == dict.fromkeys(STRATEGIES, then)

    def test_a_column_by_which_the_table_stays_clustered_is_not_dropped(self, project: Any) -> None:
        model = "{{{{ config(materialized='incremental', on_schema_change='sync_all_columns'{}) }}}}\n{}\n"
        path = Path(project.project_root) / "models" / "kept.sql"
        path.write_text(model.format(", liquid_clustered_by='old'", FIRST))
        run_dbt(["run", "--select", "kept"])
        path.write_text(model.format("", SECOND))
        _, said = run_dbt_and_capture(["run", "--select", "kept"], expect_pass=False)
        assert "the table is clustered by it" in said

    def test_a_table_is_clustered_by_a_field_that_a_struct_has_gained(self, project: Any) -> None:
        model = (
            "{{{{ config(materialized='incremental', on_schema_change='append_new_columns', cluster_by={}) }}}}\n{}\n"
        )
        path = Path(project.project_root) / "models" / "fields.sql"
        path.write_text(model.format(["s.x"], FIELDS.format(1, "")))
        run_dbt(["run", "--select", "fields"])
        path.write_text(model.format(["s.y", "id"], FIELDS.format(2, ", 'y', 2")))
        run_dbt(["run", "--select", "fields"])
        assert clustering(project, "fields") == ["s.y", "id"]

    def test_a_snapshot_is_clustered_by_a_column_that_its_query_has_gained(self, project: Any) -> None:
        root = Path(project.project_root)
        for query, columns in ((FIRST, "id"), (SECOND, "extra")):
            (root / "models" / "source.sql").write_text(query)
            (root / "snapshots").mkdir(exist_ok=True)
            (root / "snapshots" / "s.yml").write_text(SNAPSHOT.format(columns))
            run_dbt(["build", "--select", "source", "as_snapshot"])
        assert clustering(project, "as_snapshot") == ["extra"]

    @pytest.mark.parametrize(
        ("constraint", "good", "bad"),
        [
            ("{type: check, name: law, expression: \"extra is null or extra <> ''\"}", "e", ""),
            ("{type: unique, name: law, columns: [extra]}", "e", "e"),
        ],
    )
    def test_a_constraint_on_a_new_column_holds_from_the_first_write_on(
        self, project: Any, constraint: str, good: str, bad: str
    ) -> None:
        models = Path(project.project_root) / "models"
        config = "{{ config(materialized='incremental', on_schema_change='append_new_columns') }}\n"
        (models / "with_contract.sql").write_text(f"{config}select 1 as id\n")
        (models / "with_contract.yml").write_text(CONTRACT.format(""))
        run_dbt(["run", "--full-refresh", "--select", "with_contract"])
        column = "      - {name: extra, data_type: string}\n"
        (models / "with_contract.yml").write_text(CONTRACT.format(constraint) + column)
        rows = f"select 2 as id, '{good}' as extra union all select 3, '{bad}'"
        (models / "with_contract.sql").write_text(f"{config}{rows}\n")
        _, said = run_dbt_and_capture(["run", "--select", "with_contract"], expect_pass=False)
        assert "law" in said
        (models / "with_contract.sql").write_text(f"{config}select 2 as id, '{good}' as extra\n")
        run_dbt(["run", "--select", "with_contract"])
