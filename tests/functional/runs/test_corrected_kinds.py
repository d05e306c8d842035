"""A held run is corrected at the sources of a microbatch model, of changed keys, of files and of another database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture

from tests.functional.runs.test_publishing import HEAD, Publishing, rows, shown, with_id

MODELS = ("batched", "keyed", "from_files", "by_path", "rates", "below")

SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: events, config: {event_time: at}}, {name: src}]
  - name: landed
    tables: [{name: orders, config: {external_location: "FOLDER/*.csv"}}]
  - name: abroad
    database: abroad
    schema: "{{ target.schema }}"
    tables: [{name: by_path}]
models:
  - name: batched
    columns: [{name: v, data_tests: [not_null]}]
  - name: keyed
    columns: [{name: s, data_tests: [not_null]}]
  - name: from_files
    columns: [{name: v, data_tests: [not_null]}]
  - name: rates
    columns: [{name: v, data_tests: [not_null]}]
"""
BATCHED = (
    "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', "
    "begin='2026-03-01', lookback=2) }} select id, v, at from {{ source('raw', 'events') }}"
)
KEYED = (
    "{{ config(materialized='incremental', incremental_strategy='changed_keys', group_key='k') }} "
    "select k, if(count(v) = count(*), sum(v), null) as s from {{ source('raw', 'src') }} group by k"
)


class TestCorrectedKinds(Publishing):
    @pytest.fixture(scope="class")
    def landed(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("landed")

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any], tmp_path_factory: Any) -> dict[str, Any]:
        abroad = str(tmp_path_factory.mktemp("abroad"))
        return {**silt_target, "publish": "after_tests", "databases": {"abroad": abroad}}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def models(self, landed: Path) -> dict[str, str]:
        return {
            "batched.sql": BATCHED,
            "keyed.sql": KEYED,
            "from_files.sql": HEAD + "select try_cast(v as int) as v from {{ source('landed', 'orders') }}",
            "by_path.sql": HEAD + "select count(*) as n from read_files('{{ var('folder') }}/*.csv', header => true)",
            "composed.sql": HEAD + "{% set folder = var('folder') ~ '/' %}"
            "select count(*) as n from read_files('{{ folder }}*.csv', header => true)",
            "rates.sql": HEAD + "select v from {{ source('abroad', 'by_path') }}",
            "of_rates.sql": HEAD + "select sum(v) as v from {{ source('abroad', 'by_path') }}",
            "below.sql": HEAD + "select sum(v) as total from (select v from {{ ref('batched') }} union all "
            "select s from {{ ref('keyed') }} union all select v from {{ ref('from_files') }} union all "
            "select v from {{ ref('rates') }})",
            "schema.yml": SOURCES.replace("FOLDER", str(landed)),
        }

    @pytest.fixture(autouse=True)
    def days(self) -> Any:
        with patch_microbatch_end_time("2026-03-03 13:00:00"):
            yield

    @staticmethod
    def build(landed: Path, day: int, success: bool = True) -> str:
        given = with_id(f"day {day}", folder=str(landed))
        return run_dbt_and_capture(["build", *given], expect_pass=success)[1]

    @staticmethod
    def versions(project: Any) -> dict[str, int]:
        found = shown(project)
        return {name: found[name] for name in MODELS}

    def built_again(self, output: str) -> set[str]:
        (line,) = [each for each in output.splitlines() if "Built again: " in each]
        return {each.strip() for each in line.partition("Built again: ")[2].split(",")}

    def test_each_source_is_corrected_and_only_its_readers_are_built_again(self, project: Any, landed: Path) -> None:
        schema = project.test_schema
        events = "timestamp'2026-03-01 06:00:00Z', timestamp'2026-03-02 06:00:00Z'".split(", ")
        project.run_sql(f"create table {schema}.events as select 1 as id, 1 as v, {events[0]} as at")
        project.run_sql(f"create table {schema}.src (k string, v int)")
        project.run_sql(f"insert into {schema}.src values ('a', 1), ('b', 2)")
        project.run_sql(f"create schema abroad.{schema}")
        project.run_sql(f"create table abroad.{schema}.by_path as select 1 as v")
        (landed / "one.csv").write_text("v\n1\n")
        self.build(landed, 0)
        assert rows(project, "below") == [(1 + 3 + 1 + 1,)]
        project.run_sql(f"insert into {schema}.events values (2, null, {events[1]})")
        project.run_sql(f"insert into {schema}.src values ('b', null)")
        project.run_sql(f"insert into abroad.{schema}.by_path values (null)")
        (landed / "two.csv").write_text('v\n""\n')
        before = self.versions(project)
        assert "Held: 4 tests failed" in self.build(landed, 1, success=False)
        readers = {"batched": "events", "keyed": "src", "rates": "abroad", "from_files": "csv"}
        corrections = {
            "batched": lambda: project.run_sql(f"update {schema}.events set v = 10 where id = 2"),
            "keyed": lambda: project.run_sql(f"update {schema}.src set v = 20 where v is null"),
            "rates": lambda: project.run_sql(f"update abroad.{schema}.by_path set v = 30 where v is null"),
            "from_files": lambda: (landed / "two.csv").write_text("v\n40\n"),
        }
        for number, (model, correct) in enumerate(corrections.items()):
            correct()  # type: ignore[no-untyped-call]
            is_last = number == len(corrections) - 1
            output = self.build(landed, 1, success=is_last)
            corrected = "\n".join(line for line in output.splitlines() if "Corrected: " in line)
            assert readers[model] in corrected and "may have changed" not in output, output
            assert model in self.built_again(output), output
            # A table of the other database has the name of a table of the run: what reads one counts as reading both.
            expected = {"of_rates", "by_path"} if model in ("rates", "from_files") else set()
            assert self.built_again(output) & {"of_rates", "by_path"} == expected, output
            assert is_last or self.versions(project) == before
        assert rows(project, "batched")[1][1] == 10
        assert rows(project, "keyed") == [("a", 1), ("b", 22)]
        assert rows(project, "from_files") == [(1,), (40,)] and rows(project, "by_path") == [(2,)]
        assert rows(project, "rates") == [(1,), (30,)] and rows(project, "of_rates") == [(31,)]
        assert rows(project, "below") == [(11 + 23 + 41 + 31,)]
        run_dbt(["run", *with_id("again", folder=str(landed), silt_publish="at_once"), "--full-refresh"])
        assert rows(project, "below") == [(11 + 23 + 41 + 31,)] and rows(project, "keyed") == [("a", 1), ("b", 22)]
