"""Names: every materialization in other databases and custom schemas, under names that need quoting, in any case."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from dbt.exceptions import AmbiguousAliasError
from dbt.tests.util import get_artifact, run_dbt, write_file

from dbt.adapters.silt.engine.catalog.catalog import Catalog


class EveryMaterialization:
    """A project with a node of each kind, with the names that a subclass defines.

    Attributes:
        names: of the nodes, by kind.
        key, value: names of the columns.
        database, schema: of the nodes, instead of the profile's.
        quoting: dbt's setting.
    """

    names: ClassVar[dict[str, str]] = {kind: kind for kind in ("seed", "table", "view", "incremental", "snapshot")}
    key: ClassVar[str] = "id"
    value: ClassVar[str] = "value"
    database: ClassVar[str | None] = None
    schema: ClassVar[str] = "custom"
    quoting: ClassVar[dict[str, bool]] = {}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        schema = "{% macro generate_schema_name(custom, node) %}{{ custom or target.schema }}{% endmacro %}"
        return {"generate_schema_name.sql": schema}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"a_seed.csv": f"{self.key},{self.value}\n1,one\n2,two\n"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        key, value = f"`{self.key}`", f"`{self.value}`"
        config = "{{{{ config(materialized='{kind}', alias='{alias}') }}}} "
        return {
            "a_table.sql": config.format(kind="table", alias=self.names["table"])
            + f"select {key}, {value} from {{{{ ref('a_seed') }}}}",
            "a_view.sql": config.format(kind="view", alias=self.names["view"])
            + f"select t.{key}, t.{value} from {{{{ ref('a_table') }}}} as t",
            "an_incremental.sql": config.format(kind="incremental", alias=self.names["incremental"])
            + f"select {key}, {value}, {{{{ var('count', 2) }}}} as n from {{{{ ref('a_view') }}}}\n"
            + "{% if is_incremental() %}"
            + f"where {key} in (select max({key}) from {{{{ this }}}})"
            + "{% endif %}",
            "schema.yml": self._properties(),
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {
            "snapshots.yml": f"""
snapshots:
  - name: a_snapshot
    relation: ref('an_incremental')
    config: {{unique_key: "`{self.key}`", strategy: check, check_cols: [n], alias: "{self.names["snapshot"]}"}}
"""
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        place: dict[str, Any] = {"+schema": self.schema}
        if self.database:
            place["+database"] = self.database
        return {
            "models": {**place, "+incremental_strategy": "merge", "+unique_key": f"`{self.key}`"},
            "seeds": {**place, "+quote_columns": True, "test": {"a_seed": {"+alias": self.names["seed"]}}},
            "snapshots": place,
            "quoting": self.quoting,
        }

    def _properties(self) -> str:
        column = f'{{name: "{self.key}", quote: true, data_tests: [unique, not_null]}}'
        entries = "".join(
            f"\n  - {{name: {name}, columns: [{column}]}}" for name in ("a_table", "a_view", "an_incremental")
        )
        return f"version: 2\nmodels:{entries}"

    def _rows(self, project: Any, kind: str, columns: str) -> list[tuple[Any, ...]]:
        place = f"`{self.database or project.database}`.`{self.schema}`.`{self.names[kind]}`"
        return sorted(project.run_sql(f"select {columns} from {place}", fetch="all"))

    def test_each_kind_of_node_is_built_twice(self, project: Any) -> None:
        columns = f"`{self.key}`, `{self.value}`"
        run_dbt(["build"])
        for kind in self.names:
            assert self._rows(project, kind, columns) == [(1, "one"), (2, "two")], kind
        run_dbt(
            ["build", "--select", "an_incremental", "a_snapshot", "--vars", "count: 3", "--exclude-resource-type=test"]
        )
        assert self._rows(project, "incremental", f"{columns}, n") == [(1, "one", 2), (2, "two", 3)]
        current = f"`{self.key}`, n, dbt_valid_to is null"
        assert self._rows(project, "snapshot", current) == [(1, 2, True), (2, 2, False), (2, 3, True)]
        run_dbt(["run", "--full-refresh", "--vars", "count: 4"])
        assert self._rows(project, "incremental", "n") == [(4,), (4,)]

    def test_the_warehouse_and_the_documentation_contain_exactly_these_relations(self, project: Any) -> None:
        catalog: Catalog = project.adapter.connections.catalog
        found = catalog.relations(self.database or project.database, self.schema)
        assert {entry.name.identifier for entry in found} == {name.lower() for name in self.names.values()}
        run_dbt(["docs", "generate"])
        nodes = get_artifact(project.project_root, "target", "catalog.json")["nodes"]
        assert set(nodes) == {
            "seed.test.a_seed",
            "model.test.a_table",
            "model.test.a_view",
            "model.test.an_incremental",
            "snapshot.test.a_snapshot",
        }
        for node in nodes.values():
            assert {self.key, self.value} <= set(node["columns"]), node


class TestReservedWords(EveryMaterialization):
    names: ClassVar = {
        "seed": "join",
        "table": "table",
        "view": "group",
        "incremental": "order",
        "snapshot": "select",
    }
    key: ClassVar = "from"
    value: ClassVar = "where"
    schema: ClassVar = "schema"


class TestSpacesAndOtherScriptsInAnotherDatabase(EveryMaterialization):
    names: ClassVar = {
        "seed": "the seed - 1",
        "table": "Umsätze (brutto)",
        "view": "売上",
        "incremental": "продажи 2026",
        "snapshot": "a.b.c",
    }
    key: ClassVar = "order id"
    value: ClassVar = "größe; -- in cm"
    database: ClassVar = "raw data"
    schema: ClassVar = "my schema"

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any], tmp_path_factory: Any) -> dict[str, Any]:
        return {**silt_target, "databases": {"raw data": str(tmp_path_factory.mktemp("raw data"))}}


class TestLongNamesInMixedCaseWithoutQuotes(EveryMaterialization):
    names: ClassVar = {kind: (kind + "_" + "LONG" * 50)[:200] for kind in EveryMaterialization.names}
    key: ClassVar = "ID" * 60
    value: ClassVar = "Value"
    schema: ClassVar = "S" * 200
    quoting: ClassVar = {"database": False, "schema": False, "identifier": False}

    def test_a_name_that_is_too_long_is_refused_before_anything_is_written(self, project: Any) -> None:
        model = "{{ config(alias='" + "x" * 201 + "', materialized='table') }} select 1 as id"
        write_file(model, project.project_root, "models", "too_long.sql")
        [result] = run_dbt(["run", "--select", "too_long"], expect_pass=False)
        assert "cannot be the name of a table or view: it is longer than 200 bytes" in result.message

    def test_two_models_whose_names_differ_only_in_case_are_refused(self, project: Any) -> None:
        model = f"{{{{ config(alias='{self.names['table'].swapcase()}') }}}} select 1 as id"
        write_file(model, project.project_root, "models", "another.sql")
        with pytest.raises(AmbiguousAliasError):
            run_dbt(["parse"])
