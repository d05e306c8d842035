"""After a conflict at the publication, only the nodes whose tables conflict and the nodes below them run again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner
from dbt.tests.util import run_dbt

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.files import write_files
from tests.functional.runs.test_publishing import HEAD, Publishing, rows, silt, warehouse, with_id

APPEND = "{{ config(materialized='incremental', incremental_strategy='append') }} "


class Conflicts(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "folded.sql": "{{ config(materialized='ephemeral') }} select id, id * 10 as amount from range(3) as t(id)",
            "orders.sql": HEAD + "select * from {{ ref('folded') }}",
            "totals.sql": "select sum(amount) as total from {{ ref('orders') }}",
            "below.sql": APPEND + "select total, '{{ var('day', 0) }}' as day from {{ ref('totals') }}",
            "apart.sql": "{{ config(materialized='incremental', incremental_strategy='append', "
            "after_publish='insert into {{ this.schema }}.notes select count(*) from {{ this }}') }} "
            "select {{ var('day', 0) }} as day",
            "viewed.sql": "select {{ var('day', 0) }} as day",
            "schema.yml": """
models:
  - name: orders
    columns: [{name: amount, data_tests: [not_null]}]
unit_tests:
  - name: sums
    model: totals
    given: [{input: ref('orders'), rows: [{amount: 1}, {amount: 2}]}]
    expect: {rows: [{total: 3}]}
""",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        notes = "create table if not exists {{ target.schema }}.notes (n bigint)"
        ends = "create table if not exists {{ target.schema }}.ends (day int)"
        return {
            "on-run-start": [notes, ends],
            "on-run-end": "insert into {{ target.schema }}.ends values ({{ var('day', 0) }})",
        }


def build(
    project: Any, disturb: Callable[[Catalog], object], *options: str, often: int = 1, after: str = "below"
) -> tuple[Any, Counter[str]]:
    """Builds while another program disturbs the warehouse when a node is finished; returns the result, and how often
    each node was started.
    """
    started: Counter[str] = Counter()
    left = [disturb] * often

    def on_event(event: Any) -> None:
        if event.info.name == "NodeStart":
            started[event.data.node_info.node_name] += 1
        if event.info.name == "NodeFinished" and event.data.node_info.node_name == after and left:
            left.pop()(open_databases({project.database: warehouse(project)}, Storages()).catalog)

    place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
    return dbtRunner(callbacks=[on_event]).invoke(["build", *options, *place]), started


def name(project: Any, identifier: str) -> RelationName:
    return RelationName(project.database, project.test_schema, identifier)


def touched(project: Any, identifier: str) -> Callable[[Catalog], object]:
    """Another program changes the comment of a table, which conflicts with every change of it."""

    def disturb(catalog: Catalog) -> object:
        log = catalog.table(name(project, identifier))
        snapshot = log.snapshot()
        metadata = replace(snapshot.metadata, description=f"after v{snapshot.version}")
        return commit(log, snapshot, Changes(Operation("COMMENT"), metadata=metadata), ReadSet(), CommitSettings())

    return disturb


def results(project: Any) -> Counter[str]:
    document = json.loads(Path(project.project_root, "target", "run_results.json").read_text())
    return Counter(each["unique_id"] for each in document["results"])


class TestANodeThatConflicts(Conflicts):
    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["build", *with_id("first")])

    def test_it_runs_again_with_the_nodes_below_it_and_everything_is_published_once(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        result, started = build(project, touched(project, "below"), *with_id("second", day=1))
        assert result.success, result.exception
        output = capsys.readouterr().out
        assert "Conflict: silt." in output and "Only these nodes run again, 1 of 7: below" in output
        assert started["below"] == 2 and started["apart"] == started["orders"] == started["totals"] == 1
        assert set(results(project).values()) == {1}
        assert rows(project, "below") == [(30, "0"), (30, "1")]
        assert rows(project, "apart") == [(0,), (1,)]
        assert rows(project, "ends") == [(0,), (1,)]
        assert rows(project, "notes") == [(1,), (2,)]

    def test_nodes_that_are_built_from_it_run_again_too(self, project: Any) -> None:
        result, started = build(
            project, lambda catalog: catalog.drop_table(name(project, "orders")), *with_id("third", day=2)
        )
        assert result.success, result.exception
        assert started["orders"] == started["totals"] == started["below"] == 2
        assert started["apart"] == started["viewed"] == 1
        assert set(results(project).values()) == {1}
        assert rows(project, "below") == [(30, "0"), (30, "1"), (30, "2")]
        assert rows(project, "totals") == [(30,)]
        assert rows(project, "apart") == [(0,), (1,), (2,)]

    def test_a_view_that_another_program_has_replaced_is_created_again(self, project: Any) -> None:
        theirs = View(name(project, "viewed"), "select 9 as day")
        result, started = build(
            project, lambda catalog: catalog.put_view(theirs, replace=True), *with_id("fourth", day=3)
        )
        assert result.success, result.exception
        assert started["viewed"] == 2 and started["below"] == started["orders"] == 1
        assert rows(project, "viewed") == [(3,)]


class TestTheLastAttempt(Conflicts):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "publish_attempts": 2}

    def test_a_conflict_in_it_drops_the_run_and_fails_the_command(self, project: Any) -> None:
        run_dbt(["build", *with_id("first")])
        before = {each: rows(project, each) for each in ("apart", "below", "ends", "notes", "orders")}
        result, started = build(project, touched(project, "below"), *with_id("second", day=1), often=2)
        assert not result.success and "SILT_METADATA_CHANGED" in str(result.exception)
        assert started["below"] == 2 and started["apart"] == 1
        assert {each: rows(project, each) for each in before} == before
        assert silt(project, "drop-run", "second") == 2


class TestWhatCannotRunAgain(Conflicts):
    def test_a_table_that_only_an_earlier_command_has_changed_is_never_published(self, project: Any) -> None:
        run_dbt(["build", *with_id("first")])
        before = {each: rows(project, each) for each in ("apart", "below", "orders")}
        write_files(Path(project.project_root, "models"), {"broken.sql": HEAD + "select raise_error('no') as id"})
        run_dbt(["run", "--select", "orders", "broken", *with_id("second", day=1)], expect_pass=False)
        options = ("--select", "apart", *with_id("second", day=1))
        _, started = build(project, touched(project, "orders"), *options, after="apart")
        assert started["apart"] == 1
        assert silt(project, "publish", "second") == 2
        assert {each: rows(project, each) for each in before} == before


class TestAnotherCommandOfTheProcess(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sources = """
sources:
  - name: own
    schema: "{{ target.schema }}"
    freshness: {warn_after: {count: 1, period: day}}
    tables: [{name: orders}]
