"""Symbolic links in a warehouse: no statement reads, writes or deletes through them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.arrow import read as arrow
from dbt.adapters.silt.engine.kernel.errors import ExternalPathError, SiltError, SymbolicLinkError
from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place

pytestmark = pytest.mark.in_folders("links are in file systems")

OLD = 1_000_000_000
SECRET = b"-----BEGIN PRIVATE KEY-----"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder outside of every warehouse, with old files in it."""
    folder = tmp_path / "home" / "docs"
    (folder / "sub").mkdir(parents=True)
    for name in ("thesis.doc", "id_rsa", "sub/letter.doc"):
        (folder / name).write_bytes(SECRET)
        os.utime(folder / name, (OLD, OLD))
    return folder


@pytest.fixture
def table(house: House) -> Path:
    """The folder of the table `main.t`, which has rows and a removed file."""
    house.sql("create table t as select id, id % 3 as p from range(9)")
    house.sql("create table other as select id from range(100, 103)")
    return Path(house.location("t"))


def files_are_unchanged(documents: Path) -> bool:
    files = [path for path in documents.rglob("*") if path.is_file()]
    return len(files) == 3 and all(path.read_bytes() == SECRET for path in files)


def vacuum_everything(house: House, form: str = "") -> None:
    house.warehouse.spark.conf.set("silt.retentionDurationCheck.enabled", "false")
    house.sql(f"vacuum main.t {form} retain 0 hours")


def write_commit(table: Path, *actions: dict[str, object]) -> None:
    """Adds a version to a log, as another writer may."""
    version = len(list((table / "_delta_log").glob("*.json")))
    lines = [json.dumps({"commitInfo": {"timestamp": 1, "operation": "WRITE"}}), *map(json.dumps, actions)]
    (table / "_delta_log" / f"{version:020d}.json").write_text("\n".join(lines) + "\n")


