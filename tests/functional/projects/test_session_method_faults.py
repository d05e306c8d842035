"""Faults of dbt-spark's `session` method; each test shows that this adapter does not have the fault.

Tested elsewhere: Ctrl-C stops Spark (`test_interrupted_runs`), python models in process (`test_python_models`), Spark
Connect (`pytest --connect`), a seed's nulls and quotes in every kind of column (`test_materializations`), settings
that only a new Spark can have (`tests/unit/session/test_spark`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.contracts.relation import RelationType
from dbt.tests.util import get_manifest, run_dbt, write_file
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import StorageError

_SEED = 'id,name\n9007199254740993,it\'s\n2,\n3,"say ""no"""\n'
_TABLE = "{{ config(materialized='table') }} select id, name{{ var('more', '') }} from {{ ref('people') }}"
_HOOKED = "{{ config(materialized='table', post_hook=\"select raise_error('the hook failed')\") }} select 1 as x"
_OVERWRITES = (
    "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='id') }}"
    " select * from {{ ref('people') }}"
)
_SNAPSHOT = """
{% snapshot people_history %}
  {{ config(unique_key='id', strategy='check', check_cols='all', target_schema=schema) }}
  select * from {{ ref('people') }}
{% endsnapshot %}
"""


class TestFaultsOfTheSessionMethod:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"people.csv": _SEED}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"as_table.sql": _TABLE, "hooked.sql": _HOOKED, "overwrites.sql": _OVERWRITES}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"people_history.sql": _SNAPSHOT}

    @pytest.fixture(scope="class")
    def built(self, project: Any) -> Any:
        """The project, built twice: in the second build, models and snapshots find the relations of the first."""
        for _ in range(2):
            run_dbt(["build", "--exclude", "hooked"])
        return project

    @pytest.fixture
    def connection(self, built: Any) -> Iterator[Any]:
        with built.adapter.connection_named("test"):
            yield built.adapter

    def test_nulls_quotes_and_long_numbers_in_seeds_are_unchanged(self, built: Any) -> None:
        rows = built.run_sql(f"select id, name from {built.test_schema}.people order by id", fetch="all")
        assert rows == [(2, None), (3, 'say "no"'), (9007199254740993, "it's")]

    def test_the_length_of_a_seeds_statement_does_not_grow_with_its_rows(self, built: Any) -> None:
        written = Path(built.project_root, "target/run/test/seeds/people.csv")
        short = written.read_text()
        lines = _SEED + "".join(f"{10 + number},n{number}\n" for number in range(500))
        write_file(lines, built.project_root, "seeds", "people.csv")
        run_dbt(["seed"])
        assert len(written.read_text()) <= len(short) + len("or replace ")
        write_file(_SEED, built.project_root, "seeds", "people.csv")
        run_dbt(["seed"])

    def test_settings_and_temporary_views_belong_to_their_connection(self, built: Any) -> None:
        adapter = built.adapter
        with adapter.connection_named("one"):
            adapter.execute("set spark.sql.shuffle.partitions = 7")
            adapter.execute("create temporary view mine as select 1 as x")
        with adapter.connection_named("two"):
            _, rows = adapter.execute("set spark.sql.shuffle.partitions", fetch=True)
            assert rows.rows[0]["value"] == "4"  # the profile's value
            with pytest.raises(DbtDatabaseError, match="mine"):
                adapter.execute("select * from mine", fetch=True)

    def test_no_files_are_left_next_to_the_project(self, built: Any) -> None:
        left = {"metastore_db", "derby.log", "spark-warehouse", "artifacts"}
        assert not left & {*os.listdir(built.project_root), *os.listdir(os.getcwd())}

    def test_ansi_mode_has_sparks_default_unless_the_profile_sets_it(self, connection: Any) -> None:
        with pytest.raises(DbtDatabaseError, match="CAST_INVALID_INPUT"):
            connection.execute("select cast('x' as int)", fetch=True)
        connection.execute("set spark.sql.ansi.enabled = false")
        assert connection.execute("select cast('x' as int)", fetch=True)[1].rows[0][0] is None

    def test_an_error_leaves_the_block_in_which_it_occurs(self, built: Any) -> None:
        with pytest.raises(DbtDatabaseError, match="boom"), built.adapter.connection_named("fails"):
            built.adapter.execute("select raise_error('boom')", fetch=True)

    def test_an_unfetched_query_raises_the_same_error_as_a_fetched_query(self, built: Any) -> None:
        (result,) = run_dbt(["run", "--select", "hooked"], expect_pass=False)
        assert "the hook failed" in result.message

    def test_names_have_three_parts(self, built: Any) -> None:
        node = get_manifest(built.project_root).nodes["model.test.as_table"]  # type: ignore[union-attr]
        assert node.relation_name == f"`silt`.`{built.test_schema}`.`as_table`"
        assert built.run_sql(f"select count(*) from {node.relation_name}", fetch="one") == (3,)

    def test_a_listing_sends_no_query_to_spark(self, connection: Any, built: Any, monkeypatch: Any) -> None:
        schema = connection.Relation.create(database="silt", schema=built.test_schema)
        monkeypatch.setattr(type(connection.connections), "handle", None)
        names = {relation.identifier for relation in connection.list_relations_without_caching(schema)}
        assert names >= {"as_table", "overwrites", "people", "people_history"}

    def test_a_failed_listing_is_an_error_not_an_empty_schema(
        self, connection: Any, built: Any, monkeypatch: Any
    ) -> None:
        def fail(*place: str) -> None:
            raise StorageError("the listing failed half-way")

        monkeypatch.setattr(Catalog, "relations", fail)
        with pytest.raises(DbtRuntimeError, match="failed half-way"):
            connection.list_relations_without_caching(
                connection.Relation.create(database="silt", schema=built.test_schema)
            )

    def test_a_failed_rebuild_does_not_change_the_table(self, built: Any) -> None:
        count = f"select count(*), max(id) from {built.test_schema}.as_table"
        before = built.run_sql(count, fetch="one")
        run_dbt(["run", "--select", "as_table", "--vars", "{more: ', raise_error(name) as y'}"], expect_pass=False)
        assert built.run_sql(count, fetch="one") == before

    def test_a_node_creates_only_its_own_relation(self, connection: Any, built: Any) -> None:
        schema = connection.Relation.create(database="silt", schema=built.test_schema)
        relations = {each.identifier: each.type for each in connection.list_relations_without_caching(schema)}
        expected = {"as_table", "hooked", "overwrites", "people", "people_history"}
        assert relations == dict.fromkeys(expected, RelationType.Table)
