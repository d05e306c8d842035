"""Texts of a project that look like SQL are taken literally: in descriptions, tags, properties, keys and seeds."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot

EVIL = "it's `a` \"b\" \\ ;-- \n'); drop table main.canary; -- ${jndi:ldap://127.0.0.1:1/x} <script>"
COLUMN = "a`b'c;--"
"""The name of a column that would end a quoted name and a string in SQL."""

MODEL = """
{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key=[var('column')],
    persist_docs={'relation': true, 'columns': true}, tags=[var('evil')],
    tblproperties={'note': var('evil'), 'delta.columnMapping.mode': 'name'},
) }}
select `id`, cast(`id` as string) as `{{ var('column') | replace('`', '``') }}` from {{ ref('seed') }}
"""


def snapshot_of(project: Any, name: str) -> Snapshot:
    place = RelationName(project.database, project.test_schema, name)
    return project.adapter.connections.catalog.table(place).snapshot()


class TestHostileTexts:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"vars": {"evil": EVIL, "column": COLUMN}, "seeds": {"+persist_docs": {"relation": True}}}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        text = io.StringIO()
        csv.writer(text).writerows([["id", "v"], [1, EVIL], [2, "'); drop table main.canary; --"]])
        return {"seed.csv": text.getvalue(), "canary.csv": "id\n1\n"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        columns = [{"name": "id", "description": EVIL}, {"name": COLUMN, "description": EVIL, "quote": True}]
        model = {"name": "model", "description": EVIL, "columns": columns}
        return {"model.sql": MODEL, "schema.yml": yaml.safe_dump({"version": 2, "models": [model]})}

    def test_hostile_texts_are_stored_and_shown_unchanged(self, project: Any) -> None:
        run_dbt(["build"])
        run_dbt(["build"])
        schema = f"{project.database}.{project.test_schema}"
        assert project.run_sql(f"select v from {schema}.seed where id = 1", fetch="one") == (EVIL,)
        assert project.run_sql(f"select count(*) from {schema}.canary", fetch="one") == (1,)
        assert project.run_sql(f"select count(*) from {schema}.model", fetch="one")[0] >= 1
        found = snapshot_of(project, "model")
        assert found.metadata.description == EVIL
        assert found.metadata.configuration["note"] == EVIL
        comments = {field["name"]: field["metadata"].get("comment") for field in _fields(found)}
        assert comments == {"id": EVIL, COLUMN: EVIL}


def _fields(snapshot: Snapshot) -> list[dict[str, Any]]:
    return list(json.loads(snapshot.metadata.schema_string)["fields"])
