"""A model that turns from table to view or back: in one step each, so that nothing is missing in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.catalog.relations import RelationKind

MODEL = "{{{{ config(materialized='{kind}') }}}} select {value}L as id"


class TestChangeOfMaterialization:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "turning.sql": MODEL.format(kind="table", value=1),
            "reader.sql": "{{ config(materialized='table') }} select * from {{ ref('turning') }}",
        }

    @pytest.fixture
    def never_dropped(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        def drop(self: Catalog, name: RelationName, if_exists: bool = False) -> None:
            raise AssertionError(f"{name} was dropped")

        with monkeypatch.context() as patched:
            patched.setattr(Catalog, "drop_table", drop)
            patched.setattr(Catalog, "drop_view", drop)
            yield

    def test_it_turns_without_a_drop_and_its_readers_follow(self, project: Any, never_dropped: None) -> None:
        kinds = ("table", "view", "incremental", "view", "table")
        for value, kind in enumerate(kinds):
            write_file(MODEL.format(kind=kind, value=value), project.project_root, "models", "turning.sql")
            flags = ["--full-refresh"] if value % 2 else []
            run_dbt(["run", *flags])
            run_dbt(["run"])
            entry = project.adapter.connections.catalog.find(self._name(project))
            assert entry is not None
            assert entry.kind is (RelationKind.VIEW if kind == "view" else RelationKind.TABLE)
            found = project.run_sql(f"select distinct id from {project.test_schema}.reader", fetch="all")
            assert found == [(value,)]

    def test_a_table_is_one_commit_of_a_new_log(self, project: Any) -> None:
        log = project.adapter.connections.catalog.table(self._name(project))
        assert [commit.version for commit in log.commits()] == [0, 1]

    def test_a_table_that_cannot_be_made_leaves_the_view(self, project: Any) -> None:
        write_file(MODEL.format(kind="view", value=7), project.project_root, "models", "turning.sql")
        run_dbt(["run"])
        failing = "{{ config(materialized='table') }} select raise_error('no') as id"
        write_file(failing, project.project_root, "models", "turning.sql")
        run_dbt(["run", "--select", "turning"], expect_pass=False)
        assert project.run_sql(f"select * from {project.test_schema}.turning", fetch="all") == [(7,)]

    @staticmethod
    def _name(project: Any) -> RelationName:
        return RelationName(project.database, project.test_schema, "turning")
