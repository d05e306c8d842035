"""The configuration of incremental models: what each word does, and what is said of one that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

Row = tuple[Any, ...]

OLD = "select * from values (1, 'one', 10), (2, 'two', 20), (cast(null as int), 'none', 0) as t (id, name, size)"
NEW = "select * from values (2, 'TWO', 21), (3, 'three', 30), (cast(null as int), 'NONE', 1) as t (id, name, size)"


@dataclass(frozen=True)
class Case:
    """A model: its configuration in Jinja, what its first and second run give, and the rows that the table then has."""

    config: str
    expected: list[Row]
    old: str = OLD
    new: str = NEW

    @property
    def model(self) -> str:
        head = "{{ config(materialized='incremental', " + self.config + ") }}"
        return f"{head} {{% if is_incremental() %}} {self.new} {{% else %}} {self.old} {{% endif %}}"


DATABRICKS = {
    "by_key": Case("unique_key='id'", [(1, "one", 10), (2, "TWO", 21), (3, "three", 30), (None, "NONE", 1)]),
    "without_key": Case(
        "incremental_strategy='merge'",
        [(1, "one", 10), (2, "TWO", 21), (2, "two", 20), (3, "three", 30), (None, "NONE", 1), (None, "none", 0)],
    ),
    "matched_condition": Case(
        "unique_key='id', source_alias='s', target_alias='t', matched_condition='s.size > t.size + 0 and t.id = 2'",
        [(1, "one", 10), (2, "TWO", 21), (3, "three", 30), (None, "none", 0)],
    ),
    "not_matched_condition": Case(
        "unique_key='id', not_matched_condition='DBT_INTERNAL_SOURCE.size < 30'",
        [(1, "one", 10), (2, "TWO", 21), (None, "NONE", 1)],
    ),
    "skip_matched": Case(
        "unique_key='id', skip_matched_step=true", [(1, "one", 10), (2, "two", 20), (3, "three", 30), (None, "none", 0)]
    ),
    "skip_not_matched": Case(
        "unique_key='id', skip_not_matched_step='True'", [(1, "one", 10), (2, "TWO", 21), (None, "NONE", 1)]
    ),
    "source_deletes": Case(
        "unique_key='id', not_matched_by_source_action='delete'",
        [(2, "TWO", 21), (3, "three", 30), (None, "NONE", 1)],
    ),
    "source_updates": Case(
        "unique_key='id', target_alias='t', skip_matched_step=true, not_matched_by_source_condition='t.size > 5', "
        "not_matched_by_source_action='''\n UPDATE set t.name = \\'gone\\', t.size = -t.size\n'''",
        [(1, "gone", -10), (2, "two", 20), (3, "three", 30), (None, "none", 0)],
    ),
    "evolves": Case(
        "unique_key='id', merge_with_schema_evolution=true",
        [(1, "one", 10, None), (2, "two", 20, 2.5), (None, "none", 0, None)],
        new="select 2 as id, cast(2.5 as double) as weight",
    ),
    "update_columns": Case(
        "unique_key=['ID'], merge_update_columns=['`Name`']",
        [(1, "one", 10), (2, "TWO", 20), (3, "three", 30), (None, "NONE", 0)],
    ),
    "exclude_columns": Case(
        "unique_key='id', merge_exclude_columns=['NAME', 'no_such'], matched_condition='DBT_INTERNAL_DEST.id = 2'",
        [(1, "one", 10), (2, "two", 21), (3, "three", 30), (None, "none", 0)],
    ),
    "adds_columns": Case(
        "unique_key='id', merge_exclude_columns=['name'], on_schema_change='append_new_columns'",
        [(1, "one", 10, None), (2, "two", 21, "n"), (3, "three", 30, "n"), (None, "none", 1, "n")],
        new="select *, 'n' as extra from (" + NEW + ")",
    ),
    "syncs_columns": Case(
        "unique_key='id', matched_condition='DBT_INTERNAL_DEST.size > 5', on_schema_change='sync_all_columns'",
        [(1, "one", 10, None), (2, "TWO", 21, "n"), (3, "three", 30, "n"), (None, "none", 0, None)],
        new="select *, 'n' as extra from (" + NEW + ")",
    ),
    "skips_equal_rows": Case(
        "unique_key='id', skip_equal_rows=true, merge_update_columns=['size']",
        [(1, "one", 10), (2, "two", 21), (3, "three", 30), (None, "none", 1)],
    ),
    "predicates": Case(
        "unique_key='id', incremental_predicates=['DBT_INTERNAL_DEST.size >= 0', 'DBT_INTERNAL_SOURCE.size < 21']",
        [(1, "one", 10), (2, "TWO", 21), (2, "two", 20), (3, "three", 30), (None, "NONE", 1)],
    ),
    "reserved": Case(
        "unique_key=['order', '`group by`'], merge_update_columns=['select', 'a.b']",
        [(1, 1, "new", "N", "kept"), (1, 2, "new", "N", "from")],
        old="select 1 as `order`, 1 as `group by`, 'old' as `select`, 'O' as `a.b`, 'kept' as `from`",
        new="select * from values (1, 1, 'new', 'N', 'from'), (1, 2, 'new', 'N', 'from') "
        "as t (`order`, `group by`, `select`, `a.b`, `from`)",
    ),
    "expression_key": Case(
        "unique_key=\"concat(upper(left(name, 1)), '-', cast(id as string))\"",
        [(2, "TWO", 21), (2, "xwo", 1), (3, "three", 30), (None, "NONE", 1)],
        old="select * from values (2, 'two', 20), (2, 'xwo', 1) as t (id, name, size)",
    ),
    "nested_key": Case(
        "unique_key='key.id', incremental_strategy='merge'",
        [("{'id': 1}", "new"), ("{'id': 2}", "new")],
        old="select named_struct('id', 1) as key, 'old' as name",
        new="select named_struct('id', id) as key, 'new' as name from values (1), (2) as t (id)",
    ),
}

DUCKDB = {
    "update_condition": Case(
        "unique_key='id', merge_update_condition='dbt_internal_dest.size between 5 and DBT_INTERNAL_SOURCE.size'",
        [(1, "one", 10), (2, "TWO", 21), (3, "three", 30), (None, "none", 0)],
    ),
    "insert_condition": Case(
        "unique_key='id', merge_insert_condition=\"DBT_INTERNAL_SOURCE.name != 'three'\"",
        [(1, "one", 10), (2, "TWO", 21), (None, "NONE", 1)],
    ),
    "set_expressions": Case(
        "unique_key='id', merge_exclude_columns=['name'], "
        "merge_update_set_expressions={'size': 'DBT_INTERNAL_DEST.size + DBT_INTERNAL_SOURCE.size'}",
        [(1, "one", 10), (2, "two", 41), (3, "three", 30), (None, "none", 1)],
    ),
    "using_columns": Case(
        "incremental_strategy='merge', merge_on_using_columns=['id']",
        [(1, "one", 10), (2, "TWO", 21), (3, "three", 30), (None, "NONE", 1)],
    ),
    "clauses": Case(
        "unique_key='id', merge_clauses={"
        "'when_matched': [{'action': 'delete', 'condition': 'DBT_INTERNAL_DEST.size = 0'}, "
        "  {'action': 'update', 'mode': 'explicit', 'condition': ['DBT_INTERNAL_SOURCE.size > 0', 'true'], "
        "   'update': {'include': ['name', 'size'], 'exclude': ['size'], 'set_expressions': {'size': 7}}}], "
        "'when_not_matched': [{'action': 'insert', 'mode': 'explicit', "
        "  'insert': {'columns': ['id', 'name'], 'values': ['DBT_INTERNAL_SOURCE.id', \"'added'\"]}}, "
        "  {'by': 'source', 'action': 'update', 'set_expressions': {'name': \"'left'\"}}]}",
        [(1, "left", 10), (2, "TWO", 7), (3, "added", None)],
    ),
    "clauses_that_do_nothing": Case(
        "unique_key='id', merge_clauses={"
        "'when_matched': [{'action': 'do_nothing', 'condition': 'DBT_INTERNAL_SOURCE.id = 2'}, {'action': 'update'}], "
        "'when_not_matched': [{'action': 'do_nothing'}], "
        "'when_not_matched_by_source': [{'action': 'delete'}]}",
        [(2, "two", 20), (None, "NONE", 1)],
    ),
    "clauses_by_position": Case(
        "unique_key='id', merge_clauses={'when_matched': [{'action': 'update', 'mode': 'by_position'}], "
        "'when_not_matched': [{'action': 'insert', 'mode': 'by_position'}]}",
        [(1, "one", 10), (2, "swapped", 22), (4, "swapped", 44)],
        old="select 1 as id, 'one' as name, 10 as size union all select 2, 'two', 20",
        new="select * from values (2, 'swapped', 22), (4, 'swapped', 44) as t (id, other, size)",
    ),
    "clause_defaults": Case(
        "unique_key='id', merge_clauses={'when_not_matched': [{'action': 'insert', 'mode': 'star', "
        "'condition': 'DBT_INTERNAL_SOURCE.size > 100'}]}",
        [(1, "one", 10), (2, "TWO", 21), (None, "NONE", 1)],
    ),
}

OTHERS = {
    "appended": Case(
        "incremental_strategy='append'",
        [(1, "one", 10), (2, "two", 20), (3, "x", 1)],
        old="select 1 as id, 'one' as name, 10 as size union all select 2, 'two', 20",
        new="select 'x' as name, 1 as size, 3 as id",
    ),
    "replaced_where": Case(
        "incremental_strategy='replace_where', incremental_predicates='id >= 2'",
        [(1, "one", 10), (3, "three", 30), (None, "none", 0)],
        new="select 3 as id, 'three' as name, 30 as size",
    ),
    "deleted_and_inserted": Case(
        "incremental_strategy='delete+insert', unique_key=['id', 'name']",
        [(1, "one", 10), (2, "two", 20), (2, "two", 22), (3, "two", 1), (None, "none", 5), (None, None, 1)],
        new="select * from values (2, 'two', 22), (2, 'two', 20), (3, 'two', 1), (cast(null as int), 'none', 5), "
        "(cast(null as int), cast(null as string), 1) as t (id, name, size)",
    ),
    "deleted_where": Case(
        "incremental_strategy='delete+insert', unique_key='id', incremental_predicates=['size < 20']",
        [(1, "ONE", 1), (2, "TWO", 21), (2, "two", 20), (None, "NONE", 1)],
        new="select * from values (1, 'ONE', 1), (2, 'TWO', 21), (cast(null as int), 'NONE', 1) as t (id, name, size)",
    ),
    "deleted_where_and_grown": Case(
        "incremental_strategy='delete+insert', unique_key='id', incremental_predicates='size > 5', "
        "on_schema_change='append_new_columns'",
        [
            *((1, "one", 10, None), (2, "TWO", 21, "n"), (3, "three", 30, "n")),
            *((None, "NONE", 1, "n"), (None, "none", 0, None)),
        ],
        new="select *, 'n' as extra from (" + NEW + ")",
    ),
    "overwritten_whole": Case(
        "incremental_strategy='insert_overwrite'", [(2, "TWO", 21), (3, "three", 30), (None, "NONE", 1)]
    ),
    "replaced_and_grown": Case(
        "incremental_strategy='delete+insert', unique_key='id', on_schema_change='append_new_columns'",
        [(1, "one", 10, None), (2, "TWO", 21, "n"), (3, "three", 30, "n"), (None, "NONE", 1, "n")],
        new="select *, 'n' as extra from (" + NEW + ")",
    ),
    "overwritten_by_column": Case(
        "incremental_strategy='insert_overwrite', liquid_clustered_by='id'",
        [(1, "one", 10), (2, "TWO", 21), (3, "three", 30), (None, "NONE", 1)],
    ),
    "overwritten_by_range": Case(
        "incremental_strategy='insert_overwrite', partition_by={'field': 'id', 'data_type': 'int64', "
        "'range': {'start': 0, 'end': 4, 'interval': 4}}",
        [(2, "TWO", 21), (3, "three", 30), (None, "NONE", 1)],
    ),
    "overwritten_by_month": Case(
        "incremental_strategy='insert_overwrite', partition_by={'field': 'at', 'data_type': 'timestamp', "
        "'granularity': 'month'}",
        [("2026-01-31", 1), ("2026-02-28", 3)],
        old="select * from values ('2026-01-31', 1), ('2026-02-01', 2) as t (at, n)",
        new="select '2026-02-28' as at, 3 as n",
    ),
    "overwritten_by_two": Case(
        "incremental_strategy='insert_overwrite', partition_by=['id', 'name']",
        [(1, "one", 10), (2, "TWO", 21), (2, "two", 20), (None, None, 2)],
        old="select * from values (1, 'one', 10), (2, 'two', 20), (cast(null as int), cast(null as string), 1) "
        "as t (id, name, size)",
        new="select * from values (2, 'TWO', 21), (cast(null as int), cast(null as string), 2) as t (id, name, size)",
    ),
}


def found(project: Any, name: str) -> list[Row]:
    rows = project.run_sql(f"select * from {project.database}.{project.test_schema}.{name}", fetch="all")
    return sorted((tuple(str(each) if isinstance(each, dict) else each for each in row) for row in rows), key=repr)


class TestEachWord:
    """One project holds a model for each word, so that two runs show them all."""

    CASES: ClassVar = {**DATABRICKS, **DUCKDB, **OTHERS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {f"{name}.sql": case.model for name, case in self.CASES.items()}

    @pytest.fixture(scope="class")
    def run_twice(self, project: Any) -> Any:
        run_dbt(["run"])
        results = run_dbt(["run"])
        versions = {result.node.name: result.adapter_response["table_version"] for result in results}
        assert versions == dict.fromkeys(self.CASES, 1), "each model is one commit"
        return project

    @pytest.mark.parametrize("name", CASES)
    def test_does_what_it_says(self, run_twice: Any, name: str) -> None:
        assert found(run_twice, name) == sorted(self.CASES[name].expected, key=repr)


MACROS = """
{% macro get_incremental_counted_sql(arg_dict) %}
  {%- set names = adapter.get_columns_in_relation(arg_dict['temp_relation']) | map(attribute='name') | join(', ') -%}
  delete from {{ arg_dict['target_relation'] }} where id in (select id from {{ arg_dict['temp_relation'] }});
  insert into {{ arg_dict['target_relation'] }} ({{ names }}) select {{ names }} from {{ arg_dict['temp_relation'] }}
{% endmacro %}

