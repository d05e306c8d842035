"""With `duckdb_file`, each command that writes leaves a file of DuckDB with the visible tables at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.cli.main import main


@pytest.fixture(scope="class")
def dbt_profile_target(silt_target: dict[str, Any]) -> dict[str, Any]:
    return {**silt_target, "duckdb_file": "tables.duckdb"}


@pytest.fixture(scope="class")
def unique_schema() -> str:
    return "main"


class Project:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": "{{ config(materialized='incremental') }} select {{ var('id', 1) }} as id",
            "seen.sql": "{{ config(materialized='view') }} select * from {{ ref('orders') }}",
            "schema.yml": "models: [{name: orders, columns: [{name: id, data_tests: "
            "[{accepted_values: {arguments: {values: [1, 2], quote: false}}}]}]}]",
        }

    def ids(self, project: Any) -> list[int]:
        with duckdb.connect(str(self.file(project)), read_only=True) as connection:
            return [row[0] for row in connection.execute("SELECT id FROM main.orders ORDER BY id").fetchall()]

    def file(self, project: Any) -> Path:
        return Path(project.project_root, "tables.duckdb")


@pytest.mark.in_folders("DuckDB reads the files of a folder")
class TestWritten(Project):
    def test_the_file_shows_the_rows_of_each_run_and_not_of_commands_that_only_read(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["build"])
        assert "tables.duckdb is written (tables: 1, left out: 1; `silt catalog duckdb` says why)" in output
        assert self.ids(project) == [1]
        run_dbt(["build", "--vars", "id: 2"])
        assert self.ids(project) == [1, 2]
        written = self.file(project).stat().st_mtime_ns
        run_dbt(["test"])
        run_dbt(["compile"])
        assert self.file(project).stat().st_mtime_ns == written

    def test_the_file_of_another_program_is_kept_and_the_run_succeeds_with_a_warning(self, project: Any) -> None:
        self.file(project).unlink(missing_ok=True)
        with duckdb.connect(str(self.file(project))) as connection:
            connection.execute("CREATE TABLE mine AS SELECT 7 AS id")
        _, output = run_dbt_and_capture(["run"])
        assert "The tables are committed, but `duckdb_file` is not written" in output
        assert "Name another file, or remove this file first" in output
        with duckdb.connect(str(self.file(project)), read_only=True) as connection:
            assert connection.execute("SELECT id FROM mine").fetchall() == [(7,)]


@pytest.mark.in_folders("DuckDB reads the files of a folder")
class TestOtherTables(Project):
    def test_clones_and_collated_columns_are_shown_and_compared_byte_by_byte(self, project: Any) -> None:
        project.run_sql("create table main.people (name string collate utf8_lcase)")
        project.run_sql("insert into main.people values ('Ann'), ('ann')")
        project.run_sql("create table main.copies shallow clone main.people")
        project.run_sql("delete from main.people where name = 'ANN'")
        run_dbt(["run"])
        with duckdb.connect(str(self.file(project)), read_only=True) as connection:
            assert connection.execute("SELECT * FROM main.people").fetchall() == []
            assert connection.execute("SELECT * FROM main.copies WHERE name = 'ann'").fetchall() == [("ann",)]
            assert connection.execute("SELECT count(*) FROM main.copies").fetchall() == [(2,)]


@pytest.mark.in_folders("DuckDB reads the files of a folder")
class TestPublished(Project):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "duckdb_file": "tables.duckdb", "publish": "after_tests"}

    def test_the_file_shows_no_row_of_a_held_run_until_a_command_after_its_publication(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["build"])
        run_dbt(["build", "--vars", "{id: 9, silt_run_id: bad}"], expect_pass=False)
        assert self.ids(project) == [1]
        monkeypatch.chdir(project.project_root)
        assert main(["publish", "bad", "--project-dir", str(project.project_root)]) == 0
        assert self.ids(project) == [1]
        run_dbt(["build", "--select", "seen"])
        assert self.ids(project) == [1, 9]
