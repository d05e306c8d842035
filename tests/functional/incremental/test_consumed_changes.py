"""Incremental models that read the changes of their inputs, each change once."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

ORDERS = """
{{ config(materialized='table', event_time='at') }}
select id, size, timestamp'2025-01-01' as at from values {{ var('orders') }} as t (id, size)
"""
APPENDED = """
{{ config(materialized='incremental', incremental_strategy='append') }}
select id, size, _change_type as kind from {{ silt_changes(ref('orders')) }}
"""
MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, size * 2 as twice, _change_type from {{ silt_changes(ref('orders'), as='upserts') }}
"""
UNIT_TEST = """
unit_tests:
  - name: amounts
    model: merged
    given:
      - input: ref('orders')
        format: sql
        rows: "select 1 as id, 5 as size, 'upsert' as _change_type union all select 2, null, 'delete'"
    expect:
      rows:
        - {id: 1, twice: 10, _change_type: upsert}
        - {id: 2, twice: null, _change_type: delete}
"""
FIRST, SECOND = "(1, 1), (2, 2), (3, 3)", "(1, 1), (2, 20), (4, 4)"


def build(project: Any, orders: str, *arguments: str, run_id: str = "") -> tuple[list[Any], list[Any]]:
    """The rows of both models after a run."""
    more = f", silt_run_id: {run_id}" if run_id else ""
    run_dbt(["run", "--vars", f"{{orders: '{orders}'{more}}}", *arguments])
    appended = project.run_sql("select id, size, kind from {schema}.appended order by all", fetch="all")
    merged = project.run_sql("select * from {schema}.merged order by all", fetch="all")
    return list(map(tuple, appended)), list(map(tuple, merged))


class TestChanges:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "appended.sql": APPENDED, "merged.sql": MERGED, "unit_tests.yml": UNIT_TEST}

    def test_each_run_reads_what_changed_since_the_last(self, project: Any) -> None:
        first = [(1, 1, "insert"), (2, 2, "insert"), (3, 3, "insert")]
        changed = [(2, 2, "delete"), (2, 20, "insert"), (3, 3, "delete"), (4, 4, "insert")]
        assert build(project, FIRST) == (first, [(1, 2), (2, 4), (3, 6)])
        assert build(project, SECOND) == (sorted([*first, *changed]), [(1, 2), (2, 40), (4, 8)])
        assert build(project, SECOND) == (sorted([*first, *changed]), [(1, 2), (2, 40), (4, 8)])
        run_dbt(["run", "--empty", "--exclude", "orders", "--vars", f"{{orders: '{FIRST}'}}"])
        third = [(2, 2, "insert"), (2, 20, "delete"), (3, 3, "insert"), (4, 4, "delete")]
        for _ in range(2):
            rows, merged = build(project, FIRST, run_id="third")
            assert (rows, merged) == (sorted([*first, *changed, *third]), [(1, 2), (2, 4), (3, 6)])
        assert build(project, FIRST, "--full-refresh") == (first, [(1, 2), (2, 4), (3, 6)])

    def test_a_key_that_rows_share_keeps_the_row_that_remains_or_is_refused(self, project: Any) -> None:
        build(project, FIRST, "--full-refresh")
        assert build(project, f"(1, 5), {FIRST}")[1] == [(1, 10), (2, 4), (3, 6)]
        assert build(project, FIRST)[1] == [(1, 2), (2, 4), (3, 6)]
        shared = f"(7, 1), (7, 2), {FIRST}"
        arguments = ["run", "--select", "orders", "merged", "--vars", f"{{orders: '{shared}'}}"]
        _, said = run_dbt_and_capture(arguments, expect_pass=False)
        assert 'several rows share the key of the upserts: {"id":7}' in said
        assert build(project, FIRST, "--full-refresh")[1] == [(1, 2), (2, 4), (3, 6)]

    def test_the_rows_of_a_unit_test_are_the_changes(self, project: Any) -> None:
        run_dbt(["test", "--vars", f"{{orders: '{FIRST}'}}"])

    def test_a_rollback_moves_the_positions_back_with_the_rows(self, project: Any) -> None:
        first = [(1, 1, "insert"), (2, 2, "insert"), (3, 3, "insert")]
        changed = [(2, 2, "delete"), (2, 20, "insert"), (3, 3, "delete"), (4, 4, "insert")]
        undone = [(2, 2, "insert"), (2, 20, "delete"), (3, 3, "insert"), (4, 4, "delete")]
        assert build(project, FIRST, "--full-refresh") == (first, [(1, 2), (2, 4), (3, 6)])
        build(project, SECOND, run_id="wrong")
        run_dbt(["run-operation", "silt_rollback", "--args", "{run_id: wrong}"])
        again = build(project, SECOND, "--exclude", "orders", run_id="wrong")
        assert again == (sorted([*first, *changed, *undone]), [(1, 2), (2, 4), (3, 6)])
        assert build(project, SECOND)[1] == [(1, 2), (2, 40), (4, 8)]


