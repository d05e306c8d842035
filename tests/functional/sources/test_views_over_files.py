"""Views over files: a later command may read the files that the project declares, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.engine.statements.resolve import stored_code
from dbt.adapters.silt.materializations.external.declared import of_artifact

SOURCES = """
sources:
  - name: raw
    meta: {external_location: "landing/{name}.csv"}
    tables: [{name: orders, columns: [{name: id, data_type: bigint}]}]
"""
DOWNSTREAM = "{{ config(materialized='table') }} select * from {{ ref('%s') }}"
VIEWS = ("of_source", "of_code", "composed", "exported")


@pytest.mark.manifest
class TestViewsOverFiles:
    @pytest.fixture(scope="class")
    def files(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        files = tmp_path_factory.mktemp("files")
        for name in ("a.csv", "b.csv"):
            (files / name).write_text("id\n1\n")
        return files

    @pytest.fixture(scope="class")
    def models(self, files: Path) -> dict[str, str]:
        location = f"{files}/{{{{ target.schema }}}}/rows.csv"
        return {
            "sources.yml": SOURCES,
            "of_source.sql": "{{ config(materialized='view') }} select * from {{ source('raw', 'orders') }}",
            "composed.sql": f"{{% set folder = '{files}' %}}"
            "select * from read_files('{{ folder ~ '/b' }}.csv', header => true)",
            "of_code.sql": f"select * from read_files('{files}/a.csv', header => true)",
            "exported.sql": f"{{{{ config(materialized='external', location='{location}') }}}} select 1L as id",
            **{f"from_{each}.sql": DOWNSTREAM % each for each in VIEWS},
        }

    @pytest.fixture(autouse=True)
    def landed(self, project: Any) -> None:
        Path(project.project_root, "landing").mkdir(exist_ok=True)
        write_file("id\n1\n", project.project_root, "landing", "orders.csv")

    def test_a_later_command_reads_views_over_declared_files(
        self, project: Any, files: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run"])
        monkeypatch.setattr(stored_code, "_named", set())
        results = run_dbt(["run", "--select", *(f"from_{each}" for each in VIEWS)])
        assert [result.status for result in results] == ["success"] * len(VIEWS)
        run_dbt(["docs", "generate"])
        root = Path(project.project_root)
        # Without a project, as `silt sql` finds them.
        declared = of_artifact(root / "target" / "manifest.json", str(root))
        assert f"{root}/landing/orders.csv" in declared
        assert f"{files}/a.csv" in declared and f"{files}/b.csv" in declared
        assert "/etc/passwd" not in declared

    def test_a_view_of_another_user_reads_no_files(
        self, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "id_rsa").write_text("s3cr3t")
        run_dbt(["run"])
        project.run_sql(f"create or replace view of_source as select * from text.`{tmp_path}/id_rsa`")
        monkeypatch.setattr(stored_code, "_named", set())
        _, said = run_dbt_and_capture(["run", "--select", "from_of_source"], expect_pass=False)
        assert "SILT_EXTERNAL_PATH" in said
        assert "s3cr3t" not in said
