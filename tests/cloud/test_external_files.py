"""Files in an object store that belong to no table: the materialization `external`, and sources."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import DataRejectedError, FilesNotFoundError, SiltError
from dbt.adapters.silt.engine.kernel.storage import object_store
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.materializations.external.files import check_target, write_external
from dbt.adapters.silt.materializations.external.target import target_of
from tests.cloud import project
from tests.cloud.project import Project
from tests.cloud.servers import ObjectServer

ROWS = (
    "select 1L as id, 'a, \"b\"' as name, cast(1.50 as decimal(10, 2)) as price, 'x y' as part "
    "union all select 2L, cast(null as string), null, 'z:%'"
)
SOURCES = """
sources:
  - name: landing
    schema: landing
    freshness: {warn_after: {count: 1, period: day}}
    meta: {external_location: "BASE/landing/{name}*.csv", options: {sep: ";"}}
    tables:
      - name: orders
        columns: [{name: id, data_type: bigint}]
      - name: nothing
      - name: events
        meta: {external_location: "BASE/landing/events"}
        config: {meta: {format: json}}
"""
LANDED = {
    "orders-1.csv": b"id;name\n7;x\n",
    "orders-2.csv": b"id;name\n8;y\n",
    "events/1.json": b'{"a": 1}\n{"a": 2}\n',
}


@pytest.fixture
def shop(server: ObjectServer, tmp_path: Path) -> Project:
    base = f"{server.base}/{tmp_path.name} é%20"

    def external(query: str, **config: object) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in config.items())
        return f"{{{{ config(materialized='external', {arguments}) }}}}\n{query}"

    models = {
        "one.sql": external(ROWS, location=f"{base}/out é/{{{{ target.schema }}}}.csv", options={"sep": ";"}),
        "zipped.sql": external(ROWS, location=f"{base}/out é/rows.json.gz"),
        "folder.sql": external(ROWS, location=f"{base}/out é/folder", partition_by=["part"]),
        "elsewhere.sql": external(ROWS, location=f"{server.base.replace('warehouse', 'others', 1)}/rows.parquet"),
        "framed.py": "def model(dbt, session):\n"
        f"    dbt.config(materialized='external', location={base + '/out é/framed.parquet'!r})\n"
        "    return dbt.ref('one').select('id')\n",
        "empty.sql": external(f"select * from ({ROWS}) where id > 9", location=f"{base}/none", partition_by=["part"]),
        "after.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('folder') }} "
        "join {{ ref('zipped') }} using (id) join {{ ref('one') }} using (id) join {{ ref('elsewhere') }} using (id)",
        "within.sql": external("select 1 as id", location=f"{base}/house/main/x"),
        "sources.yml": SOURCES.replace("BASE", base),
        "landed.sql": "{{ config(materialized='table') }} select id, name from {{ source('landing', 'orders') }}",
        "missed.sql": "{{ config(materialized='table') }} select * from {{ source('landing', 'nothing') }}",
    }
    server.make_bucket("others")
    return project.made(server, tmp_path, {f"models/{name}": text for name, text in models.items()})


def test_external_models_and_file_sources_use_the_storage_settings_of_the_profile(
    server: ObjectServer, shop: Project
) -> None:
    store = server.store(f"{shop.folder.name} é%20")
    for name, content in LANDED.items():
        store.put(f"landing/{name}", content)
    shop.dbt("run", fails=True)
    results = shop.results()
    failed = {name: message for name, message in results.items() if not message.startswith("success")}
    assert failed.keys() == {"missed", "within"}, results
    assert "[SILT_FILES_NOT_FOUND] there are no files to read at" in failed["missed"]
    assert "is in the warehouse" in failed["within"]
    assert results["folder"] == f"success: 2 rows in {shop.base}/out é/folder"
    assert store.read("out é/main.csv").splitlines()[0] == b"id;name;price;part"
    assert len(gzip.decompress(store.read("out é/rows.json.gz")).splitlines()) == 2
    assert pq.read_table(pa.BufferReader(store.read("out é/framed.parquet"))).to_pydict() == {"id": [1, 2]}
    marker = json.loads(store.read("out é/folder/_dbt_silt.json"))
    assert marker["node"] == "model.shop.folder"
    assert {name.partition("/")[0] for name in marker["files"]} == {"part=x y", "part=z%3A%25"}
    written = {file.path for file in store.files_below("out é") if file.size}
    whole = {"main.csv", "rows.json.gz", "framed.parquet", "folder/_dbt_silt.json"}
    assert written == {f"out é/{name}" for name in whole | {f"folder/{name}" for name in marker["files"]}}
    assert json.loads(store.read("none/_dbt_silt.json"))["files"] == []
    found = shop.rows(
        "select n, (select count(*) from {{ ref('empty') }}), (select sum(price) from {{ ref('folder') }}), "
        "(select max(part) from {{ ref('one') }}), (select sum(id) from {{ ref('landed') }}), "
        "(select sum(a) from {{ source('landing', 'events') }}) from {{ ref('after') }}"
    )
    assert found == [[2, 0, 1.5, "z:%", 15, 3]]
    assert "SILT_FILES_NOT_FOUND" in shop.dbt("source", "freshness", fails=True)
    freshness = json.loads((shop.folder / "target/sources.json").read_text())["results"]
    passed = {each["unique_id"].split(".")[-1] for each in freshness if each["status"] == "pass"}
    assert passed == {"orders", "events"}


@dataclass(frozen=True)
class Exports:
    """Writes rows as files next to each other, as the runs of a model do."""

    warehouse: Warehouse
    store: ObjectStore

    def write(self, name: str, query: str, **config: object) -> str:
        """Writes the rows of a query; returns the query that reads them."""
        node = {"unique_id": "model.shop.exported", "config": config}
        target = target_of(node, f"{self.store.root}/{name}", "/", [])
        check_target(target, self.warehouse.catalog.store_at)
        return write_external(self.warehouse.sql(query), target, self.warehouse.catalog.store_at).query

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return sorted(map(tuple, self.warehouse.sql(query).collect()))


@pytest.fixture
def exports(server: ObjectServer, spark: SparkSession, tmp_path: Path) -> Exports:
    store = server.store(f"{tmp_path.name} é%20")
    return Exports(Warehouse(spark.newSession(), str(tmp_path / "local"), storage=server.settings), store)


def test_only_the_files_of_the_last_run_are_read_and_the_next_run_deletes_earlier_files(exports: Exports) -> None:
    query = exports.write("out", "select id, id % 2 as p from range(4)", partition_by=["p"], format="csv")
    rows = [(number, number % 2) for number in range(4)]
    assert exports.rows(query) == rows
    (first, *_), owner = json.loads(exports.store.read("out/_dbt_silt.json"))["files"], "part-00000-0123abcd-"
    killed = f"p=0/{owner}{first.rpartition('-')[2]}"
    exports.store.put(f"out/{killed}", exports.store.read(f"out/{first}"))
    assert exports.rows(query) == rows
    assert exports.write("out", "select 9L as id, 1L as p", partition_by=["p"], format="csv") == query
    assert exports.rows(query) == [(9, 1)]
    files = [file.path for file in exports.store.files_below("") if file.size]
    assert len(files) == 2 and f"out/{killed}" not in files
    exports.store.delete(next(each for each in files if "part-" in each))
    with pytest.raises(FilesNotFoundError, match="does not hold exactly the"):
        exports.rows(query)


def test_an_external_file_is_replaced_completely_or_not_at_all(
    exports: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = exports.write("one.parquet", "select id from range(0, 10, 1, 4)")
    assert exports.rows(query) == [(number,) for number in range(10)]
    monkeypatch.setattr(object_store, "_COPIED_BYTES", 100)  # so that this machine copies the file, not the service
    exports.write("one.parquet", "select id, 'x' as v from range(0, 5, 1, 2)")
    assert exports.rows(f"select count(v) from read_files('{exports.store.root}/one.parquet')") == [(5,)]
    with pytest.raises(DataRejectedError, match="no"):
        exports.write("one.parquet", "select raise_error('no') as id from range(3)")
    assert [file.path for file in exports.store.files_below("") if file.size] == ["one.parquet"]


def test_missing_files_and_buckets_are_named_in_the_error(exports: Exports, server: ObjectServer) -> None:
    with pytest.raises(FilesNotFoundError, match="there are no files to read at"):
        exports.rows(f"select * from read_files('{exports.store.root}/nothing/*.csv')")
    nowhere = server.base.replace("warehouse", "nowhere", 1)
    with pytest.raises(SiltError, match=r"the bucket does not exist|there are no files to read"):
        exports.rows(f"select * from read_files('{nowhere}/x.csv')")