{% macro get_incremental_listed_sql(arg_dict) %}
  {{ return(["delete from " ~ arg_dict['target_relation'] ~ " where id = 1",
             "insert into " ~ arg_dict['target_relation'] ~ " select * from " ~ arg_dict['temp_relation']]) }}
{% endmacro %}

{% macro get_incremental_dispatched_sql(arg_dict) %}
  {{ return(adapter.dispatch('get_incremental_dispatched_sql')(arg_dict)) }}
{% endmacro %}

{% macro spark__get_incremental_dispatched_sql(arg_dict) %}
  insert into table {{ arg_dict['target_relation'] }} select * from {{ arg_dict['temp_relation'] }} where id > 2
{% endmacro %}

{% macro silt__get_incremental_insert_overwrite_sql(arg_dict) %}
  insert overwrite {{ arg_dict['target_relation'] }} select id, name, 0 from {{ arg_dict['temp_relation'] }}
{% endmacro %}

{% macro get_incremental_ours_sql(arg_dict) %}
  {{ return(get_incremental_merge_sql({
    'target_relation': arg_dict['target_relation'], 'temp_relation': arg_dict['temp_relation'], 'unique_key': 'name',
    'dest_columns': adapter.get_columns_in_relation(arg_dict['target_relation']), 'incremental_predicates': none,
  })) }}
{% endmacro %}
"""


class TestStrategiesOfTheProject:
    """They read the model's rows from `temp_relation`; one may also replace a strategy of the adapter."""

    NEW = "select 2 as id, 'TWO' as name, 21 as size union all select 3, 'three', 30"
    CASES: ClassVar = {
        "counted": [(1, "one", 10), (2, "TWO", 21), (3, "three", 30), (None, "none", 0)],
        "listed": [(2, "TWO", 21), (2, "two", 20), (3, "three", 30), (None, "none", 0)],
        "dispatched": [(1, "one", 10), (2, "two", 20), (3, "three", 30), (None, "none", 0)],
        "insert_overwrite": [(2, "TWO", 0), (3, "three", 0)],
        "ours": [(1, "one", 10), (2, "TWO", 21), (2, "two", 20), (3, "three", 30), (None, "none", 0)],
    }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {f"{name}.sql": Case(f"incremental_strategy='{name}'", [], new=self.NEW).model for name in self.CASES}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"strategies.sql": MACROS}

    def test_are_run_and_by_a_rerun_not_again(self, project: Any) -> None:
        run_dbt(["run"])
        for _ in range(2):
            run_dbt(["run", "--vars", "silt_run_id: R2"])
            rows = {name: found(project, name) for name in self.CASES}
            assert rows == {name: sorted(expected, key=repr) for name, expected in self.CASES.items()}  # type: ignore[call-overload]


