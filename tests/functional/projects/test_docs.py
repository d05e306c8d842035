"""`dbt docs generate`: every kind of relation with its statistics; a damaged relation hides no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import get_artifact, get_connection, run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_name, commit_path
from tests.calls import calls_of

SCHEMA_YML = """
version: 2
models:
  - name: made
    config: {contract: {enforced: true}}
    columns: [{name: id, data_type: bigint, constraints: [{type: primary_key, warn_unenforced: false}]}]
sources:
  - name: outside
    database: raw
    schema: landing
    tables: [{name: events}, {name: nowhere}]
"""
SNAPSHOT = """
{% snapshot kept %}
{{ config(unique_key='id', strategy='check', check_cols=['id']) }}
select * from {{ ref('sown') }}
{% endsnapshot %}
"""
MANY = 300


class TestDocs:
    @pytest.fixture(scope="class")
    def dbt_profile_target(
        self, dbt_profile_target: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
    ) -> dict[str, Any]:
        return {**dbt_profile_target, "databases": {"raw": str(tmp_path_factory.mktemp("raw"))}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "made.sql": "{{ config(materialized='table') }} select id from range(5)",
            "seen.sql": "select * from {{ ref('made') }}",
            "schema.yml": SCHEMA_YML,
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"sown.csv": "id\n1\n2\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": SNAPSHOT}

    def test_every_relation_has_its_columns_and_statistics(self, project: Any) -> None:
        for text in ("create schema raw.landing", "create table raw.landing.events as select 'x' as `what`, 1 as n"):
            project.run_sql(text)
        run_dbt(["build"])
        found = self._generate(project)
        nodes, sources = found["nodes"], found["sources"]
        rows = {name: node["stats"].get("rows", {}).get("value") for name, node in nodes.items()}
        assert rows == {"model.test.made": 5, "model.test.seen": None, "seed.test.sown": 2, "snapshot.test.kept": 2}
        made = nodes["model.test.made"]["stats"]
        assert (made["version"]["value"], made["files"]["value"] > 0, made["bytes"]["value"] > 0) == (0, True, True)
        assert made["keys"]["value"] == "PRIMARY KEY (`id`)"
        assert sources.keys() == {"source.test.outside.events"}
        assert sources["source.test.outside.events"]["metadata"]["database"] == "raw"
        assert sources["source.test.outside.events"]["columns"].keys() == {"what", "n"}
        assert not found["errors"]

    def test_a_damaged_table_is_reported_and_hides_no_other_table(self, project: Any) -> None:
        catalog = project.adapter.connections.catalog
        store = catalog.table(RelationName("silt", project.test_schema, "sown")).store
        whole = store.read(commit_path(0))
        store.put(commit_path(0), whole[: len(whole) // 2])
        try:
            _, text = run_dbt_and_capture(["docs", "generate", "--no-compile"], expect_pass=False)
        finally:
            store.put(commit_path(0), whole)
        found = get_artifact(project.project_root, "target", "catalog.json")
        assert found["nodes"].keys() == {"model.test.made", "model.test.seen", "snapshot.test.kept"}
        [error] = found["errors"]
        assert "SILT_CORRUPT_LOG" in error
        assert "sown` is left out of the catalog" in text

    @pytest.mark.in_folders("a folder that is put into a schema is a table")
    def test_the_documentation_of_many_tables_takes_work_in_proportion_to_their_number(self, project: Any) -> None:
        schema = Path(project.adapter.config.credentials.warehouse, project.test_schema)
        for number in range(MANY):
            self._add_table(schema / f"many_{number}", number)
        create = project.adapter.Relation.create
        relations = [create(project.database, project.test_schema, f"many_{number}") for number in range(MANY)]
        catalog = project.adapter.get_catalog_by_relations
        with get_connection(project.adapter):
            catalog(frozenset(), set(relations[:10]))  # created only once
            some = calls_of(lambda: catalog(frozenset(), set(relations[: MANY // 3])))
            every = calls_of(lambda: catalog(frozenset(), set(relations)))
            table, errors = catalog(frozenset(), set(relations))
        assert (len(table.rows), errors) == (MANY * 10, [])
        assert every < 3.2 * some

    @staticmethod
    def _add_table(location: Path, number: int) -> None:
        fields = ",".join(f'{{"name":"c{n}","type":"long","nullable":true,"metadata":{{}}}}' for n in range(10))
        metadata = Metadata(str(number), f'{{"type":"struct","fields":[{fields}]}}')
        file = AddFile("a.parquet", {}, size=1, modification_time=1, stats='{"numRecords":3}')
        log = location / "_delta_log"
        log.mkdir(parents=True)
        commit = serialize([CommitInfo(timestamp=1, operation="WRITE"), Protocol(), metadata, file])
        (log / commit_name(0)).write_bytes(commit)

    @staticmethod
    def _generate(project: Any) -> dict[str, Any]:
        run_dbt(["docs", "generate"])
        found: dict[str, Any] = get_artifact(project.project_root, "target", "catalog.json")
        return found
