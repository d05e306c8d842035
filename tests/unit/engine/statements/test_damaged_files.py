"""Statements on data files that differ from the log: no row is lost without an error."""

from __future__ import annotations

import os
from dataclasses import dataclass

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    DataFileChangedError,
    DataFileMissingError,
    ExternalPathError,
    InternalError,
    InvalidSettingError,
    TableDamagedError,
)
from dbt.adapters.silt.engine.kernel.files.file_guard import FileGuard
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.unit.engine.house import House
from tests.unit.engine.place import data_files

STATEMENTS = {
    "select": "select * from orders",
    "delete": "delete from orders where id % 100 = 50",
    "update": "update orders set name = 'x' where id % 100 = 50",
    "merge, all verbs": "merge into orders t using (select 150L as id, 'x' as name) s on t.id = s.id "
    "when matched then update set * when not matched then insert *",
    "merge, insert": "merge into orders t using (select 150L as id, 'x' as name) s on t.id = s.id "
    "when not matched then insert *",
    "merge, delete": "merge into orders t using (select 150L as id) s on t.id = s.id when matched then delete",
    "replace where": "insert into orders replace where id % 100 = 50 select 150L as id, 'x' as name",
    "replace using": "insert into orders replace using (id) select 150L as id, 'x' as name",
    "optimize": "optimize orders",
    "drop column": "alter table orders drop column name",
    "add check": "alter table orders add constraint positive check (id + length(name) > -1)",
    "deep clone": "create table copy deep clone orders",
}
REWRITES = [name for name in STATEMENTS if name not in ("select", "merge, insert", "deep clone")]


@dataclass(frozen=True)
class DataFile:
    """A file of a table, which tests damage."""

    store: Store
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def read(self) -> bytes:
        return self.store.read(self.path)

    def replace(self, data: bytes) -> None:
        self.store.put(self.path, data)

    def delete(self) -> None:
        self.store.delete(self.path)


def made(house: House, properties: str = "") -> DataFile:
    """Creates a table of three files of a hundred rows; returns the second file."""
    house.sql(f"create table orders {properties} as select id, concat('name ', id) as name from range(0, 100, 1, 1)")
    for start in (100, 200):
        house.sql(f"insert into orders select id, concat('name ', id) from range({start}, {start + 100}, 1, 1)")
    store = house.log("orders").store
    found = (DataFile(store, path) for path in data_files(house.log("orders")))
    (file,) = [each for each in found if pq.read_table(pa.BufferReader(each.read()))["id"][0].as_py() == 100]
    return file


def version(house: House) -> int:
    return int(house.sql("describe history orders").first().version)  # type: ignore[union-attr]


spark_lists_the_files = pytest.mark.in_folders("Spark leaves no empty file out where it is given the log's own list")
asks_for_footers = pytest.mark.in_folders("sizes and footers are compared with the log where that is no request")


def test_no_statement_counts_an_empty_file_as_no_rows(house: House) -> None:
    file = made(house)
    file.replace(b"")
    for name, statement in STATEMENTS.items():
        with pytest.raises(DataFileChangedError if house.place.cloud is None else TableDamagedError) as raised:
            house.fetched(statement)
        message = str(raised.value)
        assert file.name in message and "`silt check" in message, name
        assert "has 0 bytes" in message or (house.place.cloud is not None and name != "deep clone"), name
    assert version(house) == 2


@asks_for_footers
def test_a_session_can_read_nulls_for_a_column_that_a_file_lacks(house: House) -> None:
    file = made(house)
    file.replace(file.read().replace(b"name", b"nome"))
    with pytest.raises(DataFileChangedError, match=r"lacks `name`.*`set silt.missingColumnCheck.enabled = false`"):
        house.rows("select * from orders")
    house.sql("set silt.missingColumnCheck.enabled = false")
    try:
        assert house.rows("select count(*), count(name), min(name), max(id) from orders") == [(300, 200, "name 0", 299)]
        assert house.rows("select min(id), max(id), count(*) from orders where name is null") == [(100, 199, 100)]
        assert house.rows("select name from orders where id = 150") == [(None,)]
        for name in REWRITES:
            with pytest.raises(DataFileChangedError, match="lacks `name`"):
                house.fetched(STATEMENTS[name])
        house.sql("create table copied as select * from orders")
        assert house.rows("select count(*), count(name) from copied") == [(300, 200)]
        house.sql("set silt.missingColumnCheck.enabled = no")
        with pytest.raises(InvalidSettingError, match=r"silt.missingColumnCheck.enabled` cannot be `no`"):
            house.rows("select * from orders")
    finally:
        house.sql("reset silt.missingColumnCheck.enabled")
    with pytest.raises(DataFileChangedError, match="lacks `name`"):
        house.rows("select * from orders")
    assert version(house) == 2