class TestAConfigurationThatCannotBeUsed:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hook = "pre_hook='insert into {{ target.schema }}.audit values (1)'"
        return {
            "misspelt.sql": Case(f"unique_key='id', skip_non_matched_step=true, {hook}", []).model,
            "mixed.sql": Case(f"unique_key='id', merge_insert_condition='true', source_alias='s', {hook}", []).model,
            "unknown_column.sql": Case("unique_key='id', merge_update_columns=['nowhere']", []).model,
            "failing.sql": Case(
                "unique_key='id', "
                "merge_clauses={'when_matched': [{'action': 'error', 'error_message': 'twice \"id\"'}]}",
                [],
            ).model,
        }

    def test_is_refused_before_anything_runs(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.audit (n int)")
        _, output = run_dbt_and_capture(["run", "--select", "misspelt", "mixed"], expect_pass=False)
        assert "`skip_non_matched_step` is unknown: did you mean `skip_not_matched_step`?" in output
        assert "`source_alias` of dbt-databricks and `merge_insert_condition` of dbt-duckdb" in output
        assert project.run_sql(f"select count(*) from {project.test_schema}.audit", fetch="one") == (0,)

    def test_what_only_the_rows_or_columns_show_changes_nothing(self, project: Any) -> None:
        run_dbt(["run", "--select", "unknown_column", "failing", "--full-refresh"])
        _, output = run_dbt_and_capture(["run", "--select", "unknown_column", "failing"], expect_pass=False)
        assert "`merge_update_columns` names nowhere, which is not one of the columns id, name, size" in output
        assert 'twice "id"' in output
        for name in ("unknown_column", "failing"):
            assert found(project, name) == [(1, "one", 10), (2, "two", 20), (None, "none", 0)]


NEW_ITEM = "select *, 'n' as extra, named_struct('a', 1, 'b', 2) as pair from (" + NEW + ")"


class TestColumnsThatAMergeDoesNotWrite:
    """Neither an insert nor an update writes the new columns: the table gets them nevertheless, with nulls."""

    CONFIGS: ClassVar = {
        "updated": "merge_update_columns=['size'], skip_not_matched_step=true",
        "excluded": "merge_exclude_columns=['extra', 'pair'], skip_not_matched_step='true'",
        "by_clause": "merge_clauses={'when_matched': [{'action': 'update', 'mode': 'explicit', "
        "'update': {'include': ['size']}}], 'when_not_matched': [{'action': 'do_nothing'}]}",
    }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            f"{name}_{change}.sql": Case(
                f"unique_key='id', {config}, on_schema_change='{change}'",
                [],
                old=f"select *, named_struct('a', 1) as pair from ({OLD})",
                new=NEW_ITEM,
            ).model
            for name, config in self.CONFIGS.items()
            for change in ("append_new_columns", "sync_all_columns")
        }

    def test_are_added(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        for name in self.CONFIGS:
            for change in ("append_new_columns", "sync_all_columns"):
                table = f"{project.database}.{project.test_schema}.{name}_{change}"
                rows = project.run_sql(f"select id, size, extra, pair.b from {table}", fetch="all")
                one, *others = sorted(map(tuple, rows), key=repr)
                assert one == (1, 10, None, None), table
                assert {row[2:] for row in others} == {(None, None)}, table
                assert (2, 21) in {row[:2] for row in others}, table