"""
        return {"orders.sql": HEAD + "select 1 as id", "sources.yml": sources}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    def test_it_is_not_asked_which_nodes_run_again_if_it_publishes_nothing(self, project: Any) -> None:
        run_dbt(["build"])
        (found,) = run_dbt(["source", "freshness"])
        assert found.status == "pass"


class TestOneStateOfEachInput(Publishing):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "threads": 1}  # in the order of the names

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        counted = "{% set found = run_query('select count(*) from ' ~ target.schema ~ '.a') %}"
        value = "{{ found.columns[0].values()[0] if execute else 0 }}"
        raw = "{{ source('raw', 't') }}"
        return {
            "a.sql": f"{{{{ config(materialized='incremental', unique_key='id') }}}} select id from {raw}",
            "c.sql": APPEND + f"select {{{{ var('day', 0) }}}} as day, count(*) as n from {raw}",
            "other.sql": APPEND + "select {{ var('day', 0) }} as day, count(*) as n from {{ source('raw', 'u') }}",
            "z_viewed.sql": f"-- depends_on: {{{{ ref('c') }}}}\n{counted} select {value} as n",
            "z_table.sql": f"-- depends_on: {{{{ ref('c') }}}}\n{HEAD}{counted} select {value} as n",
            "last.sql": "-- depends_on: {{ ref('z_viewed') }} {{ ref('z_table') }} {{ ref('other') }}\nselect 1 as one",
            "sources.yml": "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: t}, {name: u}]}]",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    def test_all_nodes_that_have_read_older_rows_of_an_input_run_again_also_views(self, project: Any) -> None:
        schema = project.test_schema
        for table in ("t", "u"):
            project.run_sql(f"create table {schema}.{table} as select 1 as id")
        run_dbt(["build", *with_id("first")])
        for table in ("t", "u"):
            project.run_sql(f"insert into {schema}.{table} values (2)")

        def disturb(catalog: Catalog) -> None:
            for table in ("t", "u"):
                log = catalog.table(name(project, table))
                snapshot = log.snapshot()
                removes = tuple(each.remove(1) for each in list(snapshot.add_files())[:1])
                commit(log, snapshot, Changes(Operation("DELETE"), (), removes), ReadSet(), CommitSettings())
            touched(project, "a")(catalog)

        result, started = build(project, disturb, *with_id("second", day=1), after="last")
        assert result.success, result.exception
        assert rows(project, "c") == [(0, 1), (1, 1)]
        assert rows(project, "other") == [(0, 1), (1, 2)]
        assert rows(project, "z_viewed") == rows(project, "z_table") == [(len(rows(project, "a")),)]
        assert started["c"] == started["z_viewed"] == started["z_table"] == 2 and started["other"] == 1
