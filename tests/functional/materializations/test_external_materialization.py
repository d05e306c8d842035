"""The materialization `external`: a model's rows as files outside of the warehouse, with a view that reads them."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from dbt.tests.util import check_relation_types, relation_from_name, run_dbt, run_dbt_and_capture, write_file

ROWS = (
    "select 1L as id, 'a, \"b\"' as name, timestamp '2026-03-01 10:00:00' as at, cast(1.50 as decimal(10, 2)) "
    "as price, 'x y' as part union all select 2L, cast(null as string), null, null, 'z'"
)
EXPECTED = [
    (1, 'a, "b"', datetime.datetime(2026, 3, 1, 10), "1.50", "x y"),
    (2, None, None, None, "z"),
]


def config(**configs: object) -> str:
    return (
        "{{ config(materialized='external', "
        + ", ".join(f"{name}={value!r}" for name, value in configs.items())
        + ") }} "
    )


@pytest.fixture(scope="class")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("it's out")


@pytest.mark.kept
class TestExternal:
    @pytest.fixture(scope="class")
    def models(self, out: Path) -> dict[str, str]:
        return {
            "one_csv.sql": config(location=f"{out}/{{{{ target.schema }}}}/rows.csv", options={"sep": ";"}) + ROWS,
            "one_json.sql": config(location=f"{out}/rows.json.gz") + ROWS,
            "folder.sql": config(location=f"file://{out}/folder", partition_by=["part"]) + ROWS,
            "relative.sql": config(location="exports/ids.parquet") + "select id from {{ ref('folder') }}",
            "ported.sql": config(
                location=f"{out}/ported", format="csv", delimiter="|", options={"partition_by": "part, id"}
            )
            + ROWS,
            "empty.sql": config(location=f"{out}/empty.csv") + f"select * from ({ROWS}) where id > 5",
            "framed.py": (
                "def model(dbt, session):\n"
                f"    dbt.config(materialized='external', location={str(out / 'framed.parquet')!r})\n"
                "    return dbt.ref('one_csv').select('id')\n"
            ),
            "after.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('folder') }} "
            "join {{ ref('one_json') }} using (id) join {{ ref('one_csv') }} using (id)",
        }

    def test_files_are_written_and_their_rows_are_read_back(self, project: Any, out: Path) -> None:
        results = run_dbt(["run"])
        messages = {each.node.name: str(each.adapter_response["_message"]) for each in results}
        assert messages["folder"] == f"2 rows in {out}/folder"
        place = f"{project.database}.{project.test_schema}"
        for model in ("one_csv", "one_json", "folder", "ported"):
            query = f"select id, name, at, cast(price as string), part from {place}.{model} order by id"
            assert project.run_sql(query, fetch="all") == EXPECTED, model
            assert project.run_sql(f"select typeof(price) from {place}.{model}", fetch="one") == ("decimal(10,2)",)
        assert project.run_sql(f"select count(*) from {place}.empty", fetch="one") == (0,)
        assert project.run_sql(f"select n from {place}.after", fetch="one") == (2,)
        check_relation_types(project.adapter, {"one_csv": "view", "framed": "view"})
        (one_csv,) = out.glob("*/rows.csv")
        with one_csv.open(newline="") as file:
            header, *lines = csv.reader(file, delimiter=";")
        assert header == ["id", "name", "at", "price", "part"]
        assert sorted(line[1] for line in lines) == ["", 'a, "b"']
        assert [json.loads(line)["id"] for line in gzip.open(out / "rows.json.gz")] == [1, 2]
        assert pq.read_table(out / "framed.parquet").to_pydict() == {"id": [1, 2]}
        assert Path(project.project_root, "exports", "ids.parquet").is_file()
        assert {each.name for each in (out / "folder").iterdir() if each.is_dir()} == {"part=x y", "part=z"}
        assert (out / "ported" / "part=z" / "id=2").is_dir()
        assert not list(out.glob(".*"))

    def test_a_rerun_replaces_the_old_rows(self, project: Any, out: Path) -> None:
        run_dbt(["run", "--select", "folder"])
        model = config(location=f"file://{out}/folder") + "select 9L as id"
        write_file(model, project.project_root, "models", "folder.sql")
        run_dbt(["run", "--select", "folder"])
        found = project.run_sql(f"select * from {project.database}.{project.test_schema}.folder", fetch="all")
        assert found == [(9,)]
        assert not [each for each in (out / "folder").iterdir() if each.is_dir()]

    def test_a_failed_run_keeps_the_earlier_files(self, project: Any, out: Path) -> None:
        run_dbt(["run", "--select", "one_json"])
        before = (out / "rows.json.gz").read_bytes()
        failing = config(location=f"{out}/rows.json.gz") + "select cast(concat('x', id) as int) as id from range(9)"
        write_file(failing, project.project_root, "models", "one_json.sql")
        run_dbt(["run", "--select", "one_json"], expect_pass=False)
        assert (out / "rows.json.gz").read_bytes() == before
        assert not list(out.glob(".*"))


class TestExternalIsRefused:
    @pytest.fixture(scope="class")
    def models(self, out: Path, dbt_profile_target: dict[str, Any]) -> dict[str, str]:
        (out / "others").mkdir()
        (out / "others" / "precious.txt").write_text("kept")
        (out / "mixed").mkdir()
        query = "select 1 as id"
        return {
            "others.sql": config(location=f"{out}/others") + query,
            "shared_a.sql": config(location=f"{out}/shared") + query,
            "shared_b.sql": "-- depends_on: {{ ref('shared_a') }}\n" + config(location=f"{out}/shared") + query,
            "mixed.sql": config(location=f"{out}/mixed") + query,
            "nowhere.sql": "{{ config(materialized='external') }} " + query,
            "bucket.sql": config(location="s3://bucket") + query,
            "unknown.sql": config(location="ftp://host/x") + query,
            "within.sql": config(location=f"{dbt_profile_target['warehouse']}/main/x") + query,
            "format.sql": config(location=f"{out}/x", format="xlsx") + query,
            "parted_file.sql": config(location=f"{out}/x.csv", partition_by="id") + query,
            "packed.sql": config(location=f"{out}/x.csv", options={"compression": "gzip"}) + query,
        }

    def test_invalid_locations_and_foreign_files_are_refused_and_not_changed(self, project: Any, out: Path) -> None:
        results = run_dbt(["run"], expect_pass=False)
        messages = {each.node.name: each.message for each in results if each.status == "error"}
        assert set(messages) == {each.node.name for each in results} - {"shared_a", "mixed"}
        assert "it has no record that this model wrote it" in messages["others"]
        assert "model.test.shared_a wrote it" in messages["shared_b"]
        assert "needs a `location`" in messages["nowhere"]
        assert "is a whole bucket" in messages["bucket"]
        assert "is in a storage that is not supported: ftp" in messages["unknown"]
        assert "is in the warehouse" in messages["within"]
        assert "`format: xlsx` cannot be written" in messages["format"]
        assert "`partition_by` needs a folder" in messages["parted_file"]
        assert "cannot be read under the name `x.csv`" in messages["packed"]
        assert (out / "others" / "precious.txt").read_text() == "kept"

    def test_a_foreign_file_in_the_folder_is_kept(self, project: Any, out: Path) -> None:
        (out / "mixed" / "mine.csv").write_text("kept")
        _, output = run_dbt_and_capture(["run", "--select", "mixed"], expect_pass=False)
        assert "holds `mine.csv`, which this model did not write" in output
        assert (out / "mixed" / "mine.csv").read_text() == "kept"
        assert relation_from_name(project.adapter, "mixed") is not None
