"""CREATE OR REPLACE over a relation of the other kind, in SQL."""

from __future__ import annotations

import threading

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, NotNullViolationError, RelationExistsError
from tests.unit.engine.house import House, side_by_side


def test_a_table_replaces_a_view_that_its_query_reads(house: House) -> None:
    house.sql("create view main.orders as select 1 as id, 'view' as kind")
    house.sql(
        "create or replace table main.orders as select id + 1 as id, 'table' as kind from main.orders", ("load", 1)
    )
    assert house.rows("select * from main.orders") == [(2, "table")]
    skipped = house.sql("create or replace table main.orders as select 9 as id, 'twice' as kind", ("load", 1))
    assert skipped.collect()[0]["skipped"]
    house.sql("drop table main.orders")
    assert house.rows("show tables in main") == []


def test_a_rerun_after_a_crash_behind_the_commit_applies_nothing_twice_and_removes_the_view(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.sql("create view main.orders as select 1 as id")
    table = "create or replace table main.orders as select id + 1 as id from main.orders"

    def crash(catalog: Catalog, *publication: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crashing:
        crashing.setattr(Catalog, "publish_table", crash)
        with pytest.raises(KeyboardInterrupt):
            house.sql(table, ("load", 1))
    is_named_by_its_folder = house.place.cloud is None
    assert house.rows("select * from main.orders") == [(2,) if is_named_by_its_folder else (1,)]
    assert house.sql(table, ("load", 1)).collect()[0]["skipped"] is is_named_by_its_folder
    assert house.rows("select * from main.orders") == [(2,)]
    kept = house.place.store("").files_below("")
    assert [file.path for file in kept if "_definitions" in file.path or ".view." in file.path] == []


def test_a_failed_creation_of_a_table_keeps_the_view(house: House) -> None:
    house.sql("create view main.orders as select 1 as id")
    with pytest.raises(NotNullViolationError):
        house.sql("create or replace table main.orders (id int not null) as select cast(null as int) as id")
    assert house.rows("select * from main.orders") == [(1,)]


def test_a_clone_replaces_a_view(house: House) -> None:
    house.sql("create table main.orders as select 1 as id")
    house.sql("create view main.copy as select 2 as id")
    house.sql("create or replace table main.copy shallow clone main.orders")
    assert house.rows("select * from main.copy") == [(1,)]


def test_a_view_replaces_a_table_only_on_request(house: House) -> None:
    house.sql("create table main.orders as select 1 as id")
    view = "create or replace view main.orders as select 2 as id"
    with pytest.raises(RelationExistsError, match="a table with that name exists"):
        house.sql(view)
    house.warehouse.execute(view, replace_tables=True)
    assert house.rows("select * from main.orders") == [(2,)]
    with pytest.raises(RelationExistsError, match="a view with that name exists"):
        house.sql("create table main.orders as select 3 as id")


def test_a_view_cannot_read_the_table_that_it_replaces(house: House) -> None:
    house.sql("create table main.orders as select 1 as id")
    house.sql("create view main.seen as select * from main.orders")
    for query in ("select * from main.orders", "select * from main.seen"):
        with pytest.raises(InvalidStatementError, match="reads itself"):
            house.warehouse.execute(f"create or replace view main.orders as {query}", replace_tables=True)
    assert house.rows("select * from main.orders") == [(1,)]


def test_a_concurrent_reader_always_sees_either_the_table_or_the_view(house: House) -> None:
    house.sql("create table main.orders as select 1 as id")
    other, done, turn = house.another(), threading.Event(), threading.Condition()
    seen: list[int] = []

    def read() -> None:
        try:
            while not done.is_set():
                [(value,)] = other.rows("select id from main.orders")
                with turn:
                    seen.append(value)  # type: ignore[arg-type]
                    turn.notify()
        finally:
            done.set()
            with turn:
                turn.notify()

    def after_a_read() -> None:
        """Waits for two reads, because the first may have started before the last change."""
        with turn:
            enough = len(seen) + 2
            turn.wait_for(lambda: len(seen) >= enough or done.is_set())

    def change() -> None:
        try:
            for _ in range(3):
                house.warehouse.execute("create or replace view main.orders as select 2 as id", replace_tables=True)
                after_a_read()
                house.sql("create or replace table main.orders as select 1 as id")
                after_a_read()
        finally:
            done.set()

    side_by_side([read, change])
    assert set(seen) == {1, 2}