NOT_INCREMENTAL = "{{ config(materialized='table') }} select * from {{ silt_changes(ref('orders')) }}"
MICROBATCH = (
    "{{ config(materialized='incremental', incremental_strategy='replace_where', incremental_predicates=['id > 0']) }} "
    "select * from {{ silt_changes(ref('orders')) }}"
)
WITHOUT_KEY = "{{ config(materialized='incremental') }} select * from {{ silt_changes(ref('orders'), as='upserts') }}"
EPHEMERAL = "{{ config(materialized='ephemeral') }} select * from {{ ref('orders') }}"
OF_EPHEMERAL = "{{ config(materialized='incremental') }} select * from {{ silt_changes(ref('ephemeral')) }}"
TWICE = """
{{ config(materialized='incremental', incremental_strategy='append') }}
select a.id, b.size from {{ silt_changes(ref('orders')) }} a join {{ silt_changes(ref('orders')) }} b on a.id = b.id
"""
SAMPLED = "{{ config(materialized='incremental') }} select * from {{ silt_changes(ref('orders')) }}"
OF_FILES = "{{ config(materialized='incremental') }} select * from {{ silt_changes(source('raw', 'landed')) }}"
OF_A_VIEW = "{{ config(materialized='incremental') }} select * from {{ silt_changes(ref('seen')) }}"
VIEW = "{{ config(materialized='view') }} select * from {{ ref('orders') }}"


class TestRefused:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "seen.sql": VIEW,
            "not_incremental.sql": NOT_INCREMENTAL,
            "other_strategy.sql": MICROBATCH,
            "without_key.sql": WITHOUT_KEY,
            "of_a_view.sql": OF_A_VIEW,
            "ephemeral.sql": EPHEMERAL,
            "of_ephemeral.sql": OF_EPHEMERAL,
            "twice.sql": TWICE,
            "sampled.sql": SAMPLED,
            "of_files.sql": OF_FILES,
            "sources.yml": "sources: [{name: raw, tables: [{name: landed, meta: {external_location: landed.csv}}]}]",
            "mistake.sql": "{{ config(materialized='incremental') }} select 'a as x",
        }

    def test_models_that_cannot_consume_changes_are_refused_by_name(self, project: Any) -> None:
        results, output = run_dbt_and_capture(["run", "--vars", f"{{orders: '{FIRST}'}}"], expect_pass=False)
        messages = {each.node.name: each.message for each in results}
        assert "`not_incremental` is materialized as table" in messages["not_incremental"]
        assert "needs the incremental strategy append or merge, not `replace_where`" in messages["other_strategy"]
        assert "needs a key" in messages["without_key"]
        assert "is a view" in messages["of_a_view"]
        assert "is ephemeral" in messages["of_ephemeral"]
        assert "`landed` is files, which have no versions" in messages["of_files"]
        assert "SILT_SYNTAX" in messages["mistake"] and "Unhandled error" not in output
        rows = project.run_sql("select * from {schema}.twice order by id", fetch="all")
        assert list(map(tuple, rows)) == [(1, 1), (2, 2), (3, 3)]

    def test_a_sample_is_refused_by_name(self, project: Any) -> None:
        window = "{start: '2025-01-01', end: '2025-01-02'}"
        results, _ = run_dbt_and_capture(
            ["run", "--sample", window, "--select", "sampled", "--vars", f"{{orders: '{FIRST}'}}"], expect_pass=False
        )
        assert "cannot read a sample" in results[0].message


REBUILT = """
{{ config(
    materialized='incremental', incremental_strategy='append', on_missing_changes=var('missing', 'full_refresh')
) }}
select id, size from {{ silt_changes(ref('orders')) }}
"""
PROTECTED = "{{ config(full_refresh=false) }}" + REBUILT
DEPENDENT = REBUILT + " {% if is_incremental() %} where id > 0 {% endif %}"


class TestMissingChanges:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "rebuilt.sql": REBUILT, "protected.sql": PROTECTED, "dependent.sql": DEPENDENT}

    def test_a_table_whose_changes_are_missing_is_built_again_if_the_config_says_so(self, project: Any) -> None:
        run_dbt(["run", "--vars", f"{{orders: '{FIRST}'}}"])
        project.run_sql("drop table {schema}.orders")
        run_dbt(["run", "--vars", f"{{orders: '{SECOND}'}}", "--select", "orders"])
        results = run_dbt(["run", "--vars", "{missing: fail, orders: ''}", "--select", "rebuilt"], expect_pass=False)
        assert "SILT_CHANGES_MISSING" in results[0].message
        results, said = run_dbt_and_capture(["run", "--vars", "{orders: ''}", "--exclude", "orders"], expect_pass=False)
        messages = {each.node.name: each.message for each in results}
        assert "Built again from all rows: rebuilt" in said
        assert "its config is `full_refresh: false`" in messages["protected"]
        assert "depends on `is_incremental()`" in messages["dependent"]
        rows = project.run_sql("select * from {schema}.rebuilt order by id", fetch="all")
        assert list(map(tuple, rows)) == [(1, 1), (2, 20), (4, 4)]
        run_dbt(["run", "--vars", f"{{orders: '{FIRST}'}}", "--select", "orders", "rebuilt"])
        assert project.run_sql("select count(*) from {schema}.rebuilt", fetch="one")[0] == 7
