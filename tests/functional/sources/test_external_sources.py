"""Sources on files: every reader of a source reads its files."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dbt.cli.main import dbtRunner
from dbt.tests.util import get_artifact, run_dbt, run_dbt_and_capture

SOURCES = """
version: 2
sources:
  - name: raw
    meta:
      external_location: "landing/{name}/*.csv"
      options: {sep: ";"}
    tables:
      - name: orders
        loaded_at_field: cast(at as timestamp)
        config: {freshness: {error_after: {count: 36500, period: day}}}
        columns:
          - name: id
            data_type: bigint
            data_tests: [unique, not_null]
          - name: zip
            data_type: string
          - name: at
            data_type: timestamp
      - name: lines
        meta: {external_location: "{root}/events.jsonl.gz", options: {}, root: "file://@root"}
      - name: absent
      - name: whole
        config:
          meta: {external_location: "@root/whole", format: parquet}
          freshness: {error_after: {count: 1, period: day}}
      - name: table
        meta: {external_location: "warehouse_copy", format: delta}
        config: {freshness: {error_after: {count: 1, period: day}}}
"""

UNIT_TESTS = """
unit_tests:
  - name: totals_of_given_rows
    model: totals
    given:
      - input: source('raw', 'orders')
        rows: [{id: 1, zip: "00001", amount: 2}, {id: 2, zip: "00001", amount: 3}]
      - input: source('raw', 'whole')
        rows: [{zip: "00001", city: "Bern"}]
    expect:
      rows: [{city: "Bern", amount: 5}]
"""


class TestExternalSources:
    @pytest.fixture(scope="class")
    def models(self, files: Path) -> dict[str, str]:
        python_model = (
            "def model(dbt, session):\n"
            "    dbt.config(materialized='table')\n"
            "    return dbt.source('raw', 'orders').where('id = 2')\n"
        )
        return {
            "totals.sql": "{{ config(materialized='table') }} select w.city, sum(o.amount) as amount "
            "from {{ source('raw', 'orders') }} as o join {{ source('raw', 'whole') }} w on o.zip = w.zip group by 1",
            "seen.sql": "select * from {{ source('raw', 'orders') }}",
            "lines.sql": "select id, at.x from {{ source('raw', 'lines') }}",
            "copied.sql": "{{ config(materialized='table') }} select * from {{ source('raw', 'table') }}",
            "framed.py": python_model,
            "broken.sql": "{{ config(enabled=var('broken', false)) }} select * from {{ source('raw', 'absent') }}",
            "sources.yml": SOURCES.replace("@root", str(files)),
            "unit_tests.yml": UNIT_TESTS,
        }

    @pytest.fixture(scope="class")
    def files(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("files")
        (folder / "whole").mkdir()
        pq.write_table(
            pa.table({"zip": ["00501", "12345"], "city": ["Holtsville", "Albany"]}), folder / "whole/a.parquet"
        )
        lines = "\n".join(json.dumps({"id": each, "at": {"x": each * 2}}) for each in (1, 2))
        with pa.output_stream(folder / "events.jsonl.gz", compression="gzip") as stream:
            stream.write(lines.encode())
        return folder

    @pytest.fixture(scope="class", autouse=True)
    def landing(self, project: Any) -> Path:
        folder = Path(project.project_root, "landing", "orders")
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text("id;amount;zip;at\n1;10;00501;2026-03-01 10:00:00\n2;20;00501;\n")
        (folder / "b.csv").write_text("id;amount;zip;at\n3;40;12345;2026-03-02 11:00:00\n")
        project.run_sql(f"create table delta.`{project.project_root}/warehouse_copy` as select 7 as id")
        return folder

    def test_models_tests_and_show_read_files_like_tables(self, project: Any) -> None:
        results = run_dbt(["build", "--exclude", "broken"])
        assert {each.status for each in results} <= {"success", "pass"}
        place = f"{project.database}.{project.test_schema}"
        assert project.run_sql(f"select * from {place}.totals order by 1", fetch="all") == [
            ("Albany", 40),
            ("Holtsville", 30),
        ]
        assert project.run_sql(f"select zip, at from {place}.seen order by id limit 1", fetch="all") == [
            ("00501", datetime.datetime(2026, 3, 1, 10))
        ]
        assert project.run_sql(f"select id, amount from {place}.framed", fetch="all") == [(2, 20)]
        assert project.run_sql(f"select * from {place}.lines order by 1", fetch="all") == [(1, 2), (2, 4)]
        assert project.run_sql(f"select * from {place}.copied", fetch="all") == [(7,)]
        _, output = run_dbt_and_capture(
            ["show", "--inline", "select max(id) as last from {{ source('raw', 'orders') }}"]
        )
        assert "| 3 |" in output.replace("  ", " ").replace("   ", " ") or "3" in output

    def test_a_view_over_files_includes_a_file_added_later(self, project: Any, landing: Path) -> None:
        run_dbt(["run", "--select", "seen"])
        (landing / "c.csv").write_text("id;amount;zip;at\n4;1;00501;\n")
        place = f"{project.database}.{project.test_schema}"
        assert project.run_sql(f"select count(*) from {place}.seen", fetch="one") == (4,)

    def test_a_run_with_empty_reads_no_row_of_files(self, project: Any) -> None:
        run_dbt(["run", "--select", "totals", "--empty"])
        place = f"{project.database}.{project.test_schema}"
        assert project.run_sql(f"select count(*) from {place}.totals", fetch="one") == (0,)

    def test_freshness_is_that_of_the_loaded_at_field_or_of_the_newest_file(self, project: Any) -> None:
        run_dbt(["source", "freshness"])
        found = {
            each["unique_id"].rpartition(".")[2]: each["max_loaded_at"][:10]
            for each in get_artifact(project.project_root, "target", "sources.json")["results"]
        }
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        assert found == {"orders": "2026-03-02", "whole": today, "table": today}

    def test_the_documentation_has_the_columns_of_files(self, project: Any) -> None:
        run_dbt(["docs", "generate"])
        found = get_artifact(project.project_root, "target", "catalog.json")["sources"]
        orders = found["source.test.raw.orders"]
        assert {name: each["type"] for name, each in orders["columns"].items()} == {
            "id": "bigint",
            "amount": "int",
            "zip": "string",
            "at": "timestamp",
        }
        assert "source.test.raw.absent" not in found

    def test_a_relative_location_is_below_the_project_wherever_dbt_is_started(
        self, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        result = dbtRunner().invoke(["compile", "--select", "seen", *place])
        assert f"'{project.project_root}/landing/orders/*.csv'" in result.result[0].node.compiled_code  # type: ignore[index, union-attr]

    def test_a_missing_file_is_named_with_its_source(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["run", "--select", "broken", "--vars", "broken: true"], expect_pass=False)
        assert "there are no files to read at" in output
        assert "landing/absent/*.csv" in output
        assert "source raw.absent" in output
        assert output.count("source raw.absent: none of its columns has a `data_type`") == 1
        assert "source raw.orders: none" not in output
