"""A model that changes from table to view or back in one step, so that its relation always exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName

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

    def test_a_model_changes_its_kind_without_a_drop_and_its_readers_see_the_new_relation(
        self, project: Any, never_dropped: None
    ) -> None:
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

    def test_the_new_table_is_one_commit_of_a_new_log(self, project: Any) -> None:
        log = project.adapter.connections.catalog.table(self._name(project))
        assert [commit.version for commit in log.commits()] == [0, 1]

    def test_a_table_that_cannot_be_created_keeps_the_view(self, project: Any) -> None:
        write_file(MODEL.format(kind="view", value=7), project.project_root, "models", "turning.sql")
        run_dbt(["run"])
        failing = "{{ config(materialized='table') }} select raise_error('no') as id"
        write_file(failing, project.project_root, "models", "turning.sql")
        run_dbt(["run", "--select", "turning"], expect_pass=False)
        assert project.run_sql(f"select * from {project.test_schema}.turning", fetch="all") == [(7,)]

    @staticmethod
    def _name(project: Any) -> RelationName:
        return RelationName(project.database, project.test_schema, "turning")


class TestATableThatAViewReplaces:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": "{{ config(materialized='incremental') }} select id from range(3)"}

    def test_the_replaced_table_is_named_with_its_losses_and_can_be_copied_as_the_warning_describes(
        self, project: Any
    ) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        write_file("select id from range(1)", project.project_root, "models", "orders.sql")
        run_dbt(["--warn-error", "run"], expect_pass=False)
        assert project.run_sql("select count(*) from {schema}.orders", fetch="one") == (6,)

        _, said = run_dbt_and_capture(["run"])
        name = f"{project.database}.{project.test_schema}.orders"
        assert f"{name} is a table of 2 versions with 6 rows: this run replaces it with" in " ".join(said.split())
        copy = re.search(r"`(create table .* version as of 1)`", " ".join(said.split()))
        assert copy is not None, said
        project.run_sql(copy[1])
        assert project.run_sql("select count(*) from {schema}.orders_kept", fetch="one") == (6,)
        _, said = run_dbt_and_capture(["run"])
        assert "replaces it with a view" not in said