@spark_lists_the_files
def test_without_size_checks_the_number_of_read_rows_is_compared(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are not requested on an object store over Spark Connect."""
    file = made(house)
    file.replace(b"")
    monkeypatch.setattr(FileGuard, "check", lambda *_: None)
    for name in REWRITES:
        with pytest.raises(DataFileChangedError) as raised:
            house.fetched(STATEMENTS[name])
        assert file.name in str(raised.value) and "`silt check`" in str(raised.value), name
    with pytest.raises(DataFileChangedError):
        house.sql("delete from orders where id + length(name) > 0").collect()
    assert version(house) == 2
    store = house.log("orders").store
    assert [each for each in store.list_folders("") if not store.files_below(each)] == []


@spark_lists_the_files
def test_rows_lost_from_an_intact_file_are_reported_with_the_check_and_the_file(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = made(house)
    content = file.read()
    monkeypatch.setattr(FileGuard, "check", lambda *_: None)

    def mended(*_: object) -> None:
        file.replace(content)

    monkeypatch.setattr("dbt.adapters.silt.engine.commands.rows.file_rows._first_changed", mended)
    for name in ("delete", "update", "optimize"):
        file.replace(b"")
        with pytest.raises(InternalError) as raised:
            house.fetched(STATEMENTS[name])
        assert file.name in str(raised.value) and "`silt check --data silt.main.orders`" in str(raised.value), name


@asks_for_footers
def test_columns_of_another_table_are_not_read_as_nulls(house: House) -> None:
    file = made(house, "tblproperties ('delta.enableDeletionVectors' = 'true')")
    file.replace(file.read().replace(b"name", b"nome"))
    for name in ("select", "delete", "merge, all verbs"):
        with pytest.raises(TableDamagedError, match=file.name):
            house.fetched(STATEMENTS[name])
        assert version(house) == 2, name


def test_a_statement_that_reads_no_file_can_remove_a_damaged_file(house: House) -> None:
    file = made(house)
    file.replace(b"")
    assert house.sql("delete from orders where id >= 100 and id < 200").collect()
    assert house.rows("select count(*), max(id) from orders") == [(200, 299)]


@asks_for_footers
def test_a_damaged_file_is_not_restored(house: House) -> None:
    file = made(house)
    file.replace(b"")
    house.sql("restore table orders to version as of 0")
    with pytest.raises(DataFileChangedError):
        house.sql("restore table orders to version as of 2")


def test_an_append_with_a_missing_file_is_reported_with_its_version_and_the_remedy(house: House) -> None:
    file = made(house)
    file.delete()
    with pytest.raises(DataFileMissingError) as raised:
        house.fetched("select * from orders")
    said = str(raised.value)
    assert "Version 1 (WRITE) added the file" in said and "`restore table silt.main.orders to version as of 0`" in said
    assert house.sql("restore table silt.main.orders to version as of 0").collect()
    assert house.rows("select count(*) from orders where id >= 0") == [(100,)]


def test_a_table_with_files_outside_is_read_only_if_the_user_allows_it(house: House) -> None:
    made(house)
    place = house.place.beside("elsewhere")
    elsewhere = place.location
    deltalake.write_deltalake(elsewhere, pa.table({"id": [7]}), storage_options=place.options)
    clone = f"create table copy shallow clone delta.`{elsewhere}`"
    with pytest.raises(ExternalPathError, match="external_paths: true"):
        house.sql(clone)
    spark, settings = house.warehouse.spark.newSession(), WarehouseSettings(external_paths=True)
    trusting = house.place.warehouse(spark, settings=settings)
    trusting.sql(clone)
    assert trusting.sql("select id from copy where id < 10").collect() == [(7,)]
    with pytest.raises(ExternalPathError, match="external_paths: true"):
        house.sql("select * from copy where id < 10")
    with pytest.raises(ExternalPathError):
        house.sql("create table deep deep clone copy")
    house.sql("create table inside shallow clone orders")
    assert house.rows("select count(*) from inside where id >= 0") == [(300,)]


DAMAGED_SOURCES = {
    "create as": "create table other as select * from orders where length(name) > 0",
    "insert": "insert into small select id, name from orders",
    "merge from": "merge into small t using orders s on t.id = s.id when matched then update set *",
}


def test_damage_that_only_spark_finds_is_reported_with_the_table_its_version_and_a_remedy(house: House) -> None:
    """The file's size, time and footer are as in the log."""
    file = made(house)
    house.sql("create table small as select 150L as id, 'x' as name")
    modified = file.store.status(file.path).modified_ms * 1_000_000  # type: ignore[union-attr]
    body = bytearray(file.read())
    body[4:40] = b"\xff" * 36
    file.replace(bytes(body))
    if file.store.has_folders:
        os.utime(house.root / "main" / "orders" / file.path, ns=(modified, modified))
    rewrites = {name: STATEMENTS[name] for name in (*REWRITES, "merge, insert")}
    for name, statement in {**rewrites, **DAMAGED_SOURCES}.items():
        with pytest.raises(TableDamagedError) as raised:
            house.fetched(statement)
        said = str(raised.value)
        assert said.startswith("[SILT_TABLE_DAMAGED] silt.main.orders@v2: the data file ") and file.name in said, name
        assert len(said) < 1_500 and "`silt check" in said, name
    assert version(house) == 2
