"""Entries of tables in Spark's own Derby metastore, next to entries of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.errors import RegistrationError
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.registration import HiveMetastore, RegisteredTable, Registration, Settled
from dbt.adapters.silt.session.statement_process import MetastoreEntries
from tests import derby


@pytest.fixture(scope="module")
def metastore(
    spark: SparkSession, connect_server: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HiveMetastore]:
    if connect_server is not None or not isinstance(spark, SparkSession):
        pytest.skip("the driver is in another process")
    with derby.hadoop_settings(spark, derby.settings(tmp_path_factory.mktemp("derby"))):
        yield HiveMetastore(spark)


@dataclass
class House:
    """A warehouse with a schema that no other test uses."""

    warehouse: Warehouse
    registration: Registration
    metastore: HiveMetastore
    folder: Path
    schema: str

    @property
    def catalog(self) -> Catalog:
        return self.warehouse.catalog

    def sql(self, text: str) -> None:
        self.warehouse.sql(text.format(s=self.schema))

    def name(self, identifier: str) -> RelationName:
        return RelationName("silt", self.schema, identifier)

    def settled(self, identifier: str) -> Settled:
        return self.registration.settle(self.name(identifier)).settled

    def entry(self, identifier: str) -> RegisteredTable | None:
        return self.metastore.find(self.schema, identifier)


@pytest.fixture
def house(spark: SparkSession, metastore: HiveMetastore, tmp_path: Path, request: pytest.FixtureRequest) -> House:
    folder, schema = tmp_path / "house é 50%", f"s{abs(hash(request.node.name))}"
    warehouse = Warehouse(spark.newSession(), str(folder))
    registration = Registration(lambda: metastore, warehouse.catalog, {"silt": str(folder)})
    made = House(warehouse, registration, metastore, folder, schema)
    made.sql("create schema {s}")
    return made


def test_a_table_is_registered_once_with_its_location(house: House) -> None:
    house.sql("create table {s}.orders as select 1 as id")
    assert [house.settled("orders") for _ in range(2)] == [Settled.REGISTERED, Settled.UNCHANGED]
    place = f"file:{house.folder}/{house.schema}/orders"
    assert house.entry("orders") == RegisteredTable(house.schema, "orders", place, str(house.folder))
    raw = house.metastore._client.getTable(house.schema, "orders")
    assert (raw.provider().get(), raw.tableType().name()) == ("delta", "EXTERNAL")


def test_removing_an_entry_keeps_the_files_and_dropping_the_table_removes_its_entry(house: House) -> None:
    house.sql("create table {s}.gone as select 1 as id")
    house.settled("gone")
    house.metastore.remove(house.schema, "gone")
    assert house.catalog.table(house.name("gone")).snapshot().version == 0
    house.settled("gone")
    house.sql("drop table {s}.gone")
    assert [house.settled("gone") for _ in range(2)] == [Settled.REMOVED, Settled.ABSENT]
    house.sql("create view {s}.seen as select 1 as id")
    assert house.settled("seen") is Settled.ABSENT


def test_a_view_that_replaces_a_table_removes_the_entry_of_the_table(house: House) -> None:
    house.sql("create table {s}.both as select 1 as id")
    house.settled("both")
    house.sql("drop table {s}.both")
    house.sql("create view {s}.both as select 2 as id")
    assert house.settled("both") is Settled.REMOVED and house.entry("both") is None


def test_a_table_that_another_program_registered_is_not_changed(house: House) -> None:
    theirs = RegisteredTable(house.schema, "orders", "file:/elsewhere/orders", "/another/house")
    house.metastore.add(theirs)
    house.sql("create table {s}.orders as select 1 as id")
    done = house.registration.settle(house.name("orders"))
    assert (done.settled, done.taken_by) == (Settled.TAKEN, theirs.location)
    house.sql("drop table {s}.orders")
    assert house.settled("orders") is Settled.ABSENT and house.entry("orders") == theirs


def test_an_entry_with_an_earlier_location_gets_the_new_location(house: House) -> None:
    house.sql("create table {s}.moved as select 1 as id")
    house.settled("moved")
    entry = house.entry("moved")
    assert entry is not None
    house.metastore.remove(house.schema, "moved")
    house.metastore.add(replace(entry, location="file:/an/earlier/place"))
    assert house.settled("moved") is Settled.MOVED and house.entry("moved") == entry


def test_settling_all_registers_tables_and_removes_entries_without_a_table(house: House) -> None:
    house.sql("create table {s}.a as select 1 as id")
    house.sql("create table {s}.b as select 1 as id")
    house.settled("b")
    house.sql("drop table {s}.b")
    house.sql("create table {s}.c as select 1 as id")
    house.sql("create view {s}.v as select 1 as id")
    done = {each.name.identifier: each.settled for each in house.registration.settle_all("silt")}
    assert done == {"a": Settled.REGISTERED, "b": Settled.REMOVED, "c": Settled.REGISTERED}
    assert [each.name for each in house.metastore.tables(house.schema)] == ["a", "c"]


def test_a_name_that_the_metastore_does_not_allow_raises_registration_error(house: House) -> None:
    house.sql("create table {s}.`größe in m` as select 1 as id")
    with pytest.raises(RegistrationError, match=r"größe in m.*silt_register"):
        house.settled("größe in m")


def test_opening_a_broken_metastore_is_tried_only_once(
    spark: SparkSession, metastore: HiveMetastore, tmp_path: Path
) -> None:
    tried = []

    def opened() -> HiveMetastore:
        tried.append(1)
        nowhere = {"javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/nothing"}
        with derby.hadoop_settings(spark, derby.settings(tmp_path) | nowhere):
            return HiveMetastore(spark)

    databases = open_databases({"silt": str(tmp_path)}, Storages())
    registration = Registration(opened, databases.catalog, {"silt": str(tmp_path)})
    name = RelationName("silt", "main", "orders")
    with pytest.raises(RegistrationError, match="could not be opened"):
        registration.settle(name)
    assert registration.settle(name).settled is Settled.NOT_TRIED
    assert not registration.is_open and len(tried) == 1


def test_statements_update_the_entries_of_the_tables_that_they_name(house: House) -> None:
    entries = MetastoreEntries(house.warehouse, house.registration)

    def run(text: str) -> list[str]:
        statement = house.warehouse.parsed(text.format(s=house.schema))
        names = entries.names(statement)
        house.warehouse.execute(statement)
        return list(entries.settle(names))

    def known() -> list[str]:
        return sorted(each.name for each in house.metastore.tables(house.schema))

    run("create table {s}.a as select 1 as id")
    run("create or replace table {s}.b as select 1 as id")
    run("create table {s}.c shallow clone {s}.a")
    run("create view {s}.v as select 1 as id")
    assert known() == ["a", "b", "c"]
    run("alter table {s}.a rename to d")
    run("alter table {s}.c rename to {s}.e")
    run("drop table {s}.b")
    assert known() == ["d", "e"]
    house.metastore.remove(house.schema, "d")
    assert not entries.names(house.warehouse.parsed(f"select * from {house.schema}.d"))
    run("select * from {s}.d")
    assert known() == ["e"]
    run("insert into {s}.d values (2)")
    assert known() == ["d", "e"]
    assert not entries.names(house.warehouse.parsed(f"insert into delta.`{house.folder}/{house.schema}/d` values (3)"))
    house.metastore.remove(house.schema, "d")
    house.metastore.add(RegisteredTable(house.schema, "d", "file:/theirs", None))
    (warning,) = run("delete from {s}.d")
    assert "another table has the name (file:/theirs)" in warning
    assert "silt_register" in run("create table {s}.`größe in m` as select 1 as id")[0]
    run("drop schema {s} cascade")
    assert known() == ["d"]
