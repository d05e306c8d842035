"""Properties and constraints that a project changes reach the table of an incremental model, and of a snapshot."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from dbt.tests.util import run_dbt, write_file

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot

GROWN = """
{{ config(materialized='incremental', on_schema_change='append_new_columns', contract={'enforced': true},
          tblproperties={'team': var('team', 'sales')}) }}
select cast({{ var('id', 1) }} as bigint) as id, cast({{ var('name', "'a'") }} as string) as name
{%- if var('wide', false) %}, 1 as size {%- endif %}
"""
CONTRACT = """
models:
  - name: grown
    constraints:
      - {{type: check, expression: "id < {limit}"}}
      - {{type: check, {named_check}}}
    columns:
      - {{name: id, data_type: bigint, constraints: [{{type: not_null}}]}}
      - {{name: name, data_type: string{of_name}}}
{more}
"""


def contract(limit: int = 10, named: bool = False, wide: bool = False) -> str:
    return CONTRACT.format(
        limit=limit,
        named_check="name: wide, expression: size is null or size > 0" if wide else "name: narrow, expression: id > 0",
        of_name=", constraints: [{type: not_null}]" if named else "",
        more="      - {name: size, data_type: int}" if wide else "",
    )


KEPT = (
    "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols='all', target_schema=schema, "
    "tblproperties={'team': var('team', 'sales')}) }} select 1 as id {% endsnapshot %}"
)
LEFT = (
    "{{ config(materialized='incremental', incremental_apply_config_changes=false, "
    "tblproperties={'team': var('team', 'sales')}) }} select 1 as id"
)


def table(project: Any, name: str) -> Snapshot:
    place = RelationName(project.database, project.test_schema, name)
    return project.adapter.connections.catalog.table(place).snapshot()


def changed(project: Any, text: str) -> None:
    write_file(text, project.project_root, "models", "schema.yml")


class TestChangesOfTheDefinition:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"grown.sql": GROWN, "left.sql": LEFT, "schema.yml": contract()}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": KEPT}

    def test_what_did_not_change_makes_no_commit(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["build"])
        assert {name: table(project, name).version for name in ("grown", "left", "kept")} == {
            "grown": 1,
            "left": 1,
            "kept": 1,
        }

    def test_changed_properties_and_constraints_are_set_before_the_write(self, project: Any) -> None:
        changed(project, contract(limit=20, named=True))
        run_dbt(["build", "--vars", "{team: research, id: 15}"])
        grown = table(project, "grown")
        assert grown.properties.constraints == {"check_1": "id < 20", "narrow": "id > 0"}
        assert [each.nullable for each in grown.schema] == [False, False]
        teams = {name: table(project, name).metadata.configuration["team"] for name in ("grown", "left", "kept")}
        assert teams == {"grown": "research", "left": "sales", "kept": "research"}

    def test_a_constraint_that_the_rows_break_fails_the_model_and_its_rows_stay(self, project: Any) -> None:
        before = table(project, "grown").version
        changed(project, contract(limit=10, named=True))
        [result] = run_dbt(["run", "--select", "grown", "--vars", "{team: research}"], expect_pass=False)
        assert "SILT_CHECK_VIOLATION" in result.message
        found = project.run_sql(f"select count(*) from {project.test_schema}.grown", fetch="one")
        assert found[0] == 3 and table(project, "grown").version - before <= 1

    def test_a_check_on_a_new_column_comes_with_the_run_that_adds_the_column(self, project: Any) -> None:
        changed(project, contract(limit=20, named=True, wide=True))
        run_dbt(["run", "--select", "grown", "--vars", "{team: research, wide: true}"])
        assert table(project, "grown").properties.constraints["wide"] == "size is null or size > 0"


class TestNamesInAContract:
    KINDS: ClassVar = {
        "as_table": "materialized='table'",
        "as_view": "materialized='view'",
        "as_incremental": "materialized='incremental', unique_key='Größe', on_schema_change='append_new_columns'",
    }
    QUERY = "select 1 as `Größe`, 'x' as `a.b`, 2 as `select`, 3 as `b``t`"
    COLUMNS = "{name: Größe, data_type: int}, {name: a.b, data_type: string}, {name: select, data_type: int}"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        columns = f"[{self.COLUMNS}, {{name: 'b`t', data_type: int, constraints: [{{type: not_null}}]}}]"
        described = "".join(
            f"\n  - name: {name}\n    config: {{contract: {{enforced: true}}}}\n    columns: {columns}"
            for name in self.KINDS
        )
        texts = {f"{name}.sql": f"{{{{ config({config}) }}}} {self.QUERY}" for name, config in self.KINDS.items()}
        return {**texts, "schema.yml": f"models:{described}\n"}

    def test_may_be_any_that_a_column_may_have(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run"])
        for name in self.KINDS:
            found = project.run_sql(f"select * from {project.test_schema}.{name}", fetch="all")
            assert [tuple(row) for row in found] == [(1, "x", 2, 3)]
