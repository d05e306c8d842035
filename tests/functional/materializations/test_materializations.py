"""Details of each materialization: documentation, unusual seeds, vanished rows of snapshots, bad input."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from dbt.tests.util import get_artifact, run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot


def snapshot_of(project: Any, name: str) -> Snapshot:
    place = RelationName(project.database, project.test_schema, name)
    return project.adapter.connections.catalog.table(place).snapshot()


def rows(project: Any, query: str) -> list[tuple[Any, ...]]:
    return project.run_sql(query.replace("{schema}", f"{project.database}.{project.test_schema}"), fetch="all")


class TestSeedValues:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "awkward.csv": (
                "id,text,big,day,at,amount,zip,flag\n"
                '1,"it\'s a ""q"", so",9007199254740993,2026-03-01,2026-03-01 10:00:00,1.10,00501,true\n'
                "2,日本 \\ñ,2,,,,,\n"
                '3,"two\nlines",,2026-03-02,2026-03-02 11:30:00,-2,12345,false\n'
            )
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"test": {"awkward": {"+column_types": {"zip": "string", "amount": "decimal(10,2)"}}}}}

    def test_nulls_quotes_long_numbers_unicode_and_times_in_seeds_are_unchanged(self, project: Any) -> None:
        run_dbt(["seed"])
        found = rows(project, "select id, text, big, day, at, zip, flag from {schema}.awkward order by id")
        assert found == [
            (
                1,
                'it\'s a "q", so',
                2**53 + 1,
                datetime.date(2026, 3, 1),
                datetime.datetime(2026, 3, 1, 10),
                "00501",
                True,
            ),
            (2, "日本 \\ñ", 2, None, None, None, None),
            (3, "two\nlines", None, datetime.date(2026, 3, 2), datetime.datetime(2026, 3, 2, 11, 30), "12345", False),
        ]
        amounts = rows(project, "select cast(amount as string), typeof(amount) from {schema}.awkward order by id")
        assert amounts == [("1.10", "decimal(10,2)"), (None, "decimal(10,2)"), ("-2.00", "decimal(10,2)")]

    def test_repeating_a_seed_replaces_the_table_in_one_commit(self, project: Any) -> None:
        before = snapshot_of(project, "awkward")
        run_dbt(["seed"])
        after = snapshot_of(project, "awkward")
        assert after.version == before.version + 1
        assert after.metadata.id == before.metadata.id


class TestDocumentation:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "made.sql": "{{ config(materialized='table') }} select 1L as id, 'x' as name",
            "grown.sql": "{{ config(materialized='incremental', unique_key='id') }} select 1L as id, 'x' as name",
            "seen.sql": "select * from {{ ref('made') }}",
            "schema.yml": self._properties("first"),
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+persist_docs": {"relation": True, "columns": True}}}

    @staticmethod
    def _properties(words: str) -> str:
        model = """
  - name: {name}
    description: "it's the {words} \\\\ one"
    columns: [{{name: id, description: "{words}; the 'key'"}}]
