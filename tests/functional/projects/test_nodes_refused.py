"""A node with an impossible configuration fails alone, before anything is written, with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file


def model(materialized: str, config: str = "", query: str = "select 1 as id") -> str:
    return "{{ config(materialized='" + materialized + "', " + config + ") }} " + query


REFUSED = {
    "bad_schema": (model("table", "schema='a/b'"), "cannot be the name of a schema: "),
    "bad_view_schema": (model("view", "schema='a/b'"), "cannot be the name of a schema: "),
    "bad_database": (
        model("incremental", "database='nowhere'"),
        "nowhere: the database does not exist. Use one of silt",
    ),
    "bad_alias": (model("table", "alias='a/b'"), "cannot be the name of a table or view: "),
    "misspelt": (model("table", "partion_by='id'"), "`partion_by` is unknown: did you mean `partition_by`?"),
    "misspelt_table": (model("tabel"), "The materialization `tabel` does not exist: did you mean `table`?"),
    "misspelt_incremental": (model("increment"), "`increment` does not exist: did you mean `incremental`?"),
    "unknown_materialization": (model("graph"), "No materialization 'graph' was found for adapter silt!"),
    "of_another_warehouse": (
        model("dynamic_table"),
        "The materialization `dynamic_table` belongs to another warehouse: use `materialized: incremental`, which",
    ),
    "macro_as_strategy": (
        model("incremental", "incremental_strategy='delete_insert', unique_key='id'"),
        "`incremental_strategy` is 'delete_insert': write `delete+insert`",
    ),
    "wrong_order": (
        model("table", query="select {{ dbt.datediff('day', \"date'2026-03-01'\", \"date'2026-03-02'\") }} as n"),
        "is not a date part. Write dbt.datediff(first_date, second_date, datepart), where `datepart` is one of year, ",
    ),
    "wrong_part": (
        model("table", query="select {{ dbt.date_trunc('weekday', \"date'2026-03-01'\") }} as day"),
        "`weekday` is not a date part. Write dbt.date_trunc(datepart, date)",
    ),
    "wrong_unit": (
        model("table", query="select {{ dbt.dateadd('days', 1, \"date'2026-03-01'\") }} as day"),
        "`days` is not a date part",
    ),
    "by_its_name": (
        model("table", query="select * from silt.{{ schema }}.misspelt"),
        "The model misspelt of this project creates it: write `{{ ref('misspelt') }}`, so that dbt builds it first",
    ),
    "misspelt_view": (model("view", "persist_doc={}"), "`persist_doc` is unknown: did you mean `persist_docs`?"),
    "unknown_strategy": (
        model("incremental", "incremental_strategy='mergee'"),
        'get_incremental_mergee_sql" in test: did you mean `merge`?',
    ),
    "unknown_change": (
        model("incremental", "on_schema_change='sync_columns'"),
        "`on_schema_change` must be one of `ignore`, `fail`, `append_new_columns`, `sync_all_columns`",
    ),
    "reads_itself": (
        model("incremental", query="select 1 as id {% if is_incremental %} from {{ this }} {% endif %}"),
        "read `{{ this }}` only inside `{% if is_incremental() %}`, with the parentheses",
    ),
    "wrong_macro": (
        model("table", query="select cast(1 as {{ dbt.type_varchar() }}) as id"),
        "Did you mean `dbt.type_string`?",
    ),
    "near_macro": (
        model("table", query="select {{ dbt.current_timestmp() }} as at"),
        "Did you mean `dbt.current_timestamp`",
    ),
    "missing_package": (
        model("table", query="select {{ dbt_utils.star(this) }}"),
        "Add the package `dbt-labs/dbt_utils` to packages.yml, and run `dbt deps`",
    ),
    "near_key": (model("incremental", "unique_key='idd'"), "one of the columns id: did you mean `id`?"),
    "key_of_nothing": (
        model("incremental", "unique_key='key'"),
        "`unique_key` names key, which is not one of ",
    ),
    "key_twice": (model("incremental", "unique_key=['id', 'ID']"), "`unique_key` names `id` twice"),
    "misspelt_time": (
        model(
            "incremental",
            "incremental_strategy='microbatch', event_time='att', batch_size='day', begin=modules.datetime.date.today()"
            ".isoformat()",
            "select timestamp'2026-03-01' as at",
        ),
        "`event_time` names att, which is not one of the columns at: did you mean `at`?",
    ),
    "batches": (
        model(
            "incremental",
            "incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2026-03-01', lookbak=1",
            "select timestamp'2026-03-01' as at",
        ),
        "`lookbak` is unknown: did you mean `lookback`?",
    ),
}
"""Model -> its text, and its expected error."""

BUILT = {
    "good": model("table"),
    "with_header": model(
        "incremental",
        "unique_key='id', sql_header='create or replace temporary view of_header as select 1 as id'",
        "select id from of_header",
    ),
}
MISSPELT_STRATEGY = (
    "{% snapshot misspelt_strategy %}"
    "{{ config(unique_key='id', strategy='timestmp', updated_at='id', target_schema=schema) }}"
    " select 1 as id {% endsnapshot %}"
)
SNAPSHOT = (
    "{% snapshot kept %}{{ config(unique_key=['id', 'id'], strategy='check', check_cols='all', target_schema=schema) }}"
    " select 1 as id {% endsnapshot %}"
)


class TestNodesThatCannotBeBuilt:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        texts = {**{name: text for name, (text, _) in REFUSED.items()}, **BUILT}
        python = {"viewed.py": "def model(dbt, session):\n    dbt.config(materialized='view')\n    return None\n"}
        return {**{f"{name}.sql": text for name, text in texts.items()}, **python}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": SNAPSHOT, "misspelt_strategy.sql": MISSPELT_STRATEGY}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"sown.csv": "id\n1\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"+column_type": {"id": "int"}}}

    def test_each_invalid_node_fails_alone_with_the_reason_in_the_summary_and_in_dbts_results(
        self, project: Any
    ) -> None:
        _, output = run_dbt_and_capture(["build"], expect_pass=False)
        summary = output[output.index("Completed with ") :]
        document = json.loads((Path(project.project_root) / "target" / "run_results.json").read_text())
        messages = {each["unique_id"].split(".")[-1]: each["message"] or "" for each in document["results"]}
        expected = {name: said for name, (_, said) in REFUSED.items()}
        expected |= {"kept": "`unique_key` names `id` twice", "sown": "did you mean `column_types`?"}
        expected |= {
            "misspelt_strategy": "not a strategy of snapshots: did you mean `timestamp`? Set it to one of `check`"
        }
        expected |= {"viewed": "a view has no python code: use `materialized: table` or `incremental`"}
        for name, said in expected.items():
            assert said in messages[name], name
            assert said in summary, name
        statuses = {each["unique_id"].split(".")[-1]: each["status"] for each in document["results"]}
        assert {name for name, status in statuses.items() if status == "success"} == BUILT.keys()
        assert project.get_tables_in_schema() == {"good": "table", "with_header": "table"}

    def test_names_in_double_quotes_are_named_as_texts(self, project: Any) -> None:
        text = model("table", query='select "id", "web" as channel from {{ ref("good") }}')
        write_file(text, project.project_root, "models", "quoted.sql")
        _, output = run_dbt_and_capture(["run", "--select", "good", "quoted"])
        said = (
            'quoted selects "id": in Spark, double quotes enclose a string, and every row gets this text. For a column'
        )
        assert output.count(said) == 1
        _, output = run_dbt_and_capture(["--warn-error", "run", "--select", "quoted"], expect_pass=False)
        assert said in output

    def test_a_unit_for_which_spark_returns_nulls_is_named(self, project: Any) -> None:
        text = model("view", query="select date_trunc('isoweek', current_timestamp()) as week")
        write_file(text, project.project_root, "models", "weekly.sql")
        _, output = run_dbt_and_capture(["run", "--select", "weekly"])
        assert output.count("weekly calls date_trunc('isoweek', ...): Spark has no such unit, and returns null") == 1

    def test_a_node_that_is_not_selected_blocks_no_other_node(self, project: Any) -> None:
        assert len(run_dbt(["run", "--select", "good with_header"])) == 2
