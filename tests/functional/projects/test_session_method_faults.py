"""What dbt-spark's `session` method does wrong, each shown not to happen here.

Elsewhere: that Ctrl-C stops Spark (`test_interrupted_runs`), python models in process (`test_python_models`), Spark
Connect (`pytest --connect`), a seed's nulls and quotes in every kind of column (`test_materializations`), settings that
only a new Spark can have (`tests/unit/session/test_spark`).
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
        """The project, built twice: the second time, models and snapshots find what the first has made."""
        for _ in range(2):
            run_dbt(["build", "--exclude", "hooked"])
        return project

    @pytest.fixture
    def connection(self, built: Any) -> Iterator[Any]:
        with built.adapter.connection_named("test"):
            yield built.adapter

    def test_a_null_in_a_seed_stays_null_and_quotes_and_long_numbers_stay_whole(self, built: Any) -> None:
        rows = built.run_sql(f"select id, name from {built.test_schema}.people order by id", fetch="all")
        assert rows == [(2, None), (3, 'say "no"'), (9007199254740993, "it's")]

    def test_a_seed_with_more_rows_is_no_longer_statement(self, built: Any) -> None:
        written = Path(built.project_root, "target/run/test/seeds/people.csv")
        short = written.read_text()
        lines = _SEED + "".join(f"{10 + number},n{number}\n" for number in range(500))
        write_file(lines, built.project_root, "seeds", "people.csv")
        run_dbt(["seed"])
        assert len(written.read_text()) <= len(short) + len("or replace ")
        write_file(_SEED, built.project_root, "seeds", "people.csv")
        run_dbt(["seed"])

    def test_settings_and_temporary_views_of_a_connection_are_its_own(self, built: Any) -> None:
        adapter = built.adapter
        with adapter.connection_named("one"):
            adapter.execute("set spark.sql.shuffle.partitions = 7")
            adapter.execute("create temporary view mine as select 1 as x")
        with adapter.connection_named("two"):
            _, rows = adapter.execute("set spark.sql.shuffle.partitions", fetch=True)
            assert rows.rows[0]["value"] == "4"  # the profile's
            with pytest.raises(DbtDatabaseError, match="mine"):
                adapter.execute("select * from mine", fetch=True)

    def test_nothing_is_left_beside_the_project(self, built: Any) -> None:
        left = {"metastore_db", "derby.log", "spark-warehouse", "artifacts"}
        assert not left & {*os.listdir(built.project_root), *os.listdir(os.getcwd())}

    def test_strictness_is_spark_s_own_unless_the_profile_says_otherwise(self, connection: Any) -> None:
        with pytest.raises(DbtDatabaseError, match="CAST_INVALID_INPUT"):
            connection.execute("select cast('x' as int)", fetch=True)
        connection.execute("set spark.sql.ansi.enabled = false")
        assert connection.execute("select cast('x' as int)", fetch=True)[1].rows[0][0] is None

    def test_an_error_leaves_the_block_that_it_occurs_in(self, built: Any) -> None:
        with pytest.raises(DbtDatabaseError, match="boom"), built.adapter.connection_named("fails"):
            built.adapter.execute("select raise_error('boom')", fetch=True)

    def test_a_query_whose_rows_are_not_fetched_fails_like_a_fetch(self, built: Any) -> None:
        (result,) = run_dbt(["run", "--select", "hooked"], expect_pass=False)
        assert "the hook failed" in result.message

    def test_names_have_three_parts(self, built: Any) -> None:
        node = get_manifest(built.project_root).nodes["model.test.as_table"]
        assert node.relation_name == f"`silt`.`{built.test_schema}`.`as_table`"
        assert built.run_sql(f"select count(*) from {node.relation_name}", fetch="one") == (3,)

    def test_a_listing_asks_spark_for_nothing(self, connection: Any, built: Any, monkeypatch: Any) -> None:
        schema = connection.Relation.create(database="silt", schema=built.test_schema)
        monkeypatch.setattr(type(connection.connections), "handle", None)
        names = {relation.identifier for relation in connection.list_relations_without_caching(schema)}
        assert names >= {"as_table", "overwrites", "people", "people_history"}

    def test_a_listing_that_fails_is_no_empty_schema(self, connection: Any, built: Any, monkeypatch: Any) -> None:
        def fail(*place: str) -> None:
            raise StorageError("the listing failed half-way")

        monkeypatch.setattr(Catalog, "relations", fail)
        with pytest.raises(DbtRuntimeError, match="failed half-way"):
            connection.list_relations_without_caching(
                connection.Relation.create(database="silt", schema=built.test_schema)
            )

    def test_a_rebuild_that_fails_leaves_the_table_as_it_was(self, built: Any) -> None:
        count = f"select count(*), max(id) from {built.test_schema}.as_table"
        before = built.run_sql(count, fetch="one")
        run_dbt(["run", "--select", "as_table", "--vars", "{more: ', raise_error(name) as y'}"], expect_pass=False)
        assert built.run_sql(count, fetch="one") == before

    def test_a_node_leaves_only_its_own_relation(self, connection: Any, built: Any) -> None:
        schema = connection.Relation.create(database="silt", schema=built.test_schema)
        relations = {each.identifier: each.type for each in connection.list_relations_without_caching(schema)}
        expected = {"as_table", "hooked", "overwrites", "people", "people_history"}
        assert relations == dict.fromkeys(expected, RelationType.Table)
