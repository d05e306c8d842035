"""Clustered tables in transactions, on branches, as clones and in earlier versions."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by
from tests.unit.engine.house import House

ROWS = "select /*+ repartition(3) */ id, id % 5 as kind from range(30)"


def columns(house: House, table: str) -> list[str]:
    snapshot = house.log(table).snapshot()
    return clustered_by(snapshot.schema, snapshot.domains)


def files(house: House, table: str) -> list[AddFile]:
    return list(house.log(table).snapshot().add_files())


def is_clustered(house: House, table: str) -> bool:
    """Returns whether all files of a table are in cubes."""
    return all(each.clustering_provider and (each.tags or {}).get("ZCUBE_ID") for each in files(house, table))


def test_a_transaction_publishes_the_clustering_that_it_has_changed_with_its_rows(house: House) -> None:
    house.sql(f"create table t cluster by (id) as {ROWS}")
    house.sql("begin")
    house.sql("alter table t cluster by (kind)")
    house.sql("insert into t values (99, 9)")
    house.sql(f"create table made cluster by (kind, id) as {ROWS}")
    assert columns(house.another(), "t") == ["id"]
    house.sql("commit")
    assert (columns(house, "t"), columns(house, "made")) == (["kind"], ["kind", "id"])
    assert house.rows("select count(*) from t") == [(31,)]


def test_a_transaction_that_is_rolled_back_changes_no_clustering(house: House) -> None:
    house.sql(f"create table t cluster by (id) as {ROWS}")
    house.sql("begin")
    house.sql("alter table t cluster by none")
    house.sql("rollback")
    assert columns(house, "t") == ["id"]


def test_clustered_files_are_files_of_a_clone_and_of_a_restored_version(house: House) -> None:
    house.sql(f"create table t cluster by (id) as {ROWS}")
    house.sql("optimize t")
    clustered = house.log("t").snapshot().version
    house.sql("create table deep deep clone t")
    house.sql("create table shallow shallow clone t")
    house.sql("insert into t values (99, 9)")
    house.sql("alter table t cluster by none")
    house.sql(f"restore table t to version as of {clustered}")
    for name in ("t", "deep", "shallow"):
        assert columns(house, name) == ["id"] and is_clustered(house, name), name
        house.sql(f"insert into {name} {ROWS}")
        house.sql(f"optimize {name}")
        assert is_clustered(house, name) and house.rows(f"select count(*) from {name}") == [(60,)]
    house.sql(f"restore table t to version as of {clustered - 1}")
    assert house.rows("select count(*) from t") == [(30,)]


def test_two_writers_cannot_change_the_clustering_at_once(house: House) -> None:
    house.sql(f"create table t cluster by (id) as {ROWS}")
    house.sql("begin")
    house.sql("alter table t cluster by (kind)")
    house.another().sql("alter table t cluster by none")
    with pytest.raises(errors.ConcurrentModificationError):
        house.sql("commit")
    assert columns(house, "t") == []


def test_strings_with_a_collation_have_no_order_that_files_can_be_clustered_by(house: House) -> None:
    with pytest.raises(errors.UnsupportedStatementError, match="minimum and maximum"):
        house.sql("create table t (name string collate UTF8_LCASE) cluster by (name)")


def test_enforced_keys_are_found_in_clustered_files(house: House) -> None:
    house.sql("create table t (id bigint, kind bigint, constraint pk primary key (id) enforced) cluster by (kind)")
    house.sql(f"insert into t {ROWS}")
    house.sql("optimize t")
    with pytest.raises(errors.DataRejectedError):
        house.sql("insert into t values (7, 1)")
    house.sql("insert into t values (99, 1)")
    assert house.rows("select count(*) from t") == [(31,)]