def added(path: str, like: Path) -> dict[str, object]:
    status = like.stat()
    fields = {"path": path, "partitionValues": {}, "size": status.st_size, "dataChange": True}
    return {"add": {**fields, "modificationTime": status.st_mtime_ns // 1_000_000}}


def test_vacuum_deletes_nothing_behind_a_linked_folder(house: House, table: Path, documents: Path) -> None:
    (table / "sub").symlink_to(documents)
    (table / "p=1").symlink_to(documents)
    (table / "12345678-1234-1234-1234-123456789012").symlink_to(documents)
    vacuum_everything(house)
    assert files_are_unchanged(documents)


@pytest.mark.parametrize("path", ["sub/thesis.doc", "sub/../sub/thesis.doc", "./sub/thesis.doc", "sub//thesis.doc"])
def test_vacuum_lite_deletes_nothing_behind_a_linked_folder(
    house: House, table: Path, documents: Path, path: str
) -> None:
    (table / "sub").symlink_to(documents)
    write_commit(table, {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}})
    with pytest.raises(SymbolicLinkError):
        vacuum_everything(house, "lite")
    assert files_are_unchanged(documents)


def test_vacuum_deletes_no_data_of_another_table_behind_a_link(house: House, table: Path) -> None:
    (table / "x").symlink_to("../other")
    vacuum_everything(house)
    assert house.rows("select * from other") == [(100,), (101,), (102,)]


def test_no_vacuum_deletes_a_linked_file(house: House, table: Path, documents: Path) -> None:
    (table / "part-0.parquet").symlink_to(documents / "thesis.doc")
    vacuum_everything(house)
    assert files_are_unchanged(documents)


@pytest.fixture
def elsewhere(house: House, tmp_path: Path) -> Path:
    """A Parquet file outside of the warehouse, with the columns of the table."""
    written = tmp_path / "elsewhere"
    house.warehouse.spark.range(1000, 1009).selectExpr("id", "id % 3 as p").coalesce(1).write.parquet(str(written))
    (file,) = written.glob("part-*")
    return file


def by_data_source(house: House) -> object:
    silt.DataSource.register(house.warehouse.spark)
    return house.warehouse.spark.read.format("silt").load(house.location("t")).collect()


READS: list[Callable[[House], object]] = [
    lambda house: house.rows("select * from main.t"),
    lambda house: house.rows("select sum(id) from main.t where id > 1"),
    lambda house: arrow.read("main.t", warehouse=str(house.root)),
    lambda house: by_data_source(house),
    lambda house: house.sql("delete from main.t where id = 1001"),
    lambda house: house.sql("update main.t set p = 0 where id = 1001"),
    lambda house: house.sql("merge into main.t using other on t.id = other.id when matched then delete"),
    lambda house: house.sql("optimize main.t"),
    lambda house: house.sql("create table copied clone main.t"),
    lambda house: house.sql("create table copied shallow clone main.t"),
    lambda house: house.sql("create table copied as select * from main.t"),
]
"""Statements and programs that read rows of the table."""


FORMS = ["relative", "in a linked folder", "absolute", "absolute in a linked folder"]
READS_AND_FORMS = [
    pytest.param(read, form, id=f"{at}-{form}", marks=[] if at % len(FORMS) == number else pytest.mark.long)
    for at, read in enumerate(READS)
    for number, form in enumerate(FORMS)
]


@pytest.mark.parametrize(("read", "form"), READS_AND_FORMS)
def test_no_reader_follows_a_link_to_a_data_file(
    house: House, table: Path, elsewhere: Path, read: Callable[[House], object], form: str
) -> None:
    (table / "k.parquet").symlink_to(elsewhere)
    (table / "sub").symlink_to(elsewhere.parent)
    path = "k.parquet" if form.endswith("relative") or form == "absolute" else f"sub/{elsewhere.name}"
    write_commit(table, added(f"{table}/{path}" if form.startswith("absolute") else path, elsewhere))
    with pytest.raises(Exception) as raised:
        read(house.another())
    assert "SILT_SYMBOLIC_LINK" in str(raised.value) or "SILT_EXTERNAL_PATH" in str(raised.value)
    leaked = [each for each in house.root.rglob("*.parquet") if not each.is_symlink()]
    assert all(each.read_bytes() != elsewhere.read_bytes() for each in leaked)


def test_a_data_file_replaced_by_a_link_is_no_longer_read(house: House, table: Path, elsewhere: Path) -> None:
    """Sizes, times and footers are equal, so that only the link itself reveals the change."""
    before = house.rows("select * from main.t")
    assert house.rows("select * from main.t") == before
    file = next(path for path in table.rglob("*.parquet") if "_delta_log" not in path.parts)
    shutil.move(file, elsewhere.with_name("moved.parquet"))
    file.symlink_to(elsewhere.with_name("moved.parquet"))
    with pytest.raises(SymbolicLinkError, match="is a symbolic link"):
        house.rows("select * from main.t")


def test_a_folder_replaced_by_a_link_is_no_longer_read(house: House, table: Path, tmp_path: Path) -> None:
    file = next(path for path in table.rglob("*.parquet") if "_delta_log" not in path.parts)
    assert house.rows("select count(id + 1) from main.t") == [(9,)]
    shutil.move(file.parent, tmp_path / "moved")
    file.parent.symlink_to(tmp_path / "moved")
    with pytest.raises(SymbolicLinkError):
        house.rows("select count(id + 1) from main.t")


def test_a_link_behind_another_tables_file_is_not_followed_out_of_the_warehouse(
    house: House, table: Path, elsewhere: Path
) -> None:
    linked = Path(house.location("other")) / "sub"
    linked.symlink_to(elsewhere.parent)
    write_commit(table, added(str(linked / elsewhere.name), elsewhere))
    with pytest.raises(ExternalPathError):
        house.another().rows("select * from main.t")


def test_table_changes_reads_no_change_file_through_a_link(house: House, table: Path, elsewhere: Path) -> None:
    house.sql("alter table t set tblproperties (delta.enableChangeDataFeed = true)")
    version = house.log("t").snapshot().version
    (table / "k.parquet").symlink_to(elsewhere)
    change = {"path": "k.parquet", "partitionValues": {}, "size": elsewhere.stat().st_size, "dataChange": False}
    write_commit(table, {"cdc": change})
    with pytest.raises(SiltError, match="SILT_SYMBOLIC_LINK"):
        house.another().rows(f"select * from table_changes('main.t', {version + 1})")


def test_a_linked_log_folder_is_neither_read_nor_written(house: House, table: Path, tmp_path: Path) -> None:
    shutil.move(table / "_delta_log", tmp_path / "log")
    (table / "_delta_log").symlink_to(tmp_path / "log")
    before = sorted(os.listdir(tmp_path / "log"))
    other = house.another()
    for text in (
        "select * from main.t",
        "insert into main.t values (1, 1)",
        "vacuum main.t",
        "alter table main.t set tblproperties (a = 'b')",
    ):
        with pytest.raises(SymbolicLinkError):
            other.rows(text)
    assert sorted(os.listdir(tmp_path / "log")) == before


@pytest.mark.parametrize("name", ["t", "fresh"])
def test_no_table_is_created_or_changed_behind_a_linked_folder(
    house: House, table: Path, documents: Path, name: str
) -> None:
    shutil.rmtree(table)
    (table.parent / name).symlink_to(documents)
    other = house.another()
    for text in (
        f"create table main.{name} as select 1 as id",
        f"create or replace table main.{name} (id int)",
        f"create view main.{name} as select 1 as id",
        f"vacuum main.{name}",
        f"drop table main.{name}",
        f"drop table if exists main.{name}",
    ):
        try:
            other.sql(text)
        except SiltError:
            pass
        assert files_are_unchanged(documents) and not (documents / "_delta_log").exists(), text


def test_drop_removes_a_linked_table_and_keeps_the_files_behind_the_link(
    house: House, table: Path, tmp_path: Path
) -> None:
    shutil.move(table, tmp_path / "moved")
    table.symlink_to(tmp_path / "moved")
    other = house.another()
    with pytest.raises(SymbolicLinkError):
        other.rows("select * from main.t")
    before = sorted(path for path in (tmp_path / "moved").rglob("*"))
    other.sql("drop table main.t")
    assert not os.path.lexists(table)
    assert sorted(path for path in (tmp_path / "moved").rglob("*")) == before
    other.sql("create table t as select 1 as id")
    assert other.rows("select * from t") == [(1,)]


def test_a_linked_table_is_read_if_external_paths_are_allowed(
    spark: SparkSession, house: House, place: Place, table: Path, tmp_path: Path
) -> None:
    shutil.move(table, tmp_path / "moved")
    table.symlink_to(tmp_path / "moved")
    trusting = opened(spark, place, WarehouseSettings(external_paths=True))
    assert trusting.rows("select count(id) from main.t") == [(9,)]


def test_convert_to_delta_names_the_link_in_its_folder(house: House, tmp_path: Path, elsewhere: Path) -> None:
    folder = house.root / "main" / "landed"
    folder.mkdir(parents=True)
    (folder / "k.parquet").symlink_to(elsewhere)
    with pytest.raises(SymbolicLinkError, match=r"k\.parquet is a symbolic link"):
        house.sql(f"convert to delta parquet.`{folder}`")
    assert not (folder / "_delta_log").exists()


@pytest.mark.parametrize("name", ["_change_data", "deletion_vector_folder"])
def test_no_write_follows_a_linked_folder(house: House, table: Path, documents: Path, name: str) -> None:
    house.sql("alter table t set tblproperties (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true)")
    (table / name).symlink_to(documents)
    try:
        house.sql("delete from main.t where id = 1")
        house.sql("update main.t set p = 7 where id = 2")
    except SymbolicLinkError:
        assert name == "_change_data"
    assert files_are_unchanged(documents)