"""
        return "version: 2\nmodels:" + "".join(
            model.format(name=name, words=words) for name in ("made", "grown", "seen")
        )

    def test_a_table_is_created_with_its_comments_in_one_commit(self, project: Any) -> None:
        run_dbt(["run"])
        for name in ("made", "grown"):
            found = snapshot_of(project, name)
            assert found.version == 0
            assert found.metadata.description == "it's the first \\ one"
            assert [field.comment for field in found.schema.fields] == ["first; the 'key'", None]

    def test_an_incremental_run_changes_only_the_comments_that_differ(self, project: Any) -> None:
        run_dbt(["run", "--select", "grown"])
        version = snapshot_of(project, "grown").version
        assert version == 1
        write_file(self._properties("second"), project.project_root, "models", "schema.yml")
        run_dbt(["run", "--select", "grown"])
        found = snapshot_of(project, "grown")
        assert found.metadata.description == "it's the second \\ one"
        assert found.schema.fields[0].comment == "second; the 'key'"

    def test_the_catalog_shows_tables_and_views_with_comments_and_statistics(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["docs", "generate"])
        nodes = get_artifact(project.project_root, "target", "catalog.json")["nodes"]
        made, seen = nodes["model.test.made"], nodes["model.test.seen"]
        assert (made["metadata"]["type"], seen["metadata"]["type"]) == ("table", "view")
        assert made["metadata"]["comment"] == seen["metadata"]["comment"] == "it's the second \\ one"
        assert seen["columns"]["id"]["comment"] == "second; the 'key'"
        assert made["stats"]["rows"]["value"] == 1


class TestInsertOverwrite:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = (
            "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='part') }}"
        )
        query = (
            "select * from values (1, 'a'), (2, 'b'), (3, null) as t (id, part) {% if is_incremental() %} "
            "where id > 1 {% endif %}"
        )
        return {"parted.sql": f"{config} {query}"}

    def test_insert_overwrite_replaces_only_the_partitions_of_the_query_including_that_of_null(
        self, project: Any
    ) -> None:
        for _ in range(2):
            run_dbt(["run"])
        assert rows(project, "select id, part from {schema}.parted order by id") == [(1, "a"), (2, "b"), (3, None)]
        assert snapshot_of(project, "parted").version == 1


class TestMappedColumns:
    """`on_schema_change` on a table with column mapping: columns are added and dropped, and no data
    file is rewritten.
    """

    MODEL = (
        "{{ config(materialized='incremental', on_schema_change='sync_all_columns',"
        " tblproperties={'delta.columnMapping.mode': 'name'}) }}"
        " select {columns} from range({rows}) {% if is_incremental() %} where id > 2 {% endif %}"
    )

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": self.model("id, id as old, 'x' as kept", 3)}

    def model(self, columns: str, rows: int) -> str:
        return self.MODEL.replace("{columns}", columns).replace("{rows}", str(rows))

    def test_syncing_all_columns_rewrites_no_file(self, project: Any) -> None:
        run_dbt(["run"])
        before = set(snapshot_of(project, "events").files["path"].to_pylist())
        write_file(self.model("id, 'x' as kept, 'n' as new", 4), project.project_root, "models", "events.sql")
        run_dbt(["run"])
        after = snapshot_of(project, "events")
        assert before < set(after.files["path"].to_pylist())
        assert set(after.schema.names) == {"id", "kept", "new"}
        found = rows(project, "select id, kept, new from {schema}.events order by id")
        assert found == [(0, "x", None), (1, "x", None), (2, "x", None), (3, "x", "n")]


@pytest.mark.connect(gate=True)
class TestPythonModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        head = "def model(dbt, session):\n    dbt.config(materialized='{}'{})\n"
        return {
            "numbers.sql": "select id from range(3)",
            "of_spark.py": head.format("table", "") + "    return dbt.ref('numbers').filter('id > 0')\n",
            "of_pandas.py": head.format("table", "") + "    return dbt.ref('numbers').toPandas()\n",
            "of_arrow.py": head.format("table", "") + "    return dbt.ref('numbers').toArrow()\n",
            "merged.py": head.format("incremental", ", unique_key='id'")
            + "    numbers = dbt.ref('numbers')\n"
            + "    return numbers.filter('id = 2') if dbt.is_incremental else numbers\n",
        }

    def test_every_kind_of_frame_becomes_a_table_in_one_commit(self, project: Any) -> None:
        run_dbt(["run"])
        results = run_dbt(["run", "--vars", "silt_run_id: R2"])
        counts = {name: snapshot_of(project, name).version for name in ("of_spark", "of_pandas", "of_arrow", "merged")}
        assert counts == dict.fromkeys(counts, 1)
        assert rows(project, "select count(*) from {schema}.of_spark") == [(2,)]
        assert rows(project, "select sum(id) from {schema}.of_pandas") == [(3,)]
        [merged] = [result.adapter_response for result in results if result.node.name == "merged"]
        assert (merged["rows_updated"], merged["rows_inserted"]) == (1, 0)

    def test_a_failing_python_model_is_named_with_its_error(self, project: Any) -> None:
        write_file("def model(dbt, session):\n    return 7\n", project.project_root, "models", "of_arrow.py")
        _, output = run_dbt_and_capture(["run", "--select", "of_arrow"], expect_pass=False)
        assert "The model returned int" in output


SNAPSHOT = """
{% snapshot history %}
{{ config(target_schema=schema, unique_key=['id', 'part'], strategy='check', check_cols='all',
          hard_deletes=var('hard_deletes'), dbt_valid_to_current="timestamp'9999-12-31 00:00:00'") }}
