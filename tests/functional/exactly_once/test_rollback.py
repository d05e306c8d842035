"""A run of every kind of node is rolled back, by command and as an operation, and can be repeated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from deltalake import DeltaTable

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind
from tests.cloud.servers import ObjectServer

MODELS = {
    "events.sql": """
{{ config(materialized='table', event_time='at') }}
select id, id % 4 as part, {{ var('round', 1) }} as round,
       timestamp '2024-01-01 00:00:00' + make_interval(0, 0, 0, id % 3) as at
from range({{ (var('round', 1) | int) * 6 - 6 }}, {{ (var('round', 1) | int) * 6 + 6 }})
""",
    "as_append.sql": """
{{ config(
    materialized='incremental', incremental_strategy='append',
    pre_hook="insert into {{ ref('kept') }} select -{{ var('round', 1) }}",
    post_hook=["insert into {{ this }} select -1L, -1, 0, null", "{{ silt_optimize(this) }}"],
) }}
select * from {{ ref('events') }}
-- depends_on: {{ ref('kept') }}
""",
    "as_merge.sql": """
{{ config(materialized='incremental', unique_key='id', on_schema_change='append_new_columns') }}
select * {{ ", 'new' as note" if var('round', 1) | int > 1 }} from {{ ref('events') }}
""",
    "as_delete_insert.sql": """
{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='part') }}
select * from {{ ref('events') }} where part > {{ var('round', 1) }}
""",
    "as_insert_overwrite.sql": """
{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='part') }}
select * from {{ ref('events') }} where part <> {{ var('round', 1) }}
""",
    "as_microbatch.sql": """
{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2024-01-01'
) }}
select * from {{ ref('events') }}
""",
    "replaced.sql": """
{{ config(materialized='table', partition_by='part' if var('round', 1) | int == 1 else 'round',
          tblproperties={'round': var('round', 1)}, schema='other') }}
select part, round, count(*) as {{ 'rows' if var('round', 1) | int == 1 else 'number' }}
from {{ ref('events') }} group by all
""",
    "kept.sql": "{{ config(materialized='incremental', database='archive') }} select cast(0 as int) as id limit 0",
    "made.sql": """
{{ config(materialized='incremental', enabled=var('round', 1) | int > 1) }} select * from {{ ref('events') }}
""",
    "as_view.sql": "{{ config(materialized='view') }} select * from {{ ref('as_append') }}",
}
SNAPSHOT = """
{% snapshot history %}
{{ config(target_schema=schema, unique_key='id', strategy='timestamp', updated_at='at', hard_deletes='invalidate') }}
select id, round, at + make_interval(0, 0, 0, 10 * round) as at from {{ ref('events') }}
{% endsnapshot %}
"""
HOOKS = {
    "on-run-start": "create table if not exists {{ target.schema }}.audit (what string)",
    "on-run-end": "insert into {{ target.schema }}.audit values ('round {{ var('round', 1) }}')",
}
WINDOW = ["--event-time-start", "2024-01-01", "--event-time-end", "2024-01-03"]
CLOCK_COLUMNS = ("dbt_valid_to",)
"""The time in a snapshot's deleted row, which comes from the clock."""


def build(run_id: str, round_: int, *arguments: str, command: str = "build") -> Any:
    variables = json.dumps({"silt_run_id": run_id, "round": round_})
    return run_dbt([command, *(WINDOW if command in ("build", "run") else ()), "--vars", variables, *arguments])


def operation(expect_pass: bool = True, **arguments: Any) -> str:
    command = ["run-operation", "silt_rollback", "--args", json.dumps(arguments)]
    return str(run_dbt_and_capture(command, expect_pass=expect_pass)[1])


class TestRollback:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
        return {**silt_target, "databases": {"archive": str(tmp_path_factory.mktemp("archive"))}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"colours.csv": "id,name\n1,red\n2,green\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {**HOOKS, "seeds": {"full_refresh": True}}

    @pytest.fixture(autouse=True)
    def other_engine(self, cloud: ObjectServer | None) -> None:
        self.options = None if cloud is None else dict(cloud.delta_rs)

    def opened(self, location: str) -> DeltaTable:
        return DeltaTable(location, storage_options=self.options if "://" in location else None)

    def tables(self, project: Any) -> dict[str, DeltaTable]:
        """Returns all tables of all databases, as another engine opens them."""
        catalog = project.adapter.connections.catalog
        schemas = [(database, schema) for database in ("silt", "archive") for schema in catalog.schemas(database)]
        found = [each for names in schemas for each in catalog.relations(*names) if each.kind is RelationKind.TABLE]
        locations = {each.name.identifier: catalog.table(each.name).store.root for each in found}
        return {name: self.opened(location) for name, location in locations.items()}

    def state(self, project: Any) -> dict[str, Any]:
        """Returns the rows of every table, its columns, partitions, properties and comment: the state that a rerun
        must restore.
        """
        found = {}
        for name, table in self.tables(project).items():
            rows = table.to_pyarrow_table().to_pylist()
            shown = [{k: v is not None if k in CLOCK_COLUMNS else v for k, v in row.items()} for row in rows]
            metadata = table.metadata()
            found[name] = (
                sorted(json.dumps(row, default=str, sort_keys=True) for row in shown),
                [(field.name, str(field.type)) for field in table.schema().fields],
                (metadata.partition_columns, metadata.configuration, metadata.description),
            )
        return found

    def silt(self, project: Any, *arguments: str) -> int:
        return main(
            [*arguments, "--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        )

    def test_a_run_is_undone_in_every_table_and_can_be_repeated(self, project: Any, capsys: Any) -> None:
        build("R1", 1)
        first = self.state(project)
        build("R2", 2, "--select", "events", command="run")
        build("R2", 2)
        second = self.state(project)
        changed = {name for name in first if first[name] != second[name]}
        assert changed == set(first) - {"colours"}, "run R2 changes whatever there was, but for a seed of the same rows"

        capsys.readouterr()
        assert self.silt(project, "rollback", "R2", "--json") == 0
        done = json.loads(capsys.readouterr().out)
        back = {each["table"].split(".")[-1]: each["rows"] for each in done["tables"]}
        assert changed <= set(back)
        assert back["events"] == len(first["events"][0])
        assert [name.split(".")[-1] for name in done["kept"]] == ["made"]
        assert {name: state for name, state in self.state(project).items() if name != "made"} == first

        # Created tables keep their unit of work and their rows; all other work is repeated.
        build("R2", 2)
        assert self.state(project) == second

        self._check_operation(project, first, second)

    def _check_operation(self, project: Any, first: dict[str, Any], second: dict[str, Any]) -> None:
        build("R3", 3, "--select", "as_merge", command="run")
        later = self.state(project)
        refused = operation(expect_pass=False, run_id="R2", drop_created=True)
        assert "other writers have changed 2 tables after it" in refused
        assert ".as_merge@v" in refused and "MERGE by run R3 (model.test.as_merge)" in refused
        assert ".audit@v" in refused and "WRITE by run R3 (operation.test.test-on-run-end-0)" in refused
        assert self.state(project) == later

        assert "would be rolled back" in operation(run_id="R3", dry_run=True)
        assert self.state(project) == later
        assert "run R3: rolled back" in operation(run_id="R3")
        assert self.state(project) == second

        shown = operation(run_id="R2", drop_created=True)
        assert "Created by the run, and dropped:" in shown
        assert self.state(project) == first
        assert "nothing to roll back" in operation(run_id="R2", drop_created=True)