select * from {{ ref('rows') }}
{% endsnapshot %}
"""


class TestHardDeletes:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"rows.csv": "id,part,name\n1,a,one\n2,b,two\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            pytest.param("ignore", [(1, True), (2, True)], marks=pytest.mark.long),
            pytest.param("invalidate", [(1, True), (2, False)], marks=pytest.mark.long),
            ("new_record", [(1, True), (2, False), (2, True)]),
        ],
    )
    def test_a_vanished_row_is_handled_as_configured(
        self, project: Any, mode: str, expected: list[tuple[int, bool]]
    ) -> None:
        variables = ["--vars", f"hard_deletes: {mode}"]
        project.run_sql(f"drop table if exists {project.test_schema}.history")
        write_file("id,part,name\n1,a,one\n2,b,two\n", project.project_root, "seeds", "rows.csv")
        run_dbt(["seed"])
        run_dbt(["snapshot", *variables])
        write_file("id,part,name\n1,a,one\n", project.project_root, "seeds", "rows.csv")
        run_dbt(["seed"])
        for _ in range(2):
            run_dbt(["snapshot", *variables])
        current = "dbt_valid_to = timestamp'9999-12-31 00:00:00'"
        assert rows(project, f"select id, {current} from {{schema}}.history order by id, dbt_valid_from") == expected


class TestBadInput:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        def incremental(config: str, query: str) -> str:
            return "{{ config(materialized='incremental', " + config + ") }} " + query

        twice = "select explode(array(1L, 1L)) as id"
        return {
            "no_predicate.sql": incremental("incremental_strategy='replace_where'", "select 1L as id"),
            "no_key.sql": incremental("unique_key=[]", "select 1L as id"),
            "blank_key.sql": incremental("incremental_strategy='delete+insert', unique_key=''", "select 1L as id"),
            "no_update.sql": incremental("unique_key='id', merge_update_columns=[]", "select 1L as id"),
            "blank_predicate.sql": incremental("unique_key='id', incremental_predicates=''", "select 1L as id"),
            "no_partition.sql": incremental(
                "incremental_strategy='insert_overwrite', partition_by=[]", "select 1L as id"
            ),
            "wrong_key.sql": incremental("unique_key='nowhere'", "select 1L as id"),
            "twice.sql": incremental("unique_key='id'", twice),
            "strange.sql": incremental("incremental_strategy='upside_down'", "select 1L as id"),
            "checked.sql": "{{ config(materialized='table') }} select cast(null as bigint) as id",
            "schema.yml": """
version: 2
models:
  - name: checked
    config: {contract: {enforced: true}}
    columns: [{name: id, data_type: bigint, constraints: [{type: not_null}]}]
""",
        }

    @pytest.mark.parametrize(
        ("model", "first_works", "message"),
        [
            ("no_predicate", False, "The incremental strategy 'replace_where' needs `incremental_predicates`"),
            ("no_key", False, "`unique_key` must be a string or a list of at least one string, but is []"),
            ("blank_key", False, "`unique_key` must be a string or a list of at least one string, but is ''"),
            ("no_update", False, "`merge_update_columns` must be a string or a list of at least one string, but is []"),
            ("blank_predicate", False, "`incremental_predicates` must be a string or a list of strings, but is ''"),
            ("no_partition", False, "`partition_by` is empty, and `insert_overwrite` would replace the whole table"),
            ("wrong_key", False, "`unique_key` names nowhere, which is not one of the columns id"),
            ("twice", True, "SILT_MULTIPLE_SOURCE_ROWS"),
            (
                "strange",
                False,
                'dbt could not find an incremental strategy macro with the name "get_incremental_upside',
            ),
            ("checked", False, "SILT_NOT_NULL_VIOLATION"),
        ],
    )
    def test_bad_input_is_refused_with_its_reason_and_changes_nothing(
        self, project: Any, model: str, first_works: bool, message: str
    ) -> None:
        if first_works:
            run_dbt(["run", "--select", model])
        _, output = run_dbt_and_capture(["run", "--select", model], expect_pass=False)
        assert message in output
        if first_works:
            assert snapshot_of(project, model).version == 0
